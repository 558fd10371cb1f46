"""What is not there yet, but on its way: nodes being cut, nodes that boot, nodes that a provider has been asked for.

Work that will fit there waits for it, and nothing is bought or cut a second time. A fresh MIG node that nobody
counts on yet may still come to be cut to any layout that its pool allows.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from datetime import timedelta as td
from fractions import Fraction as F

from scheduling.planning import catalog
from scheduling.planning.facts import NodeFact, PoolFact, Reason, Sharing, Snapshot, WorkloadFact
from scheduling.planning.packing import Fleet, Key, Space, sharings, usable

REGISTER_LIMIT = td(minutes=30)  # a node that has not shown its cards by then is not counted on any more


class Coming:
    """Spaces that will be there, and why each is not there yet."""

    def __init__(self) -> None:
        self.fleet = Fleet()
        self._reasons: dict[str, tuple[Reason, str]] = {}
        self._open: dict[str, PoolFact] = {}  # spaces that nobody counts on and that may take another layout

    def expect(self, space: Space, reason: Reason, text: str, *, pool: PoolFact | None = None) -> None:
        """Count on a space; with `pool`, its layout may still be chosen."""
        self.fleet.add(space)
        self._reasons[space.name] = (reason, text)
        if pool is not None and pool.sharing is Sharing.MIG and pool.layouts:
            self._open[space.name] = pool

    def best(self, need: WorkloadFact) -> Space | None:
        """Where it will fit; perhaps in a layout that the node will have to be cut to. Nothing changes yet."""
        return self.fleet.best(need) or self._other_layout(need)

    def take(self, space: Space, need: WorkloadFact) -> None:
        if self.fleet.spaces.get(space.name) is not space:
            self.fleet.add(space)
        self._open.pop(space.name, None)
        self.fleet.take(space, need)

    def why(self, space: Space) -> tuple[Reason, str]:
        return self._reasons[space.name]

    def _other_layout(self, need: WorkloadFact) -> Space | None:
        for name, pool in self._open.items():
            if pool.model != need.flavor.model:
                continue
            for layout in pool.layouts:
                space = fresh(name, pool, layout)
                if space.fits(need):
                    return space
        return None


def cuts_of(snapshot: Snapshot, spaces: Mapping[str, Space]) -> Coming:
    """What the nodes that are being cut will offer."""
    coming = Coming()
    pools = {pool.name: pool for pool in snapshot.pools}
    for node in sorted(snapshot.nodes, key=lambda node: node.name):
        pool = pools.get(node.pool)
        if pool is not None and pool.model == node.model and being_cut(node):
            text = f"Node {node.name} is being cut to {node.cutting_to}; it starts when that is done."
            coming.expect(recut(node, spaces[node.name], pool, node.cutting_to), Reason.WAITING_FOR_CUT, text)
    return coming


def nodes_of(snapshot: Snapshot) -> Coming:
    """What the nodes that boot, and those that providers have been asked for, will offer."""
    coming = Coming()
    pools = {pool.name: pool for pool in snapshot.pools}
    for node in sorted(snapshot.nodes, key=lambda node: node.name):
        pool = pools.get(node.pool)
        if pool is not None and booting(node, snapshot.now):
            text = _boot_words(node)
            coming.expect(fresh(node.name, pool, pool.layout), Reason.WAITING_FOR_NODE, text, pool=pool)
    for pool in sorted(snapshot.pools, key=lambda pool: pool.name):
        for number in range(missing(pool, snapshot.nodes)):
            text = f"A new node of pool {pool.name} has been asked for; it starts when that node shows its cards."
            coming.expect(fresh(f"{pool.name} +{number}", pool, pool.layout), Reason.WAITING_FOR_NODE, text, pool=pool)
    return coming


def _boot_words(node: NodeFact) -> str:
    if node.kept_away:
        return (
            f"Node {node.name} has joined, but its taint {node.kept_away} keeps Berth's pods away; "
            "it starts when an operator takes that off."
        )
    return f"Node {node.name} has joined and does not show its cards yet; it starts when it does."


def being_cut(node: NodeFact) -> bool:
    """Asked by us and not known to have failed."""
    return bool(node.cutting_to) and node.mig_state != "failed" and not node.leaving and not node.dropped


def booting(node: NodeFact, now: datetime) -> bool:
    """There, perhaps even ready, but its cards cannot be used yet: it counts as bought until its time is up."""
    ours = node.cutting_to or node.leaving or node.dropped
    waits = node.usable_since is None and not ours and not (usable(node) and shows_cards(node))
    return waits and not overdue(node, now)


def overdue(node: NodeFact, now: datetime) -> bool:
    """Has it failed to show its cards for so long that nobody should wait for it?"""
    if node.usable_since is not None or shows_cards(node):
        return False
    return node.created_at is not None and now - node.created_at >= REGISTER_LIMIT


def shows_cards(node: NodeFact) -> bool:
    """And lets us at them: a fresh node behind a strange taint is waited for, but no second one is bought for it."""
    return not node.kept_away and any(device.allocatable for device in node.devices)


def staying(pool: PoolFact, nodes: Iterable[NodeFact]) -> list[NodeFact]:
    """The pool's nodes that have not been given back."""
    return [node for node in nodes if node.pool == pool.name and not node.dropped]


def missing(pool: PoolFact, nodes: Iterable[NodeFact]) -> int:
    """Nodes that the provider was asked for and that have not shown up; 0 when nobody knows what it was asked for."""
    return max(0, (pool.wished_nodes or 0) - len(staying(pool, nodes)))


def fresh(name: str, pool: PoolFact, layout: str) -> Space:
    """What a new node of the pool offers, cut to a layout."""
    space = Space(name, pool.name, pool.cpu_milli, pool.host_memory_mib, cuda=pool.cuda)
    return _stocked(space, pool, pool.cards_per_node, layout)


def recut(node: NodeFact, present: Space, pool: PoolFact, layout: str) -> Space:
    """What a node will offer when it has been cut to a layout, beside the daemons that it runs at present."""
    space = Space(node.name, node.pool, present.cpu_milli, present.memory_mib, cuda=node.cuda)
    return _stocked(space, pool, node.cards, layout)


def _stocked(space: Space, pool: PoolFact, cards: int, layout: str) -> Space:
    if pool.sharing is Sharing.MIG:
        return _sliced(space, pool, cards, layout)
    per_card = pool.replicas if pool.sharing in (Sharing.TIME_SLICE, Sharing.MPS) else 1
    space.offer(Key(pool.model, pool.capacity, pool.sharing, "", per_card), cards * per_card, F(1, per_card))
    return space


def _sliced(space: Space, pool: PoolFact, cards: int, layout: str) -> Space:
    """A layout that means nothing on this model offers nothing."""
    model = catalog.model(pool.model)
    cut = catalog.layout(model, layout) if model else None
    if model is None or model.mig is None or cut is None:
        return space
    if cut.whole and Sharing.WHOLE in sharings(pool):
        space.offer(Key(pool.model, pool.capacity, Sharing.WHOLE, "", 1), cards, F(1))
    for profile in model.mig.profiles:
        if count := cut.counts.get(profile.name, 0):
            key = Key(pool.model, pool.capacity, Sharing.MIG, catalog.dotted(profile.name), 1)
            space.offer(key, count * cards, profile.share)
    return space
