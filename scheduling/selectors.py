"""Reading workloads for pages. Selectors return; they never write, and their queries do not grow with the rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from datetime import timedelta as td
from uuid import UUID

from django.db.models import OuterRef, Q, QuerySet, Subquery

from scheduling.access import workloads_for
from scheduling.cluster.port import ClusterError, EventFact
from scheduling.cluster.writing import object_name
from scheduling.connect import port_for
from scheduling.models import NodePool, Placement, Sample, Transition, Workload
from scheduling.planning.facts import Kind, Phase
from scheduling.telemetry.idle import GAP
from tenants.access import Standing

LOG_LINES = 200
SHOWN_SPAN = td(hours=1)  # of the charts
BUCKET = td(minutes=5)  # of the table beside the charts


@dataclass(frozen=True, slots=True)
class IdleRule:
    """When a workload sleeps by itself, how long it has been quiet, and where the rule comes from."""

    limit: td | None  # None: never
    quiet: td | None  # None: busy, or nobody knows
    known: bool  # whether anybody has reported its use lately
    origin: str

    @property
    def limit_minutes(self) -> int:
        return int((self.limit or td()) / td(minutes=1))

    @property
    def quiet_minutes(self) -> int:
        """As far as a meter goes: 0 where it is busy or unknown, which the words beside it tell apart."""
        return min(self.limit_minutes, int((self.quiet or td()) / td(minutes=1)))


@dataclass(frozen=True, slots=True)
class Logs:
    """The last lines that a workload printed, or why nobody can say."""

    text: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Events:
    """What Kubernetes says about a workload, oldest first, or why nobody can say. Kubernetes forgets after an hour."""

    events: list[EventFact]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Some minutes of readings: the mean of what was reported; None where nothing was."""

    since: datetime
    busy: float | None
    memory_mib: int | None


def listed(
    stand: Standing, *, search: str = "", phase: str = "", team: UUID | None = None, kind: str = "", mine: bool = False
) -> QuerySet[Workload]:
    """Workloads that the person may know of, newest first; without a `phase` those that have not ended."""
    found = workloads_for(stand)
    if search:
        named = (
            Q(name__icontains=search) | Q(owner__first_name__icontains=search) | Q(owner__username__icontains=search)
        )
        found = found.filter(named | Q(flavor__words__icontains=search))
    if phase != "all":
        found = found.filter(phase=phase) if phase else found.exclude(phase=Phase.ENDED)
    if team:
        found = found.filter(team=team)
    if kind:
        found = found.filter(kind=kind)
    return found.filter(owner=stand.user) if mine else found


def newest_readings(workloads: Iterable[Workload], now: datetime) -> Mapping[UUID, Sample]:
    """The latest sample of each running workload; none where nobody reported anything lately. Two queries."""
    newest = Sample.objects.filter(placement=OuterRef("pk")).order_by("-at").values("pk")[:1]
    rows = Placement.objects.filter(workload__in=[row.pk for row in workloads], ended_at=None)
    found = dict(rows.annotate(newest=Subquery(newest)).order_by().values_list("workload_id", "newest"))
    samples = Sample.objects.in_bulk([pk for pk in found.values() if pk])
    fresh = {pk: sample for pk, sample in samples.items() if now - sample.at <= GAP}
    return {workload: fresh[pk] for workload, pk in found.items() if pk in fresh}


def last_placement(workload: Workload) -> Placement | None:
    """The open placement, or the last one."""
    return workload.placements.select_related("flavor", "cluster").order_by("-attempt").first()


def recent_steps(workload: Workload, most: int = 80) -> list[Transition]:
    """The latest transitions, oldest first."""
    return list(workload.transitions.select_related("by").order_by("-version")[:most])[::-1]


def samples_of(workload: Workload, now: datetime) -> list[Sample]:
    """The readings of the last hour, oldest first."""
    rows = Sample.objects.filter(placement__workload=workload, at__gt=now - SHOWN_SPAN, at__lte=now)
    return list(rows.order_by("at"))


def in_buckets(samples: Sequence[Sample], now: datetime) -> list[Bucket]:
    """The readings in steps of some minutes, newest first, for who reads a table instead of a chart."""
    found = []
    until = now
    while until > now - SHOWN_SPAN:
        inside = [sample for sample in samples if until - BUCKET < sample.at <= until]
        found.append(_bucket(until - BUCKET, inside))
        until -= BUCKET
    return found


def pool_of(placement: Placement | None) -> NodePool | None:
    """The pool of a placement, which keeps only its name; None when it is gone."""
    if placement is None:
        return None
    return NodePool.objects.filter(cluster=placement.cluster_id, name=placement.pool).first()


def idle_rule(
    workload: Workload, placement: Placement | None, pool: NodePool | None, *, fresh: bool, now: datetime
) -> IdleRule:
    """The rule in force for this workload, and its origin in words."""
    if workload.kind != Kind.WORKSPACE:
        return IdleRule(None, None, fresh, "Jobs do not sleep: they run to their end.")
    if placement is None:
        return IdleRule(None, None, False, "The rule of the pool in which it will run applies.")
    if pool is None:
        return IdleRule(None, None, fresh, f"Pool {placement.pool} is gone, and its rule with it.")
    if pool.idle_minutes is None:
        return IdleRule(None, None, fresh, f"Rule of pool {pool.name}: workspaces never sleep by themselves.")
    running = workload.phase == Phase.RUNNING
    quiet = now - workload.idle_since if running and workload.idle_since else None
    return IdleRule(td(minutes=pool.idle_minutes), quiet, fresh, f"Rule of pool {pool.name}.")


def logs_of(workload: Workload, lines: int = LOG_LINES) -> Logs:
    """What the workload's pod printed last, asked of the cluster now. Unreachable is an answer, not a fault."""
    placement = workload.placements.filter(ended_at=None).first()
    if placement is None or not placement.pod:
        return Logs("", "There is no pod, so there are no lines: logs are read while it runs.")
    try:
        with port_for(workload.cluster) as port:
            return Logs(port.logs(placement.namespace, placement.pod, lines=lines))
    except ClusterError as error:
        return Logs("", f"The cluster {workload.cluster.name} did not hand out the log: {error.for_everybody}")


def events_of(workload: Workload) -> Events:
    """What Kubernetes says about the workload, asked of the cluster now. Unreachable is an answer, not a fault."""
    name = object_name(workload.name, workload.pk)
    try:
        with port_for(workload.cluster) as port:
            return Events(port.events(workload.team.namespace, name))
    except ClusterError as error:
        return Events([], f"The cluster {workload.cluster.name} did not say: {error}")


def _bucket(since: datetime, samples: Sequence[Sample]) -> Bucket:
    busy = [sample.busy for sample in samples if sample.busy is not None]
    memory = [sample.memory_used_mib for sample in samples if sample.memory_used_mib is not None]
    return Bucket(since, sum(busy) / len(busy) if busy else None, max(memory, default=None))
