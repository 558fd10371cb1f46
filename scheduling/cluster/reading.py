"""From Kubernetes documents to facts. Pure, and total over whatever a cluster may say.

`read_*` takes one document as plain dicts (a file, a test); `decode_*` takes a page of a list as bytes, which is the
fast way. One bad item never stops the rest: it becomes a Problem, and what of it can be read stays.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import msgspec

from scheduling.cluster import labels, names
from scheduling.cluster.cards import Cards, Notes, Sight, advertised, card_memory, counted, read_cards
from scheduling.cluster.documents import (
    Condition,
    D,
    DeploymentDocument,
    NodeDocument,
    ObjectDocument,
    Page,
    PodDocument,
    Strings,
    Unreadable,
    converted,
    decoded,
    text,
)
from scheduling.cluster.pods import extended, pod_fact, requests_of, workload_of
from scheduling.cluster.port import PoolSize
from scheduling.cluster.quantities import BadQuantity, mib, milli
from scheduling.cluster.times import when
from scheduling.planning.catalog import find, layout
from scheduling.planning.facts import NodeFact, ObjectFact, PodFact, Problem, Sharing, Taint

Fact = TypeVar("Fact")

CHANGING_STATES = {"pending", "rebooting"}
CORDON = "node.kubernetes.io/unschedulable"
PAUSED = "paused-for-mig-change"
MANY_CARDS = 64  # per node; more is a wrong number until somebody shows us such a machine


@dataclass(frozen=True, slots=True)
class Decoded(Generic[Fact]):
    """One page of a list."""

    facts: tuple[Fact, ...]
    problems: tuple[Problem, ...]
    next: str = ""  # the token of the next page; "" on the last


def read_node(document: Mapping[str, Any]) -> NodeFact:
    """One Node. Raises Unreadable when it cannot even be named."""
    node, problems = converted(document, NodeDocument)
    return node_fact(node, problems)


def read_pod(document: Mapping[str, Any]) -> PodFact:
    """One Pod. Raises Unreadable when it cannot even be named."""
    pod, _ = converted(document, PodDocument)
    return pod_fact(pod)


def read_object(document: Mapping[str, Any]) -> ObjectFact | None:
    """One StatefulSet or Job; None when it is not ours."""
    found, _ = converted(document, ObjectDocument)
    return object_fact(found)


def read_pool_size(document: Mapping[str, Any]) -> PoolSize:
    """One MachineDeployment."""
    found, _ = converted(document, DeploymentDocument)
    return pool_size(found)


def decode_nodes(raw: bytes) -> Decoded[NodeFact]:
    return each(raw, NodeDocument, node_fact)


def decode_pods(raw: bytes) -> Decoded[PodFact]:
    return each(raw, PodDocument, lambda pod, _: pod_fact(pod))


def decode_objects(raw: bytes, kind: str) -> Decoded[ObjectFact]:
    """Our StatefulSets or Jobs; the items of a list do not say their kind."""
    return each(raw, ObjectDocument, lambda found, _: object_fact(found, kind))


def decode_pool_sizes(raw: bytes) -> Decoded[PoolSize]:
    return each(raw, DeploymentDocument, lambda found, _: pool_size(found))


def each(raw: bytes, kind: type[D], fact: Callable[[D, list[Problem]], Fact | None]) -> Decoded[Fact]:
    """The facts of one page. Raises Unreadable when the page itself is none."""
    try:
        page = msgspec.json.decode(raw, type=Page)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Unreadable(Problem("", "items", f"this is not a list of Kubernetes objects: {error}")) from None
    facts: list[Fact] = []
    problems: list[Problem] = []
    for number, item in enumerate(page.items or ()):
        try:
            document, odd = decoded(item, kind)
            found = fact(document, odd)
        except Unreadable as error:
            problems.append(replace(error.problem, field=f"items[{number}]" + dot(error.problem.field)))
            continue
        if found is not None:
            facts.append(found)
    return Decoded(tuple(facts), tuple(problems), page.metadata.continue_)


def dot(field: str) -> str:
    return f".{field}" if field else ""


# Nodes


def node_fact(node: NodeDocument, odd: Iterable[Problem] = ()) -> NodeFact:
    if not node.metadata.name:
        raise Unreadable(Problem("", "metadata.name", "this node has no name; it is left out"))
    notes = Notes(node.metadata.name)
    for problem in odd:
        notes.add(problem.field, problem.text)
    sight = sight_of(node, notes)
    cards = believable(read_cards(sight), notes)
    fact = without_cards(node)
    reasons = reasons_against(node, fact.taints)
    if cards.cards:
        note_model(sight, cards)
        note_layout(sight, cards)
        for field, words in reasons:
            notes.add(field, words)
    return replace(
        fact,
        model=sight.model.key if sight.model else sight.product.name,
        known=sight.model is not None,
        memory_mib=card_memory(sight) if cards.cards else None,
        cards=cards.cards,
        sick_cards=cards.sick,
        sharing=cards.sharing,
        replicas=cards.replicas,
        devices=cards.devices,
        cpu_milli=measured(node.status.allocatable, "cpu", milli, notes),
        host_memory_mib=measured(node.status.allocatable, "memory", mib, notes),
        kept_away=next((taint.key for taint in fact.taints if labels.is_strange(taint)), ""),
        schedulable=fact.ready and not sight.changing and not reasons and not is_cordoned(node),
        problems=tuple(notes.problems),
    )


def sight_of(node: NodeDocument, notes: Notes) -> Sight:
    found = node.metadata.labels
    product = labels.product_of(found)
    model = find(product.name) if product.name else None
    return Sight(found, product, model, advertised(node.status, notes), is_changing(found), notes)


def without_cards(node: NodeDocument) -> NodeFact:
    """What labels, annotations and conditions say of the machine; its cards and sizes are still to be counted."""
    meta = node.metadata
    ready = condition(node.status.conditions, "Ready")
    return NodeFact(
        name=meta.name,
        uid=meta.uid,
        pool=labels.pool_of(meta.labels),
        model="",
        known=False,
        memory_mib=None,
        cards=0,
        sick_cards=0,
        sharing=Sharing.WHOLE,
        replicas=1,
        capacity=labels.capacity_of(meta.labels),
        devices=(),
        cpu_milli=0,
        host_memory_mib=0,
        ready=is_true(ready),
        schedulable=False,
        taints=tuple(Taint(taint.key, taint.value or "", taint.effect) for taint in node.spec.taints or ()),
        zone=labels.first(meta.labels, labels.ZONE_KEYS)[1],
        clique=text(meta.labels, "nvidia.com/gpu.clique"),
        machine=text(meta.annotations, names.MACHINE),
        mig_capable=text(meta.labels, "nvidia.com/mig.capable") == "true",
        mig_strategy=text(meta.labels, "nvidia.com/mig.strategy"),
        mig_config=text(meta.labels, names.MIG_CONFIG),
        mig_state=text(meta.labels, names.MIG_STATE),
        cutting_to=text(meta.annotations, names.CUTTING_TO),
        leaving=bool(text(meta.annotations, names.LEAVING)),
        dropped=bool(text(meta.annotations, names.DROPPED)),
        created_at=when(meta.creation_timestamp),
        driver=labels.driver_of(meta.labels),
        stock=text(meta.labels, names.STOCK),
        cuda=labels.cuda_of(meta.labels),
        not_ready_since=None if is_true(ready) or ready is None else when(ready.last_transition_time),
    )


def is_changing(found: Strings | None) -> bool:
    """Is the node being cut, or its driver being replaced? What it advertises meanwhile says nothing."""
    if text(found, names.MIG_STATE) in CHANGING_STATES:
        return True
    if text(found, "nvidia.com/gpu-driver-upgrade-state") not in labels.UPGRADING:
        return True
    return any(PAUSED in str(value) for key, value in (found or {}).items() if key.startswith("nvidia.com/gpu.deploy."))


def is_cordoned(node: NodeDocument) -> bool:
    """By anybody, ourselves included; a node that we have marked counts as cordoned before the server says so."""
    taint = any(taint.key == CORDON for taint in node.spec.taints or ())
    return bool(node.spec.unschedulable) or taint or own_marks(node)


def own_marks(node: NodeDocument) -> bool:
    marks = (names.CUTTING_TO, names.LEAVING, names.DROPPED)
    return any(text(node.metadata.annotations, mark) for mark in marks)


def reasons_against(node: NodeDocument, taints: tuple[Taint, ...]) -> list[tuple[str, str]]:
    """Why nothing may be placed here, each with the field that says so; what we did ourselves is not among them."""
    found: list[tuple[str, str]] = []
    ready = condition(node.status.conditions, "Ready")
    if not is_true(ready):
        said = (
            f"Ready is {ready.status or 'not said'}" + because(ready)
            if ready
            else "it does not say whether it is ready"
        )
        found.append(("status.conditions[Ready]", f"the node cannot be used: {said}"))
    for taint in taints:
        words = labels.why_kept_away(taint)
        if words and taint.key != CORDON:
            found.append((f"spec.taints[{taint.key}]", f"the node cannot be used: {words}"))
    if is_cordoned(node) and not own_marks(node):
        found.append(("spec.unschedulable", "the node cannot be used: it is cordoned"))
    found += [
        (f"status.conditions[{fault.type}]", f"the node cannot be used: {fault.type}{because(fault)}")
        for fault in node.status.conditions or ()
        if labels.FAULT_CONDITIONS.fullmatch(fault.type) and is_true(fault)
    ]
    state = text(node.metadata.labels, labels.SENTINEL_STATE)
    if state not in labels.SENTINEL_WELL:
        found.append((f"metadata.labels[{labels.SENTINEL_STATE}]", f"the node cannot be used: it is {state}"))
    if text(node.metadata.labels, names.MIG_STATE) == "failed":
        words = "the node cannot be used: its last cut failed, so nobody knows how its cards are cut"
        found.append((f"metadata.labels[{names.MIG_STATE}]", words))
    if node.metadata.deletion_timestamp:
        found.append(("metadata.deletionTimestamp", "the node cannot be used: it is being deleted"))
    return found


def because(found: Condition) -> str:
    said = found.message or found.reason
    return f" ({said})" if said else ""


def note_model(sight: Sight, cards: Cards) -> None:
    if sight.model:
        return
    field = f"metadata.labels[{sight.product.key or 'nvidia.com/gpu.product'}]"
    if sight.product.name:
        sight.notes.add(field, f"the catalog does not know the model {sight.product.name}; its cards are set aside")
    elif cards.cards:
        sight.notes.add(field, "no label tells the model of the cards; they are set aside")


def note_layout(sight: Sight, cards: Cards) -> None:
    """MIG manager may say success while the node still offers another layout; then the node's own word counts."""
    config = text(sight.labels, names.MIG_CONFIG)
    wished = layout(sight.model, config) if sight.model else None
    if wished is None or text(sight.labels, names.MIG_STATE) != "success" or not cards.devices:
        return
    found = counted(cards.devices)
    if set(found) != {name for name, number in wished.counts.items() if number}:
        offered = ", ".join(sorted(found)) or "whole cards"
        words = f"the label says {config} and success, but the node offers {offered}; that counts"
        sight.notes.add(f"metadata.labels[{names.MIG_CONFIG}]", words)


