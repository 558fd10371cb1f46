"""The fleet's past: which node was there when, cut how, and what of it could not be given out. Pure.

It starts from the nodes that the cluster shows now, so the past ends exactly where the present begins. Nodes of a pool
that sleeps at zero come and go with the work that called for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from datetime import timedelta as td
from fractions import Fraction as F
from itertools import pairwise

from scheduling.planning import catalog
from scheduling.planning.facts import Capacity, NodeFact, PoolFact, Sharing
from scheduling.planning.shares import sku

CUT_TAKES = td(seconds=43)
NOTHING = F(0)
LETTERS = "qkwnxmzvrtcbfhjdgpsl"


@dataclass(frozen=True, slots=True)
class Offer:
    """So many units of one flavor on a node, as one resource."""

    sku: str
    resource: str
    units: int


@dataclass(frozen=True, slots=True)
class Fault:
    """A time in which a node could not give out everything: cards out of service, or cards that others held."""

    since: datetime
    until: datetime
    out_of_service: F = NOTHING
    foreign: F = NOTHING


@dataclass(frozen=True, slots=True)
class Era:
    """A time in which a node was cut one way; `stranded` are cards' worth that no unit covers."""

    since: datetime
    until: datetime
    offers: tuple[Offer, ...]
    stranded: F = NOTHING


@dataclass(frozen=True, slots=True)
class Machine:
    """One node of the past, from the first second at which its cards could be used until the last."""

    name: str
    uid: str
    pool: str
    model: str
    cards: int
    eras: tuple[Era, ...]
    faults: tuple[Fault, ...] = ()
    woken: bool = False  # for one piece of work, by a pool that sleeps at zero

    @property
    def since(self) -> datetime:
        return self.eras[0].since

    @property
    def until(self) -> datetime:
        return self.eras[-1].until


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which nothing about a node's cards changed: what becomes one card span."""

    machine: Machine
    since: datetime
    until: datetime
    out_of_service: F
    stranded: F
    foreign: F


@dataclass(frozen=True, slots=True)
class Past:
    """When and how the nodes that are there now were cut before: MIG configs with their beginnings, oldest first."""

    layouts: Mapping[str, tuple[tuple[datetime, str], ...]] = field(default_factory=dict)  # node -> (from, config)
    faults: Mapping[str, tuple[Fault, ...]] = field(default_factory=dict)


def machines(nodes: Iterable[NodeFact], past: Past, since: datetime, until: datetime) -> list[Machine]:
    """The nodes that are there now, all of them present for the whole of [since, until)."""
    return [
        Machine(
            name=node.name,
            uid=node.uid,
            pool=node.pool,
            model=node.model,
            cards=node.cards,
            eras=tuple(_eras(node, past.layouts.get(node.name, ()), since, until)),
            faults=past.faults.get(node.name, ()),
        )
        for node in nodes
        if node.cards
    ]


def burst_machine(pool: PoolFact, number: int, since: datetime, until: datetime) -> Machine:
    """A node that a sleeping pool woke for one piece of work; it is named as machines are, with an invented ending."""
    tail = "".join(LETTERS[number * step % len(LETTERS)] for step in (1, 7, 4)) + f"{number:02d}"
    offer = Offer(sku(pool.model, Sharing.WHOLE, "", 1, pool.capacity), "nvidia.com/gpu", pool.cards_per_node)
    name = f"{pool.name}-{tail}"
    era = Era(since, until, (offer,))
    return Machine(name, f"past-{name}", pool.name, pool.model, pool.cards_per_node, (era,), woken=True)


def guest(like: Machine, name: str, since: datetime, until: datetime) -> Machine:
    """One more node of a pool for some days, as its present one is."""
    era = replace(like.eras[-1], since=since, until=until)
    return replace(like, name=name, uid=f"past-{name}", eras=(era,), faults=())


def stretches(machine: Machine) -> list[Stretch]:
    """The machine's time without gap or overlap, cut wherever something about its cards changed."""
    parts: tuple[Era | Fault, ...] = (*machine.eras, *machine.faults)
    edges = {edge for part in parts for edge in (part.since, part.until)}
    marks = sorted(edge for edge in edges if machine.since <= edge <= machine.until)
    return [_stretch(machine, *pair) for pair in pairwise(marks)]


def _stretch(machine: Machine, since: datetime, until: datetime) -> Stretch:
    era = next((era for era in machine.eras if era.since <= since < era.until), None)
    if era is None:  # between two eras the node is being cut
        return Stretch(machine, since, until, F(machine.cards), NOTHING, NOTHING)
    faults = [fault for fault in machine.faults if fault.since <= since < fault.until]
    out = sum((fault.out_of_service for fault in faults), NOTHING)
    return Stretch(machine, since, until, out, era.stranded, sum((fault.foreign for fault in faults), NOTHING))


def _eras(node: NodeFact, layouts: Sequence[tuple[datetime, str]], since: datetime, until: datetime) -> Iterable[Era]:
    """The eras of the former cuts, then the one that the node shows now."""
    begins = since
    former = [(at, config) for at, config in layouts if since <= at < until]
    for (_, config), (ends, _) in pairwise(former):
        yield _cut_era(node, config, begins, ends)
        begins = ends + CUT_TAKES
    yield _present_era(node, begins, until, former=bool(former))


def _cut_era(node: NodeFact, config: str, since: datetime, until: datetime) -> Era:
    model = catalog.model(node.model)
    layout = catalog.layout(model, config) if model else None
    if layout is None:
        raise ValueError(f"{config} means nothing on a {node.model}.")
    offers = tuple(
        Offer(
            sku(node.model, Sharing.MIG, profile, 1, Capacity(node.capacity)),
            f"nvidia.com/mig-{catalog.dotted(profile)}",
            count * node.cards,
        )
        for profile, count in layout.counts.items()
    )
    return Era(since, until, offers, layout.stranded * node.cards)


def _present_era(node: NodeFact, since: datetime, until: datetime, *, former: bool) -> Era:
    """As the node shows it; `former`: it was cut before, so it belongs to a pool of slices."""
    offers = tuple(
        Offer(
            sku(node.model, node.sharing, device.profile, node.replicas, Capacity(node.capacity)),
            device.resource,
            device.capacity,
        )
        for device in node.devices
        if device.profile or not former  # a pool of slices does not sell an uncut card
    )
    covered = sum((device.share * device.capacity for device in node.devices), NOTHING)
    left = node.cards - covered if node.sharing is Sharing.MIG else NOTHING
    return Era(since, until, offers, max(NOTHING, left))
