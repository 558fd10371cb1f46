"""Act: every action may be repeated, and no transaction spans a call to the cluster.

A row is written before the call that it announces. Whatever dies in between is mended by the next look: what is placed
but not in the cluster is put again, what stops but still stands is removed again. An action that fails, however it
fails, does not stop the others; a workload that always fails, or always kills its worker, is tried less and less often
and then ends. Actions of one kind on workloads are carried out several at a time (`chores.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial, singledispatch
from itertools import groupby
from typing import Any

from scheduling.changes import Change, Step, move_all
from scheduling.cluster import names
from scheduling.cluster.port import ClusterError, ClusterPort
from scheduling.models import Cluster, Workload
from scheduling.planning.actions import Action, Cut, Note, Place, Plan, Queue, Reopen, Resize, Sleep, Stop, Withdraw
from scheduling.planning.facts import Phase, Reason
from scheduling.reconcile import queue_work
from scheduling.reconcile.chores import Done, TakenOver, attempt, still_ours
from scheduling.reconcile.hands import Hands
from scheduling.reconcile.lease import Lease
from scheduling.reconcile.observe import Look
from scheduling.reconcile.putting import blame, place
from scheduling.reconcile.repairs import repair
from scheduling.reconcile.stopping import stop

WHY_IT_PAUSES = (Reason.BACKING_OFF, Reason.POD_LOST, Reason.REJECTED_BY_NODE)


def apply(plan: Plan, cluster: Cluster, port: ClusterPort, look: Look, ours: Lease | None = None) -> Done:
    """Carry out a plan; an action that fails is told and does not stop the rest.

    With a lease, each batch asks first whether it is still ours: a worker that was asleep does no harm.
    """
    hands = Hands(cluster, port, look, ours)
    try:
        for kind, actions in groupby(plan.actions, type):
            TOGETHER.get(kind, one_by_one)(list(actions), hands)
        repair(hands, plan)
    except TakenOver:
        hands.done.failures.append("Another worker took over this cluster; the rest of the plan is left to it.")
    return hands.done


def one_by_one(actions: Sequence[Action], hands: Hands) -> None:
    for action in actions:
        still_ours(hands.ours)
        attempt(action, partial(carry_out, action, hands), hands.done)


def tell(actions: Sequence[Note], hands: Hands) -> None:
    """New reasons of those who wait. What was said before is not written again, nor even asked for."""
    changes = []
    for action in actions:
        row = hands.row(action.workload)
        if row is not None and row.phase == Phase.WAITING and _is_news(row, action, hands.now):
            changes.append(Change(row, Step(Phase.WAITING, action.reason, action.text, hands.now)))
    move_all(changes)


@singledispatch
def carry_out(action: Action, hands: Hands) -> bool:
    """Do one action on a node or a pool; True when something was done that is worth a line in the report."""
    raise TypeError(f"There is no way to carry out a {type(action).__name__}.")


@carry_out.register
def _(action: Queue, hands: Hands) -> bool:
    try:
        return queue_work.hand_over(action.workload, hands)
    except ClusterError as error:
        if not error.retry:
            blame(action.workload, f"The cluster refused it: {error}", hands)
        raise


@carry_out.register
def _(action: Reopen, hands: Hands) -> bool:
    hands.port.cordon(action.node, on=False, marks={names.CUTTING_TO: None, names.LEAVING: None})
    return True


@carry_out.register
def _(action: Cut, hands: Hands) -> bool:
    """Cordon and mark; the next look makes sure that nothing landed meanwhile before the label changes."""
    hands.port.cordon(action.node, on=True, marks={names.CUTTING_TO: action.after})
    return True


@carry_out.register
def _(action: Withdraw, hands: Hands) -> bool:
    """Cordon and mark; the next look makes sure that the node is still empty before the pool shrinks (Z14)."""
    hands.port.cordon(action.node, on=True, marks={names.LEAVING: hands.now.isoformat(timespec="seconds")})
    return True


@carry_out.register
def _(action: Resize, hands: Hands) -> bool:
    hands.port.resize(action.pool, action.after, action.drop)
    return True


def _is_news(row: Workload, action: Note, now: datetime) -> bool:
    pauses = row.not_before is not None and now < row.not_before
    if pauses and action.reason == Reason.BACKING_OFF and row.phase_reason in WHY_IT_PAUSES:
        return False  # what its owner reads already says why, and until when
    return (row.phase_reason, row.phase_text) != (action.reason, action.text[:500])


TOGETHER: Mapping[type, Callable[[Any, Hands], None]] = {Stop: stop, Sleep: stop, Place: place, Note: tell}
