"""From rows to facts: the picture that the planner looks at, made from the tables alone or with a fresh observation."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from datetime import timedelta as td
from fractions import Fraction as F
from typing import Any
from uuid import UUID, uuid4

import msgspec
from django.db.models import Exists, OuterRef, QuerySet

from scheduling.cluster.port import Observation
from scheduling.models import Cluster, Flavor, Node, NodePool, Placement, Workload
from scheduling.planning.cuda import needed, version_of
from scheduling.planning.facts import (
    HOLDING,
    Capacity,
    Desired,
    FlavorFact,
    Kind,
    NodeFact,
    Phase,
    PodFact,
    PoolFact,
    QueueRules,
    QuotaFact,
    Reason,
    Sharing,
    Snapshot,
    WorkloadFact,
)
from scheduling.stuck import stuck_on
from tenants.models import RequestState, Team, User
from tenants.quota import NOTHING, Quota
from tenants.selectors import next_change, quotas


def from_tables(cluster: Cluster, now: datetime) -> Snapshot:
    """The picture as of the last look, with our own placements standing for the pods. No call to the cluster."""
    rows = list(cluster.nodes.all())
    placements = list(_open_placements(cluster))
    pods = [_pod_of(placement) for placement in placements]
    pods += [pod for row in rows for pod in (*_foreign_pods(row), *_lingering_pods(row))]
    return Snapshot(
        now=now,
        pools=tuple(pool_fact(pool) for pool in cluster.pools.all()),
        nodes=tuple(node_fact(row) for row in rows),
        pods=tuple(pods),
        objects=(),
        workloads=workload_facts(cluster, placements),
        quotas=quota_facts(now, cluster),
        empty_since={row.name: row.empty_since for row in rows if row.empty_since},
    )


def from_look(
    cluster: Cluster,
    seen: Observation,
    nodes: Sequence[NodeFact],
    now: datetime,
    queue: QueueRules | None = None,
    *,
    empty_since: Mapping[str, datetime],
    workloads: Sequence[WorkloadFact],
) -> Snapshot:
    """The picture of a fresh look: what the cluster says, beside what the tables say. `nodes` carry our own marks."""
    return Snapshot(
        now=now,
        pools=tuple(pool_fact(pool) for pool in cluster.pools.all()),
        nodes=tuple(nodes),
        pods=seen.pods,
        objects=seen.objects,
        workloads=tuple(workloads),
        quotas=quota_facts(now, cluster),
        complete=seen.complete,
        problems=seen.problems,
        queue=queue,
        empty_since=empty_since,
        quotas_change_at=next_change(now),
    )


def pool_fact(pool: NodePool) -> PoolFact:
    return PoolFact(
        name=pool.name,
        model=pool.model,
        sharing=Sharing(pool.sharing),
        replicas=pool.replicas,
        capacity=Capacity(pool.capacity),
        cards_per_node=pool.cards_per_node,
        cpu_milli=pool.cpu_milli,
        host_memory_mib=pool.host_memory_mib,
        min_nodes=pool.min_nodes,
        max_nodes=pool.max_nodes,
        wished_nodes=pool.wished_nodes,
        layout=pool.layout,
        layouts=tuple(pool.layouts),
        empty_after=td(minutes=pool.empty_minutes),
        resizable=pool.provider != "static",
        spread=pool.spread,
        cuda=version_of(pool.cuda),
    )


def flavor_fact(flavor: Flavor) -> FlavorFact:
    return FlavorFact(
        sku=flavor.sku,
        model=flavor.model,
        sharing=Sharing(flavor.sharing),
        profile=flavor.profile,
        replicas=flavor.replicas,
        share=flavor.share,
        memory_mib=flavor.memory_mib,
        capacity=Capacity(flavor.capacity),
    )


def node_fact(row: Node) -> NodeFact:
    return msgspec.convert(row.facts, NodeFact, dec_hook=_decode)


def node_json(fact: NodeFact) -> Any:
    """As the column gives it back: lists for tuples, text for times and fractions."""
    return msgspec.json.decode(msgspec.json.encode(fact, enc_hook=str))


def quota_facts(now: datetime, cluster: Cluster) -> tuple[QuotaFact, ...]:
    """What each team may hold of each model now, and what its members hold in other clusters. Three queries."""
    elsewhere: dict[tuple[UUID, str], dict[int, F]] = defaultdict(dict)
    for (team, model, member), cards in held(exclude=cluster).items():
        elsewhere[(team, model)][member] = cards
    found = dict(quotas(now))
    for key in elsewhere:
        found.setdefault(key, Quota())
    names = dict(Team.objects.values_list("pk", "name"))
    return tuple(
        QuotaFact(
            team=team,
            model=model,
            granted=quota.granted,
            own=quota.own,
            elsewhere=elsewhere[(team, model)],
            team_name=names[team],
        )
        for (team, model), quota in sorted(found.items(), key=lambda item: (str(item[0][0]), item[0][1]))
    )


def held(*, teams: Iterable[UUID] | None = None, exclude: Cluster | None = None) -> Mapping[tuple[UUID, str, int], F]:
    """Cards held by each member of each team, by model: of workloads that are placed, starting, running or stopping.

    One that stops for longer than its grace has no open placement any more and holds nothing of the quota.
    """
    open_ones = Placement.objects.filter(workload=OuterRef("pk"), ended_at=None)
    rows = Workload.objects.filter(phase__in=HOLDING).exclude(~Exists(open_ones), phase=Phase.STOPPING)
    if exclude is not None:
        rows = rows.exclude(cluster=exclude)
    if teams is not None:
        rows = rows.filter(team__in=list(teams))
    found: dict[tuple[UUID, str, int], F] = defaultdict(lambda: NOTHING)
    for team, member, model, share, count in rows.values_list(
        "team_id", "owner_id", "flavor__model", "flavor__share", "count"
    ):
        found[(team, model, member)] += share * count
    return found


def workload_facts(cluster: Cluster, placements: Sequence[Placement]) -> tuple[WorkloadFact, ...]:
    """All workloads of a cluster that have not ended. Six queries, beside the placements given."""
    return facts_of(cluster, open_workloads(cluster), placements)


def open_workloads(cluster: Cluster) -> QuerySet[Workload]:
    """Rows that have not ended, who asked first coming first, with what their facts need.

    A team, a flavor, a request is read once, however many rows share it.
    """
    rows = Workload.objects.filter(cluster=cluster).exclude(phase=Phase.ENDED).order_by("asked_at", "id")
    return rows.prefetch_related("team", "flavor", "quota_request", "desired_by")


def facts_of(cluster: Cluster, rows: Iterable[Workload], placements: Sequence[Placement]) -> tuple[WorkloadFact, ...]:
    """The facts of these rows, in their order. One query, for the pools' rules."""
    open_of = {placement.workload_id: placement for placement in placements}
    limits = dict(cluster.pools.values_list("name", "idle_minutes"))
    flavors: dict[int, FlavorFact] = {}
    return tuple(workload_fact(row, open_of.get(row.pk), limits, flavors) for row in rows)


