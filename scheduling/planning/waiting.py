"""Why something waits, in a sentence with the numbers and what would have to change."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from fractions import Fraction as F

from scheduling.planning import pods as ask
from scheduling.planning.coming import fresh
from scheduling.planning.cuda import in_words, too_old
from scheduling.planning.facts import (
    HOLDING,
    Capacity,
    NodeFact,
    PodFact,
    PoolFact,
    Reason,
    Sharing,
    Snapshot,
    WorkloadFact,
)
from scheduling.planning.packing import Fleet, Key, Space, Stock, key_of
from scheduling.planning.scaling import Buyer
from scheduling.planning.shares import number, unit_words
from scheduling.planning.wording import instant, listed, several

APPROVAL = "It waits for your lead to decide on the quota request that came with it."
UNCUT = "no empty node could be cut for it"
UNREADABLE = "The cluster could not be read completely, so nothing is started in this look."


class Shortage:
    """What is offered at all, and what is short of it. Built once for a plan, asked for everybody who waits."""

    def __init__(self, snapshot: Snapshot, fleet: Fleet, buyer: Buyer, spaces: Iterable[Space]) -> None:
        self._fleet = fleet
        self._buyer = buyer
        self._on_nodes = {key for space in spaces for key in space.total}
        self._pools: defaultdict[Key, list[PoolFact]] = defaultdict(list)
        for pool in sorted(snapshot.pools, key=lambda pool: pool.name):
            for key in pool_keys(pool):
                self._pools[key].append(pool)
        self._ends: defaultdict[Key, list[datetime]] = defaultdict(list)
        for workload in snapshot.workloads:
            if workload.phase in HOLDING and workload.ends_at is not None:
                self._ends[key_of(workload.flavor)].append(workload.ends_at)

    def offered(self, need: WorkloadFact) -> bool:
        key = key_of(need.flavor)
        return key in self._pools or key in self._on_nodes

    def words(self, need: WorkloadFact, *, cuts: str = UNCUT) -> str:
        """What it needs, what each pool has of that, why no cut helps, and when that may change."""
        where = " on one node" if need.count > 1 else ""
        wanted = f"It needs {unit_words(need.flavor, need.count)}{where} with {_beside(need)}."
        shunned = f" {_refusals(need)}" if need.shunned else ""
        return f"{wanted} {self._pool_words(need, cuts)}{shunned} {self._hope(need)}"

    def _pool_words(self, need: WorkloadFact, cuts: str) -> str:
        key = key_of(need.flavor)
        stock = self._fleet.stock(key)
        known = {pool.name: pool for pool in self._pools.get(key, ())}
        names = sorted(known.keys() | stock.keys())
        parts = [
            _stock_words(name, stock.get(name), need) + self._outs(known.get(name), need, cuts) for name in names[:2]
        ]
        if len(names) > 2:
            parts.append(f"{len(names) - 2} more pools cannot hold it now either.")
        return " ".join(parts)

    def _outs(self, pool: PoolFact | None, need: WorkloadFact, cuts: str) -> str:
        """Why neither a cut nor a new node helps."""
        if pool is None:
            return "."
        uncut = f"; {cuts}" if pool.layouts else ""
        return f"{uncut}{self._growth(pool, need)}."

    def _growth(self, pool: PoolFact, need: WorkloadFact) -> str:
        if too_old(pool.cuda, need.cuda):
            return f"; its nodes offer CUDA {in_words(pool.cuda)} at most"
        if not pool.resizable:
            return ""
        if need.flavor.sharing is Sharing.WHOLE and need.count > pool.cards_per_node:
            return f"; a node of it never has more than {pool.cards_per_node}"
        if pool.wished_nodes is None:
            return "; how many nodes it has been asked for is not known, so it does not grow"
        if self._buyer.room(pool) <= 0:
            return f"; it is at its most, {several(pool.max_nodes, 'node')}"
        return "; a new node of it would not hold this either"

    def _hope(self, need: WorkloadFact) -> str:
        if ends := self._ends.get(key_of(need.flavor)):
            return f"The next one is due to end at {instant(min(ends))}."
        return "It starts when enough is given back."


def pool_keys(pool: PoolFact) -> set[Key]:
    """Everything that a node of the pool can offer, in any layout."""
    return {key for layout in (pool.layout, *pool.layouts) for key in fresh(pool.name, pool, layout).total}


def back_off_words(need: WorkloadFact) -> str:
    until = f" until {instant(need.not_before)}" if need.not_before else ""
    times = f"{need.failures} failures in a row" if need.failures > 1 else "a failure"
    return f"It pauses after {times} and is not tried again{until}."


def wrong_count(need: WorkloadFact) -> str:
    """Shared kinds go one to a container: more would be refused by the node, or bring no more compute."""
    if need.count < 1:
        return f"It asks for {need.count} units; ask for at least 1."
    if need.count > 1 and need.flavor.sharing in (Sharing.TIME_SLICE, Sharing.MPS):
        kind = "MPS share" if need.flavor.sharing is Sharing.MPS else "time-slice"
        return f"It asks for {need.count}, but a container gets at most 1 {kind}. Ask for 1, or for whole cards."
    return ""


def unknown_words(need: WorkloadFact) -> str:
    capacity = "on spot" if need.flavor.capacity is Capacity.SPOT else "on demand"
    wanted = unit_words(need.flavor, need.count)
    return f"No pool offers {wanted} {capacity}. Choose another flavor, or ask an operator for such a pool."


def lingering_words(pod: PodFact | None, node: NodeFact | None) -> tuple[Reason, str]:
    """What its last attempt left behind is still there, and it must never run twice."""
    if pod is None:
        return Reason.BACKING_OFF, "What is left of its last attempt is being removed; it starts when that is gone."
    if ask.kept(pod):
        words = "has ended, but a finalizer holds it; it starts when that is gone, or an operator removes it by force."
        return Reason.BACKING_OFF, f"Its last pod {pod.name} {words}"
    if node is not None and not node.ready:
        text = (
            f"Its last pod {pod.name} is still bound to node {pod.node}, which does not answer. "
            "It starts elsewhere when the node answers or an operator removes it."
        )
        return Reason.NODE_LOST, text
    where = f" on node {pod.node}" if pod.node else ""
    return Reason.BACKING_OFF, f"Its last pod {pod.name}{where} has not ended yet; it starts when that is gone."


def _stock_words(name: str, stock: Stock | None, need: WorkloadFact) -> str:
    pool = f"Pool {name}" if name else "Nodes outside of pools"
    if stock is None:
        return f"{pool}: no such node in service"
    words = f"{pool}: {stock.free} of {stock.total} free"
    if stock.free == 0:
        return words
    if stock.most < need.count:
        return f"{words}, at most {stock.most} on one node"
    if need.shunned:
        return f"{words}, but none with all of that on a node that has not refused it"
    beside = "CPU, memory and CUDA" if need.cuda else "CPU and memory"
    return f"{words}, but not with that {beside} on the same node"


def _beside(need: WorkloadFact) -> str:
    whole = need.memory_mib % 1024 == 0
    memory = f"{need.memory_mib // 1024} GiB" if whole else f"{need.memory_mib} MiB"
    words = f"{number(F(need.cpu_milli, 1000))} CPU and {memory} of memory"
    return f"{words}, under CUDA {in_words(need.cuda)} or newer" if need.cuda else words


def _refusals(need: WorkloadFact) -> str:
    if len(need.shunned) == 1:
        return f"Node {min(need.shunned)} refused it and is left out."
    return f"Nodes {listed(sorted(need.shunned))} refused it and are left out."
