"""Contests of packing policies: requests that only come, and requests that come and go.

Everything is decided by a seed: the same seed offers the same requests to every policy.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from typing import Protocol

import numpy as np

from scheduling.planning.hosts import Host, Hosts, Seat
from scheduling.planning.mix import Ask, Mix

WARM, MEASURED = 18.0, 14.0  # mean lifetimes; 12 are too few for best fit, which still degrades then
BLOCK = 4096  # random numbers drawn at a time


class Refusal(StrEnum):
    """Why a request was placed nowhere."""

    NO_SUCH_MODEL = "NoSuchModel"  # no node has a card that it accepts
    LARGER_THAN_ANY_NODE = "LargerThanAnyNode"  # not even on an empty node
    NO_FREE_CARDS = "NoFreeCards"  # no node has enough of its cards free
    NO_CPU_OR_MEMORY = "NoCpuOrMemory"  # where cards are free, the node has too little of these


class Placer(Protocol):
    """A policy at work on its hosts."""

    hosts: Hosts

    def place(self, ask: Ask) -> Seat | None: ...

    def release(self, seat: Seat) -> None: ...


@dataclass(frozen=True, slots=True)
class Arrived:
    """How a run of arrivals ended."""

    placed: int
    refused: Mapping[Refusal, int]
    allocated: float  # percent of all cards
    marks: Mapping[int, float]  # the same when so many percent of the capacity had been asked for


@dataclass(slots=True)
class Departed:
    """How a run of arrivals and departures went, in thousandths of cards by lifetimes."""

    offered: float = 0.0
    lost: float = 0.0
    requests: int = 0
    lost_by_cards: dict[int, float] = field(default_factory=dict)

    @property
    def lost_percent(self) -> float:
        return 100.0 * self.lost / self.offered if self.offered else 0.0


def in_random_order(hosts: Sequence[Host], random: np.random.Generator) -> Hosts:
    return Hosts([hosts[number] for number in random.permutation(len(hosts)).tolist()])


def offered(asks: Sequence[Ask], until: float | None, random: np.random.Generator) -> Iterator[Ask]:
    """All of them shuffled, then more drawn from them, until so many thousandths of cards have been asked for.

    Without such a number, or where nobody asks for cards, each is offered once.
    """
    asked = 0
    order = random.permutation(len(asks)).tolist()
    if until is None or not any(ask.total for ask in asks):
        yield from (asks[number] for number in order)
        return
    for number in count():
        if asked >= until:
            return
        ask = asks[order[number] if number < len(order) else int(random.integers(len(asks)))]
        asked += ask.total
        yield ask


def arrive(placer: Placer, asks: Iterable[Ask], marks: Sequence[int] = (100, 130)) -> Arrived:
    """Each is decided when it comes, in order; what fits nowhere is dropped."""
    hosts, placed, asked = placer.hosts, 0, 0
    refused: Counter[Refusal] = Counter()
    seen: dict[int, float] = {}
    ahead = sorted(marks)
    for ask in asks:
        if placer.place(ask) is not None:
            placed += 1
        else:
            refused[refusal(hosts, ask)] += 1
        asked += ask.total
        while ahead and asked * 100 >= ahead[0] * hosts.capacity:
            seen[ahead.pop(0)] = allocated(hosts)
    return Arrived(placed, dict(refused), allocated(hosts), seen)


def allocated(hosts: Hosts) -> float:
    """Percent of all cards."""
    return 100.0 * hosts.taken / hosts.capacity if hosts.capacity else 0.0


def refusal(hosts: Hosts, ask: Ask) -> Refusal:
    """Why it fits nowhere now."""
    if ask.cards and not (hosts.accepted(ask) & (hosts.cards > 0)).any():
        return Refusal.NO_SUCH_MODEL
    if not hosts.could_fit(ask).any():
        return Refusal.LARGER_THAN_ANY_NODE
    cards_alone = ask._replace(cpu_milli=0, memory_mib=0)
    return Refusal.NO_CPU_OR_MEMORY if hosts.fitting(cards_alone).any() else Refusal.NO_FREE_CARDS


def come_and_go(
    placer: Placer,
    mix: Mix,
    load: float,
    random: np.random.Generator,
    warm: float = WARM,
    measured: float = MEASURED,
) -> Departed:
    """A loss system: Poisson arrivals of the mix at so many capacities, exponential lifetimes of mean 1."""
    mean = sum(part * ask.total for part, ask in zip(mix.parts, mix.asks, strict=True))
    found = Departed()
    leaving: list[tuple[float, int, Seat]] = []
    now = 0.0
    for number, (gap, lifetime, ask) in enumerate(_stream(mix, mean / (load * placer.hosts.capacity), random)):
        now += gap
        if now >= warm + measured:
            return found
        while leaving and leaving[0][0] <= now:
            placer.release(heapq.heappop(leaving)[2])
        seat = placer.place(ask)
        if seat is not None:
            heapq.heappush(leaving, (now + lifetime, number, seat))
        if now >= warm:
            _note(found, ask, lost=seat is None)
    return found


def _note(found: Departed, ask: Ask, *, lost: bool) -> None:
    """Lifetimes have one mean whoever is lost, so a request counts by its size."""
    found.requests += 1
    found.offered += ask.total
    if lost:
        found.lost += ask.total
        found.lost_by_cards[ask.cards] = found.lost_by_cards.get(ask.cards, 0.0) + ask.total


def _stream(mix: Mix, gap: float, random: np.random.Generator) -> Iterator[tuple[float, float, Ask]]:
    """Time since the last one, lifetime, request."""
    while True:
        gaps = random.exponential(gap, BLOCK).tolist()
        lifetimes = random.exponential(1.0, BLOCK).tolist()
        kinds = random.choice(len(mix.asks), BLOCK, p=mix.parts).tolist()
        for row, kind in enumerate(kinds):
            yield gaps[row], lifetimes[row], mix.asks[kind]
