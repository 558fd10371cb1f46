"""Bringing placed workloads into the cluster, and giving a place back that came to nothing.

Each put is counted before it begins and forgiven when it comes back: what kills its worker again and again has to wait.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta as td
from functools import partial
from uuid import UUID

from django.db.models import F as Column

from scheduling.changes import Step, move, note
from scheduling.cluster.port import ClusterError, ClusterPort
from scheduling.models import Placement, Workload
from scheduling.planning.actions import Place
from scheduling.planning.facts import NodeFact, Phase, Reason
from scheduling.planning.retries import MOST_FAILURES, back_off
from scheduling.planning.wording import instant
from scheduling.reconcile import launch, reserve
from scheduling.reconcile.chores import NOT_ITS_FAULT, Chore, Crew, attempt, conclude, parts, unforeseen
from scheduling.reconcile.hands import Hands

PUT_PATIENCE = td(minutes=1)  # with a cluster that answers and does not take it, until the place is given back
MOST_DEATHS = 2  # of workers in one put of a workload, before it has to wait as after a failure

Wanted = tuple[object, Workload, Placement]
"""What the report calls it, a row that is placed, and its open placement."""

log = logging.getLogger(__name__)


def place(actions: Sequence[Place], hands: Hands) -> None:
    """Reserve batch by batch, each in one transaction. While one is put, several at a time, the next is reserved."""
    with Crew() as crew:
        under_way = Puts([], hands, crew)
        try:
            for part in parts(actions, hands.ours):
                said = {action.workload: action for action in part}
                wanted = [(said[row.pk], row, placement) for row, placement in _reserved(part, hands)]
                before, under_way = under_way, Puts(wanted, hands, crew)
                before.conclude()
        finally:
            under_way.conclude()


def put_together(wanted: Sequence[Wanted], hands: Hands) -> None:
    """Put these rows, each with its open placement, several at a time."""
    with Crew() as crew:
        Puts(wanted, hands, crew).conclude()


class Puts:
    """Puts that are under way. What comes back, well or not, has killed nobody."""

    def __init__(self, wanted: Sequence[Wanted], hands: Hands, crew: Crew) -> None:
        self._hands = hands
        self._keys = [row.pk for _, row, _ in wanted]
        self._found: list[tuple[Workload, tuple[str, str]]] = []
        try:
            self._begun = crew.begin([_put(*one, hands, self._found) for one in wanted])
        except BaseException:
            self._forgive()
            raise

    def conclude(self) -> None:
        try:
            conclude(self._begun, self._hands.done)
            launch.write_all_furnished(self._found)
        finally:
            self._forgive()

    def _forgive(self) -> None:
        if self._keys:
            Workload.objects.filter(pk__in=self._keys).update(unfinished_puts=0)


def put_again(what: str, row: Workload, placement: Placement, hands: Hands) -> None:
    """Once more, and alone, what an earlier look began and did not bring to an end."""
    if row.unfinished_puts >= MOST_DEATHS:
        text = f"{row.unfinished_puts} workers in a row died while they put it into the cluster."
        attempt(what, partial(give_back, row, text, hands, Reason.BACKING_OFF), hands.done)  # and it stays suspect
        return
    Workload.objects.filter(pk=row.pk).update(unfinished_puts=Column("unfinished_puts") + 1)
    put_together([(what, row, placement)], hands)


def give_back(row: Workload, text: str, hands: Hands, reason: Reason, *, may_end: bool = True) -> bool:
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


def _reserved(part: Sequence[Place], hands: Hands) -> list[reserve.Taken]:
    """All of a batch at once; where one breaks that, one after the other, so that only that one is blamed."""
    try:
        return reserve.reserve_all(part, hands.now)
    except NOT_ITS_FAULT:
        raise
    except Exception:
        log.exception("Reserving %d places together broke; they are reserved one by one.", len(part))
    taken: list[reserve.Taken] = []
    for action in part:
        trouble = attempt(action, partial(_reserve_one, action, hands, taken), hands.done)
        if trouble:
            blame(action.workload, trouble, hands)
    return taken


def _reserve_one(action: Place, hands: Hands, taken: list[reserve.Taken]) -> bool:
    taken += reserve.reserve_all([action], hands.now)
    return False  # the line in the report is the put's


def blame(workload: UUID, trouble: str, hands: Hands) -> None:
    """What nobody foresaw happened to one workload: that is a failure of this attempt, so it is not tried at once."""
    row = Workload.objects.filter(pk=workload, phase__in=[Phase.WAITING, Phase.PLACED]).first()
    if row is not None:
        give_back(row, trouble, hands, Reason.BACKING_OFF)


def _put(
    what: object, row: Workload, placement: Placement, hands: Hands, found: list[tuple[Workload, tuple[str, str]]]
) -> Chore:
    """What the cluster refuses for good is not repeated. `found`: where the address goes, or why there is none."""
    item = hands.object_of(row)
    if item is not None and item.kind == "Job":  # a Job's pods cannot be changed: the last attempt's has to go first
        return Chore(what, launch.removal(row, hands.port, storage=False))
    node = hands.found.nodes.get(placement.node)
    if node is None:
        text = f"Node {placement.node} is gone; a new place is sought."
        return Chore(what, _no_call, then=lambda _: give_back(row, text, hands, Reason.NODE_LOST))
    return Chore(
        what,
        partial(_call, row, placement, node, hands.port, hands.runtime_classes),
        then=partial(_keep, found, row),
        failed=partial(_refused, row, hands),
    )


def _keep(found: list[tuple[Workload, tuple[str, str]]], row: Workload, answer: tuple[str, str]) -> bool:
    found.append((row, answer))
    return True


def _call(
    row: Workload, placement: Placement, node: NodeFact, port: ClusterPort, classes: Mapping[str, str]
) -> tuple[str, str]:
    """Runs beside others and asks no tables: the row brings its team, its flavor and its cluster along."""
    try:
        return launch.put_launch(launch.launch_of(row, placement, node, classes), port)
    except (ClusterError, *NOT_ITS_FAULT):
        raise
    except Exception as fault:
        log.exception("Putting %s broke.", row.pk)
        raise ClusterError(unforeseen(fault), retry=False) from fault


def _no_call() -> None:
    pass


def _refused(row: Workload, hands: Hands, fault: Exception) -> None:
    if not isinstance(fault, ClusterError):
        return
    if not fault.retry:
        said = f"The cluster refused it: {fault.for_everybody}" if fault.__cause__ is None else str(fault)
        give_back(row, said, hands, Reason.BACKING_OFF)
    elif fault.status is not None:
        _not_taken(row, fault, hands)


def _not_taken(row: Workload, error: ClusterError, hands: Hands) -> None:
    """The cluster answers and does not take it now, as while a namespace goes: its owner is told why, and after a while
    the place is given back. That is not the workload's fault, so it never ends by it.
    """
    if row.phase != Phase.PLACED:
        return
    if hands.now - row.phase_since < PUT_PATIENCE:
        text = f"It has a place, and the cluster does not take it yet: {error.for_everybody}"
        note(row, Reason.PLACED, text, hands.now)
        return
    give_back(row, f"The cluster does not take it: {error.for_everybody}", hands, Reason.BACKING_OFF, may_end=False)
