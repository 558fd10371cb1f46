"""Giving an empty node another MIG layout, and taking it back into service when that is seen done.

Only a node that holds nothing is ever cut, all its cards alike (a config name is node-wide), one cut per node at a
time. The layout serves whoever is next in line. Of those that do, the one that wins most per card changed: the waiting
work that it lets in and, where it is known what is usually asked for, what the new layout carries beyond the old one,
less what is lost in the minutes out of service (`weighing`). Then the one that changes fewest cards, then least, then
the first by name. A cut that costs more than it wins is left alone, but not for longer than the first in line has
patience.

Where nobody waits, nodes that stay anyway may be cut ahead of what is usually asked for. In a pool whose operator wants
to be asked, a cut is a proposal: it is carried out when a person agrees, and when one says "not now" it does not come
back before it would let in somebody else.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction as F
from functools import cache
from itertools import islice

from scheduling.planning import catalog
from scheduling.planning.actions import Cut, Recut, Reopen
from scheduling.planning.carrying import Yard
from scheduling.planning.coming import Coming, being_cut, recut, shows_cards, staying
from scheduling.planning.facts import Capacity, NodeFact, PoolFact, Problem, Sharing, Snapshot, WorkloadFact
from scheduling.planning.packing import Fleet, Key, Space, key_of, usable
from scheduling.planning.shares import share_words
from scheduling.planning.weighing import Slices, Terms, won, worth_it_ahead
from scheduling.planning.wording import several

LOOK_AHEAD = 64  # how many of those behind are asked which layout would serve them too; a node has fewer slices
NOTHING: Yard = Yard({}, {}, {})  # where nobody knows what is usually asked for, no layout carries more than another


@dataclass(frozen=True, slots=True)
class Option:
    """One node, one layout, and what the node will then offer."""

    node: NodeFact
    layout: str
    space: Space
    lets_in: tuple[WorkloadFact, ...]  # waiting work that it will hold, in line
    won: F  # card-minutes
    change: int  # instances per card that are made or unmade

    @property
    def rank(self) -> tuple[F, int, int, str, str]:
        """Smallest is best."""
        return -self.won / self.node.cards, self.node.cards, self.change, self.layout, self.node.name

    @property
    def served(self) -> F:
        """Cards' worth of waiting work."""
        return sum((one.share for one in self.lets_in), F(0))

    def cut(self) -> Cut:
        text = f"serves {several(len(self.lets_in), 'waiting workload')}, {share_words(self.served)} in all"
        return Cut(self.node.name, self.node.mig_config, self.layout, text)


