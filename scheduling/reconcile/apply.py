"""Act: every action may be repeated, and no transaction spans a call to the cluster.

A row is written before the call that it announces. Whatever dies in between is mended by the next look: what is placed
but not in the cluster is put again, what stops but still stands is removed again. An action that fails, however it
fails, does not stop the others; a workload that always fails, or always kills its worker, is tried less and less often
and then ends.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from datetime import timedelta as td
from functools import cached_property, partial, singledispatch
from uuid import UUID

from django.db import InterfaceError, OperationalError
from django.db.models import F as Column
from django.db.models import Q

from scheduling.changes import Step, move, note
from scheduling.cluster import names
from scheduling.cluster.port import ClusterError, ClusterPort, Ref
from scheduling.models import Cluster, Placement, Workload
from scheduling.planning.actions import (
    Action,
    Cut,
    Note,
    Place,
    Plan,
    Queue,
    Reopen,
    Resize,
    Sleep,
    Stop,
    Withdraw,
)
from scheduling.planning.facts import Desired, Kind, NodeFact, ObjectFact, Phase, PodFact, Reason
from scheduling.planning.pods import holds
from scheduling.planning.retries import MOST_FAILURES, back_off
from scheduling.planning.wording import instant
from scheduling.reconcile import forced, launch, queueing, reserve
from scheduling.reconcile.drift import drifts
from scheduling.reconcile.lease import Lease, LeaseLost
from scheduling.reconcile.observe import Look
from scheduling.reconcile.steps import Found, arrived, found_in
from scheduling.snapshot import stopping_to

PUT_PATIENCE = td(minutes=1)  # with a cluster that answers and does not take it, until the place is given back
COMING_UP = (Phase.PLACED, Phase.STARTING, Phase.RUNNING)
MOST_DEATHS = 2  # of workers in one put of a workload, before it has to wait as after a failure
WHY_IT_PAUSES = (Reason.BACKING_OFF, Reason.POD_LOST, Reason.REJECTED_BY_NODE)
NOT_ITS_FAULT = (LeaseLost, OperationalError, InterfaceError)  # these end the look

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Done:
    """What was done and what could not be, in sentences."""

    actions: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    again: bool = False


@dataclass(frozen=True)
class Hands:
    """What an action needs to be carried out."""

    cluster: Cluster
    port: ClusterPort
    look: Look

    @property
    def now(self) -> datetime:
        return self.look.snapshot.now

    @cached_property
    def found(self) -> Found:
        return found_in(self.look.seen)

    def object_of(self, workload: Workload) -> ObjectFact | None:
        return self.found.objects.get(workload.pk)

    def orphans_of(self, workload: Workload) -> list[PodFact]:
        """Pods of ours whose object was deleted over their heads (`kubectl delete --cascade=orphan`)."""
        pods = self.found.pods.get(workload.pk, ())
        return [pod for pod in pods if holds(pod) and pod.deleting_since is None]


def apply(plan: Plan, cluster: Cluster, port: ClusterPort, look: Look, ours: Lease | None = None) -> Done:
    """Carry out a plan; an action that fails is told and does not stop the rest.

    With a lease, each action asks first whether it is still ours: a worker that was asleep does no harm.
    """
    hands, done = Hands(cluster, port, look), Done()
    for action in plan.actions:
        if ours is not None and not isinstance(action, Note) and not ours.prolong():
            done.failures.append("Another worker took over this cluster; the rest of the plan is left to it.")
            return done
        trouble = _carry_out(partial(carry_out, action, hands), action, done)
        if trouble and isinstance(action, Place):
            _blame(action.workload, trouble, hands)
    for text, repair in repairs(hands):
        _carry_out(repair, text, done)
    return done


def repairs(hands: Hands) -> Iterator[tuple[str, Callable[[], bool]]]:
    """What an earlier cycle began and did not finish, as far as a complete look shows it."""
    if not hands.look.seen.complete:
        return
    yield from forced.removals(hands.cluster, hands.port, hands.look.seen, hands.now)
    unfinished = Q(phase__in=COMING_UP) & ~Q(furnished=Column("attempt"))
    asked = Q(phase__in=[Phase.PLACED, Phase.STOPPING, Phase.WAITING]) | unfinished
    rows = Workload.objects.filter(asked, cluster=hands.cluster)
    for row in rows.select_related("team", "flavor").order_by("unfinished_puts", "asked_at", "id"):
        item = hands.object_of(row)
        if hands.look.queue is not None and row.phase in (Phase.PLACED, Phase.WAITING):
            continue  # Kueue and the Job's controller go on with it
        if row.phase == Phase.PLACED and not arrived(row, item) and row.phase_since < hands.now:
            yield f"put {row.name} again", partial(put_again, row, hands)
        elif row.phase in COMING_UP and row.furnished != row.attempt and arrived(row, item):
            yield f"put what belongs to {row.name}", partial(furnish, row, hands)
        elif row.phase == Phase.STOPPING and stands(item):
            yield f"stop {row.name} again", partial(take_down, row, hands)
        elif row.phase == Phase.STOPPING and item is None and hands.orphans_of(row):
            yield f"remove the pods that {row.name} left behind", partial(remove_orphans, row, hands)
        elif row.phase == Phase.WAITING and stands(item):
            yield f"clear the last attempt of {row.name}", partial(clear, row, hands)
    yield from _cuts(hands)
    yield from _leftovers(hands)
    if hands.look.queue is None:
        yield from drifts(hands)
    else:
        yield from queueing.repairs(hands.look.queue, hands)


@singledispatch
def carry_out(action: Action, hands: Hands) -> bool:
    """Do one action; True when something was done that is worth a line in the report."""
    raise TypeError(f"There is no way to carry out a {type(action).__name__}.")


@carry_out.register
def _(action: Stop, hands: Hands) -> bool:
    row = Workload.objects.select_related("team", "flavor", "quota_request").get(pk=action.workload)
    reason, text = _why_it_ends(row, action)
    if row.phase in (Phase.WAITING, Phase.ASLEEP):
        launch.remove_all(row, hands.port, storage=True)
        return move(row, Step(Phase.ENDED, reason, text, hands.now), by=row.desired_by)
    return _stop(row, reason, text, hands)


@carry_out.register
def _(action: Sleep, hands: Hands) -> bool:
    row = Workload.objects.select_related("team", "flavor").get(pk=action.workload)
    if row.phase == Phase.WAITING:
        if hands.look.queue is not None:
            launch.remove_all(row, hands.port, storage=False)
        return move(row, Step(Phase.ASLEEP, action.reason, action.text, hands.now), by=row.desired_by)
    return _stop(row, action.reason, action.text, hands)


@carry_out.register
def _(action: Place, hands: Hands) -> bool:
    row = reserve.reserve(action, hands.now)
    return row is not None and put(row, hands)


@carry_out.register
def _(action: Queue, hands: Hands) -> bool:
    try:
        return queueing.hand_over(action.workload, hands)
    except ClusterError as error:
        if not error.retry:
            _blame(action.workload, f"The cluster refused it: {error}", hands)
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


@carry_out.register
def _(action: Note, hands: Hands) -> bool:
    row = Workload.objects.get(pk=action.workload)
    pauses = row.not_before is not None and hands.now < row.not_before
    if pauses and action.reason == Reason.BACKING_OFF and row.phase_reason in WHY_IT_PAUSES:
        return False  # what its owner reads already says why, and until when
    if row.phase == Phase.WAITING:
        note(row, action.reason, action.text, hands.now)
    return False


def put(row: Workload, hands: Hands) -> bool:
    """Bring the documents of a placed workload into the cluster. What the cluster refuses for good is not repeated."""
    try:
        return _put(row, hands)
    except ClusterError as error:
        if not error.retry:
            said = f"The cluster refused it: {error.for_everybody}" if error.__cause__ is None else str(error)
            _give_back(row, said, hands, Reason.BACKING_OFF)
        elif error.status is not None:
            _not_taken(row, error, hands)
        raise
    finally:
        Workload.objects.filter(pk=row.pk).update(unfinished_puts=0)


def put_again(row: Workload, hands: Hands) -> bool:
    """Once more what an earlier look began. What killed its workers has to wait; the count is raised before the put."""
    if row.unfinished_puts >= MOST_DEATHS:
        text = f"{row.unfinished_puts} workers in a row died while they put it into the cluster."
        return _give_back(row, text, hands, Reason.BACKING_OFF)
    Workload.objects.filter(pk=row.pk).update(unfinished_puts=Column("unfinished_puts") + 1)
    return put(row, hands)


def furnish(row: Workload, hands: Hands) -> bool:
    """What belongs to an object that is there, when the put broke off between the two: its pod waits for that."""
    placement = Placement.objects.filter(workload=row, ended_at=None).first()
    item = hands.object_of(row)
    node = hands.found.nodes.get(placement.node) if placement else None
    if placement is None or item is None or node is None or item.deleting_since is not None:
        return False
    launch.furnish(row, placement, node, item, hands.port)
    return True


def clear(row: Workload, hands: Hands) -> bool:
    """An attempt is over and the workload waits: its pods go, its storage stays."""
    if row.kind == Kind.WORKSPACE:
        hands.port.scale(launch.ref_of(row), 0)
    else:
        launch.remove_all(row, hands.port, storage=False)
    return True


def remove_orphans(row: Workload, hands: Hands) -> bool:
    removed = [hands.port.remove(Ref("Pod", pod.namespace, pod.name, pod.uid)) for pod in hands.orphans_of(row)]
    return any(removed)


def take_down(row: Workload, hands: Hands) -> bool:
    """Scale a workspace that goes to sleep to zero; remove everything else."""
    if stopping_to(row) == Phase.ASLEEP and hands.look.queue is not None:
        launch.remove_all(row, hands.port, storage=False)
        return True
    if stopping_to(row) == Phase.ASLEEP:
        hands.port.scale(launch.ref_of(row), 0)
        return True
    launch.remove_all(row, hands.port, storage=True)
    return True


def stands(item: ObjectFact | None) -> bool:
    """Whether an object is there, wants pods, and nobody has told it to go yet."""
    return item is not None and item.deleting_since is None and item.replicas > 0


def _stop(row: Workload, reason: Reason, text: str, hands: Hands) -> bool:
    if row.phase != Phase.STOPPING and not move(
        row, Step(Phase.STOPPING, reason, text, hands.now), by=row.desired_by if row.desired != Desired.RUN else None
    ):
        return False
    return take_down(row, hands)


def _why_it_ends(row: Workload, action: Stop) -> tuple[Reason, str]:
    """A denied request says so in the decider's own words."""
    request = row.quota_request
    if action.reason == Reason.ASKED_TO_END and request is not None and request.state == "denied":
        return Reason.DENIED, f"{request.decided_by} denied the request: {request.note}"
    return action.reason, action.text


