"""What the cycle does where Kueue admits: it hands Jobs over and keeps the queues as the tables ask for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from scheduling.cluster import names
from scheduling.cluster.kueue import KINDS, essence, resource_of, stock_of_flavor, stock_of_node
from scheduling.cluster.kueue_reading import holds_workloads
from scheduling.cluster.port import Ref
from scheduling.models import Workload
from scheduling.planning.facts import (
    FlavorFact,
    NodeFact,
    Phase,
    PoolFact,
)
from scheduling.planning.packing import sharings
from scheduling.planning.shares import flavors_of
from scheduling.reconcile import launch
from scheduling.reconcile.hands import Hands
from scheduling.reconcile.queueing import Picture
from scheduling.snapshot import flavor_fact

_vain: dict[str, int] = {}  # uid of an object -> its generation when a write of ours last changed nothing


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
