"""What Kueue's word and the pods mean together for a workload that Kueue has admitted, or had.

The placement opens when a pod is bound, whoever bound it, and closes when that pod is gone, whoever took it. Another
pod of the same Job is another placement.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from scheduling.planning import pods as ask
from scheduling.planning.facts import NodeFact, ObjectFact, Phase, PodFact, QueueFact, Reason, Standing, WorkloadFact
from scheduling.planning.look import Look, Move

RISEN = (Phase.PLACED, Phase.STARTING, Phase.RUNNING)
OUT = (Standing.PENDING, Standing.LEAVING, Standing.INACTIVE)


def newly_bound(pods: Sequence[PodFact], nodes: Mapping[str, NodeFact], known: Collection[str]) -> PodFact | None:
    """The newest pod that is bound to a node and that no placement tells of yet."""
    return ask.newest(
        pod for pod in pods if pod.node in nodes and pod.uid not in known and (ask.live(pod) or ask.finished(pod))
    )


def fallen(
    workload: WorkloadFact,
    uid: str,
    fact: QueueFact | None,
    thing: ObjectFact | None,
    pods: Sequence[PodFact],
    nodes: Mapping[str, NodeFact],
    now: datetime,
) -> Move | None:
    """Its pod was taken from it: back to waiting when that is gone, a remark until then. `uid` is the placement's pod.

    None where nothing of the kind happened: then the common rules say what it means.
    """
    if workload.phase not in RISEN or not uid or thing is None or thing.deleting_since:
        return None
    if thing.complete or thing.failed:
        return None
    look = Look(workload, thing, tuple(pods), now, nodes, complete=True)
    taken = fact is not None and fact.standing in OUT
    mine = next((pod for pod in look.holding if pod.uid == uid), None)
    reason, text = _why(fact) if taken else (Reason.POD_LOST, "Its pod is gone; its Job makes a new one.")
    if mine is not None:
        words = "Its pod is being stopped."
        return look.step(workload.phase, reason, f"{text} {words}", pod=mine) if taken else None
    if not taken and any(pod.uid == uid for pod in pods):  # finished or its node lost: not Kueue's doing
        return None
    return look.step(Phase.WAITING, reason, text)


def ended_unseen(workload: WorkloadFact, thing: ObjectFact | None, now: datetime) -> Move | None:
    """A waiting one whose Job is over though no pod of it was ever seen on a node."""
    if workload.phase is not Phase.WAITING or thing is None or not thing.queue or not (thing.complete or thing.failed):
        return None
    look = Look(workload, thing, (), now, None, complete=True)
    if thing.complete:
        return look.step(Phase.ENDED, Reason.SUCCEEDED, "It finished with exit code 0.", at=thing.finished_at)
    words = ": ".join(word for word in (thing.reason, thing.message) if word)
    return look.step(Phase.ENDED, Reason.FAILED, f"The cluster gave it up. {words}".strip(), at=thing.finished_at)


def lends(workload: WorkloadFact, fact: QueueFact | None, now: datetime) -> Move | None:
    """A remark on what runs: that its cards are borrowed, or are so no longer."""
    if workload.phase is not Phase.RUNNING or fact is None:
        return None
    runs = f"It runs on node {workload.node}"
    text = f"{runs}, on cards that another team leaves unused; that team may take them back at any time."
    look = Look(workload, None, (), now, None, complete=True)
    if fact.borrowed and workload.reason is Reason.RUNNING:
        return look.step(Phase.RUNNING, Reason.BORROWED, text)
    if not fact.borrowed and workload.reason is Reason.BORROWED:
        return look.step(Phase.RUNNING, Reason.RUNNING, f"{runs}, on its team's own cards.")
    return None


def _why(fact: QueueFact | None) -> tuple[Reason, str]:
    if fact is None:
        return Reason.EVICTED, "Kueue does not admit it any more."
    if fact.cause is not None:
        return fact.cause, fact.cause_text
    return (fact.reason, fact.text) if fact.standing is Standing.INACTIVE else (Reason.EVICTED, fact.text)