def _put(row: Workload, hands: Hands) -> bool:
    placement = Placement.objects.get(workload=row, ended_at=None)
    item = hands.object_of(row)
    if item is not None and item.kind == "Job":  # a Job's pods cannot be changed: the last attempt's has to go first
        launch.remove_all(row, hands.port, storage=False)
        return True
    node = hands.found.nodes.get(placement.node)
    if node is None:
        return _give_back(row, f"Node {placement.node} is gone; a new place is sought.", hands, Reason.NODE_LOST)
    try:
        launch.put_all(row, placement, node, hands.port)
    except (ClusterError, *NOT_ITS_FAULT):
        raise
    except Exception as fault:
        log.exception("Putting %s broke.", row.pk)
        raise ClusterError(_unforeseen(fault), retry=False) from fault
    return True


def _blame(workload: UUID, trouble: str, hands: Hands) -> None:
    """What nobody foresaw happened to one workload: that is a failure of this attempt, so it is not tried at once."""
    row = Workload.objects.filter(pk=workload, phase__in=[Phase.WAITING, Phase.PLACED]).first()
    if row is not None:
        _give_back(row, trouble, hands, Reason.BACKING_OFF)


def _not_taken(row: Workload, error: ClusterError, hands: Hands) -> None:
    """The cluster answers and does not take it now, as while a namespace goes: its owner is told why, and after a while
    the place is given back. That is not the workload's fault, so it never ends by it.
    """
    if row.phase != Phase.PLACED:
        return
    if hands.now - row.phase_since < PUT_PATIENCE:
        note(
            row,
            Reason.PLACED,
            f"It has a place, and the cluster does not take it yet: {error.for_everybody}",
            hands.now,
        )
        return
    _give_back(row, f"The cluster does not take it: {error.for_everybody}", hands, Reason.BACKING_OFF, may_end=False)


