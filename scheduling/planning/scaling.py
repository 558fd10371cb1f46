"""How many nodes each pool should have: more for work that fits nowhere, fewer when nodes stand empty.

A node goes in two looks: withdrawn first (cordoned and marked), given back at the next look if it is still empty. So
nothing that landed on it in between is lost. The emptiness clock starts when the node was first usable.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from scheduling.planning.actions import Reopen, Resize, Withdraw
from scheduling.planning.coming import fresh, overdue, staying
from scheduling.planning.facts import NodeFact, PoolFact, Sharing, Snapshot, WorkloadFact
from scheduling.planning.packing import Space, usable
from scheduling.planning.wording import instant, length, several


@dataclass(slots=True)
class Order:
    """Nodes to ask a provider for in this plan, and for how many workloads."""

    nodes: int = 0
    workloads: int = 0


class Buyer:
    """Asks for nodes, each pool within its maximum. A pool whose size nobody knows is never resized."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._present = {pool.name: len(staying(pool, snapshot.nodes)) for pool in snapshot.pools}
        self._pools: defaultdict[str, list[PoolFact]] = defaultdict(list)
        for pool in sorted(snapshot.pools, key=lambda pool: (pool.cards_per_node, pool.name)):
            self._pools[pool.model].append(pool)
        self.orders: dict[str, Order] = {}
        self._bought: dict[str, Order] = {}  # by the name of the space that stands for the new node

    def best(self, need: WorkloadFact) -> tuple[PoolFact, Space] | None:
        """The smallest fresh node that would hold it; one that need not be cut first is preferred."""
        pools = [pool for pool in self._pools.get(need.flavor.model, ()) if self.room(pool) > 0]
        for layouts in (_own_layout, _allowed_layouts):
            for pool in pools:
                for layout in layouts(pool):
                    space = fresh(f"{pool.name} ordered {self._ordered(pool)}", pool, layout)
                    if space.fits(need):
                        return pool, space
        return None

    def room(self, pool: PoolFact) -> int:
        """Nodes that the pool may still grow by."""
        if pool.wished_nodes is None or not pool.resizable:
            return 0
        return pool.max_nodes - max(pool.wished_nodes, self._present[pool.name]) - self._ordered(pool)

    def order(self, pool: PoolFact, space: Space) -> None:
        order = self.orders.setdefault(pool.name, Order())
        order.nodes += 1
        self._bought[space.name] = order

    def count(self, space: Space) -> None:
        """One more workload goes to this space; that matters if it stands for a node ordered in this plan."""
        if space.name in self._bought:
            self._bought[space.name].workloads += 1

    def _ordered(self, pool: PoolFact) -> int:
        order = self.orders.get(pool.name)
        return order.nodes if order else 0