class Cutter:
    """The nodes that may be cut, by model. `fleet` tells which of them are still empty while the plan is made; `cuts`
    what those will offer that are being cut."""

    def __init__(self, snapshot: Snapshot, fleet: Fleet, cuts: Coming) -> None:
        self._now = snapshot.now
        self._rules = snapshot.cutting
        self._terms = Terms.of(snapshot.cutting)
        self._fleet = fleet
        self._cuts = cuts
        self._proposed: set[str] = set()  # nodes that a person is asked about
        self._yards: dict[tuple[str, Capacity], Yard] = {}
        self._hopeless: set[tuple[object, ...]] = set()  # what no empty node would serve, nor will in this plan
        self._pools = {pool.name: pool for pool in snapshot.pools if pool.sharing is Sharing.MIG and pool.layouts}
        self._staying = {pool.name for pool in snapshot.pools if _keeps(pool, snapshot.nodes)}
        self._nodes: defaultdict[str, list[NodeFact]] = defaultdict(list)
        for node in sorted(snapshot.nodes, key=lambda node: node.name):
            if node.pool in self._pools and node.cards > 0 and usable(node) and _agrees(node, self._pools[node.pool]):
                self._nodes[node.model].append(node)

    def best(self, need: WorkloadFact, behind: Iterable[WorkloadFact]) -> Option | None:
        """The best cut that serves `need` and for which nobody has to be asked; `behind` is who waits after it, and
        counts too."""
        return self._best(need, behind, asking=False)

    def proposal(self, need: WorkloadFact, behind: Iterable[WorkloadFact]) -> Option | None:
        """The best cut that serves it if a person agrees."""
        return self._best(need, behind, asking=True)

    def could(self, need: WorkloadFact) -> bool:
        """Is there an empty node that a cut, for which nobody has to be asked, would make fit?"""
        return any(not self._asks(node, layout) for node, layout in self._found(need))

    def refused(self, option: Option) -> bool:
        """Has somebody said "not now" to letting these in? Others among them make it another question."""
        who = {one.id for one in option.lets_in}
        return any(one.pool == option.node.pool and who <= one.lets_in for one in self._rules.refused)

    def told(self, option: Option) -> Recut:
        """For people: to be asked before it is made."""
        yard = self._yard(option.node.model, option.node.capacity)
        return self._told(option.node, option.layout, yard, option.lets_in)

    def propose(self, option: Option) -> None:
        self._proposed.add(option.node.name)

    def made(self, option: Option) -> None:
        """From now on the node counts as it will be."""
        model, before, after = option.node.model, option.node.mig_config, option.layout
        yard = self._yards.get((model, option.node.capacity), NOTHING)
        yard.move(_slices(model, before), _slices(model, after), option.node.cards)

    def ahead(self, kept: Collection[str], unserved: Sequence[WorkloadFact]) -> Iterator[Recut]:
        """Cuts of empty nodes for which nobody waits. `kept` are nodes with which the plan has something else to do;
        a node that may yet be cut for somebody unserved is left for that.

        One node after the other, until no single change would be worth it: so the plan that follows finds nothing.
        """
        for model, nodes in sorted(self._nodes.items()):
            for capacity in Capacity:
                if self._rules.usual.get((model, capacity)):
                    waits = [one for one in unserved if (one.flavor.model, one.flavor.capacity) == (model, capacity)]
                    free = [one for one in nodes if one.capacity is capacity and self._free(one, kept, waits)]
                    yield from self._settled(free, self._counted(model, capacity))

    # --- Choosing ---

    def _best(self, need: WorkloadFact, behind: Iterable[WorkloadFact], *, asking: bool) -> Option | None:
        choices = [(node, one) for node, one in self._found(need) if self._asks(node, one) is asking]
        if not choices:
            return None
        rivals = list(islice(behind, LOOK_AHEAD))
        yard = self._yard(need.flavor.model, need.flavor.capacity)
        options = [self._option(node, layout, need, rivals, yard) for node, layout in choices]
        if self._now - need.phase_since < self._rules.patience:
            options = [option for option in options if option.won > 0]
        return min(options, key=lambda option: option.rank, default=None)

    def _found(self, need: WorkloadFact) -> list[tuple[NodeFact, str]]:
        """All choices. Nodes only fill while a plan is made, so what finds none is not looked for again."""
        shape = (key_of(need.flavor), need.count, need.cpu_milli, need.memory_mib, need.cuda)
        if shape in self._hopeless:
            return []
        found = list(self._choices(need))
        if not found and not need.shunned:
            self._hopeless.add(shape)
        return found

    def _choices(self, need: WorkloadFact) -> Iterator[tuple[NodeFact, str]]:
        """Empty nodes, one of those that are alike, with the layouts that would serve the need."""
        seen: set[tuple[object, ...]] = set()
        for node in self._nodes.get(need.flavor.model, ()):
            present = self._fleet.spaces.get(node.name)
            if present is None or present.busy or node.name in need.shunned or node.name in self._proposed:
                continue
            said = frozenset(layout for name, layout in self._rules.agreed if name == node.name)
            alike = (node.pool, node.mig_config, node.cards, present.cpu_milli, present.memory_mib, node.cuda, said)
            if alike not in seen:
                seen.add(alike)
                layouts = self._pools[node.pool].layouts
                yield from (
                    (node, one) for one in layouts if one != node.mig_config and self._cut(node, one).fits(need)
                )

    def _asks(self, node: NodeFact, layout: str) -> bool:
        return node.pool in self._rules.asks and (node.name, layout) not in self._rules.agreed

    def _cut(self, node: NodeFact, layout: str) -> Space:
        return recut(node, self._fleet.spaces[node.name], self._pools[node.pool], layout)

    def _option(
        self, node: NodeFact, layout: str, need: WorkloadFact, rivals: Sequence[WorkloadFact], yard: Yard
    ) -> Option:
        lets_in = self._serve(self._cut(node, layout), need, rivals)
        served = sum((one.share for one in lets_in), F(0))
        before, after = _slices(node.model, node.mig_config), _slices(node.model, layout)
        worth = won(yard, self._terms, before, after, node.cards, served)
        return Option(node, layout, self._cut(node, layout), lets_in, worth, _change(before, after))

    def _serve(self, space: Space, need: WorkloadFact, rivals: Sequence[WorkloadFact]) -> tuple[WorkloadFact, ...]:
        """Fill a trial space in the order of the line; work that fits on a present node does not count."""
        found: list[WorkloadFact] = []
        for one in (need, *rivals):
            if not any(space.free.values()):
                break
            if space.fits(one) and (one is need or self._fleet.best(one) is None):
                space.take(one)
                found.append(one)
        return tuple(found)

    # --- Ahead of demand ---

    def _free(self, node: NodeFact, kept: Collection[str], waits: Sequence[WorkloadFact]) -> bool:
        """Empty, not about to be given back, of use to nobody who waits, and nobody has to be asked."""
        space = self._fleet.spaces.get(node.name)
        return (
            space is not None
            and not space.busy
            and node.name not in kept
            and node.pool in self._staying
            and node.pool not in self._rules.asks
            and not any(self._cut(node, one).fits(need) for one in self._pools[node.pool].layouts for need in waits)
        )

    def _settled(self, nodes: Sequence[NodeFact], yard: Yard) -> Iterator[Recut]:
        """Each change wins, so this ends; a node that ends where it began is not cut."""
        layouts = {node.name: node.mig_config for node in nodes}
        moving = True
        while moving:
            moving = False
            for node in nodes:
                if better := self._better(node, layouts[node.name], yard):
                    yard.move(_slices(node.model, layouts[node.name]), _slices(node.model, better), node.cards)
                    layouts[node.name], moving = better, True
        for node in nodes:
            if layouts[node.name] != node.mig_config:
                yield self._told(node, layouts[node.name], self._yard(node.model, node.capacity), ())

    def _better(self, node: NodeFact, present: str, yard: Yard) -> str | None:
        before = _slices(node.model, present)
        others = [one for one in self._pools[node.pool].layouts if one != present and _known(node.model, one)]
        worth = {one: won(yard, self._terms, before, _slices(node.model, one), node.cards) for one in others}
        best = max(sorted(others), key=lambda one: worth[one], default=None)
        if best is None or not worth_it_ahead(yard, self._terms, before, _slices(node.model, best), node.cards):
            return None
        return best

    def _yard(self, model: str, capacity: Capacity) -> Yard:
        if (model, capacity) not in self._yards:
            self._yards[model, capacity] = self._counted(model, capacity)
        return self._yards[model, capacity]

    def _counted(self, model: str, capacity: Capacity) -> Yard:
        """What there is of this kind of card, with what the nodes that are being cut will have."""
        usual = self._rules.usual.get((model, capacity))
        known = catalog.model(model)
        if not usual or known is None or known.mig is None:
            return NOTHING
        board = known.mig
        weights = {"": F(1)} | {one.name: F(one.compute_slices, board.compute_slices) for one in board.profiles}
        names = {catalog.dotted(name): name for name in weights}
        stock: defaultdict[str, int] = defaultdict(int)
        for space in (*self._fleet.spaces.values(), *self._cuts.fleet.spaces.values()):
            for key, units in space.total.items():
                if _counts(key, model, capacity) and key.profile in names:
                    stock[names[key.profile]] += units
        return Yard(usual, weights, stock)

    def _told(self, node: NodeFact, layout: str, yard: Yard, lets_in: Sequence[WorkloadFact]) -> Recut:
        before, after = _slices(node.model, node.mig_config), _slices(node.model, layout)
        gone = {name: (count - after.get(name, 0)) * node.cards for name, count in before.items()}
        come = {name: (count - before.get(name, 0)) * node.cards for name, count in after.items()}
        return Recut(
            node=node.name,
            pool=node.pool,
            cards=node.cards,
            before=node.mig_config,
            after=layout,
            unmade={name: count for name, count in gone.items() if count > 0},
            made={name: count for name, count in come.items() if count > 0},
            lets_in=tuple(one.id for one in lets_in),
            names=tuple(one.name for one in lets_in),
            served=sum((one.share for one in lets_in), F(0)),
            minutes=self._rules.minutes,
            lost=None if yard is NOTHING else yard.carries(before, node.cards),
            agreed=not self._asks(node, layout),
        )


