"""Reading DCGM and booking it: samples per placement, the idle clock, hourly rollups, and the meters in open pages."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from datetime import timedelta as td
from threading import Lock
from typing import Any
from uuid import UUID

from django.db.models import Max, Q

from scheduling import announce
from scheduling.cluster.port import ClusterError, Exposition
from scheduling.connect import port_for
from scheduling.models import Cluster, Placement, Sample, Workload
from scheduling.telemetry import dcgm
from scheduling.telemetry.idle import idle_since, together
from scheduling.telemetry.rollups import roll_up
from scheduling.wake import wake_cycle

SHORTEST = td(milliseconds=400)  # on the wall clock; a second beat adds nothing

log = logging.getLogger(__name__)

_at_it: set[int] = set()  # clusters that this process is sampling
_lock = Lock()


def sample_cluster(cluster: Cluster, now: datetime) -> int:
    """Take one sample of every running placement of a cluster; returns how many were booked."""
    with _alone(cluster) as alone:
        return _sample(cluster, now) if alone and _our_turn(cluster) else 0


def clusters_to_sample() -> list[int]:
    """Those on which something runs."""
    rows = Placement.objects.filter(ended_at=None, running_at__isnull=False).exclude(pod="")
    return list(rows.order_by().values_list("cluster_id", flat=True).distinct())


def _sample(cluster: Cluster, now: datetime) -> int:
    running = list(_running(cluster))
    if not running:
        return 0
    try:
        with port_for(cluster) as port:
            expositions = port.metrics(sorted({placement.node for placement in running}))
    except ClusterError as error:
        log.warning("No metrics from cluster %s: %s", cluster.name, error)
        _tell(cluster, str(error))
        return 0
    _tell(cluster, silence(expositions))
    return book(running, readings(expositions), now)


def silence(expositions: Sequence[Exposition]) -> str:
    """Why nothing at all could be read, as where a right is missing; "" when some node answered."""
    if any(exposition.text is not None for exposition in expositions):
        return ""
    return next((exposition.problem for exposition in expositions), "")


def _tell(cluster: Cluster, trouble: str) -> None:
    """The operator reads why every meter is unknown."""
    if cluster.meters_trouble != trouble[:500]:
        Cluster.objects.filter(pk=cluster.pk).update(meters_trouble=trouble[:500])
        announce.announce(announce.fleet_topic(), "fleet", cluster=cluster.name)


def readings(expositions: Iterable[Exposition]) -> Mapping[tuple[str, str], Sequence[dcgm.Sample]]:
    """Samples by (namespace, pod). A node that could not be read yields none: unknown, not idle."""
    found: defaultdict[tuple[str, str], list[dcgm.Sample]] = defaultdict(list)
    for exposition in expositions:
        if exposition.text is None:
            log.info("No metrics from node %s: %s", exposition.node, exposition.problem)
            continue
        for sample in dcgm.read(exposition.text).samples:
            found[(sample.namespace, sample.pod)].append(sample)
    return found


def book(running: Sequence[Placement], found: Mapping[tuple[str, str], Sequence[dcgm.Sample]], now: datetime) -> int:
    """Write samples, move the idle clocks, refresh the hour's rollups, and tell the open pages."""
    last = _last_samples(running)
    rows, events = [], []
    quieted: set[int] = set()
    for placement in running:
        row = _row(placement, found.get((placement.namespace, placement.pod), ()), now)
        rows.append(row)
        since = idle_since(placement.workload.idle_since, last.get(placement.pk), now, row.busy)
        if since != placement.workload.idle_since:
            Workload.objects.filter(pk=placement.workload_id).update(idle_since=since)
            quieted |= {placement.cluster_id} if since is not None else set()
        events.append(_event(placement, row, since, now))
    Sample.objects.bulk_create(rows, ignore_conflicts=True)
    roll_up([placement.pk for placement in running], now)
    announce.send(events)
    for cluster_id in quieted:  # a limit runs from now on, of which the cycle did not know when it was due next
        wake_cycle(cluster_id)
    return len(rows)


@contextmanager
def _alone(cluster: Cluster) -> Iterator[bool]:
    """Whether no other thread of this process is at it: a cluster that hangs costs one thread, not all of them."""
    with _lock:
        first = cluster.pk not in _at_it
        _at_it.add(cluster.pk)
    try:
        yield first
    finally:
        if first:
            with _lock:
                _at_it.discard(cluster.pk)


def _our_turn(cluster: Cluster) -> bool:
    """Two beats, or a task that waited in line, sample once (R10)."""
    wall = datetime.now(UTC)
    free = Q(sampled_at=None) | Q(sampled_at__lte=wall - SHORTEST)
    return bool(Cluster.objects.filter(free, pk=cluster.pk).update(sampled_at=wall))


def _running(cluster: Cluster) -> Iterable[Placement]:
    rows = Placement.objects.filter(cluster=cluster, ended_at=None, running_at__isnull=False).exclude(pod="")
    return rows.select_related("workload")


def _last_samples(running: Sequence[Placement]) -> dict[UUID, datetime]:
    rows = Sample.objects.filter(placement__in=running).values("placement_id").annotate(last=Max("at")).order_by()
    return dict(rows.values_list("placement_id", "last"))


def _row(placement: Placement, samples: Sequence[dcgm.Sample], now: datetime) -> Sample:
    """All cards of one pod together: the busiest, the sum of memory and watts; None for what nobody said."""
    return Sample(
        placement=placement,
        at=now,
        busy=together([sample.busy for sample in samples]),
        memory_used_mib=_sum([sample.memory_used_mib for sample in samples]),
        memory_total_mib=_sum([sample.memory_total_mib for sample in samples]),
        watts=_sum([sample.watts for sample in samples]) if placement.share.denominator == 1 else None,
    )


def _sum(values: Sequence[Any]) -> Any:
    """None as soon as one of them is unknown, or when there are none."""
    return None if not values or any(value is None for value in values) else sum(values)


def _event(placement: Placement, row: Sample, since: datetime | None, now: datetime) -> dict[str, Any]:
    return {
        "topic": announce.workload_topic(placement.workload_id),
        "what": "meter",
        "workload": str(placement.workload_id),
        "at": now.isoformat(),
        "busy": row.busy,
        "memory_used_mib": row.memory_used_mib,
        "memory_total_mib": row.memory_total_mib,
        "watts": row.watts,
        "idle_minutes": None if since is None else (now - since).total_seconds() / 60,
    }