def _give_back(row: Workload, text: str, hands: Hands, reason: Reason, *, may_end: bool = True) -> bool:
    """Undo a placement that never came to be: back in line after a pause that doubles, or the end after five tries."""
    failures = row.failures + 1 if may_end else min(row.failures + 1, MOST_FAILURES - 1)
    ends = may_end and failures >= MOST_FAILURES
    until = hands.now + back_off(failures)
    words = text if ends else f"{text} It is tried again from {instant(until)} on."
    step = Step(Phase.ENDED if ends else Phase.WAITING, Reason.FAILED if ends else reason, words, hands.now)
    if not move(row, step, failures=failures, not_before=until):
        return False
    Placement.objects.filter(workload=row, ended_at=None).update(ended_at=hands.now)
    return True


def _cuts(hands: Hands) -> Iterator[tuple[str, Callable[[], bool]]]:
    """Nodes cordoned for a cut that are seen to hold nothing: now the layout is asked for."""
    held = {pod.node for pod in hands.look.seen.pods if pod.requests and pod.phase not in ("Succeeded", "Failed")}
    for node in hands.look.snapshot.nodes:
        if node.cutting_to and node.mig_config != node.cutting_to and node.name not in held:
            yield f"ask node {node.name} for layout {node.cutting_to}", partial(_ask_for, node, hands)