def ahead_words(told: Recut) -> Cut:
    """The action of a cut for which nobody waits."""
    return Cut(told.node, told.before, told.after, "carries more of what is usually asked for; nobody waits for it")


def taken_back(nodes: Iterable[NodeFact]) -> list[Reopen]:
    """Nodes whose cut has been seen done. One that is not done is waited for; one that failed stays out of service."""
    return [
        Reopen(node.name, f"it has been cut to {node.cutting_to}")
        for node in sorted(nodes, key=lambda node: node.name)
        if being_cut(node) and is_cut(node)
    ]


def is_cut(node: NodeFact) -> bool:
    """Is the layout that we asked for really there? "success" may be left over from the cut before."""
    model = catalog.model(node.model)
    layout = catalog.layout(model, node.cutting_to) if model else None
    if layout is None or node.mig_state != "success" or node.mig_config != node.cutting_to:
        return False
    wanted = {catalog.dotted(name): count * node.cards for name, count in layout.counts.items()} or {"": node.cards}
    shown = {catalog.dotted(device.profile): device.capacity for device in node.devices if device.capacity}
    return shown == wanted and any(device.allocatable for device in node.devices)


def failed_cuts(nodes: Iterable[NodeFact]) -> tuple[Problem, ...]:
    """Nodes that stay out of service because their cut failed, with what an operator can do."""
    text = (
        "The MIG manager could not cut it to {0}. It stays out of service: read the MIG manager's log, make sure that "
        "no program uses its cards, then set the label nvidia.com/mig.config anew or take away the node."
    )
    return tuple(
        Problem(node.name, "metadata.labels[nvidia.com/mig.config.state]", text.format(node.cutting_to))
        for node in sorted(nodes, key=lambda node: node.name)
        if node.cutting_to and node.mig_state == "failed"
    )


