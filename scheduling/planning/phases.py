"""What the cluster shows means for a workload: from which phase to which, why, and since when.

`observed` looks at one workload; `moves` at all of a snapshot. A `Move` into the phase that it comes from is a
remark: another reason or sentence, no step. Sentences hold no running clocks, so the same state says the same words.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from scheduling.planning.endings import completed, failed, removed, stopping
from scheduling.planning.facts import NodeFact, ObjectFact, Phase, PodFact, Snapshot, WorkloadFact
from scheduling.planning.look import Look, Move
from scheduling.planning.rising import lost, podless, refused, rising, unbound

__all__ = ["MOVES", "RULES", "Move", "current", "moves", "observed"]

MOVES: Mapping[Phase, frozenset[Phase]] = {
    Phase.WAITING: frozenset({Phase.PLACED, Phase.STOPPING, Phase.ASLEEP, Phase.ENDED}),
    Phase.PLACED: frozenset({Phase.STARTING, Phase.RUNNING, Phase.WAITING, Phase.STOPPING, Phase.ENDED}),
    Phase.STARTING: frozenset({Phase.RUNNING, Phase.WAITING, Phase.STOPPING, Phase.ENDED}),
    Phase.RUNNING: frozenset({Phase.STARTING, Phase.WAITING, Phase.STOPPING, Phase.ENDED}),
    Phase.STOPPING: frozenset({Phase.ASLEEP, Phase.WAITING, Phase.ENDED}),
    Phase.ASLEEP: frozenset({Phase.WAITING, Phase.STOPPING, Phase.ENDED}),
    Phase.ENDED: frozenset(),
}

Rule = Callable[[Look], Move | None]
COMING_UP: tuple[Rule, ...] = (completed, removed, refused, lost, failed, unbound, rising, podless)
RULES: Mapping[Phase, tuple[Rule, ...]] = {
    Phase.PLACED: COMING_UP,
    Phase.STARTING: COMING_UP,
    Phase.RUNNING: COMING_UP,
    Phase.STOPPING: (stopping,),
}


def moves(snapshot: Snapshot) -> tuple[Move, ...]:
    """All that this picture means for the workloads that have not ended, in their own order."""
    nodes = {node.name: node for node in snapshot.nodes}
    things = {thing.workload: thing for thing in snapshot.objects}
    pods: defaultdict[UUID, list[PodFact]] = defaultdict(list)
    for pod in snapshot.pods:
        if pod.workload is not None:
            pods[pod.workload].append(pod)
    found = (
        observed(
            workload,
            things.get(workload.id),
            pods[workload.id],
            snapshot.now,
            nodes=nodes,
            complete=snapshot.complete,
        )
        for workload in snapshot.workloads
    )
    return tuple(move for move in found if move is not None)


def observed(
    workload: WorkloadFact,
    thing: ObjectFact | None,
    pods: Sequence[PodFact],
    now: datetime,
    *,
    nodes: Mapping[str, NodeFact] | None = None,
    complete: bool = True,
    seen_before: datetime | None = None,
) -> Move | None:
    """What the cluster shows of this workload means this; None: nothing new.

    `nodes` are all nodes, for telling whether one is lost. Without `complete`, what is missing means nothing.
    `seen_before`: nobody could look between then and now; what ended meanwhile, nobody knows when, counts until then.
    """
    look = Look(workload, current(workload, thing), tuple(pods), now, nodes, complete, seen_before)
    for rule in RULES.get(workload.phase, ()):
        if move := rule(look):
            return move
    return None


def current(workload: WorkloadFact, thing: ObjectFact | None) -> ObjectFact | None:
    """What is left of an earlier attempt says nothing about this one; in Kueue's queue one object has many attempts."""
    left_over = thing is not None and not thing.queue and 0 < thing.generation < workload.attempt
    return None if left_over else thing
