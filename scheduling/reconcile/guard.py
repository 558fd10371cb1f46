"""Doubt: does this plan look like a mistake? A refused plan is shown to the operator and nothing is done.

Pure. The bounds are meant for correct plans made from wrong pictures: an empty list must never stop everybody's work.
"""

from scheduling.planning.actions import Plan, Resize, Sleep, Stop, Withdraw
from scheduling.planning.facts import HOLDING, Desired, Snapshot

FEWEST = 10
MOST_PART = 3  # more than a third


def guard(plan: Plan, snapshot: Snapshot) -> str:
    """Why the plan is not to be carried out, in a sentence; empty when it may be."""
    for doubt in (_incomplete, _too_many_stops, _emptied_pool):
        if text := doubt(plan, snapshot):
            return text
    return ""


def _incomplete(plan: Plan, snapshot: Snapshot) -> str:
    risky = [action for action in plan.actions if isinstance(action, Stop | Withdraw | Resize)]
    if snapshot.complete or not risky:
        return ""
    return f"The picture of the cluster is incomplete, so {len(risky)} stops and resizes wait for a complete one."


def _too_many_stops(plan: Plan, snapshot: Snapshot) -> str:
    """More than a third, and at least ten, of what holds cards stopped without its owner asking."""
    asked = {workload.id for workload in snapshot.workloads if workload.desired != Desired.RUN}
    over = {workload.id for workload in snapshot.workloads if workload.ends_at and workload.ends_at <= snapshot.now}
    holding = {workload.id for workload in snapshot.workloads if workload.phase in HOLDING}
    stopped = {action.workload for action in plan.actions if isinstance(action, Stop | Sleep)} & holding
    unasked = stopped - asked - over
    if len(unasked) < FEWEST or len(unasked) * MOST_PART <= len(holding):
        return ""
    return (
        f"The plan would stop {len(unasked)} of {len(holding)} running workloads that nobody asked to stop. "
        "Look at the cluster; resume it by hand if this is right."
    )


def _emptied_pool(plan: Plan, snapshot: Snapshot) -> str:
    """A pool shrunk to nothing while something holds cards on it."""
    busy = {workload.pool for workload in snapshot.workloads if workload.phase in HOLDING and workload.pool}
    for action in plan.actions:
        if isinstance(action, Resize) and action.after == 0 and action.pool in busy:
            return f"The plan would empty pool {action.pool} while workloads run on it."
    return ""
