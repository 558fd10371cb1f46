"""Giving an empty node another MIG layout, and taking it back into service when that is seen done.

Only a node that holds nothing is ever cut, one cut per node at a time. The layout serves whoever is next in line; of
those that do, the one that serves the most waiting shares, then the one that changes least, then the first by name.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction as F
from itertools import islice

from scheduling.planning import catalog
from scheduling.planning.actions import Cut, Reopen
from scheduling.planning.coming import being_cut, recut, shows_cards
from scheduling.planning.facts import NodeFact, PoolFact, Problem, Sharing, Snapshot, WorkloadFact
from scheduling.planning.packing import Fleet, Space, usable
from scheduling.planning.shares import share_words
from scheduling.planning.wording import several

LOOK_AHEAD = 64  # how many of those behind are asked which layout would serve them too; a node has fewer slices


@dataclass(frozen=True, slots=True)
class Option:
    """One node, one layout, and what the node will then offer."""

    node: NodeFact
    layout: str
    space: Space
    served: F  # cards' worth of waiting work that it will hold
    workloads: int
    change: int  # instances per card that are made or unmade

    @property
    def rank(self) -> tuple[F, int, str, str]:
        """Smallest is best."""
        return -self.served, self.change, self.layout, self.node.name

    def cut(self) -> Cut:
        text = f"serves {several(self.workloads, 'waiting workload')}, {share_words(self.served)} in all"
        return Cut(self.node.name, self.node.mig_config, self.layout, text)


class Cutter:
    """The nodes that may be cut, by model. `fleet` tells which of them are still empty while the plan is made."""

    def __init__(self, snapshot: Snapshot, fleet: Fleet) -> None:
        self._fleet = fleet
        self._pools = {pool.name: pool for pool in snapshot.pools if pool.sharing is Sharing.MIG and pool.layouts}
        self._nodes: defaultdict[str, list[NodeFact]] = defaultdict(list)
        for node in sorted(snapshot.nodes, key=lambda node: node.name):
            if node.pool in self._pools and usable(node) and _agrees(node, self._pools[node.pool]):
                self._nodes[node.model].append(node)

    def best(self, need: WorkloadFact, behind: Iterable[WorkloadFact]) -> Option | None:
        """The best cut that serves `need`; `behind` is who waits after it, and counts too."""
        choices = list(self._choices(need))
        if not choices:
            return None
        rivals = list(islice(behind, LOOK_AHEAD))
        options = (self._option(node, layout, need, rivals) for node, layout in choices)
        return min(options, key=lambda option: option.rank)

    def _choices(self, need: WorkloadFact) -> Iterator[tuple[NodeFact, str]]:
        """Empty nodes, one of those that are alike, with the layouts that would serve the need."""
        seen: set[tuple[object, ...]] = set()
        for node in self._nodes.get(need.flavor.model, ()):
            present = self._fleet.spaces.get(node.name)
            if present is None or present.busy or node.name in need.shunned:
                continue
            alike = (node.pool, node.mig_config, node.cards, present.cpu_milli, present.memory_mib, node.cuda)
            if alike not in seen:
                seen.add(alike)
                layouts = self._pools[node.pool].layouts
                yield from (
                    (node, one) for one in layouts if one != node.mig_config and self._cut(node, one).fits(need)
                )

    def _cut(self, node: NodeFact, layout: str) -> Space:
        return recut(node, self._fleet.spaces[node.name], self._pools[node.pool], layout)

    def _option(self, node: NodeFact, layout: str, need: WorkloadFact, rivals: Sequence[WorkloadFact]) -> Option:
        served, workloads = self._serve(self._cut(node, layout), need, rivals)
        return Option(node, layout, self._cut(node, layout), served, workloads, _change(node, layout))

    def _serve(self, space: Space, need: WorkloadFact, rivals: Sequence[WorkloadFact]) -> tuple[F, int]:
        """Fill a trial space in the order of the line; work that fits on a present node does not count."""
        served, workloads = F(0), 0
        for one in (need, *rivals):
            if not any(space.free.values()):
                break
            if space.fits(one) and (one is need or self._fleet.best(one) is None):
                space.take(one)
                served, workloads = served + one.share, workloads + 1
        return served, workloads


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


def _change(node: NodeFact, layout: str) -> int:
    """How many instances of one card appear or disappear; a node whose layout is unknown changes altogether."""
    model = catalog.model(node.model)
    after = catalog.layout(model, layout) if model else None
    before = catalog.layout(model, node.mig_config) if model else None
    old, new = (dict(one.counts) if one else {} for one in (before, after))
    return sum(abs(new.get(name, 0) - old.get(name, 0)) for name in old.keys() | new.keys())