def workload_fact(
    row: Workload,
    placement: Placement | None,
    limits: Mapping[str, int | None],
    flavors: dict[int, FlavorFact] | None = None,
) -> WorkloadFact:
    """One row's fact. `flavors` keeps what was made of flavors before, by their key."""
    flavors = {} if flavors is None else flavors
    if row.flavor_id not in flavors:
        flavors[row.flavor_id] = flavor_fact(row.flavor)
    minutes = limits.get(placement.pool) if placement and row.kind == Kind.WORKSPACE else None
    return WorkloadFact(
        id=row.pk,
        name=row.name,
        kind=Kind(row.kind),
        team=row.team_id,
        owner=row.owner_id,
        flavor=flavors[row.flavor_id],
        count=row.count,
        cpu_milli=row.cpu_milli,
        memory_mib=row.memory_mib,
        desired=Desired(row.desired),
        phase=Phase(row.phase),
        asked_at=row.asked_at,
        phase_since=row.phase_since,
        approval_pending=_approval_pending(row),
        node=placement.node if placement else "",
        pool=placement.pool if placement else "",
        attempt=row.attempt,
        not_before=row.not_before,
        idle_since=row.idle_since,
        idle_limit=None if minutes is None else td(minutes=minutes),
        ends_at=row.first_ran_at + td(hours=row.hours) if row.first_ran_at and row.hours else None,
        shunned=frozenset(row.shunned),
        stopping_to=stopping_to(row),
        reason=Reason(row.phase_reason),
        failures=row.failures,
        cuda=needed(row.cuda, row.image),
        grace=td(seconds=row.grace_seconds),
    )


