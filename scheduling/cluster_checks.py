"""Tables against the cluster as it is now: two looks, and only what disagrees in both is said.

Between two looks a cycle may have moved on; what is merely on its way does not disagree twice.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

from scheduling.cluster.port import ClusterError, ClusterPort, Observation
from scheduling.connect import port_for
from scheduling.models import Cluster, Placement, Workload
from scheduling.planning.facts import Phase, PodFact
from scheduling.reconcile.observe import proven
from tenants.billing.findings import Finding

FINISHED = ("Succeeded", "Failed")
UNDER_WAY = (Phase.PLACED, Phase.STARTING, Phase.STOPPING)


def against_cluster(cluster: Cluster, now: datetime) -> list[Finding]:
    """What tables and cluster disagree on. A cluster that cannot be read whole is itself a finding."""
    try:
        with port_for(cluster) as port:
            first = _look(cluster, port, now)
            return [found for found in _look(cluster, port, now) if found in first] if first else []
    except ClusterError as error:
        return [Finding("unreachable-cluster", cluster.name, str(error))]


def _look(cluster: Cluster, port: ClusterPort, now: datetime) -> list[Finding]:
    seen = proven(cluster, port.observe(now))  # a pod that only wears our labels is nobody's
    if not seen.complete:
        return [Finding("incomplete-look", cluster.name, problem.text) for problem in seen.problems]
    return [*_nodes(cluster, seen), *_objects(cluster, seen), *_pods(cluster, seen)]


def _nodes(cluster: Cluster, seen: Observation) -> Iterator[Finding]:
    there = {node.name for node in seen.nodes}
    known = set(cluster.nodes.values_list("name", flat=True))
    for name in sorted(there - known):
        yield Finding("unknown-node", name, f"Cluster {cluster.name} has it; the tables do not.")
    for name in sorted(known - there):
        yield Finding("gone-node", name, f"The tables have it; cluster {cluster.name} does not.")


def _objects(cluster: Cluster, seen: Observation) -> Iterator[Finding]:
    """Objects that bear our mark and stand for nothing that lives: shown, never touched (D25)."""
    rows = dict(Workload.objects.filter(cluster=cluster).values_list("pk", "phase"))
    for item in seen.objects:
        phase = rows.get(item.workload)
        if phase is None:
            text = f"{item.kind} {item.namespace}/{item.name} stands for a workload that is not in the tables."
            yield Finding("object-without-workload", item.name, text)
        elif phase == Phase.ENDED and item.deleting_since is None:
            text = f"{item.kind} {item.namespace}/{item.name} stands for a workload that has ended."
            yield Finding("object-without-workload", item.name, text)


def _pods(cluster: Cluster, seen: Observation) -> Iterator[Finding]:
    """The meter against what it measures: each running placement has its pod, each of our pods its placement."""
    pods: defaultdict[UUID, list[PodFact]] = defaultdict(list)
    for pod in seen.pods:
        if pod.workload is not None and pod.phase not in FINISHED:
            pods[pod.workload].append(pod)
    placements = Placement.objects.filter(cluster=cluster, ended_at=None).select_related("workload")
    placed = {placement.workload_id: placement for placement in placements}
    for placement in placed.values():
        nodes = {pod.node for pod in pods[placement.workload_id]}
        if placement.workload.phase == Phase.RUNNING and placement.node not in nodes:
            text = f"It runs on {placement.node} by the tables; the cluster has no pod of it there."
            yield Finding("placement-without-pod", placement.workload.name, text)
    moving = set(Workload.objects.filter(cluster=cluster, phase__in=UNDER_WAY).values_list("pk", flat=True))
    for workload, found in pods.items():
        if workload not in placed and workload not in moving:
            pod = found[0]
            text = f"Pod {pod.namespace}/{pod.name} holds a place on {pod.node or 'no node yet'}; no placement says so."
            yield Finding("pod-without-placement", pod.name, text)
