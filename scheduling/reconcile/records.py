"""Writing down what was seen: nodes, pools, and the card spans from which card-seconds are balanced.

Only what changed is written. All of it is idempotent: seeing the same twice writes nothing the second time.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction as F
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import QuerySet

from scheduling.cluster.port import Observation, PoolSize
from scheduling.models import CardSpan, Cluster, Node, NodePool
from scheduling.planning.coming import shows_cards
from scheduling.planning.cuda import Version, in_words
from scheduling.planning.facts import NodeFact, PodFact, Problem, Sharing
from scheduling.reconcile.lingering import Paid, cards_of, lingering, lingering_json, paid_for
from scheduling.snapshot import foreign_units, node_json

POOL_KIND = "MachineDeployment"
FINISHED = ("Succeeded", "Failed")
NODE_FIELDS = [
    "pool",
    "uid",
    "model",
    "cards",
    "schedulable",
    "facts",
    "foreign",
    "lingering",
    "usable_since",
    "empty_since",
    "seen_at",
]


@dataclass(frozen=True, slots=True)
class Seen:
    """The nodes of a look, with what only we know of them added, and whether anything about them is new."""

    nodes: tuple[NodeFact, ...]
    changed: bool
    empty_since: Mapping[str, datetime]  # by name; not of those that hold something of ours


class Known(NamedTuple):
    """What only we know of a node that was seen before."""

    uid: str
    usable_since: datetime | None
    empty_since: datetime | None
    lingering: Any


@transaction.atomic
def see_nodes(
    cluster: Cluster,
    seen: Observation,
    now: datetime,
    *,
    changed: frozenset[str] | None = None,
    paid: Paid | None = None,
) -> Seen:
    """Bring the node rows and card spans in line with a complete look.

    With `changed`, only those nodes are compared, the ones that come or go, and those with pods that do not: the
    others' facts are not even read. `paid` are the open placements, where they are at hand.
    """
    known, stuck = _known(cluster), lingering(seen.pods, paid_for(cluster) if paid is None else paid)
    nodes = [_with_usable_since(node, known.get(node.name), now) for node in seen.nodes]
    news = [node for node in nodes if _may_differ(node, known.get(node.name), stuck[node.name], changed)]
    gone = known.keys() - {node.name for node in nodes}
    if not news and not gone:
        return Seen(tuple(nodes), changed=False, empty_since=_empty(known))
    whole = changed is None
    pods = _by_node(seen.pods, None if whole else {node.name for node in news})
    before = {row.name: row for row in _rows(cluster, None if whole else [node.name for node in news])}
    pools = {pool.name: pool for pool in cluster.pools.all()}
    rows = [_row(cluster, node, before.get(node.name), pools, pods[node.name], now) for node in news]
    for row in rows:
        row.lingering = lingering_json(stuck[row.name])
    fresh = [row for row in rows if _differs(row, before.get(row.name))]
    Node.objects.bulk_create(fresh, update_conflicts=True, unique_fields=["cluster", "name"], update_fields=NODE_FIELDS)
    if gone:
        cluster.nodes.filter(name__in=gone).delete()
    _see_cuda(pools, nodes)
    _see_spans(cluster, news, pods, stuck, now, of=None if whole else _uids(known, news, gone))
    empty = _empty(known) | {row.name: row.empty_since for row in rows if row.empty_since}
    held = {row.name for row in rows if not row.empty_since} | gone
    left = {name: since for name, since in empty.items() if name not in held}
    return Seen(tuple(nodes), changed=bool(fresh or gone), empty_since=left)


def unwritten(cluster: Cluster, seen: Observation) -> Seen:
    """The nodes of a look that lacks something, beside what was known before. One query."""
    return Seen(seen.nodes, changed=False, empty_since=_empty(_known(cluster)))


def _see_cuda(pools: Mapping[str, NodePool], nodes: Iterable[NodeFact]) -> None:
    """Keep the newest CUDA that each pool's nodes offer; of a pool without nodes, what they last offered."""
    found: dict[str, Version] = {}
    for node in nodes:
        if node.pool in pools and node.cuda is not None:
            found[node.pool] = max(node.cuda, found.get(node.pool, node.cuda))
    for name, version in found.items():
        if pools[name].cuda != in_words(version):
            NodePool.objects.filter(pk=pools[name].pk).update(cuda=in_words(version))


