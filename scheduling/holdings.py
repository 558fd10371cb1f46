"""What each team holds beside what it may hold, per GPU model: for pages, API and commands."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction as F
from uuid import UUID

from scheduling.models import Node, Placement
from scheduling.snapshot import foreign_units, held
from scheduling.stuck import stuck_on
from tenants.quota import NOTHING, Quota, over, room, used_of_team
from tenants.selectors import quotas


@dataclass(frozen=True, slots=True)
class Holding:
    """One model of one team, in cards."""

    model: str
    granted: F  # to the team as a whole
    own: F  # to single members, all together
    held: F  # by all members
    free: F  # of the team's part; never negative
    over: F  # held above the quota, as after a grant has ended
    left: F  # what the member in question may still take: the team's free part and the rest of the own grants

    @property
    def total(self) -> F:
        return self.granted + self.own


def holdings(teams: Collection[UUID], now: datetime, *, member: int) -> Mapping[UUID, list[Holding]]:
    """Every model that a team holds or may hold, by model; `left` is the member's. Two queries."""
    granted = quotas(now, teams=teams)
    taken: dict[tuple[UUID, str], dict[int, F]] = defaultdict(dict)
    for (team, model, holder), cards in held(teams=teams).items():
        taken[(team, model)][holder] = cards
    found: dict[UUID, list[Holding]] = {team: [] for team in teams}
    for team, model in sorted({*granted, *taken}, key=lambda key: key[1]):
        quota = granted.get((team, model), Quota())
        found[team].append(_holding(model, quota, taken[(team, model)], member))
    return found


def units_held(nodes: Sequence[Node]) -> Mapping[int, dict[str, int]]:
    """By node and resource: the units that our placements, pods that do not go and foreign pods hold. One query."""
    found = {node.pk: Counter(foreign_units(node.foreign)) for node in nodes}
    for row in nodes:
        for pod in stuck_on(row):
            found[row.pk].update(pod.units)
    by_name = {(node.cluster_id, node.name): node.pk for node in nodes}
    rows = Placement.objects.filter(ended_at=None, node__in=[node.name for node in nodes])
    for cluster, node, resource, units in rows.values_list("cluster_id", "node", "resource", "workload__count"):
        if pk := by_name.get((cluster, node)):
            found[pk][resource] += units
    return {pk: dict(units) for pk, units in found.items()}


def _holding(model: str, quota: Quota, taken: Mapping[int, F], member: int) -> Holding:
    return Holding(
        model=model,
        granted=quota.granted,
        own=sum(quota.own.values(), NOTHING),
        held=sum(taken.values(), NOTHING),
        free=max(NOTHING, quota.granted - used_of_team(quota.own, taken)),
        over=over(quota, taken),
        left=room(quota, taken, member),
    )
