"""A fleet of cut cards in which requests come and go: what finds no slice is lost, and a cut takes its minutes.

The cards of one node change together, and only while nothing runs on any of them. A request that no free slice holds
may have an idle node cut for it, and waits for that; so may each that comes while the cut lasts. All policies have the
same nodes, layouts and requests, pay the same minutes, and may cut whenever they like. They differ in what they answer:
which free slice to give, which idle node to cut to which layout, and what to do with a node that has just come idle.
"""

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

CUT = -1  # in place of a profile: a cut is done
Counts = tuple[int, ...]  # slices of one node by profile, in the order of the system's names


@dataclass(frozen=True, slots=True)
class System:
    """What there is, and what is asked of it."""

    names: tuple[str, ...]
    compute: Counts  # slices of compute, of memory: each profile's
    memory: Counts
    layouts: tuple[Counts, ...]  # that a node may be cut to, in the operator's order
    nodes: int
    cards: int  # of one node
    cut_minutes: int
    weights: Counts  # how often each profile is asked for
    stay: float  # minutes, on average
    a_minute: float  # requests

    def room(self, counts: Counts) -> int:
        """Memory slices of so many slices."""
        return sum(count * size for count, size in zip(counts, self.memory, strict=True))


@dataclass(slots=True)
class Outcome:
    """Compute-slice-minutes of the requests that came while it was measured, and slices of each that were lost."""

    offered: float = 0
    accepted: float = 0
    cuts: int = 0
    lost: list[int] = field(default_factory=list)

    @property
    def part(self) -> float:
        return self.accepted / self.offered


class Fleet:
    """Nodes in service by layout and by what is free, so that a policy looks at kinds of nodes, not at each."""

    def __init__(self, system: System) -> None:
        bare = tuple(0 for _ in system.names)
        self.layout = [bare] * system.nodes
        self.free = [bare] * system.nodes
        self.groups: dict[tuple[Counts, Counts], list[int]] = {(bare, bare): list(range(system.nodes))}
        self.cutting: dict[int, None] = {}  # nodes out of service; what is free on them is what is not promised

    def with_free(self, profile: int) -> Iterator[tuple[Counts, Counts, int]]:
        """Layout, what is free, and the first node of each kind of node that has such a slice."""
        return ((layout, free, group[0]) for (layout, free), group in self.groups.items() if free[profile] > 0)

    def idle(self) -> Iterator[tuple[Counts, int]]:
        """Layout and first node of each kind of node on which nothing runs."""
        return ((layout, group[0]) for (layout, free), group in self.groups.items() if free == layout)

    def change(self, node: int, profile: int, by: int) -> None:
        """So many more (or fewer) slices are free there."""
        free = self.free[node]
        self._put(node, self.layout[node], (*free[:profile], free[profile] + by, *free[profile + 1 :]))

    def cut(self, node: int, layout: Counts) -> None:
        self._leave(node)
        self.layout[node] = self.free[node] = layout
        self.cutting[node] = None

    def reopen(self, node: int) -> None:
        del self.cutting[node]
        self._enter(node)

    def being_cut(self, profile: int) -> int | None:
        """A node that will have such a slice, and has not promised it."""
        return next((node for node in self.cutting if self.free[node][profile] > 0), None)

    def _put(self, node: int, layout: Counts, free: Counts) -> None:
        self._leave(node)
        self.layout[node], self.free[node] = layout, free
        self._enter(node)

    def _enter(self, node: int) -> None:
        if node not in self.cutting:
            insort(self.groups.setdefault((self.layout[node], self.free[node]), []), node)

    def _leave(self, node: int) -> None:
        if node in self.cutting:
            return
        key = (self.layout[node], self.free[node])
        group = self.groups[key]
        del group[bisect_left(group, node)]
        if not group:
            del self.groups[key]


class Policy(Protocol):
    """`asked` and `ran` tell what happens, as it happens: nobody knows beforehand how long anything stays."""

    def asked(self, profile: int, now: float) -> None: ...
    def ran(self, by: int, now: float) -> None: ...
    def give(self, profile: int, fleet: Fleet) -> int | None: ...
    def cut_for(self, profile: int, fleet: Fleet) -> tuple[int, Counts] | None: ...
    def came_idle(self, node: int, fleet: Fleet) -> Counts | None: ...


class Simple:
    """What first fit and best fit have in common: nothing is learned, and a node is cut only for a request."""

    def __init__(self, system: System) -> None:
        self.system = system

    def asked(self, profile: int, now: float) -> None:
        """Of no interest."""

    def ran(self, by: int, now: float) -> None:
        """Of no interest."""

    def came_idle(self, node: int, fleet: Fleet) -> Counts | None:
        """Stays as it is."""


