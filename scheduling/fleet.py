"""Reading the fleet for pages: pools, their nodes, and what each card of a node is doing.

Which physical card a pod got is the device plugin's business; what is told here is how many units of a node are held,
filled in from its first card on. Queries do not grow with pools or nodes.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction as F
from typing import Literal
from uuid import UUID

from django.db.models import Count, OuterRef, QuerySet, Subquery, Sum

from scheduling.models import CardSpan, CycleReport, Node, NodePool, Placement, Sample, Workload
from scheduling.planning import catalog
from scheduling.planning.facts import DeviceFact, NodeFact, Sharing
from scheduling.snapshot import foreign_units, node_fact
from scheduling.stuck import Stuck, stuck_on, workloads_behind
from scheduling.telemetry.idle import GAP
from tenants.access import Standing

State = Literal["held", "foreign", "lingering", "sick", "free", "stranded", "waking", "cutting"]
NOTHING = F(0)
KEY = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Unit:
    """One share of one card: who holds it, and how busy it was seen lately (None: nobody said)."""

    share: F
    state: State
    placement: Placement | None = None
    busy: float | None = None
    stuck: Stuck | None = None  # the pod that does not go


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """One node with its cards, each a list of units from top to bottom."""

    row: Node
    fact: NodeFact
    cards: list[list[Unit]]
    condition: str  # fit, cutting, leaving, cordoned or not ready
    words: str  # the condition as a sentence, empty when fit
    stuck: list[Stuck]  # pods that hold something here and do not go
    behind: Mapping[UUID, Workload]  # whose they are


@dataclass(frozen=True, slots=True)
class PoolSeen:
    """One pool with those of its nodes that are shown."""

    pool: NodePool
    nodes: list[NodeSeen]
    total: int  # nodes that it has
    waking: int  # nodes that the provider has been asked for and that are not there yet
    units: int
    units_held: int
    busy: float | None  # mean of what was reported
    sick: int
    grades: dict[str, str]  # MIG profiles' evidence: grade -> what it means

    @property
    def problems(self) -> list[str]:
        """What is odd, in sentences that name the node."""
        return [f"{node.row.name}: {problem.text}" for node in self.nodes for problem in node.fact.problems]


@dataclass(frozen=True, slots=True)
class Totals:
    """The fleet in one line, in cards."""

    nodes: int = 0
    cards: int = 0
    held: F = NOTHING
    foreign: F = NOTHING
    stranded: F = NOTHING
    out_of_service: F = NOTHING
    waking: int = 0
    stuck: int = 0  # pods that hold something and do not go; their cards are out of service

    @property
    def lost(self) -> F:
        """Present, but nobody can hold them."""
        return self.stranded + self.out_of_service

    @property
    def unallocated(self) -> F:
        return max(NOTHING, self.cards - self.held - self.foreign - self.stranded - self.out_of_service)


@dataclass(frozen=True, slots=True)
class Foreign:
    """What pods that Berth does not know hold in one namespace, on the nodes in question."""

    namespace: str  # "": where it is not for the reader to know
    units: Mapping[str, int]  # by resource
    cards: F  # their worth

    @property
    def words(self) -> str:
        listed = ", ".join(f"{count} × {resource}" for resource, count in sorted(self.units.items()))
        return f"{listed} in {self.namespace or 'other namespaces'}"


@dataclass(frozen=True, slots=True)
class Told:
    """What one look came to, in sentences for people."""

    report: CycleReport
    actions: list[str]
    failures: list[str]


@dataclass(slots=True)
class Holders:
    """What stands on the nodes: open placements by (cluster, node), and how busy each was seen."""

    by_node: dict[tuple[int, str], list[Placement]] = field(default_factory=lambda: defaultdict(list))
    busy: Mapping[object, float | None] = field(default_factory=dict)
    behind: Mapping[UUID, Workload] = field(default_factory=dict)  # whose the pods are that do not go


def totals(pools: Iterable[NodePool]) -> Totals:
    """The whole fleet. Five queries."""
    nodes = Node.objects.aggregate(nodes=Count("pk"), cards=Sum("cards", default=0))
    by_pool = dict(Node.objects.exclude(pool=None).order_by().values_list("pool").annotate(n=Count("pk")))
    waking = sum(max(0, (pool.wished_nodes or 0) - by_pool.get(pool.pk, 0)) * pool.cards_per_node for pool in pools)
    spans = list(CardSpan.objects.filter(ended_at=None).values_list("foreign", "stranded", "out_of_service"))
    held = Placement.objects.filter(ended_at=None).values_list("share", flat=True)
    with_stuck = Node.objects.exclude(lingering=[]).only("name", "lingering")
    return Totals(
        nodes=nodes["nodes"],
        cards=nodes["cards"],
        held=sum(held, NOTHING),
        foreign=sum((foreign for foreign, _, _ in spans), NOTHING),
        stranded=sum((stranded for _, stranded, _ in spans), NOTHING),
        out_of_service=sum((out for *_, out in spans), NOTHING),
        waking=waking,
        stuck=sum(any(pod.units.values()) for row in with_stuck for pod in stuck_on(row)),
    )


def pools_seen(pools: Sequence[NodePool], now: datetime, *, most: int) -> list[PoolSeen]:
    """The pools with at most so many of their nodes drawn. Four queries."""
    rows: dict[int, list[Node]] = defaultdict(list)
    for row in Node.objects.filter(pool__in=[pool.pk for pool in pools]).order_by("name"):
        if row.pool_id is not None:
            rows[row.pool_id].append(row)
    holders = holders_of([row for found in rows.values() for row in found], now)
    return [pool_seen(pool, rows[pool.pk], holders, most=most) for pool in pools]


def pool_seen(pool: NodePool, rows: Sequence[Node], holders: Holders, *, most: int) -> PoolSeen:
    """Nodes with something to say come first, so that none of them is cut off."""
    nodes = sorted((node_seen(row, holders) for row in rows), key=lambda node: (not node.fact.problems, node.row.name))
    units = [unit for node in nodes for card in node.cards for unit in card]
    real = [unit for unit in units if unit.state != "stranded"]
    known = [unit.busy for unit in real if unit.busy is not None]
    return PoolSeen(
        pool=pool,
        nodes=sorted(nodes[:most], key=lambda node: node.row.name),
        total=len(nodes),
        waking=max(0, (pool.wished_nodes or 0) - len(nodes)),
        units=len(real),
        units_held=sum(unit.state in ("held", "foreign", "lingering") for unit in real),
        busy=sum(known) / len(known) if known else None,
        sick=sum(node.fact.sick_cards for node in nodes),
        grades=grades_of(pool) if pool.sharing == Sharing.MIG else {},
    )


def foreign_use(nodes: Iterable[Node], *, named: Collection[str] | None) -> list[Foreign]:
    """Held outside Berth, most first. Namespaces are told by name where they are among `named`; None: all of them."""
    units: defaultdict[str, Counter[str]] = defaultdict(Counter)
    worth: defaultdict[str, F] = defaultdict(lambda: NOTHING)
    for node in nodes:
        shares = {device.resource: device.share for device in node_fact(node).devices} if node.foreign else {}
        for namespace, held in node.foreign.items():
            told = namespace if named is None or namespace in named else ""
            units[told].update(held)
            worth[told] += sum((shares.get(resource, NOTHING) * count for resource, count in held.items()), NOTHING)
    found = [Foreign(namespace, dict(held), worth[namespace]) for namespace, held in units.items()]
    return sorted(found, key=lambda one: (-one.cards, one.namespace))


def namespaces_of(stand: Standing) -> set[str] | None:
    """The namespaces whose names the person may read; None: all."""
    return None if stand.is_operator else {team.namespace for team in stand.teams.values()}


def strays() -> QuerySet[Node]:
    """Nodes that belong to no pool that we know: seen, counted, and not used."""
    return Node.objects.filter(pool=None).select_related("cluster").order_by("cluster__name", "name")


def holders_of(rows: Sequence[Node], now: datetime) -> Holders:
    """Who stands on these nodes, and how busy they were seen. Two queries, and a third where a pod does not go."""
    newest = Sample.objects.filter(placement=OuterRef("pk")).order_by("-at").values("pk")[:1]
    found = Placement.objects.filter(ended_at=None, node__in={row.name for row in rows})
    placements = list(
        found.annotate(newest=Subquery(newest))
        .select_related("workload__team", "workload__owner")
        .order_by("placed_at")
    )
    newest_keys = {placement.pk: placement.newest for placement in placements if placement.newest}
    samples = Sample.objects.in_bulk(list(newest_keys.values()))
    holders = Holders(
        behind=workloads_behind(rows),
        busy={
            pk: samples[key].busy for pk, key in newest_keys.items() if key in samples and now - samples[key].at <= GAP
        },
    )
    for placement in placements:
        holders.by_node[(placement.cluster_id, placement.node)].append(placement)
    return holders


def node_seen(row: Node, holders: Holders) -> NodeSeen:
    fact = node_fact(row)
    condition, words = condition_of(fact)
    placements = holders.by_node.get((row.cluster_id, row.name), [])
    cards: list[list[Unit]] = [[] for _ in range(fact.cards)]
    stuck, others = stuck_on(row), foreign_units(row.foreign)
    for device in fact.devices:
        here = [one for one in placements if one.resource == device.resource]
        spread(units_of(device, here, holders, others, stuck), cards)
    for card in cards:
        finish(card, fact, condition)
    return NodeSeen(row, fact, cards, condition, words, stuck, holders.behind)


def units_of(
    device: DeviceFact,
    placements: Collection[Placement],
    holders: Holders,
    foreign: Mapping[str, int],
    stuck: Iterable[Stuck] = (),
) -> list[Unit]:
    """All units of one resource: held first, what does not go, what others hold, what is sick; the rest is free."""
    units: list[Unit] = []
    for placement in placements:
        count = int(placement.share / device.share) if device.share else 1
        busy = holders.busy.get(placement.pk)
        units += [Unit(device.share, "held", placement, busy)] * count
    for pod in stuck:
        units += [Unit(device.share, "lingering", stuck=pod)] * pod.units.get(device.resource, 0)
    units += [Unit(device.share, "foreign")] * foreign.get(device.resource, 0)
    sick = min(device.capacity - device.allocatable, max(0, device.capacity - len(units)))
    units += [Unit(device.share, "free")] * max(0, device.capacity - len(units) - sick)
    return units[: max(device.capacity - sick, 0)] + [Unit(device.share, "sick")] * sick


def spread(units: Sequence[Unit], cards: list[list[Unit]]) -> None:
    """Deal the units of one resource out to the cards, each card as many."""
    if not cards:
        return
    per_card = -(-len(units) // len(cards))
    for index, card in enumerate(cards):
        card.extend(units[index * per_card : (index + 1) * per_card])


def finish(card: list[Unit], fact: NodeFact, condition: str) -> None:
    """What no unit covers: the stranded rest of a cut card, or all of a card that offers nothing now."""
    rest = 1 - sum((unit.share for unit in card), NOTHING)
    if not card:
        card.append(Unit(F(1), "cutting" if condition == "cutting" else "sick"))
    elif rest > 0 and fact.sharing == Sharing.MIG:
        card.append(Unit(rest, "stranded"))


def condition_of(fact: NodeFact) -> tuple[str, str]:
    if fact.cutting_to or fact.mig_state in ("pending", "rebooting"):
        return "cutting", f"being cut to {fact.cutting_to or fact.mig_config}"
    if not fact.ready:
        return "not ready", "the node is not ready"
    if fact.leaving:
        return "leaving", "empty, on its way back to the provider"
    if not fact.schedulable:
        return "cordoned", "takes no new work"
    return "fit", ""


def grades_of(pool: NodePool) -> dict[str, str]:
    """How sure the catalog is of where this pool's slices may lie on a card."""
    model = catalog.model(pool.model)
    if model is None or model.mig is None:
        return {}
    wanted = [layout for name in {pool.layout, *pool.layouts} if name and (layout := catalog.layout(model, name))]
    profiles = {name for layout in wanted for name in layout.counts}
    grades = {profile.grade for profile in model.mig.profiles if profile.name in profiles}
    return {grade: catalog.grades().get(grade, grade) for grade in sorted(grades)}


def reports() -> QuerySet[CycleReport]:
    """What the last looks came to, newest first."""
    return CycleReport.objects.select_related("cluster")


def told(found: Iterable[CycleReport]) -> list[Told]:
    """Reports with the names of workloads in place of their keys. One query."""
    rows = list(found)
    keys = {UUID(key) for row in rows for text in (*row.actions, *row.failures) for key in KEY.findall(text)}
    names = {str(pk): name for pk, name in Workload.objects.filter(pk__in=keys).values_list("pk", "name")}

    def named(text: str) -> str:
        return KEY.sub(lambda match: names.get(match[0], match[0]), text)

    return [Told(row, [named(text) for text in row.actions], [named(text) for text in row.failures]) for row in rows]