def _agrees(node: NodeFact, pool: PoolFact) -> bool:
    if node.usable_since is None and not shows_cards(node):
        return False  # it still boots; whether it can be cut is not known yet
    return node.model == pool.model and node.capacity == pool.capacity and bool(catalog.model(node.model))


def _keeps(pool: PoolFact, nodes: Iterable[NodeFact]) -> bool:
    """Do its nodes stay although they are empty?"""
    return not pool.resizable or len(staying(pool, nodes)) <= pool.min_nodes


def _counts(key: Key, model: str, capacity: Capacity) -> bool:
    return key.model == model and key.capacity is capacity and key.sharing in (Sharing.MIG, Sharing.WHOLE)


@cache
def _slices(model: str, config: str) -> Slices:
    """What a layout makes of one card; nothing where nobody knows."""
    found = _known(model, config)
    if found is None:
        return {}
    return {"": 1} if found.whole else found.counts


def _known(model: str, config: str) -> catalog.Layout | None:
    known = catalog.model(model)
    return catalog.layout(known, config) if known else None


def _change(before: Slices, after: Slices) -> int:
    """How many instances of one card appear or disappear; a node whose layout is unknown changes altogether."""
    names = (before.keys() | after.keys()) - {""}
    return sum(abs(after.get(name, 0) - before.get(name, 0)) for name in names)
