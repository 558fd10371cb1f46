"""From Kueue's documents to facts: what it says of each workload, and what each queue uses. Pure and total.

Reading follows Kueue's own order of importance: taken out by somebody, finished, evicted, quota, checks, admitted. Its
words for reasons changed with 0.19; both sets are known, and a word that is not is shown as it was said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction as F
from typing import Any, TypeGuard

from scheduling.cluster.documents import Condition, Meta, Part, Strings, Unreadable, decoded, text
from scheduling.cluster.kueue import LOCAL_QUEUE
from scheduling.cluster.quantities import BadQuantity, quantity
from scheduling.cluster.times import when
from scheduling.planning.facts import QueueFact, Reason, Standing
from scheduling.planning.wording import instant, sentence

JOB_UID = "kueue.x-k8s.io/job-uid"
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class PodSetAssignment(Part, frozen=True, kw_only=True):
    name: str = ""
    flavors: Strings | None = None
    resource_usage: Strings | None = None


class Admission(Part, frozen=True, kw_only=True):
    cluster_queue: str = ""
    pod_set_assignments: list[PodSetAssignment] | None = None


class Check(Part, frozen=True, kw_only=True):
    name: str = ""
    state: str = ""
    message: str | None = None


class RequeueState(Part, frozen=True, kw_only=True):
    count: int | None = None
    requeue_at: str | None = None


class WorkloadSpec(Part, frozen=True, kw_only=True):
    queue_name: str = ""
    active: bool | None = None


class WorkloadStatus(Part, frozen=True, kw_only=True):
    conditions: list[Condition] | None = None
    admission: Admission | None = None
    admission_checks: list[Check] | None = None
    requeue_state: RequeueState | None = None


class WorkloadDocument(Part, frozen=True, kw_only=True):
    metadata: Meta = Meta()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


@dataclass(frozen=True, slots=True)
class KueueFact:
    """One of Kueue's Workloads, by the uid of the Job that it stands for."""

    job: str
    namespace: str
    queue: str  # the ClusterQueue that has admitted it, or ""
    fact: QueueFact
    reserved_at: datetime | None = None
    usage: Mapping[tuple[str, str], F] | None = None  # (flavor, resource) -> units; None: nothing reserved
    uid: str = ""  # of the Workload itself


@dataclass(frozen=True, slots=True)
class Usage:
    """What one ClusterQueue holds of one flavor and resource, in units."""

    queue: str
    flavor: str
    resource: str
    total: F
    borrowed: F


@dataclass(frozen=True, slots=True)
class Queues:
    """What Kueue has of ours. With `trouble` there is no Kueue that we know, and the rest is empty."""

    documents: tuple[Mapping[str, Any], ...] = ()
    workloads: tuple[KueueFact, ...] = ()
    used: tuple[Usage, ...] = ()
    trouble: str = ""


