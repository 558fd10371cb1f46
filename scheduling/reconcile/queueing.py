"""What the cycle sees of a cluster that queues with Kueue: its queues, what Kueue says of each Job, and
placements that open when Kubernetes has bound a pod."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from scheduling.changes import Step, move
from scheduling.cluster.kueue_reading import KueueFact, Queues
from scheduling.cluster.port import ClusterError, ClusterPort, Observation
from scheduling.models import Cluster, Placement, Workload
from scheduling.planning.facts import (
    NodeFact,
    ObjectFact,
    Phase,
    PodFact,
    QueueFact,
    QueueRules,
    Reason,
    Standing,
    WorkloadFact,
)
from scheduling.planning.queued_phases import ended_unseen, fallen, lends, newly_bound
from scheduling.queueing import Setup, queues_with_kueue, setup_of
from scheduling.reconcile import steps
from scheduling.snapshot import facts_of, open_workloads

WAITS = QueueFact(Standing.PENDING, Reason.HANDED_OVER, "Kueue has it and has not judged it yet.")


@dataclass(frozen=True, slots=True)
class Picture:
    """Kueue's side of a look. With `trouble` nothing is known of it, and nothing is to be done."""

    queues: Queues
    setup: Setup
    facts: Mapping[UUID, QueueFact]
    trouble: str = ""

    @property
    def rules(self) -> QueueRules:
        return self.setup.rules(self.facts)


def look_at(cluster: Cluster, port: ClusterPort, seen: Observation, now: datetime) -> Picture | None:
    """None where our own plan admits."""
    if not queues_with_kueue(cluster):
        return None
    setup = setup_of(cluster, seen.nodes, now)
    try:
        queues = port.queues()
    except ClusterError as error:
        return Picture(Queues(), setup, facts_from((), seen.objects), str(error))
    return Picture(queues, setup, facts_from(queues.workloads, seen.objects), queues.trouble or strangers(seen.objects))


def facts_from(said: Sequence[KueueFact], objects: Sequence[ObjectFact]) -> Mapping[UUID, QueueFact]:
    """Kueue's word on each Job of ours in a queue, matched by uid; a Job that it has not met yet waits."""
    words = {one.job: one.fact for one in said}
    return {one.workload: words.get(one.uid, WAITS) for one in objects if one.queue and one.deleting_since is None}


def strangers(objects: Sequence[ObjectFact]) -> str:
    """What was started before the cluster queued with Kueue stands beside the queue; the two ways do not mix."""
    before = [one.name for one in objects if not one.queue and one.deleting_since is None]
    if not before:
        return ""
    return (
        f"It queues with Kueue, and {before[0]} was started when it did not ({len(before)} in all). "
        "Let it queue directly until they have ended, then switch."
    )


# Phases


def follow(cluster: Cluster, seen: Observation, picture: Picture, now: datetime) -> int:
    """Open and close placements as pods come and go; the common rules follow behind. Returns how many moved."""
    found = steps.found_in(seen)
    rows = list(open_workloads(cluster))
    placements = list(Placement.objects.filter(cluster=cluster, ended_at=None))
    placed = {placement.workload_id: placement for placement in placements}
    known = _pods_known([row for row in rows if row.phase == Phase.WAITING])
    moved = 0
    for row, fact in zip(rows, facts_of(cluster, rows, placements), strict=True):
        thing, pods, said = found.objects.get(row.pk), found.pods.get(row.pk, ()), picture.facts.get(row.pk)
        if row.phase == Phase.WAITING and row.pk in picture.facts:
            pod = newly_bound(pods, found.nodes, known[row.pk])
            if pod is not None:
                moved += bind(row, fact, pod, found.nodes[pod.node], said, now)
                continue
            step = ended_unseen(fact, thing, now)
        else:
            placement = placed.get(row.pk)
            uid = placement.pod_uid if placement else ""
            step = fallen(fact, uid, said, thing, pods, found.nodes, now) or lends(fact, said, now)
        moved += step is not None and steps.take(row, placed.get(row.pk), step)
    return moved


@transaction.atomic
def bind(
    row: Workload, fact: WorkloadFact, pod: PodFact, node: NodeFact, said: QueueFact | None, now: datetime
) -> bool:
    """Its pod has a node: the placement opens, and with it the meter."""
    borrowed = said is not None and said.borrowed
    extra = " It is on cards that another team leaves unused." if borrowed else ""
    text = f"Kueue has admitted it, and its pod is bound to node {node.name}.{extra}"
    attempt = row.attempt + 1
    at = max(row.phase_since, min(now, pod.running_since or now))
    reason = Reason.BORROWED if borrowed else Reason.ADMITTED
    if not move(row, Step(Phase.PLACED, reason, text, at), attempt=attempt, idle_since=None):
        return False
    offered = {device.resource for device in node.devices}
    resource = next((one for one in pod.requests if one in offered), next(iter(pod.requests), ""))
    Placement.objects.create(
        workload=row,
        attempt=attempt,
        cluster_id=row.cluster_id,
        pool=node.pool,
        node=node.name,
        resource=resource,
        flavor_id=row.flavor_id,
        share=fact.share,
        namespace=pod.namespace,
        pod=pod.name,
        pod_uid=pod.uid,
        placed_at=at,
    )
    return True


def _pods_known(rows: Sequence[Workload]) -> Mapping[UUID, set[str]]:
    """Pods that had a placement already, by workload: an old pod on a node that fell silent is no new one."""
    found: defaultdict[UUID, set[str]] = defaultdict(set)
    for workload, uid in Placement.objects.filter(workload__in=rows).values_list("workload_id", "pod_uid"):
        found[workload].add(uid)
    return found