def believable(cards: Cards, notes: Notes) -> Cards:
    if cards.cards <= MANY_CARDS:
        return cards
    notes.add("status.capacity", f"no machine has {cards.cards} cards; none are offered")
    return Cards(0, 0, cards.sharing, cards.replicas)


def measured(offered: Strings | None, resource: str, convert: Callable[[object], int], notes: Notes) -> int:
    """CPU or memory of the node; 0 when it cannot be read, so that nothing is placed on a guess."""
    if resource not in (offered or {}):
        return 0
    try:
        return convert((offered or {})[resource])
    except BadQuantity as error:
        notes.add(f"status.allocatable[{resource}]", f"{error}; the node counts as having none")
        return 0


def condition(found: list[Condition] | None, kind: str) -> Condition | None:
    return next((item for item in found or () if item.type == kind), None)


def is_true(found: Condition | None) -> bool:
    return found is not None and found.status == "True"


# Our objects, and pools


def object_fact(found: ObjectDocument, kind: str = "") -> ObjectFact | None:
    """A StatefulSet or Job of ours; None for others'."""
    meta = found.metadata
    workload = workload_of(meta.labels)
    if workload is None or not meta.name:
        return None
    complete, failed = (condition(found.status.conditions, word) for word in ("Complete", "Failed"))
    last = failed if is_true(failed) else complete if is_true(complete) else None
    return ObjectFact(
        workload=workload,
        kind=kind or found.kind,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        replicas=wished_pods(found, kind or found.kind),
        generation=attempt_of(meta.annotations),
        deleting_since=when(meta.deletion_timestamp),
        requests=pod_requests(found),
        complete=is_true(complete),
        failed=is_true(failed),
        reason=(last.reason or "") if last else "",
        message=(last.message or "") if last else "",
        finished_at=when(found.status.completion_time) or (when(last.last_transition_time) if last else None),
        queue=text(meta.labels, names.QUEUE),
    )