def see_pools(cluster: Cluster, sizes: Iterable[PoolSize], problems: Iterable[Problem] = ()) -> None:
    """What the provider says of each pool; a pool of which it says nothing becomes unknown, not zero.

    `problems`: of the look; where the cluster does not know the provider's kind at all, each pool of it says so.
    """
    said = {size.pool: size for size in sizes}
    absent = next((problem.text for problem in problems if problem.where == POOL_KIND and not problem.field), "")
    unknown = absent[:300] or "The provider does not know this pool."
    for pool in cluster.pools.exclude(provider="static"):
        size = said.get(pool.name)
        wished, trouble = (size.wished, size.message[:300]) if size else (None, unknown)
        if (pool.wished_nodes, pool.trouble) != (wished, trouble):
            NodePool.objects.filter(pk=pool.pk).update(wished_nodes=wished, trouble=trouble)


def out_of_service(node: NodeFact, stuck: Iterable[PodFact] = ()) -> F:
    """Cards that cannot be given out: all while the node is unfit or being cut, else the sick ones and those that
    pods hold which do not go.

    A node that we cordoned ourselves to give it back is not unfit: its cards are unallocated.
    """
    fit = node.ready and (node.schedulable or node.leaving) and not node.cutting_to
    return min(F(node.cards), node.sick_cards + cards_of(node, stuck)) if fit else F(node.cards)


def stranded(node: NodeFact) -> F:
    """Remainders of cut cards that no slice covers; nothing on a node that offers nothing yet."""
    if node.sharing != Sharing.MIG or not node.devices:
        return F(0)
    covered = sum((device.share * device.capacity for device in node.devices), F(0))
    return max(F(0), node.cards - covered)


def foreign(node: NodeFact, pods: Iterable[PodFact]) -> F:
    """Cards' worth held by pods that are not ours."""
    shares = {device.resource: device.share for device in node.devices}
    units = foreign_units(foreign_held(pods))
    return sum((shares.get(resource, F(0)) * count for resource, count in units.items()), F(0))


def _known(cluster: Cluster) -> dict[str, Known]:
    """By name; without the facts, which are large."""
    rows = cluster.nodes.order_by().values_list("name", "uid", "usable_since", "empty_since", "lingering")
    return {name: Known(uid, usable, empty, stuck) for name, uid, usable, empty, stuck in rows}


def _empty(known: Mapping[str, Known]) -> dict[str, datetime]:
    return {name: one.empty_since for name, one in known.items() if one.empty_since}


def _may_differ(node: NodeFact, before: Known | None, stuck: Sequence[PodFact], changed: frozenset[str] | None) -> bool:
    if changed is None or before is None or node.name in changed:
        return True
    if (stuck or before.lingering) and lingering_json(stuck) != before.lingering:
        return True  # a meter that ended makes a pod the platform's, though nothing changed in the cluster
    return (before.uid, before.usable_since) != (node.uid, node.usable_since)


def _rows(cluster: Cluster, names: Collection[str] | None) -> QuerySet[Node]:
    return cluster.nodes.all() if names is None else cluster.nodes.filter(name__in=names)


def _uids(known: Mapping[str, Known], news: Iterable[NodeFact], gone: Iterable[str]) -> set[str]:
    """Machines, present and former, whose card spans may have changed."""
    former = {known[name].uid for name in [*gone, *(node.name for node in news)] if name in known}
    return former | {node.uid for node in news}


