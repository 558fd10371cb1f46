"""Reading grants and requests. Selectors return; they never write."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction as F
from typing import Any
from uuid import UUID

from django.db.models import Min, Q, QuerySet

from tenants.access import Standing
from tenants.models import Grant, Membership, QuotaRequest, Role, Team, User
from tenants.quota import NOTHING, GrantLine, Quota, quota_at, tightest_room


@dataclass(frozen=True, slots=True)
class Effect:
    """What approving a request would do to the numbers, in cards of its model."""

    granted_before: F  # the team's whole quota, members' own grants included
    granted_after: F
    own_before: F  # the asker's own grants
    own_after: F
    parent_left_before: F | None  # what the parent has not given to anybody; None for a team without a parent
    parent_left_after: F | None

    @property
    def possible(self) -> bool:
        return self.parent_left_after is None or self.parent_left_after >= NOTHING


def grants_in_force(at: datetime, *, teams: Iterable[UUID] | None = None) -> QuerySet[Grant]:
    found = Grant.objects.filter(Q(ends_at=None) | Q(ends_at__gt=at), starts_at__lte=at)
    return found if teams is None else found.filter(team__in=list(teams))


def line_of(grant: Grant) -> GrantLine:
    return GrantLine(
        team=grant.team_id,
        model=grant.model,
        amount=grant.amount,
        starts_at=grant.starts_at,
        ends_at=grant.ends_at,
        member=grant.member_id,
    )


def quotas(at: datetime, *, teams: Iterable[UUID] | None = None) -> Mapping[tuple[UUID, str], Quota]:
    """What each team may hold of each model at an instant. One query."""
    lines: dict[tuple[UUID, str], list[GrantLine]] = defaultdict(list)
    for grant in grants_in_force(at, teams=teams):
        lines[(grant.team_id, grant.model)].append(line_of(grant))
    return {key: quota_at(found, key[0], key[1], at) for key, found in lines.items()}


def next_change(at: datetime) -> datetime | None:
    """The next instant after `at` at which a grant begins or ends; None where none is foreseen. One query."""
    found = Grant.objects.aggregate(
        begins=Min("starts_at", filter=Q(starts_at__gt=at)), ends=Min("ends_at", filter=Q(ends_at__gt=at))
    )
    return min((instant for instant in found.values() if instant is not None), default=None)


def quota_of(team: UUID, model: str, at: datetime) -> Quota:
    return quotas(at, teams=[team]).get((team, model), Quota())


def left_to_give(parent: UUID, model: str, starts_at: datetime, ends_at: datetime | None) -> F:
    """The least that a parent still has to give of a model at any instant of the period. Two queries."""
    own = [line_of(grant) for grant in Grant.objects.filter(team=parent, model=model)]
    given = [line_of(grant) for grant in Grant.objects.filter(team__parent=parent, model=model)]
    return tightest_room(own, given, starts_at, ends_at)


def effect_of(request: QuotaRequest, amount: F, until: datetime | None, at: datetime) -> Effect:
    """The numbers before and after approving `amount` until `until`. Three queries at most."""
    quota = quota_of(request.team_id, request.model, at)
    own = quota.own.get(request.asked_by_id, NOTHING)
    parent = request.team.parent_id
    left = left_to_give(parent, request.model, at, until) if parent else None
    return Effect(
        granted_before=quota.total,
        granted_after=quota.total + amount,
        own_before=own,
        own_after=own + amount,
        parent_left_before=left,
        parent_left_after=None if left is None else left - amount,
    )


def effects_of(requests: Sequence[QuotaRequest], at: datetime) -> Mapping[UUID, Effect]:
    """The effect of approving each request as it was asked. Three queries, however many requests."""
    found = quotas(at, teams={request.team_id for request in requests})
    parents = {request.team.parent_id for request in requests if request.team.parent_id}
    own, given = _lines_by_team(team__in=parents), _lines_by_parent(parents)
    effects = {}
    for request in requests:
        quota = found.get((request.team_id, request.model), Quota())
        mine = quota.own.get(request.asked_by_id, NOTHING)
        left = None
        if parent := request.team.parent_id:
            key = (parent, request.model)
            left = tightest_room(own.get(key, []), given.get(key, []), at, request.until)
        effects[request.pk] = Effect(
            granted_before=quota.total,
            granted_after=quota.total + request.amount,
            own_before=mine,
            own_after=mine + request.amount,
            parent_left_before=left,
            parent_left_after=None if left is None else left - request.amount,
        )
    return effects


def leads_of(team: Team) -> list[User]:
    """Who decides for a team: its own leads first, then those of the teams above. Two queries."""
    parents = dict(Team.objects.values_list("pk", "parent"))
    line: list[UUID] = []
    current: UUID | None = team.pk
    while current is not None and current not in line:
        line.append(current)
        current = parents.get(current)
    rows = Membership.objects.filter(team__in=line, role=Role.LEAD, user__is_active=True).select_related("user")
    nearest_first = sorted(rows, key=lambda row: (line.index(row.team_id), str(row.user)))
    return list(dict.fromkeys(row.user for row in nearest_first))


def requests_for(stand: Standing) -> QuerySet[QuotaRequest]:
    """Requests that the person may see: the own ones, those of the teams led, all for the operator."""
    found = QuotaRequest.objects.select_related("team", "asked_by", "decided_by")
    if stand.is_operator:
        return found
    led = [team.pk for team in stand.teams_with(Role.LEAD)]
    return found.filter(Q(asked_by=stand.user) | Q(team__in=led))


def _lines_by_team(**which: Any) -> Mapping[tuple[UUID, str], list[GrantLine]]:
    found: dict[tuple[UUID, str], list[GrantLine]] = defaultdict(list)
    for grant in Grant.objects.filter(**which):
        found[(grant.team_id, grant.model)].append(line_of(grant))
    return found


def _lines_by_parent(parents: Collection[UUID]) -> Mapping[tuple[UUID, str], list[GrantLine]]:
    """What each parent has given to its children, by parent and model."""
    found: dict[tuple[UUID, str], list[GrantLine]] = defaultdict(list)
    for grant in Grant.objects.filter(team__parent__in=parents).select_related("team"):
        if parent := grant.team.parent_id:
            found[(parent, grant.model)].append(line_of(grant))
    return found
