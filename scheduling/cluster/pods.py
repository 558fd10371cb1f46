"""From a Pod document to a PodFact: what it asks for, how far it is, and what went wrong."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from datetime import timedelta as td
from uuid import UUID

from scheduling.cluster import names
from scheduling.cluster.documents import (
    Condition,
    Container,
    ContainerState,
    Meta,
    PodDocument,
    StateWaiting,
    Strings,
    Unreadable,
    text,
)
from scheduling.cluster.quantities import BadQuantity, mib_up, milli_up, units
from scheduling.cluster.times import when
from scheduling.planning.facts import PodFact, Problem

NATIVE = ("cpu", "memory")
Requests = dict[str, int]  # extended resources by name, and cpu (milli) and memory (MiB)


def pod_fact(pod: PodDocument) -> PodFact:
    """Raises Unreadable when the pod cannot be named."""
    meta, status = pod.metadata, pod.status
    if not meta.name:
        raise Unreadable(Problem("", "metadata.name", "this pod has no name; it is left out"))
    asked = requests_of(pod)
    main = main_state(pod)
    ended = main.terminated if main else None
    return PodFact(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        node=pod.spec.node_name or "",
        phase=status.phase or "Unknown",
        ready=any(item.type == "Ready" and item.status == "True" for item in status.conditions or ()),
        workload=workload_of(meta.labels),
        requests=extended(asked),
        cpu_milli=asked.get("cpu", 0),
        memory_mib=asked.get("memory", 0),
        created_at=when(meta.creation_timestamp),
        running_since=started(main),
        finished_at=when(ended.finished_at) if ended else None,
        deleting_since=deleting_since(meta),
        grace=grace_of(meta),
        waiting_reason=waiting_reason(pod),
        reason=reason_of(pod, main),
        message=message_of(pod, main),
        exit_code=ended.exit_code if ended else None,
        controller=next((owner.uid for owner in meta.owner_references or () if owner.controller), ""),
    )


def extended(asked: Requests) -> Requests:
    """The extended resources of them, as cards."""
    return {resource: number for resource, number in asked.items() if resource not in NATIVE and number}


def workload_of(found: Strings | None) -> UUID | None:
    """The row that an object of ours stands for; a label alone, without our mark as its manager, is not enough."""
    if text(found, names.MANAGED_BY) != names.MANAGER:
        return None
    try:
        return UUID(text(found, names.WORKLOAD))
    except ValueError:
        return None


# What it asks for


def requests_of(pod: PodDocument) -> Requests:
    """What the scheduler counts: the containers together, or the largest init container, and the pod's overhead."""
    together = summed(asked_by(container) for container in pod.spec.containers or ())
    sidecars: Requests = {}
    highest: Requests = {}
    for container in pod.spec.init_containers or ():
        if container.restart_policy == "Always":
            sidecars = summed((sidecars, asked_by(container)))
            highest = larger(highest, sidecars)
        else:
            highest = larger(highest, summed((sidecars, asked_by(container))))
    counted = larger(summed((together, sidecars)), highest)
    return summed((counted, dict(readable(pod.spec.overhead))))


def asked_by(container: Container) -> Requests:
    """Requests, and limits where no request is given: for extended resources the two are equal anyway."""
    if container.resources is None:
        return {}
    return dict(readable(container.resources.limits)) | dict(readable(container.resources.requests))


def readable(strings: Strings | None) -> Iterator[tuple[str, int]]:
    for resource, value in (strings or {}).items():
        try:
            if resource == "cpu":
                yield resource, milli_up(value)
            elif resource == "memory":
                yield resource, mib_up(value)
            elif "/" in resource:
                yield resource, units(value)
        except BadQuantity:
            continue  # an API server takes no such pod; a file may hold one


def summed(parts: Iterable[Requests]) -> Requests:
    total: Requests = {}
    for part in parts:
        for resource, number in part.items():
            total[resource] = total.get(resource, 0) + number
    return total


def larger(one: Requests, other: Requests) -> Requests:
    return {resource: max(one.get(resource, 0), other.get(resource, 0)) for resource in {**one, **other}}


# How far it is


def main_state(pod: PodDocument) -> ContainerState | None:
    """The state of the first container, which is ours where the pod is."""
    statuses = pod.status.container_statuses or ()
    wanted = pod.spec.containers[0].name if pod.spec.containers else ""
    found = next((status for status in statuses if status.name == wanted), next(iter(statuses), None))
    return found.state if found else None


def started(main: ContainerState | None) -> datetime | None:
    if main is None:
        return None
    if main.running:
        return when(main.running.started_at)
    return when(main.terminated.started_at) if main.terminated else None


def deleting_since(meta: Meta) -> datetime | None:
    """When the deletion was asked for; Kubernetes writes down when its grace ends."""
    end = when(meta.deletion_timestamp)
    return end - grace_of(meta) if end else None


def grace_of(meta: Meta) -> td:
    """Nothing but a deletion sets it."""
    return td(seconds=min(max(meta.deletion_grace_period_seconds or 0, 0), 10**7))


def waiting_in(pod: PodDocument) -> Iterator[StateWaiting]:
    """The containers that wait; init containers come first, as in life."""
    for status in (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ())):
        if status.state and status.state.waiting:
            yield status.state.waiting


def waiting_reason(pod: PodDocument) -> str:
    return next((waiting.reason for waiting in waiting_in(pod) if waiting.reason), "")


# What went wrong


def reason_of(pod: PodDocument, main: ContainerState | None) -> str:
    """The kubelet's word for the pod, then who disrupted it, how its program ended, why it has no node."""
    ended = main.terminated.reason if main and main.terminated else None
    conditions = (disrupted(pod), unscheduled(pod))
    said = (pod.status.reason, conditions[0] and conditions[0].reason, ended, conditions[1] and conditions[1].reason)
    return next((word for word in said if word), "")


def message_of(pod: PodDocument, main: ContainerState | None) -> str:
    said = [pod.status.message, main.terminated.message if main and main.terminated else None]
    said += [item.message for item in (disrupted(pod), unscheduled(pod)) if item]
    said += [waiting.message for waiting in waiting_in(pod)]
    return next((sentence for sentence in said if sentence), "")


def disrupted(pod: PodDocument) -> Condition | None:
    """Preemption, eviction, a drained node: not the program's own doing."""
    return condition(pod, "DisruptionTarget", "True")


def unscheduled(pod: PodDocument) -> Condition | None:
    return condition(pod, "PodScheduled", "False")


def condition(pod: PodDocument, kind: str, status: str) -> Condition | None:
    return next((item for item in pod.status.conditions or () if (item.type, item.status) == (kind, status)), None)