def stopping_to(row: Workload) -> Phase | None:
    """Where a stopping workload goes: back to sleep or to its end, as the reason says for which it stops."""
    if row.phase != Phase.STOPPING:
        return None
    sleeps = row.phase_reason in (Reason.ASKED_TO_SLEEP, Reason.IDLE) and row.desired != Desired.END
    return Phase.ASLEEP if sleeps else Phase.ENDED


def candidate(
    flavor: Flavor, team: Team, member: User, kind: Kind, count: int, sizes: Any, now: datetime
) -> WorkloadFact:
    """A workload that does not exist: the request form's question to the planner. It comes last in line."""
    return WorkloadFact(
        id=uuid4(),
        name="this request",
        kind=kind,
        team=team.pk,
        owner=member.pk,
        flavor=flavor_fact(flavor),
        count=count,
        cpu_milli=sizes.cpu_milli,
        memory_mib=sizes.memory_mib,
        desired=Desired.RUN,
        phase=Phase.WAITING,
        asked_at=now,
        phase_since=now,
    )


def _approval_pending(row: Workload) -> bool:
    return row.quota_request is not None and row.quota_request.state in (RequestState.PENDING, RequestState.COUNTERED)


def _open_placements(cluster: Cluster) -> Iterable[Placement]:
    return Placement.objects.filter(cluster=cluster, ended_at=None).select_related("workload")


def _pod_of(placement: Placement) -> PodFact:
    units = placement.workload.count
    return PodFact(
        namespace=placement.namespace,
        name=placement.pod,
        uid=placement.pod_uid,
        node=placement.node,
        phase="Running" if placement.running_at else "Pending",
        ready=placement.running_at is not None,
        workload=placement.workload_id,
        requests={placement.resource: units},
        cpu_milli=placement.workload.cpu_milli,
        memory_mib=placement.workload.memory_mib,
        created_at=placement.placed_at,
        running_since=placement.running_at,
        finished_at=None,
        deleting_since=None,
    )


def foreign_units(foreign: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """What others hold on a node, by resource, of all namespaces together."""
    units: dict[str, int] = defaultdict(int)
    for held_there in foreign.values():
        for resource, count in held_there.items():
            units[resource] += count
    return dict(units)


def _foreign_pods(row: Node) -> list[PodFact]:
    """What others hold on a node, as one pod for each namespace."""
    return [
        PodFact(
            namespace=namespace,
            name="others",
            uid="",
            node=row.name,
            phase="Running",
            ready=True,
            workload=None,
            requests=units,
            cpu_milli=0,
            memory_mib=0,
            created_at=None,
            running_since=None,
            finished_at=None,
            deleting_since=None,
        )
        for namespace, units in row.foreign.items()
    ]


def _lingering_pods(row: Node) -> list[PodFact]:
    """Ours that do not go: they hold their cards until they are gone."""
    return [
        PodFact(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            node=row.name,
            phase="Running",
            ready=False,
            workload=pod.workload,
            requests=pod.units,
            cpu_milli=pod.cpu_milli,
            memory_mib=pod.memory_mib,
            created_at=None,
            running_since=None,
            finished_at=None,
            deleting_since=pod.since,
        )
        for pod in stuck_on(row)
    ]


def _decode(kind: type, value: Any) -> Any:
    if kind is F:
        return F(value)
    raise NotImplementedError(f"No way to read a {kind.__name__} out of a node's facts.")