PENDING: Mapping[str, tuple[Reason, str]] = {  # QuotaReserved=False by its reason, from 0.19 on
    "NoMatchingFlavor": (Reason.UNKNOWN_FLAVOR, "No kind of cards of this cluster fits it."),
    "WaitingForQuota": (Reason.WAITING_FOR_QUOTA, "The quota that its team could use is held at present."),
    "ExceedsMaxQuota": (
        Reason.EXCEEDS_QUOTA,
        "It asks for more than its team can ever have; ask your lead for a grant.",
    ),
    "TopologyPlacementFailed": (Reason.WAITING_FOR_CAPACITY, "No place in the cluster has the shape that it needs."),
    "WaitingForPreemptedWorkloads": (
        Reason.WAITING_FOR_PREEMPTED,
        "Its cards are its team's own and are being taken back from who borrowed them.",
    ),
    "WaitingForPodsReady": (Reason.WAITING_FOR_CAPACITY, "It waits until what was admitted before it is up."),
    "Misconfigured": (Reason.MISCONFIGURED, "Its queue is not in order; an operator has to look at it."),
    "Suspended": (Reason.QUEUE_STOPPED, "Its queue is stopped by an operator."),
    "PendingEvaluation": (Reason.HANDED_OVER, "Kueue has it and has not judged it yet."),
    # As it said before 0.19
    "Inadmissible": (Reason.MISCONFIGURED, "Its queue is not in order; an operator has to look at it."),
    "AdmissionGated": (Reason.WAITING_FOR_CHECK, "Somebody has put a gate before its admission."),
    "Waiting": (Reason.WAITING_FOR_CAPACITY, "It waits until what was admitted before it is up."),
    "OnHold": (Reason.QUEUE_STOPPED, "Its queue is stopped by an operator."),
}
OLDER = (  # before 0.19 nearly everything was "Pending", and its message told more; the first that fits counts
    ("is stopped", "Suspended"),
    ("pending the preemption", "WaitingForPreemptedWorkloads"),
    ("maximum capacity", "ExceedsMaxQuota"),
    ("insufficient quota", "ExceedsMaxQuota"),
    ("insufficient unused quota", "WaitingForQuota"),
    ("doesn't match node affinity", "NoMatchingFlavor"),
    ("untolerated taint", "NoMatchingFlavor"),
    ("unavailable in clusterqueue", "NoMatchingFlavor"),
    ("topology", "TopologyPlacementFailed"),
    ("doesn't exist", "Misconfigured"),
    ("is inactive", "Misconfigured"),
    ("terminating or missing", "Misconfigured"),
)
EVICTED: Mapping[str, tuple[Reason, str]] = {
    "Preempted": (Reason.PREEMPTED, "It was preempted."),
    "PodsReadyTimeout": (Reason.EVICTED, "It was taken out because its pods did not come up in time."),
    "AdmissionCheck": (Reason.EVICTED, "It was taken out because a check before its admission no longer holds."),
    "ClusterQueueStopped": (Reason.QUEUE_STOPPED, "It was taken out because an operator stopped its team's queue."),
    "LocalQueueStopped": (Reason.QUEUE_STOPPED, "It was taken out because an operator stopped its team's queue."),
    "NodeFailures": (Reason.NODE_LOST, "It was taken out because its node failed."),
    "Deactivated": (Reason.DEACTIVATED, "It was taken out of the queue."),
    "FlavorMigration": (Reason.EVICTED, "It moves to a kind of cards that is preferred."),
    "EvictedOnManagerCluster": (Reason.EVICTED, "It was taken out by the cluster that manages this one."),
    "WorkloadSliceReplaced": (Reason.EVICTED, "It was replaced by another size of itself."),
}
PREEMPTED: Mapping[str, str] = {
    "InClusterQueue": "It was preempted by more urgent work of its own team.",
    "InCohortReclamation": "It ran on cards that another team had left unused, and that team has taken them back.",
    "InCohortFairSharing": "It was preempted so that another team comes to its fair share.",
    "InCohortReclaimWhileBorrowing": "It ran on borrowed cards, and more urgent work of another team borrows them now.",
}
DEACTIVATED: Mapping[str, str] = {
    "RequeuingLimitExceeded": "It was tried too often without coming up",
    "MaximumExecutionTimeExceeded": "It ran for as long as it was allowed to",
}


def workload_fact(document: WorkloadDocument) -> KueueFact | None:
    """None for what does not stand for a Job of one of our queues."""
    meta, status = document.metadata, document.status
    job = next((owner.uid for owner in meta.owner_references or () if owner.kind == "Job"), "")
    job = job or text(meta.labels, JOB_UID)
    if not job or document.spec.queue_name != LOCAL_QUEUE:
        return None
    reserved = condition(status, "QuotaReserved")
    admission = status.admission
    return KueueFact(
        job=job,
        namespace=meta.namespace,
        queue=admission.cluster_queue if admission else "",
        fact=read(document),
        reserved_at=when(reserved.last_transition_time) if reserved and reserved.status == "True" else None,
        usage=usage_of(admission) if admission else None,
        uid=meta.uid,
    )


def decode_workload(raw: bytes) -> KueueFact | None:
    """One Workload as bytes; None where it is not one of ours, or makes no sense."""
    try:
        document, _ = decoded(raw, WorkloadDocument)
    except Unreadable:
        return None
    return workload_fact(document)


def read(document: WorkloadDocument) -> QueueFact:
    """Where it stands and why, the most telling first."""
    status = document.status
    cause = cause_of(status)
    found = (
        inactive(document)
        or finished(status)
        or leaving(status, cause)
        or pending(status, cause)
        or checked(status)
        or admitted(status)
    )
    return replace(found, cause=cause[0] if cause else None, cause_text=cause[1] if cause else "")


def inactive(document: WorkloadDocument) -> QueueFact | None:
    if document.spec.active is not False:
        return None
    target = condition(document.status, "DeactivationTarget") or condition(document.status, "Evicted")
    token = (target.reason or "") if target else ""
    why = next((words for key, words in DEACTIVATED.items() if key in token), "Somebody took it out of Kueue's queue")
    text = f"{why}. It stays out until an operator sets its workload active again, or you end it."
    return QueueFact(Standing.INACTIVE, Reason.DEACTIVATED, text)