def pod_requests(found: ObjectDocument) -> Mapping[str, int] | None:
    """What each of its pods asks for; None when it does not say."""
    template = found.spec.template
    return extended(requests_of(PodDocument(spec=template.spec))) if template else None


def wished_pods(found: ObjectDocument, kind: str) -> int:
    if kind != "Job":
        return 1 if found.spec.replicas is None else found.spec.replicas
    if found.spec.suspend:
        return 0
    return 1 if found.spec.parallelism is None else found.spec.parallelism


def attempt_of(annotations: Strings | None) -> int:
    said = text(annotations, names.ATTEMPT)
    return int(said) if said.isascii() and said.isdigit() and len(said) <= len("999999999") else 0


def pool_size(found: DeploymentDocument) -> PoolSize:
    meta = found.metadata
    if not meta.name:
        raise Unreadable(Problem("", "metadata.name", "this pool has no name; it is left out"))
    pool = text(found.spec.template.metadata.labels, names.CLUSTER_API_POOL) or meta.name
    trouble = next((item for item in found.status.conditions or () if item.status == "False" and item.message), None)
    return PoolSize(
        pool=pool,
        wished=1 if found.spec.replicas is None else found.spec.replicas,
        ready=found.status.ready_replicas or 0,
        message=(trouble.message or "") if trouble else "",
    )
