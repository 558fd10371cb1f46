"""Taking places: the one moment in which quota becomes held. The database decides, whatever the plan believed.

The plan was made from a picture of one cluster. Under locks on the teams' rows the room is computed again from the
tables of all clusters, so that two cycles cannot spend the same card of a quota.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from fractions import Fraction as F
from uuid import UUID

from django.db import transaction

from scheduling.changes import Change, Step, move_all, note
from scheduling.models import Placement, Workload
from scheduling.planning.actions import Place
from scheduling.planning.facts import Desired, Phase, Reason
from scheduling.snapshot import held
from tenants.models import Team
from tenants.quota import Quota, room
from tenants.selectors import quotas

Taken = tuple[Workload, Placement]


class Rooms:
    """What the teams' members may still take, counted down as places are given out. Two queries."""

    def __init__(self, teams: Iterable[UUID], now: datetime) -> None:
        teams = list(teams)
        self._quotas = quotas(now, teams=teams)
        self._held: defaultdict[tuple[UUID, str], defaultdict[int, F]] = defaultdict(lambda: defaultdict(F))
        for (team, model, member), cards in held(teams=teams).items():
            self._held[team, model][member] = cards

    def left(self, row: Workload) -> F:
        line = row.team_id, row.flavor.model
        return room(self._quotas.get(line, Quota()), self._held[line], row.owner_id)

    def take(self, row: Workload, share: F) -> None:
        self._held[row.team_id, row.flavor.model][row.owner_id] += share


def reserve(action: Place, now: datetime) -> Workload | None:
    """Hold the share for one workload and open its placement; None when it no longer waits or there is no room."""
    taken = reserve_all([action], now)
    return taken[0][0] if taken else None


@transaction.atomic
def reserve_all(actions: Sequence[Place], now: datetime) -> list[Taken]:
    """Hold the shares of all that still wait and have room, in the order of the plan, and open their placements.

    The teams' rows are locked in one order, so that two cycles never wait for each other.
    """
    wanted = [action.workload for action in actions]
    teams = sorted(set(Workload.objects.filter(pk__in=wanted).values_list("team_id", flat=True)))
    list(Team.objects.select_for_update().filter(pk__in=teams).order_by("pk"))
    rows = {row.pk: row for row in _rows(wanted)}
    rooms = Rooms(teams, now)
    chosen: list[tuple[Place, Change]] = []
    for action in actions:
        row = rows.get(action.workload)
        if row is None or row.phase != Phase.WAITING or row.desired != Desired.RUN:
            continue
        left = rooms.left(row)
        if action.share > left:
            text = f"{left} cards of the quota are left; this needs {action.share}."
            note(row, Reason.WAITING_FOR_QUOTA, text, now)
            continue
        rooms.take(row, action.share)
        chosen.append((action, _change(row, action, now)))
    moved = {row.pk for row in move_all([change for _, change in chosen])}
    taken = [(change.row, placement_of(change.row, action)) for action, change in chosen if change.row.pk in moved]
    Placement.objects.bulk_create([placement for _, placement in taken])
    return taken


def placement_of(row: Workload, action: Place) -> Placement:
    return Placement(
        workload=row,
        attempt=row.attempt,
        cluster_id=row.cluster_id,
        pool=action.pool,
        node=action.node,
        resource=action.resource,
        flavor_id=row.flavor_id,
        share=action.share,
        namespace=row.team.namespace,
        placed_at=row.phase_since,
    )


def _rows(wanted: Sequence[UUID]) -> Iterable[Workload]:
    return Workload.objects.filter(pk__in=wanted).prefetch_related("team", "flavor", "cluster")


def _change(row: Workload, action: Place, now: datetime) -> Change:
    text = f"Placed on {action.node} in pool {action.pool}."
    facts = {"attempt": row.attempt + 1, "idle_since": None, "unfinished_puts": row.unfinished_puts + 1}
    return Change(row, Step(Phase.PLACED, Reason.PLACED, text, now), facts)
