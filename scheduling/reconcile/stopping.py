"""Taking workloads down: to sleep, to their end, or because an attempt is over."""

from collections.abc import Callable, Sequence
from functools import partial

from scheduling.changes import Step, move
from scheduling.cluster.port import ClusterPort, Ref
from scheduling.models import Workload
from scheduling.planning.actions import Sleep, Stop
from scheduling.planning.facts import Desired, Kind, ObjectFact, Phase, PodFact, Reason
from scheduling.reconcile import launch
from scheduling.reconcile.chores import Chore, attempt, parts
from scheduling.reconcile.hands import Hands
from scheduling.snapshot import stopping_to

Call = Callable[[], object]


def stop(actions: Sequence[Stop | Sleep], hands: Hands) -> None:
    """Write down batch by batch that they stop, then take them down, several at a time."""
    for part in parts(actions, hands.ours):
        chores: list[Chore] = []
        for action in part:
            attempt(action, partial(_prepare, action, hands, chores), hands.done)
        hands.work_off(chores)


def taking_down(row: Workload, hands: Hands) -> Call:
    """Scale a workspace that goes to sleep to zero; remove everything else. In Kueue's queue it is a Job: removed."""
    asleep = stopping_to(row) == Phase.ASLEEP
    if asleep and not hands.queued:
        return partial(hands.port.scale, launch.ref_of(row), 0)
    return launch.removal(row, hands.port, storage=not asleep)


def clearing(row: Workload, port: ClusterPort) -> Call:
    """An attempt is over and the workload waits: its pods go, its storage stays."""
    if row.kind == Kind.WORKSPACE:
        return partial(port.scale, launch.ref_of(row), 0)
    return launch.removal(row, port, storage=False)


def orphans_removal(orphans: Sequence[PodFact], port: ClusterPort) -> Call:
    return partial(launch.remove_refs, [Ref("Pod", pod.namespace, pod.name, pod.uid) for pod in orphans], port)


def stands(item: ObjectFact | None) -> bool:
    """Whether an object is there, wants pods, and nobody has told it to go yet."""
    return item is not None and item.deleting_since is None and item.replicas > 0


def _prepare(action: Stop | Sleep, hands: Hands, chores: list[Chore]) -> bool:
    """True when all of it was done in the tables already; else perhaps one chore more."""
    row = hands.row(action.workload)
    if row is None:
        return False
    if row.phase == Phase.WAITING and isinstance(action, Sleep):
        asleep = partial(_rest, row, Step(Phase.ASLEEP, action.reason, action.text, hands.now))
        if not hands.queued:
            return asleep()
        chores.append(Chore(action, launch.removal(row, hands.port, storage=False), then=asleep))
        return False
    reason, text = _why_it_ends(row, action) if isinstance(action, Stop) else (action.reason, action.text)
    if row.phase in (Phase.WAITING, Phase.ASLEEP):
        ended = partial(_rest, row, Step(Phase.ENDED, reason, text, hands.now))
        chores.append(Chore(action, launch.removal(row, hands.port, storage=True), then=ended))
    elif row.phase == Phase.STOPPING or _begin(row, Step(Phase.STOPPING, reason, text, hands.now)):
        chores.append(Chore(action, taking_down(row, hands)))
    return False


def _rest(row: Workload, step: Step, _removed: object = None) -> bool:
    return move(row, step, by=row.desired_by)


def _begin(row: Workload, step: Step) -> bool:
    return move(row, step, by=row.desired_by if row.desired != Desired.RUN else None)


def _why_it_ends(row: Workload, action: Stop) -> tuple[Reason, str]:
    """A denied request says so in the decider's own words."""
    request = row.quota_request
    if action.reason == Reason.ASKED_TO_END and request is not None and request.state == "denied":
        return Reason.DENIED, f"{request.decided_by} denied the request: {request.note}"
    return action.reason, action.text