def finished(status: WorkloadStatus) -> QueueFact | None:
    found = condition(status, "Finished")
    if not is_true(found):
        return None
    ended = {"Succeeded": Reason.SUCCEEDED, "Failed": Reason.FAILED}.get(found.reason or "", Reason.SAID_BY_KUEUE)
    return QueueFact(Standing.FINISHED, ended, said("Kueue counts it as finished.", found))


def leaving(status: WorkloadStatus, cause: tuple[Reason, str] | None) -> QueueFact | None:
    """Evicted while its quota is still held: its pods are being stopped."""
    if cause is None or not is_true(condition(status, "Evicted")) or not is_true(condition(status, "QuotaReserved")):
        return None
    return QueueFact(Standing.LEAVING, cause[0], f"{cause[1]} Its pods are being stopped.")


def pending(status: WorkloadStatus, cause: tuple[Reason, str] | None) -> QueueFact | None:
    found = condition(status, "QuotaReserved")
    if is_true(found):
        return None
    again = condition(status, "Requeued")
    if is_true(condition(status, "Evicted")) and cause is not None:
        return requeued(status, cause, found) if again is None or is_true(again) else backing_off(status, cause)
    if found is None:
        return QueueFact(Standing.PENDING, *PENDING["PendingEvaluation"])
    reason, words = judged(found)
    return QueueFact(Standing.PENDING, reason, said(words, found))


def requeued(status: WorkloadStatus, cause: tuple[Reason, str], found: Condition | None) -> QueueFact:
    """In line once more. What holds it now is said behind why it had to go."""
    known = found is not None and (found.reason in PENDING or older_reason(found))
    now = judged(found)[1] if found is not None and known else ""
    text = f"{cause[1]} It stands in line again and runs when there is room."
    return QueueFact(Standing.PENDING, Reason.REQUEUED, f"{text} {now}".rstrip())


def backing_off(status: WorkloadStatus, cause: tuple[Reason, str]) -> QueueFact:
    at = when(status.requeue_state.requeue_at) if status.requeue_state else None
    until = f"not before {instant(at)}" if at else "after a pause"
    return QueueFact(Standing.PENDING, Reason.BACKING_OFF, f"{cause[1]} It stands in line again {until}.")


def checked(status: WorkloadStatus) -> QueueFact | None:
    """Its quota is set aside, and somebody else's check is open."""
    if is_true(condition(status, "Admitted")):
        return None
    open_ones = [check for check in status.admission_checks or () if check.state != "Ready"]
    if not open_ones:
        return QueueFact(
            Standing.RESERVED, Reason.WAITING_FOR_CHECK, "Its quota is set aside; Kueue is about to admit it."
        )
    one = open_ones[0]
    words = f"Its quota is set aside; the check {one.name} says {one.state or 'nothing yet'}."
    return QueueFact(Standing.RESERVED, Reason.WAITING_FOR_CHECK, f"{words} {sentence(one.message or '')}".rstrip())


def admitted(status: WorkloadStatus) -> QueueFact:
    return QueueFact(
        Standing.ADMITTED, Reason.ADMITTED, "Kueue has admitted it; it starts where its pod finds a place."
    )


def cause_of(status: WorkloadStatus) -> tuple[Reason, str] | None:
    """Why it was last evicted, in our words and Kueue's; None where it never was, or was admitted again since."""
    evicted = condition(status, "Evicted")
    if not is_true(evicted):
        return None
    token = evicted.reason or ""
    known = next((EVICTED[key] for key in EVICTED if token.startswith(key)), None)
    if known is None:
        return (
            Reason.EVICTED,
            f"It was taken out; Kueue says {token or 'no more'}: {sentence(evicted.message or '')}".strip(),
        )
    if known[0] is not Reason.PREEMPTED:
        return known[0], said(known[1], evicted)
    preempted = condition(status, "Preempted")
    token = (preempted.reason or "") if preempted else ""
    if token in PREEMPTED or not token:
        return Reason.PREEMPTED, PREEMPTED.get(token, known[1])
    return Reason.PREEMPTED, said(f"It was preempted ({token}).", preempted)


