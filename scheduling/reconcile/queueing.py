"""The cycle's part in a cluster that queues with Kueue: its queues as the tables ask for them, Jobs handed over, and
placements that open when Kubernetes has bound a pod."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import transaction

from scheduling.changes import Step, move
from scheduling.cluster import names
from scheduling.cluster.kueue import KINDS, essence, resource_of, stock_of_flavor, stock_of_node
from scheduling.cluster.kueue_reading import KueueFact, holds_workloads
from scheduling.cluster.port import ClusterError, ClusterPort, Observation, Ref
from scheduling.cluster.queues import Queues
from scheduling.models import Cluster, Placement, Workload
from scheduling.planning.facts import (
    FlavorFact,
    NodeFact,
    ObjectFact,
    Phase,
    PodFact,
    PoolFact,
    QueueFact,
    QueueRules,
    Reason,
    Standing,
    WorkloadFact,
)
from scheduling.planning.packing import sharings
from scheduling.planning.queued_phases import ended_unseen, fallen, lends, newly_bound
from scheduling.planning.shares import flavors_of
from scheduling.queueing import Setup, queues_with_kueue, setup_of
from scheduling.reconcile import launch, steps
from scheduling.snapshot import facts_of, flavor_fact, open_workloads

if TYPE_CHECKING:
    from scheduling.reconcile.hands import Hands

WAITS = QueueFact(Standing.PENDING, Reason.HANDED_OVER, "Kueue has it and has not judged it yet.")
_vain: dict[str, int] = {}  # uid of an object -> its generation when a write of ours last changed nothing


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


# Actions


def hand_over(workload: UUID, hands: Hands) -> bool:
    """Put the suspended Job of a waiting workload into its team's queue. Twice is the same as once."""
    row = Workload.objects.select_related("team", "flavor").get(pk=workload)
    if row.phase != Phase.WAITING or hands.object_of(row) is not None:
        return False
    flavor = flavor_fact(row.flavor)
    picture = hands.look.snapshot
    runtime_class = runtime_class_of(flavor, picture.pools, hands.runtime_classes)
    launch.queue_all(row, stock_of_flavor(flavor), resource_of(flavor, picture.nodes), runtime_class, hands.port)
    return True


def runtime_class_of(flavor: FlavorFact, pools: Iterable[PoolFact], classes: Mapping[str, str]) -> str:
    """What the pools that offer this flavor ask for; "" where they do not all ask for the same: any may get it."""
    asked = {classes.get(pool.name, "") for pool in pools if flavor.sku in {one.sku for one in flavors_of(pool)}}
    return asked.pop() if len(asked) == 1 else ""


def repairs(picture: Picture, hands: Hands) -> Iterator[tuple[str, Callable[[], bool]]]:
    """The queues as the tables ask for them, and the nodes' labels that the flavors go by."""
    for document in missing(picture):
        name = document["metadata"]["name"]
        yield f"write {document['kind']} {name}", partial(_write, document, picture, hands)
    for ref in left_over(picture):
        yield f"remove {ref.kind} {ref.name}", partial(hands.port.remove, ref)
    for node, stock in unlabelled(hands.look.snapshot.nodes, hands):
        text = f"label node {node} as {stock}" if stock else f"take the label of node {node} away"
        yield text, partial(_label, node, stock, hands)


def missing(picture: Picture) -> Iterator[Mapping[str, Any]]:
    """Documents that are not there, or say something else there. A write that changed nothing is not repeated."""
    there = {key_of(document): document for document in picture.queues.documents}
    namespaces = {document["metadata"]["namespace"] for kind, document in _by_kind(picture) if kind == "LocalQueue"}
    for document in picture.setup.documents():
        if document["kind"] == "Namespace":
            if document["metadata"]["name"] not in namespaces:
                yield document
            continue
        found = there.get(key_of(document))
        if found is None or (essence(found) != essence(document) and not _in_vain(found)):
            yield document


def left_over(picture: Picture) -> Iterator[Ref]:
    """Objects of ours that nothing asks for any more, the last written first; never while one holds work."""
    wanted = {key_of(document) for document in picture.setup.documents()}
    for kind in reversed(tuple(KINDS)):
        for _, document in _by_kind(picture, kind):
            meta = document["metadata"]
            if key_of(document) in wanted or meta.get("deletionTimestamp"):
                continue
            if kind in ("ClusterQueue", "LocalQueue") and holds_workloads(document):
                continue
            yield Ref(kind, meta.get("namespace", ""), meta["name"], meta.get("uid", ""))


def unlabelled(nodes: Sequence[NodeFact], hands: Hands) -> Iterator[tuple[str, str]]:
    """Nodes whose label does not tell which cards they have now. A node of no pool gets none: nothing is put there."""
    given = {pool.name: sharings(pool) for pool in hands.look.snapshot.pools}
    for node in nodes:
        stock = stock_of_node(node) if node.sharing in given.get(node.pool, ()) else ""
        if stock != node.stock and (stock or not node.cutting_to):
            yield node.name, stock


def key_of(document: Mapping[str, Any]) -> tuple[str, str, str]:
    meta = document["metadata"]
    return document["kind"], meta.get("namespace", ""), meta["name"]


def _by_kind(picture: Picture, kind: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    for document in picture.queues.documents:
        if kind in ("", document["kind"]):
            yield document["kind"], document


def _write(document: Mapping[str, Any], picture: Picture, hands: Hands) -> bool:
    hands.port.put(document)
    found = next((one for one in picture.queues.documents if key_of(one) == key_of(document)), None)
    if found is not None:
        _vain[found["metadata"].get("uid", "")] = found["metadata"].get("generation", 0)
    return True


def _in_vain(found: Mapping[str, Any]) -> bool:
    """Somebody else has added what our write does not take away; `consistency` tells of it."""
    return _vain.get(found["metadata"].get("uid", ""), -1) == found["metadata"].get("generation", 0)


def _label(node: str, stock: str, hands: Hands) -> bool:
    hands.port.label(node, {names.STOCK: stock or None})
    return True
