"""Tables against the Kueue of a cluster: who holds how much of what, and whether the queues are as the tables ask.

Two looks, and only what disagrees in both is said, as with the cluster itself.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from fractions import Fraction as F
from typing import Any
from uuid import UUID

from scheduling.cluster.kueue import HOST, essence, queue_name, stock_name
from scheduling.cluster.kueue_reading import KueueFact, Queues
from scheduling.cluster.port import ClusterError, ClusterPort, Observation
from scheduling.connect import port_for
from scheduling.models import Cluster, Placement, Workload
from scheduling.planning.facts import Phase, Standing
from scheduling.planning.shares import number
from scheduling.queueing import Setup, queues_with_kueue, setup_of
from scheduling.reconcile.queue_work import key_of
from scheduling.snapshot import flavor_fact
from tenants.billing.findings import Finding

Line = tuple[str, str, str]  # ClusterQueue, ResourceFlavor, resource


def against_kueue(cluster: Cluster, now: datetime) -> list[Finding]:
    """Nothing for a cluster that queues directly."""
    if not queues_with_kueue(cluster):
        return []
    try:
        with port_for(cluster) as port:
            first = _look(cluster, port, now)
            return [found for found in _look(cluster, port, now) if found in first] if first else []
    except ClusterError as error:
        return [Finding("unreachable-kueue", cluster.name, str(error))]


def _look(cluster: Cluster, port: ClusterPort, now: datetime) -> list[Finding]:
    seen, queues = port.observe(now), port.queues()
    if queues.trouble:
        return [Finding("no-kueue", cluster.name, queues.trouble)]
    setup = setup_of(cluster, seen.nodes, now)
    return [*_objects(cluster, setup, queues), *_use(cluster, seen, queues)]


def _objects(cluster: Cluster, setup: Setup, queues: Queues) -> Iterator[Finding]:
    there = {key_of(document): document for document in queues.documents}
    wanted = {key_of(document): document for document in setup.documents() if document["kind"] != "Namespace"}
    for key, document in wanted.items():
        if key not in there:
            yield Finding("missing-queue", _title(document), f"Cluster {cluster.name} lacks it.")
        elif essence(there[key]) != essence(document):
            text = f"In cluster {cluster.name} it does not say what teams, grants and pools ask for."
            yield Finding("drifted-queue", _title(document), text)
    for key, found in there.items():
        if key not in wanted:
            text = f"Cluster {cluster.name} has it, and no team and no pool asks for it any more."
            yield Finding("left-over-queue", _title(found), text)


def _use(cluster: Cluster, seen: Observation, queues: Queues) -> Iterator[Finding]:
    """One finding for each difference: the queue of a team, the kind of cards, ours, Kueue's."""
    theirs: dict[Line, F] = {
        (one.queue, one.flavor, one.resource): one.total for one in queues.used if one.flavor != HOST
    }
    ours = _ours(cluster, seen, queues)
    for line in sorted(ours.keys() | theirs.keys()):
        mine, said = ours.get(line, F(0)), theirs.get(line, F(0))
        if mine != said:
            queue, flavor, resource = line
            text = f"Of {resource} in {flavor} the tables count {number(mine)} held, and Kueue {number(said)}."
            yield Finding("queue-use", f"{queue} in {cluster.name}", text)


def _ours(cluster: Cluster, seen: Observation, queues: Queues) -> Mapping[Line, F]:
    """What placements hold, and what Kueue has set aside for workloads that wait for their pod to be bound."""
    found: defaultdict[Line, F] = defaultdict(F)
    placements = Placement.objects.filter(cluster=cluster, ended_at=None).select_related("workload__team", "flavor")
    for placement in placements:
        flavor = flavor_fact(placement.flavor)
        stock = stock_name(flavor.model, flavor.sharing, flavor.replicas, flavor.capacity)
        line = (queue_name(placement.workload.team.slug), f"berth-{stock}", placement.resource)
        found[line] += placement.workload.count
    waiting = set(Workload.objects.filter(cluster=cluster, phase=Phase.WAITING).values_list("pk", flat=True))
    for fact in _admitted(queues, {item.uid: item.workload for item in seen.objects}, waiting):
        for (flavor_name, resource), units in (fact.usage or {}).items():
            if flavor_name != HOST:
                found[fact.queue, flavor_name, resource] += units
    return found


def _admitted(queues: Queues, jobs: Mapping[str, UUID], waiting: set[UUID]) -> Iterator[KueueFact]:
    for fact in queues.workloads:
        if fact.fact.standing in (Standing.ADMITTED, Standing.LEAVING) and jobs.get(fact.job) in waiting:
            yield fact


def _title(document: Mapping[str, Any]) -> str:
    kind, namespace, name = key_of(document)
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