def judged(found: Condition) -> tuple[Reason, str]:
    """Kueue's reason for not setting quota aside, in our words; a reason that nobody knows as it was said."""
    token = older_reason(found) or found.reason or ""
    unknown = (Reason.SAID_BY_KUEUE, f"Kueue holds it back: {token}." if token else "Kueue holds it back.")
    return PENDING.get(token, unknown)


def older_reason(found: Condition) -> str:
    """The present word for what an older Kueue told in its message only."""
    if found.reason not in {"Pending", "Inadmissible"}:
        return ""
    message = (found.message or "").lower()
    return next((token for part, token in OLDER if part in message), "")


def said(words: str, found: Condition | None) -> str:
    """Our sentence, and Kueue's own behind it."""
    own = sentence((found.message or "") if found else "")
    return f"{words} Kueue says: {own}" if own else words


def condition(status: WorkloadStatus, kind: str) -> Condition | None:
    return next((one for one in status.conditions or () if one.type == kind), None)


def is_true(found: Condition | None) -> TypeGuard[Condition]:
    return found is not None and found.status == "True"


def usage_of(admission: Admission) -> Mapping[tuple[str, str], F]:
    """Units by flavor and resource, all pods together."""
    total: defaultdict[tuple[str, str], F] = defaultdict(F)
    for part in admission.pod_set_assignments or ():
        for resource, flavor in (part.flavors or {}).items():
            total[str(flavor), resource] += units((part.resource_usage or {}).get(resource))
    return dict(total)


def units(value: object) -> F:
    try:
        return F(0) if value is None else quantity(value)
    except BadQuantity:
        return F(0)


# Queues


def usages(queue: Mapping[str, Any]) -> tuple[Usage, ...]:
    """ClusterQueue.status.flavorsUsage, without what is not held."""
    name = queue["metadata"]["name"]
    found = []
    for flavor in (queue.get("status") or {}).get("flavorsUsage") or ():
        for one in flavor.get("resources") or ():
            total = units(one.get("total"))
            if total:
                found.append(
                    Usage(name, flavor.get("name", ""), one.get("name", ""), total, units(one.get("borrowed")))
                )
    return tuple(found)


def holds_workloads(queue: Mapping[str, Any]) -> bool:
    """Whether a ClusterQueue or LocalQueue has any that wait, hold quota or run. Nobody said: it may."""
    status = queue.get("status")
    if not status:
        return True
    counts = ("pendingWorkloads", "reservingWorkloads", "admittedWorkloads")
    return any(status.get(count) for count in counts)


def with_borrowers(facts: Iterable[KueueFact], used: Iterable[Usage]) -> tuple[KueueFact, ...]:
    """The same facts, those marked that run on what others leave unused.

    Kueue says how much a queue borrows, not who: the last to come is the first that it takes back. It knows no time
    below a second; of those that came in the same one it takes the one with the least uid.
    """
    every = tuple(facts)
    rest = borrowed_now(every, used)
    found = {fact.job: fact for fact in every}
    in_use = sorted((fact for fact in every if fact.usage), key=lambda fact: fact.uid)
    newest = sorted(in_use, key=lambda fact: fact.reserved_at or LONG_AGO, reverse=True)
    for fact in newest:
        keys = [(fact.queue, *key) for key, amount in (fact.usage or {}).items() if amount]
        if fact.fact.standing is Standing.ADMITTED and any(rest.get(key, F(0)) > 0 for key in keys):
            found[fact.job] = replace(fact, fact=borrowed(fact.fact))
            for key in keys:
                rest[key] = rest.get(key, F(0)) - (fact.usage or {})[key[1], key[2]]
    return tuple(found[fact.job] for fact in every)


def borrowed_now(facts: Iterable[KueueFact], used: Iterable[Usage]) -> dict[tuple[str, str, str], F]:
    """Units that each queue borrows. Its status may lag behind what it has admitted: the rest is borrowed too then."""
    admitted: defaultdict[tuple[str, str, str], F] = defaultdict(F)
    for fact in facts:
        for key, amount in (fact.usage or {}).items():
            admitted[fact.queue, *key] += amount
    lines = {(one.queue, one.flavor, one.resource): one for one in used if one.borrowed}
    return {key: one.borrowed + max(F(0), admitted[key] - one.total) for key, one in lines.items()}


def borrowed(fact: QueueFact) -> QueueFact:
    text = "It is admitted on cards that another team leaves unused; that team may take them back at any time."
    return replace(fact, borrowed=True, reason=Reason.BORROWED, text=text)
