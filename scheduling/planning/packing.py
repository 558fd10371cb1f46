"""Where something fits: what each node still has free, and the node to take.

Free is what may be given out, minus what pods hold (ours and others', terminating ones too), minus what is placed but
not seen yet, minus what this plan has placed; never negative. Of the nodes that fit, packing takes the one with the
least left over, so that others stay whole or empty; a pool that spreads takes the one with the most.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction as F
from typing import NamedTuple
from uuid import UUID

from scheduling.planning import pods as ask
from scheduling.planning.catalog import dotted
from scheduling.planning.cuda import Version, too_old
from scheduling.planning.facts import (
    HOLDING,
    Capacity,
    DeviceFact,
    FlavorFact,
    NodeFact,
    PodFact,
    PoolFact,
    Sharing,
    Snapshot,
    WorkloadFact,
)

UNCUT = "all-disabled"
CARD_RESOURCES = ("nvidia.com/gpu", "nvidia.com/mig-", "amd.com/")


class Key(NamedTuple):
    """What must agree between a flavor and a device, whatever the resource is called."""

    model: str
    capacity: Capacity
    sharing: Sharing
    profile: str
    replicas: int


@dataclass(slots=True)
class Space:
    """What one node still has free; it changes while a plan is made."""

    name: str
    pool: str
    cpu_milli: int
    memory_mib: int
    free: dict[Key, int] = field(default_factory=dict)  # units
    total: dict[Key, int] = field(default_factory=dict)
    weight: dict[Key, F] = field(default_factory=dict)  # what one unit is of one card
    resource: dict[Key, str] = field(default_factory=dict)
    busy: bool = False  # something holds cards here, is about to, or was placed in this plan
    cuda: Version | None = None  # the newest CUDA that its driver offers; None: nobody says

    @property
    def left(self) -> F:
        """Free cards, all devices together."""
        return sum((self.weight[key] * units for key, units in self.free.items()), F(0))

    def offer(self, key: Key, units: int, weight: F, resource: str = "") -> None:
        """Add a device; of two that offer the same, the larger stands for both."""
        if units < self.total.get(key, 0):
            return
        self.free[key] = self.total[key] = max(0, units)
        self.weight[key] = weight
        self.resource[key] = resource

    def fits(self, need: WorkloadFact) -> bool:
        return (
            self.free.get(key_of(need.flavor), 0) >= need.count
            and self.cpu_milli >= need.cpu_milli
            and self.memory_mib >= need.memory_mib
            and self.name not in need.shunned
            and not too_old(self.cuda, need.cuda)
        )

    def take(self, need: WorkloadFact) -> None:
        key = key_of(need.flavor)
        self.hold(key, need.count, need.cpu_milli, need.memory_mib)
        self.busy = True

    def hold(self, key: Key | None, units: int, cpu_milli: int, memory_mib: int) -> None:
        if key in self.free:
            self.free[key] = max(0, self.free[key] - units)
        self.cpu_milli = max(0, self.cpu_milli - cpu_milli)
        self.memory_mib = max(0, self.memory_mib - memory_mib)


class Stock(NamedTuple):
    """Units of one kind in one pool."""

    free: int
    total: int
    most: int  # free on one node


class Fleet:
    """Bins in the order in which they are to be filled, found without looking at each."""

    def __init__(self, spaces: Iterable[Space] = (), *, spread: Iterable[str] = ()) -> None:
        self.spaces: dict[str, Space] = {}
        self._spread = frozenset(spread)
        self._ranks: defaultdict[tuple[Key, bool], list[tuple[F, str]]] = defaultdict(list)
        self._hopeless: defaultdict[Key, list[tuple[int, int, int]]] = defaultdict(list)
        self._stock: dict[Key, dict[str, Stock]] = {}
        for space in sorted(spaces, key=lambda space: space.name):
            self.add(space)

    def best(self, need: WorkloadFact) -> Space | None:
        """The space to take: least left over first in pools that pack, then most left over in pools that spread."""
        key = key_of(need.flavor)
        shape = (need.count, need.cpu_milli, need.memory_mib)
        if any(all(map(int.__le__, failed, shape)) for failed in self._hopeless[key]):
            return None
        found = self._first(key, need)
        if found is None and not need.shunned and need.cuda is None:
            self._hopeless[key].append(shape)
        return found

    def take(self, space: Space, need: WorkloadFact) -> None:
        self._unrank(space)
        space.take(need)
        self._rank(space)

    def add(self, space: Space) -> None:
        """A space more, or another in place of its namesake."""
        self.drop(space.name)
        self.spaces[space.name] = space
        self._rank(space)
        self._hopeless.clear()

    def drop(self, name: str) -> None:
        space = self.spaces.pop(name, None)
        if space is not None:
            self._unrank(space)

    def stock(self, key: Key) -> dict[str, Stock]:
        """Units by pool, for sentences."""
        if key not in self._stock:
            self._stock[key] = self._count(key)
        return self._stock[key]

    def _count(self, key: Key) -> dict[str, Stock]:
        found: dict[str, Stock] = {}
        for space in self.spaces.values():
            if total := space.total.get(key):
                free = space.free[key]
                old = found.get(space.pool, Stock(0, 0, 0))
                found[space.pool] = Stock(old.free + free, old.total + total, max(old.most, free))
        return dict(sorted(found.items()))

    def _first(self, key: Key, need: WorkloadFact) -> Space | None:
        for spread in (False, True):
            ranks = self._ranks.get((key, spread), [])
            # Of whole cards, what is left over counts the free ones, so fuller nodes need no look.
            skip = need.flavor.sharing is Sharing.WHOLE and not spread
            start = bisect_left(ranks, (F(need.count), "")) if skip else 0
            for _, name in ranks[start:]:
                if self.spaces[name].fits(need):
                    return self.spaces[name]
        return None

    def _rank(self, space: Space) -> None:
        for key, entry in self._entries(space):
            insort(self._ranks[key], entry)

    def _unrank(self, space: Space) -> None:
        for key, entry in self._entries(space):
            del self._ranks[key][bisect_left(self._ranks[key], entry)]

    def _entries(self, space: Space) -> list[tuple[tuple[Key, bool], tuple[F, str]]]:
        """One entry for each kind that still has a free unit; full spaces are not even looked at."""
        for key in space.free:
            self._stock.pop(key, None)
        spread = space.pool in self._spread
        left = -space.left if spread else space.left
        return [((key, spread), (left, space.name)) for key, units in space.free.items() if units > 0]


def key_of(flavor: FlavorFact) -> Key:
    return Key(flavor.model, flavor.capacity, flavor.sharing, dotted(flavor.profile), flavor.replicas)


def device_key(node: NodeFact, device: DeviceFact) -> Key:
    """By profile and sharing, not by name: a node cut alike everywhere calls its slices nvidia.com/gpu."""
    profile = dotted(device.profile)
    if node.sharing in (Sharing.TIME_SLICE, Sharing.MPS):
        return Key(node.model, node.capacity, node.sharing, profile, node.replicas)
    return Key(node.model, node.capacity, Sharing.MIG if profile else Sharing.WHOLE, profile, 1)


def usable(node: NodeFact) -> bool:
    """May something be placed there now?"""
    out = node.cutting_to or node.leaving or node.dropped or node.mig_state in ("pending", "rebooting", "failed")
    return node.ready and node.schedulable and not out


def holds_cards(pod: PodFact) -> bool:
    """A daemon or any other pod without a card does not keep a node."""
    return any(units > 0 and resource.startswith(CARD_RESOURCES) for resource, units in pod.requests.items())


def spaces_of(snapshot: Snapshot) -> dict[str, Space]:
    """Every node's space, also of nodes that cannot be used now, with all that is held on it taken off."""
    given = {pool.name: sharings(pool) for pool in snapshot.pools}
    spaces = {node.name: _space(node, given.get(node.pool, frozenset(Sharing))) for node in snapshot.nodes}
    for pod in snapshot.pods:
        if pod.node in spaces and ask.holds(pod):
            _hold(spaces[pod.node], pod)
    seen = {pod.workload for pod in snapshot.pods if pod.node and ask.holds(pod)}
    for workload in snapshot.workloads:
        if workload.phase in HOLDING and workload.node in spaces and workload.id not in seen:
            spaces[workload.node].take(workload)
    return spaces