def _with_usable_since(node: NodeFact, before: Known | None, now: datetime) -> NodeFact:
    if before is not None and before.uid == node.uid and before.usable_since:
        return replace(node, usable_since=before.usable_since)
    return replace(node, usable_since=now if shows_cards(node) else None)


def _row(
    cluster: Cluster,
    node: NodeFact,
    before: Node | None,
    pools: Mapping[str, NodePool],
    pods: Sequence[PodFact],
    now: datetime,
) -> Node:
    return Node(
        cluster=cluster,
        pool=pools.get(node.pool),
        name=node.name,
        uid=node.uid,
        model=node.model,
        cards=node.cards,
        schedulable=node.schedulable,
        facts=node_json(node),
        foreign=foreign_held(pods),
        usable_since=node.usable_since,
        empty_since=_empty_since(before, node, pods, now),
        seen_at=now,
    )


def _empty_since(before: Node | None, node: NodeFact, pods: Sequence[PodFact], now: datetime) -> datetime | None:
    """Daemons do not count (Z5), and nothing is empty before it could have been used (Z3)."""
    held = any(pod.workload is not None or pod.requests for pod in pods)
    if held or node.usable_since is None:
        return None
    same = before is not None and before.uid == node.uid
    return (before.empty_since if same and before is not None else None) or now


def _differs(row: Node, before: Node | None) -> bool:
    if before is None:
        return True
    fields = ("pool_id", "uid", "facts", "foreign", "lingering", "usable_since", "empty_since")
    return any(getattr(row, field) != getattr(before, field) for field in fields)


def _see_spans(
    cluster: Cluster,
    nodes: Sequence[NodeFact],
    pods: Mapping[str, Sequence[PodFact]],
    stuck: Mapping[str, Sequence[PodFact]],
    now: datetime,
    *,
    of: Collection[str] | None,
) -> None:
    """Close the spans that no longer tell the truth, and open the ones that do; all, or those of these machines."""
    open_ones = CardSpan.objects.filter(cluster=cluster, ended_at=None)
    told = {span.node_uid: span for span in (open_ones if of is None else open_ones.filter(node_uid__in=of))}
    wanted = {node.uid: _span(cluster, node, pods[node.name], stuck[node.name], now) for node in nodes if node.cards}
    stale = [span for uid, span in told.items() if uid not in wanted or _says(wanted[uid]) != _says(span)]
    for span in stale:
        CardSpan.objects.filter(pk=span.pk, ended_at=None).update(ended_at=max(now, span.started_at))
    kept = set(told) - {span.node_uid for span in stale}
    CardSpan.objects.bulk_create([span for uid, span in wanted.items() if uid not in kept])


def _span(
    cluster: Cluster, node: NodeFact, pods: Sequence[PodFact], stuck: Sequence[PodFact], now: datetime
) -> CardSpan:
    return CardSpan(
        cluster=cluster,
        pool=node.pool,
        node=node.name,
        node_uid=node.uid,
        model=node.model,
        cards=node.cards,
        out_of_service=out_of_service(node, stuck),
        stranded=stranded(node),
        foreign=foreign(node, pods),
        started_at=now,
    )


def _says(span: CardSpan) -> tuple[Any, ...]:
    return (span.pool, span.node, span.model, span.cards, span.out_of_service, span.stranded, span.foreign)


def foreign_held(pods: Iterable[PodFact]) -> dict[str, dict[str, int]]:
    """Units held by pods that are not ours, by namespace and resource."""
    units: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for pod in pods:
        if pod.workload is None:
            for resource, count in pod.requests.items():
                units[pod.namespace][resource] += count
    return {namespace: dict(held) for namespace, held in sorted(units.items())}


def _by_node(pods: Iterable[PodFact], names: Collection[str] | None) -> defaultdict[str, list[PodFact]]:
    """Pods that hold something, of all nodes or of these."""
    found: defaultdict[str, list[PodFact]] = defaultdict(list)
    for pod in pods:
        if pod.node and (names is None or pod.node in names) and pod.phase not in FINISHED:
            found[pod.node].append(pod)
    return found