class Sizes:
    """What becomes of the nodes that are there, once it is known what the waiting work takes."""

    def __init__(self, snapshot: Snapshot, spaces: Mapping[str, Space], wanted: Iterable[str]) -> None:
        self._now = snapshot.now
        self._empty_since = snapshot.empty_since
        self._spaces = spaces
        self._wanted = frozenset(wanted)  # nodes that the plan places on, cuts, or takes back
        self._nodes: defaultdict[str, list[NodeFact]] = defaultdict(list)
        for node in sorted(snapshot.nodes, key=lambda node: node.name):
            self._nodes[node.pool].append(node)

    def resize(self, pool: PoolFact, order: Order) -> list[Withdraw | Reopen | Resize]:
        """All that one pool needs. A pool that grows gives nothing back in the same look."""
        if not pool.resizable:
            return self._released(pool)
        if pool.wished_nodes is None:
            return []
        kept = self._kept(pool)
        actions: list[Withdraw | Reopen | Resize] = [*self._landed_on(pool)]
        actions += [Reopen(node.name, f"the pool keeps at least {pool.min_nodes}") for node in kept]
        if grown := self._grow(pool, pool.wished_nodes, order):
            return [*actions, grown]
        actions += self._withdrawn(pool, pool.wished_nodes)
        if drops := self._drops(pool, pool.wished_nodes, kept):
            text = f"{several(len(drops), 'empty node')} withdrawn before"
            actions.append(Resize(pool.name, pool.wished_nodes, pool.wished_nodes - len(drops), drops, text))
        return actions

    def _released(self, pool: PoolFact) -> list[Withdraw | Reopen | Resize]:
        """Nobody resizes this pool any more, so nothing of it is on its way out."""
        nodes = [node for node in self._nodes[pool.name] if node.leaving and node.name not in self._wanted]
        return [Reopen(node.name, "its pool is not resized any more") for node in nodes]

    def _grow(self, pool: PoolFact, wished: int, order: Order) -> Resize | None:
        if order.nodes:
            base = max(wished, len(staying(pool, self._nodes[pool.name])))
            text = f"{several(order.workloads, 'waiting workload')} will fit there and nowhere before"
            return Resize(pool.name, wished, max(base + order.nodes, pool.min_nodes), (), text)
        if wished < pool.min_nodes:
            return Resize(pool.name, wished, pool.min_nodes, (), "that is the least it keeps")
        return None

    def _drops(self, pool: PoolFact, wished: int, kept: Sequence[NodeFact]) -> tuple[str, ...]:
        """Nodes withdrawn in an earlier look and still empty; never so many that a staying node would have to go."""
        idle = [node.name for node in self._leavable(pool) if node not in kept]
        return tuple(idle[: max(0, wished - max(len(self._firm(pool)), pool.min_nodes))])

    def _landed_on(self, pool: PoolFact) -> list[Reopen]:
        nodes = [node for node in self._firm(pool) if node.leaving and node.name not in self._wanted]
        return [Reopen(node.name, "a pod landed on it after it was withdrawn") for node in nodes]

    def _kept(self, pool: PoolFact) -> list[NodeFact]:
        """Leaving nodes that the pool's minimum needs after all."""
        return self._leavable(pool)[: max(0, pool.min_nodes - len(self._firm(pool)))]

    def _firm(self, pool: PoolFact) -> list[NodeFact]:
        """Nodes that do not go in this look."""
        leavable = self._leavable(pool)
        return [node for node in self._nodes[pool.name] if not node.dropped and node not in leavable]

    def _leavable(self, pool: PoolFact) -> list[NodeFact]:
        return [node for node in self._nodes[pool.name] if node.leaving and not node.dropped and self._idle(node)]

    def _idle(self, node: NodeFact) -> bool:
        return not self._spaces[node.name].busy and node.name not in self._wanted

    def _withdrawn(self, pool: PoolFact, wished: int) -> list[Withdraw]:
        """Empty for long enough, longest first, down to the minimum."""
        stay = [node for node in self._nodes[pool.name] if not node.leaving and not node.dropped]
        empty = [(since, node) for node in stay if (since := self._idle_since(node, pool)) is not None]
        empty.sort(key=lambda pair: (pair[0], pair[1].name))
        spare = max(0, min(len(stay), wished) - pool.min_nodes)
        return [Withdraw(node.name, self._idle_words(node, since)) for since, node in empty[:spare]]

    def _idle_since(self, node: NodeFact, pool: PoolFact) -> datetime | None:
        """Since when it could have been used and was not, if that is long enough; None: keep it."""
        if not self._idle(node) or node.cutting_to:
            return None
        if node.usable_since is None:
            return node.created_at if overdue(node, self._now) else None
        since = self._empty_since.get(node.name)
        if since is None or not usable(node):
            return None
        since = max(since, node.usable_since)
        return since if self._now - since >= pool.empty_after else None

    def _idle_words(self, node: NodeFact, since: datetime) -> str:
        if node.usable_since is None:
            if node.kept_away:
                return f"it joined at {instant(since)} and its taint {node.kept_away} has kept our pods away since"
            return f"it joined at {instant(since)} and never showed its cards"
        return f"nothing of ours has been on it since {instant(since)}, {length(self._now - since)}"


def _own_layout(pool: PoolFact) -> Sequence[str]:
    return (pool.layout,)


def _allowed_layouts(pool: PoolFact) -> Sequence[str]:
    return pool.layouts if pool.sharing is Sharing.MIG else ()