def lingering(snapshot: Snapshot) -> Mapping[UUID, PodFact]:
    """Pods that still hold something, if only their name, by workload; those of nodes that are gone hold no card."""
    names = {node.name for node in snapshot.nodes}
    return {
        pod.workload: pod
        for pod in sorted(snapshot.pods, key=lambda pod: (pod.name, pod.uid))
        if pod.workload is not None and (ask.kept(pod) or (ask.holds(pod) and (not pod.node or pod.node in names)))
    }


def _space(node: NodeFact, given: frozenset[Sharing]) -> Space:
    space = Space(node.name, node.pool, node.cpu_milli, node.host_memory_mib, cuda=node.cuda)
    for device in sorted(node.devices, key=lambda device: device.resource):
        key = device_key(node, device)
        if key.sharing in given:
            space.offer(key, device.allocatable, device.share, device.resource)
    return space


def sharings(pool: PoolFact) -> frozenset[Sharing]:
    """What a pool gives out, as its operator says: an uncut node of a MIG pool waits to be cut, and is given out whole
    only where the pool's layouts name it uncut."""
    whole_too = pool.sharing is Sharing.MIG and UNCUT in pool.layouts
    return frozenset({pool.sharing, Sharing.WHOLE} if whole_too else {pool.sharing})


def _hold(space: Space, pod: PodFact) -> None:
    space.hold(None, 0, pod.cpu_milli, pod.memory_mib)
    for key, resource in space.resource.items():
        space.hold(key, pod.requests.get(resource, 0), 0, 0)
    space.busy = space.busy or pod.workload is not None or holds_cards(pod)