def _ask_for(node: NodeFact, hands: Hands) -> bool:
    hands.port.cut(node.name, node.cutting_to)
    return True


def _leftovers(hands: Hands) -> Iterator[tuple[str, Callable[[], bool]]]:
    """Objects whose workload has ended: removed again. An object without a row is shown, never touched."""
    ended = set(
        Workload.objects.filter(
            pk__in=[item.workload for item in hands.look.seen.objects if not item.deleting_since], phase=Phase.ENDED
        ).values_list("pk", flat=True)
    )
    for row in Workload.objects.filter(pk__in=ended).select_related("team"):
        yield f"remove what is left of {row.name}", partial(_remove, row, hands)


def _remove(row: Workload, hands: Hands) -> bool:
    launch.remove_all(row, hands.port, storage=True)
    return True


def _carry_out(act: Callable[[], bool], what: object, done: Done) -> str:
    """Do it and say so. Answers a sentence when it failed in a way that nobody foresaw: our fault, or the row's."""
    try:
        if act():
            done.actions.append(str(what))
            done.again = True
    except ClusterError as error:
        done.failures.append(f"{what}: {error}")
    except NOT_ITS_FAULT:
        raise
    except Exception as fault:
        log.exception("%s broke.", what)
        done.failures.append(f"{what}: {_unforeseen(fault)}")
        return _unforeseen(fault)
    return ""


def _unforeseen(fault: Exception) -> str:
    return f"This broke on what nobody foresaw ({type(fault).__name__}: {str(fault)[:200]})."
