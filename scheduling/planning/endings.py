"""How a workload ends, falls asleep or is taken from us: by itself, on somebody's word, or from outside."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from datetime import timedelta as td

from scheduling.planning import pods as ask
from scheduling.planning.facts import Desired, Kind, ObjectFact, Phase, PodFact, Reason, WorkloadFact
from scheduling.planning.look import Look, Move
from scheduling.planning.retries import try_again
from scheduling.planning.wording import instant, length, sentence

ARRIVAL_GRACE = td(seconds=60)  # a put that we have not seen yet
STALE_GRACE = td(seconds=15)  # a list may be a little older than what we already saw
STOPPING_PATIENCE = td(minutes=2)
KILL_TAKES = td(minutes=1)  # beyond the time that a workload was given to stop
END_WORDS: Mapping[Reason, str] = {
    Reason.ASKED_TO_END: "Its owner ended it.",
    Reason.TIME_IS_UP: "The time that was asked for is up.",
    Reason.GRANT_ENDED: "The grant that it ran on has ended.",
    Reason.DENIED: "Its quota request was denied.",
    Reason.REMOVED_OUTSIDE: "It was removed from the cluster from outside of this portal.",
}


def completed(look: Look) -> Move | None:
    if look.thing is None or not look.thing.complete:
        return None
    return _ended(look, Reason.SUCCEEDED, "It finished with exit code 0.")


def failed(look: Look) -> Move | None:
    if look.thing is None or not look.thing.failed:
        return None
    return _ended(look, Reason.FAILED, _failure_words(look))


def _ended(look: Look, reason: Reason, text: str) -> Move:
    last = ask.newest(pod for pod in look.pods if ask.finished(pod))
    at = (look.thing.finished_at if look.thing else None) or (last.finished_at if last else None)
    exit_code = last.exit_code if last else None
    return replace(look.step(Phase.ENDED, reason, text, at=at, pod=last), finished_at=at, exit_code=exit_code)


def _failure_words(look: Look) -> str:
    last = ask.newest(pod for pod in look.pods if ask.finished(pod) and pod.exit_code is not None)
    if last is not None:
        why = f" ({last.reason})" if last.reason else ""
        return f"It ended with exit code {last.exit_code}{why}."
    words = ": ".join(text for text in (look.thing.reason, look.thing.message) if text) if look.thing else ""
    return f"The cluster gave it up. {sentence(words)}".strip()


def removed(look: Look) -> Move | None:
    """Its object is gone or going although nobody here asked for that. Absence counts in a complete look only."""
    if look.thing is not None:
        return _being_removed(look) if look.thing.deleting_since else None
    if not look.complete or look.workload.attempt < 1:
        return None
    if look.workload.phase is Phase.PLACED and look.workload.reason is not Reason.CREATING:
        return _never_arrived(look) if look.age >= ARRIVAL_GRACE else None
    if look.age < STALE_GRACE:
        return None
    reason, text = _stop_words(look)
    if look.holding or look.kept:
        return look.step(Phase.STOPPING, reason, text, at=_first_deletion(look))
    at = _last_end(look)
    return look.step(Phase.ENDED, reason, f"{text}{unseen_words(look, at)}", at=at or look.seen_before)


def unseen_words(look: Look, at: datetime | None) -> str:
    """For an end that nobody saw: from when on it is not counted any more."""
    if at is not None or look.seen_before is None:
        return ""
    return f" Nobody saw when: the cluster could not be reached. It counts until {instant(look.seen_before)}."


def _being_removed(look: Look) -> Move | None:
    reason, text = _stop_words(look)
    return look.step(Phase.STOPPING, reason, text, at=look.thing.deleting_since if look.thing else None)


def _never_arrived(look: Look) -> Move:
    text = f"The cluster has no trace of it {length(ARRIVAL_GRACE)} after it was placed"
    return try_again(look, Reason.POD_LOST, text)


def _stop_words(look: Look) -> tuple[Reason, str]:
    reason = stop_reason(look.workload, look.now)
    return reason, END_WORDS[reason]


def stop_reason(workload: WorkloadFact, now: datetime) -> Reason:
    """Why it stops: as its row says while it is stopping, else as far as the wishes in the row can tell."""
    if workload.phase is Phase.STOPPING and workload.reason is not None and workload.reason in END_WORDS:
        return workload.reason
    if workload.desired is Desired.END:
        return Reason.ASKED_TO_END
    if workload.ends_at is not None and workload.ends_at <= now:
        return Reason.TIME_IS_UP
    return Reason.REMOVED_OUTSIDE


def stopping(look: Look) -> Move | None:
    """Asleep or ended only when its pods are really gone; until then it stays and says why."""
    if look.holding:
        return _still_stopping(look)
    if not look.complete:
        return None
    if look.kept is not None:
        return _kept(look, look.kept)
    to = where_to(look.workload, look.thing)
    thing = look.thing
    if thing is not None and thing.deleting_since is None and (to is Phase.ENDED or thing.replicas > 0):
        return None  # the order to stop has not arrived; the cycle repeats it
    reason, text = _rest_words(look, to)
    return look.step(to, reason, text, at=_last_end(look))


def patience(grace: td) -> td:
    """How long what was told to stop may take until it counts as not going by itself."""
    return max(STOPPING_PATIENCE, grace + KILL_TAKES)


def _still_stopping(look: Look) -> Move | None:
    if look.age < patience(look.workload.grace):
        return None
    pod = look.holding[0]
    node = (look.nodes or {}).get(pod.node)
    why = "its node does not answer" if node is not None and not node.ready else "its program or a finalizer holds it"
    text = (
        f"Still stopping: pod {pod.name} on node {pod.node} has not ended, {why}. "
        "Its quota is free and it costs nothing more; its card is given out again when the pod is gone. "
        "An operator can remove the pod by force."
    )
    reason = look.workload.reason or _rest_words(look, where_to(look.workload, look.thing))[0]
    return look.step(Phase.STOPPING, reason, text, pod=pod)


def _kept(look: Look, pod: PodFact) -> Move | None:
    """Its program has ended, so nothing is held or paid from then on; but the next of its name cannot start."""
    ended_at = _last_end(look)
    if look.now - max(ended_at or look.now, look.workload.phase_since) < STALE_GRACE:
        return None
    text = (
        f"Its program has ended, but a finalizer holds its pod {pod.name}. "
        "Its cards and quota are free and it costs nothing more. An operator can remove the pod by force."
    )
    reason = look.workload.reason or _rest_words(look, where_to(look.workload, look.thing))[0]
    return look.step(Phase.STOPPING, reason, text, at=ended_at, pod=pod)


def where_to(workload: WorkloadFact, thing: ObjectFact | None) -> Phase:
    """Where a stopping workload goes. For a row that does not say: what can sleep and still has its object sleeps."""
    if workload.stopping_to is not None:
        return workload.stopping_to
    if workload.desired is Desired.END or workload.kind is Kind.JOB:
        return Phase.ENDED
    if workload.desired is Desired.SLEEP:
        return Phase.ASLEEP
    return Phase.ASLEEP if thing is not None and thing.replicas == 0 else Phase.ENDED


def _rest_words(look: Look, to: Phase) -> tuple[Reason, str]:
    if to is Phase.ENDED:
        return _stop_words(look)
    fallen_asleep = look.workload.desired is Desired.RUN
    reason = look.workload.reason or (Reason.IDLE if fallen_asleep else Reason.ASKED_TO_SLEEP)
    return reason, "Asleep: its storage is kept, its cards and quota are free. Wake it when you need it."


def _first_deletion(look: Look) -> datetime | None:
    return min((pod.deleting_since for pod in look.pods if pod.deleting_since), default=None)


def _last_end(look: Look) -> datetime | None:
    return max((pod.finished_at for pod in look.pods if pod.finished_at), default=None)
