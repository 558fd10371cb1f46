"""What is usually asked for: the mix that packing reckons with, learned from a site's own history.

An old request says less than a new one: its weight halves with each half-life. Below a certain number of requests a
mix says more about chance than about the site, so there is none: an invented mix packs worse than no mix at all.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

LEAST = 300  # weighed requests: from 500 a mix is as good as the truth, from 200 it cost 0.8 points of the fleet
HALF_LIFE = 20_000  # requests after which one counts half: what is rare but needs a whole node is not forgotten
LARGEST = 2.0**200
WHOLE = 1000  # milli of one card


class Ask(NamedTuple):
    """What one pod asks of a node. `milli` is of each card: below 1000 only where there is one card."""

    cpu_milli: int
    memory_mib: int
    cards: int
    milli: int
    models: frozenset[str] = frozenset()  # that it accepts; empty: any

    @property
    def total(self) -> int:
        """Thousandths of cards, all together."""
        return self.cards * self.milli


@dataclass(frozen=True, slots=True)
class Mix:
    """Kinds of requests, each once, and which part of all requests each is; the parts sum to 1."""

    asks: tuple[Ask, ...]
    parts: tuple[float, ...]

    def shares(self) -> dict[int, float]:
        """How often a share of one card is asked for, by its size; whole cards are none."""
        found: dict[int, float] = {}
        for ask, part in zip(self.asks, self.parts, strict=True):
            if ask.cards == 1 and ask.milli < WHOLE:
                found[ask.milli] = found.get(ask.milli, 0.0) + part
        return dict(sorted(found.items()))


class Habit:
    """Counts requests as they come and forgets the old ones slowly."""

    def __init__(self, half_life: float = HALF_LIFE) -> None:
        self._growth = 2.0 ** (1.0 / half_life)
        self._weight = 1.0  # of the next request: it grows, instead of all others shrinking
        self._counts: dict[Ask, float] = {}

    def add(self, ask: Ask) -> None:
        self._counts[ask] = self._counts.get(ask, 0.0) + self._weight
        self._weight *= self._growth
        if self._weight > LARGEST:
            self._shrink()

    def know(self, mix: Mix, requests: float = HALF_LIFE) -> None:
        """Count a mix that is known as if so many requests of it had just been seen."""
        for ask, part in zip(mix.asks, mix.parts, strict=True):
            self._counts[ask] = self._counts.get(ask, 0.0) + part * requests * self._weight

    def mix(self, least: float = LEAST) -> Mix | None:
        """What is usually asked for; None while too few requests were seen."""
        if sum(self._counts.values()) < least * self._weight:
            return None
        return mix_of(self._counts.items())

    def _shrink(self) -> None:
        """Weights stay numbers; what has faded altogether is forgotten."""
        self._counts = {ask: count / LARGEST for ask, count in self._counts.items() if count / LARGEST > 2.0**-60}
        self._weight /= LARGEST


def mix_of(weighed: Iterable[tuple[Ask, float]]) -> Mix | None:
    """The mix of requests with their weights; None where nothing weighs anything."""
    rows = sorted(((ask, weight) for ask, weight in weighed if weight > 0), key=_order)
    total = sum(weight for _, weight in rows)
    if not rows:
        return None
    sums = [(ask, sum(weight for _, weight in group)) for ask, group in groupby(rows, key=lambda row: row[0])]
    return Mix(tuple(ask for ask, _ in sums), tuple(weight / total for _, weight in sums))


def learned(past: Iterable[tuple[Ask, float]], least: float = LEAST) -> Mix | None:
    """The mix of past requests, each with its age in half-lives; None while they are too few or too old."""
    weighed = [(ask, 2.0 ** -max(0.0, age)) for ask, age in past]
    return mix_of(weighed) if sum(weight for _, weight in weighed) >= least else None


def _order(row: tuple[Ask, float]) -> tuple[int, int, int, int, list[str], float]:
    ask, weight = row
    return ask.cpu_milli, ask.memory_mib, ask.cards, ask.milli, sorted(ask.models), weight
