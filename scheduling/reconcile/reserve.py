"""Taking a place: the one moment in which quota becomes held. The database decides, whatever the plan believed.

The plan was made from a picture of one cluster. Under a lock on the team's row the room is computed again from the
tables of all clusters, so that two cycles cannot spend the same card of a quota.
"""

from datetime import datetime
from fractions import Fraction as F
from typing import Any

from django.db import transaction

from scheduling.changes import Step, move, note
from scheduling.models import Placement, Workload
from scheduling.planning.actions import Place
from scheduling.planning.facts import Desired, Phase, Reason
from scheduling.snapshot import held
from tenants.models import Team
from tenants.quota import room
from tenants.selectors import quota_of


@transaction.atomic
def reserve(action: Place, now: datetime) -> Workload | None:
    """Hold the share for the workload and open its placement; None when it no longer waits or there is no room."""
    row = Workload.objects.select_related("team", "flavor").get(pk=action.workload)
    Team.objects.select_for_update().get(pk=row.team_id)
    row.refresh_from_db()
    if row.phase != Phase.WAITING or row.desired != Desired.RUN:
        return None
    left = _room(row, now)
    if action.share > left:
        note(row, Reason.WAITING_FOR_QUOTA, f"{left} cards of the quota are left; this needs {action.share}.", now)
        return None
    attempt = row.attempt + 1
    text = f"Placed on {action.node} in pool {action.pool}."
    facts: dict[str, Any] = {"attempt": attempt, "idle_since": None, "unfinished_puts": row.unfinished_puts + 1}
    if not move(row, Step(Phase.PLACED, Reason.PLACED, text, now), **facts):
        return None
    Placement.objects.create(
        workload=row,
        attempt=attempt,
        cluster_id=row.cluster_id,
        pool=action.pool,
        node=action.node,
        resource=action.resource,
        flavor_id=row.flavor_id,
        share=action.share,
        namespace=row.team.namespace,
        placed_at=now,
    )
    return row


def _room(row: Workload, now: datetime) -> F:
    model = row.flavor.model
    quota = quota_of(row.team_id, model, now)
    by_member = {member: cards for (team, of, member), cards in held(teams=[row.team_id]).items() if of == model}
    return room(quota, by_member, row.owner_id)
