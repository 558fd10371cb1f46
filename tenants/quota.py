"""Arithmetic over the tree of grants. Pure: values in, values out; shares are exact fractions of one card.

The idea in three rules:

* Quota is the sum of the grants in force. A member's own grants stand beside the team's: what a member holds is drawn
  from the member's own grants first, and only the rest from the team's.
* A parent's numbers bound its children's: at no instant may the children's grants of a model sum to more than what the
  parent has been granted. A team without a parent is bounded by nothing but the operator.
* Lowering a quota below what is held makes the room zero, never negative, and kills nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction as F
from uuid import UUID

NOTHING = F(0)


@dataclass(frozen=True, slots=True)
class GrantLine:
    """One grant, as far as arithmetic goes; half-open [starts_at, ends_at), open-ended with None."""

    team: UUID
    model: str
    amount: F
    starts_at: datetime
    ends_at: datetime | None = None
    member: int | None = None

    def in_force(self, at: datetime) -> bool:
        return self.starts_at <= at and (self.ends_at is None or at < self.ends_at)


@dataclass(frozen=True, slots=True)
class Quota:
    """What one team may hold of one model: its own part, and its members' own grants beside it."""

    granted: F = NOTHING
    own: Mapping[int, F] = field(default_factory=dict)

    @property
    def total(self) -> F:
        return self.granted + sum(self.own.values(), NOTHING)


def quota_at(lines: Iterable[GrantLine], team: UUID, model: str, at: datetime) -> Quota:
    """The grants of one team and model in force at an instant, added up."""
    granted, own = NOTHING, dict[int, F]()
    for line in lines:
        if line.team != team or line.model != model or not line.in_force(at):
            continue
        if line.member is None:
            granted += line.amount
        else:
            own[line.member] = own.get(line.member, NOTHING) + line.amount
    return Quota(granted, own)


def used_of_team(own: Mapping[int, F], held: Mapping[int, F]) -> F:
    """Cards drawn from the team's part: what each member holds beyond the member's own grants."""
    return sum((max(NOTHING, cards - own.get(member, NOTHING)) for member, cards in held.items()), NOTHING)


def room(quota: Quota, held: Mapping[int, F], member: int) -> F:
    """Cards that `member` may still take: the rest of the team's part and of the own grants, never negative."""
    of_team = max(NOTHING, quota.granted - used_of_team(quota.own, held))
    of_member = max(NOTHING, quota.own.get(member, NOTHING) - held.get(member, NOTHING))
    return of_team + of_member


def over(quota: Quota, held: Mapping[int, F]) -> F:
    """Cards held above the quota, as after a grant has ended; zero when within."""
    return max(NOTHING, used_of_team(quota.own, held) - quota.granted)


def tightest_room(
    parent: Sequence[GrantLine], children: Sequence[GrantLine], starts_at: datetime, ends_at: datetime | None
) -> F:
    """The least that a parent still has to give at any instant of [starts_at, ends_at).

    `parent` are the parent's grants of one model, `children` those of all its children. Only the instants at which
    a line begins or ends can matter.
    """
    instants = {starts_at}
    for line in (*parent, *children):
        instants.update(edge for edge in (line.starts_at, line.ends_at) if edge is not None)
    within = [at for at in instants if starts_at <= at and (ends_at is None or at < ends_at)]
    return min(_left_at(parent, children, at) for at in within)


def _left_at(parent: Sequence[GrantLine], children: Sequence[GrantLine], at: datetime) -> F:
    given = sum((line.amount for line in children if line.in_force(at)), NOTHING)
    return sum((line.amount for line in parent if line.in_force(at)), NOTHING) - given