class FirstFit(Simple):
    """The first node with such a slice; else the first idle node, cut to the first layout that has one."""

    def give(self, profile: int, fleet: Fleet) -> int | None:
        return min((node for _, _, node in fleet.with_free(profile)), default=None)

    def cut_for(self, profile: int, fleet: Fleet) -> tuple[int, Counts] | None:
        node = min((node for _, node in fleet.idle()), default=None)
        layout = next((one for one in self.system.layouts if one[profile]), None)
        return None if node is None or layout is None else (node, layout)


class BestFit(Simple):
    """The fullest node with such a slice; else the idle node that offers least, cut to the layout that strands least
    memory and, of those, has the most such slices."""

    def give(self, profile: int, fleet: Fleet) -> int | None:
        room = self.system.room
        return min(((room(free), node) for _, free, node in fleet.with_free(profile)), default=(0, None))[1]

    def cut_for(self, profile: int, fleet: Fleet) -> tuple[int, Counts] | None:
        room = self.system.room
        node = min(((room(layout), node) for layout, node in fleet.idle()), default=(0, None))[1]
        fitting = [one for one in self.system.layouts if one[profile]]
        if node is None or not fitting:
            return None
        return node, max(fitting, key=lambda one: (room(one), one[profile]))


def play(system: System, policy: Policy, seed: int, *, warm: float, measured: float) -> Outcome:
    """Minutes before anything is counted, and minutes in which it is."""
    return _Play(system, policy, Random(seed)).run(warm, measured)  # noqa: S311  chance, not secrecy


class _Play:
    def __init__(self, system: System, policy: Policy, chance: Random) -> None:
        self.system, self.policy, self.chance = system, policy, chance
        self.fleet = Fleet(system)
        self.now = 0.0
        self.number = 0
        self.events: list[tuple[float, int, int, int]] = []  # when, a number of its own, node, profile or CUT
        self.promised: dict[int, list[tuple[int, float]]] = {}
        self.outcome = Outcome(lost=[0] * len(system.names))

    def run(self, warm: float, measured: float) -> Outcome:
        while True:
            self.now += self.chance.expovariate(self.system.a_minute)
            profile = self.chance.choices(range(len(self.system.names)), self.system.weights)[0]
            stay = self.chance.expovariate(1 / self.system.stay)
            if self.now > warm + measured:
                return self.outcome
            self._catch_up()
            self.policy.asked(profile, self.now)
            held = self._held(profile, stay)
            if self.now > warm:
                self._count(profile, stay, held=held)

    def _count(self, profile: int, stay: float, *, held: bool) -> None:
        compute = self.system.compute[profile] * stay
        self.outcome.offered += compute
        self.outcome.accepted += compute if held else 0
        self.outcome.lost[profile] += not held

    def _held(self, profile: int, stay: float) -> bool:
        node = self.policy.give(profile, self.fleet)
        if node is not None:
            self.fleet.change(node, profile, -1)
            self._start(self.now, node, profile, stay)
            return True
        node = self.fleet.being_cut(profile)
        if node is None:
            found = self.policy.cut_for(profile, self.fleet)
            if found is None:
                return False
            node, layout = found
            self._cut(node, layout, self.now)
        self.fleet.change(node, profile, -1)
        self.promised[node].append((profile, stay))
        return True

    def _catch_up(self) -> None:
        while self.events and self.events[0][0] <= self.now:
            when, _, node, profile = heapq.heappop(self.events)
            if profile == CUT:
                self.fleet.reopen(node)
                for promised, span in self.promised.pop(node):
                    self._start(when, node, promised, span)
            else:
                self._end(when, node, profile)

    def _start(self, now: float, node: int, profile: int, stay: float) -> None:
        self.policy.ran(1, now)
        self._at(now + stay, node, profile)

    def _end(self, now: float, node: int, profile: int) -> None:
        self.policy.ran(-1, now)
        self.fleet.change(node, profile, 1)
        if self.fleet.free[node] == self.fleet.layout[node]:
            layout = self.policy.came_idle(node, self.fleet)
            if layout is not None:
                self._cut(node, layout, now)

    def _cut(self, node: int, layout: Counts, now: float) -> None:
        self.outcome.cuts += 1
        self.fleet.cut(node, layout)
        self.promised[node] = []
        self._at(now + self.system.cut_minutes, node, CUT)

    def _at(self, when: float, node: int, what: int) -> None:
        self.number += 1
        heapq.heappush(self.events, (when, self.number, node, what))
