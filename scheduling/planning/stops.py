"""What goes: ended by its owner or by its time, put to sleep on a wish or after a quiet while."""

from scheduling.planning.actions import Sleep, Stop
from scheduling.planning.endings import END_WORDS
from scheduling.planning.facts import Desired, Kind, ObjectFact, Phase, Reason, Snapshot, WorkloadFact
from scheduling.planning.wording import instant, length

ASKED_TO_SLEEP = "Its owner put it to sleep."


def stops(snapshot: Snapshot) -> list[Stop | Sleep]:
    """Everything that has to go now. What is stopping already is carried on by the cycle, not ordered again."""
    things = {thing.workload: thing for thing in snapshot.objects}
    found = (
        _overtaken(workload, things.get(workload.id))
        if workload.phase is Phase.STOPPING
        else _first(workload, snapshot)
        for workload in sorted(snapshot.workloads, key=lambda workload: str(workload.id))
    )
    return [action for action in found if action is not None]


def _first(workload: WorkloadFact, snapshot: Snapshot) -> Stop | Sleep | None:
    if workload.phase is Phase.ENDED:
        return None
    if workload.desired is Desired.END:
        return Stop(workload.id, Reason.ASKED_TO_END, END_WORDS[Reason.ASKED_TO_END])
    if workload.ends_at is not None and workload.ends_at <= snapshot.now:
        return Stop(workload.id, Reason.TIME_IS_UP, f"Its time was up at {instant(workload.ends_at)}.")
    if workload.kind is not Kind.WORKSPACE or workload.phase is Phase.ASLEEP:
        return None
    if workload.desired is Desired.SLEEP:
        return Sleep(workload.id, Reason.ASKED_TO_SLEEP, ASKED_TO_SLEEP)
    return _idle(workload, snapshot)


def _idle(workload: WorkloadFact, snapshot: Snapshot) -> Sleep | None:
    """Quiet for as long as its limit says. Not known to be quiet is not quiet."""
    since, limit = workload.idle_since, workload.idle_limit
    if workload.phase is not Phase.RUNNING or since is None or limit is None or snapshot.now - since < limit:
        return None
    text = f"Quiet for {length(snapshot.now - since)}, since {instant(since)}; it sleeps after {length(limit)}."
    return Sleep(workload.id, Reason.IDLE, text)


def _overtaken(workload: WorkloadFact, thing: ObjectFact | None) -> Stop | None:
    """Ended while it was falling asleep: its object, at zero or not, has to go after all."""
    if workload.desired is not Desired.END or thing is None or thing.deleting_since is not None:
        return None
    return Stop(workload.id, Reason.ASKED_TO_END, END_WORDS[Reason.ASKED_TO_END])
