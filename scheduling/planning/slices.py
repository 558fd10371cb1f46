"""Where slices lie on a card, what its free room can still hold, and which place to give the next one.

A card's memory axis is a bit mask: bit i is set where memory slice i is taken. One bit more stands for the engines
that only one slice of a card may take (+me), so that "does it fit" is always a single `&`. Compute slices need no
count: wherever the places do not overlap, their sum is within the card's (tested for every board that we know).

An axis has few states (256 on seven-slice boards), so each question about free room is answered once and kept.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction as F
from math import lcm
from typing import NamedTuple

from scheduling.planning.catalog import MigBoard, Profile, Slot, takes_media_engines
from scheduling.planning.prices import Prices, prices

Counts = tuple[tuple[str, int], ...]  # profile -> how many, by name: a mapping that can be a key


@dataclass(frozen=True, slots=True)
class Spot:
    """One legal place for one profile. `mask` has its memory slices, and the media engines where it takes them."""

    profile: str
    slot: Slot
    mask: int


class Choice(NamedTuple):
    """The card's state to take, and the place on it."""

    taken: int
    spot: Spot


class Axis:
    """One board's memory axis."""

    def __init__(self, board: MigBoard) -> None:
        self.board = board
        self.units = board.memory_slices
        self.spots = {one.name: tuple(_spots(one, board.memory_slices)) for one in board.profiles}
        self.shares = {one.name: one.share for one in board.profiles}
        self.base = tuple(one.name for one in board.profiles if one.base)
        self._most: dict[tuple[str, int], int] = {}
        self._ways: dict[tuple[tuple[str, ...], int], frozenset[frozenset[Spot]]] = {}
        self._fills: dict[tuple[int, Counts], tuple[F, tuple[Spot, ...]]] = {}

    def free(self, profile: str, taken: int) -> Iterator[Spot]:
        """The places where it could lie now; none for a profile that the board does not have."""
        return (spot for spot in self.spots.get(profile, ()) if not spot.mask & taken)

    def fits(self, profile: str, taken: int) -> bool:
        return any(True for _ in self.free(profile, taken))

    def most(self, profile: str, taken: int) -> int:
        """How many more of this profile alone the free room holds."""
        key = (profile, taken)
        if key not in self._most:
            rest = (1 + self.most(profile, taken | spot.mask) for spot in self.free(profile, taken))
            self._most[key] = max(rest, default=0)
        return self._most[key]

    def usable(self, taken: int) -> Mapping[str, int]:
        """For each profile that still fits: how many more, if it were the only one."""
        return {name: count for name in self.spots if (count := self.most(name, taken))}

    def room(self, taken: int) -> int:
        """Free memory slices, usable or not."""
        return self.units - (taken & ((1 << self.units) - 1)).bit_count()

    def fill(self, taken: int, wanted: Mapping[str, int]) -> tuple[Spot, ...]:
        """Exactly the best that the free room can do for what is wanted: the most memory; of that, fewest places."""
        return self._fill(taken, _counts(wanted))[1]

    def ways(self, profiles: Iterable[str], taken: int = 0) -> list[Mapping[str, int]]:
        """Every layout that is reachable from here, without regard to places: none could hold one slice more."""
        return [dict(counts) for counts in sorted({_tally(way) for way in self.fillings(profiles, taken)})]

    def fillings(self, profiles: Iterable[str], taken: int = 0) -> frozenset[frozenset[Spot]]:
        """The same with their places: nineteen on an empty seven-slice board, for profiles without double memory."""
        wanted = set(profiles)
        return self._filled(tuple(name for name in self.spots if name in wanted), taken)

    def _fill(self, taken: int, wanted: Counts) -> tuple[F, tuple[Spot, ...]]:
        key = (taken, wanted)
        if key not in self._fills:
            best: tuple[F, tuple[Spot, ...]] = (F(0), ())
            for name, _ in wanted:
                for spot in self.free(name, taken):
                    worth, spots = self._fill(taken | spot.mask, _less(wanted, name))
                    found = (worth + self.shares[name], (spot, *spots))
                    if (-found[0], len(found[1])) < (-best[0], len(best[1])):
                        best = found
            self._fills[key] = best
        return self._fills[key]

    def _filled(self, names: tuple[str, ...], taken: int) -> frozenset[frozenset[Spot]]:
        key = (names, taken)
        if key not in self._ways:
            spots = [spot for name in names for spot in self.free(name, taken)]
            rest = (way | {spot} for spot in spots for way in self._filled(names, taken | spot.mask))
            self._ways[key] = frozenset(rest) if spots else frozenset({frozenset()})
        return self._ways[key]


class Usefulness:
    """What free room is worth where so many of each profile are usually asked for."""

    def __init__(self, axis: Axis, mix: Mapping[str, int]) -> None:
        self.axis = axis
        self.mix = {name: weight for name in axis.spots if (weight := _weight(axis, mix, name))}
        each = needed(axis, self.mix).each
        scale = lcm(*(price.denominator for price in each))
        self._scale = scale
        self._prices = {name: int(price * scale) for name, price in zip(self.mix, each, strict=True)}
        self._values: dict[int, int] = {}
        self._varieties: dict[int, F] = {}
        self._ranked: dict[tuple[int, str], tuple[tuple[int, int, F, int], Spot] | None] = {}

    def value(self, taken: int) -> F:
        """Of the free room, in cards: the dearest set of slices that it can hold. An empty card is worth one."""
        return F(self._value(taken), self._scale)

    def choose(self, profile: str, states: Iterable[int]) -> Choice | None:
        """The state, of those that cards are in, and the place on it by which most stays usable.

        First what loses least of the room's value; then the fullest card, so that others stay whole; then what leaves
        the most places to the usual mix; then the first place. None: it fits nowhere.
        """
        found = [(best, taken) for taken in states if (best := self._best(taken, profile))]
        if not found:
            return None
        (_, spot), taken = min(found, key=lambda one: (one[0][0], one[1]))
        return Choice(taken, spot)

    def _best(self, taken: int, profile: str) -> tuple[tuple[int, int, F, int], Spot] | None:
        key = (taken, profile)
        if key not in self._ranked:
            ranked = ((self._rank(taken, spot), spot) for spot in self.axis.free(profile, taken))
            self._ranked[key] = min(ranked, key=lambda one: one[0], default=None)
        return self._ranked[key]

    def _rank(self, taken: int, spot: Spot) -> tuple[int, int, F, int]:
        after = taken | spot.mask
        lost = self._value(taken) - self._value(after)
        return lost, self.axis.room(taken), -self._variety(after), spot.slot.start

    def _value(self, taken: int) -> int:
        if taken not in self._values:
            spots = (spot for name in self._prices for spot in self.axis.free(name, taken))
            worth = (self._prices[spot.profile] + self._value(taken | spot.mask) for spot in spots)
            self._values[taken] = max(worth, default=0)
        return self._values[taken]

    def _variety(self, taken: int) -> F:
        """Memory that each profile alone could still use, weighted by the mix."""
        if taken not in self._varieties:
            parts = (weight * self.axis.shares[name] * self.axis.most(name, taken) for name, weight in self.mix.items())
            self._varieties[taken] = sum(parts, F(0))
        return self._varieties[taken]


def axis(board: MigBoard) -> Axis:
    """The board's axis; boards of the same geometry share one."""
    geometry = tuple((one.name, one.placements, one.attributes, one.share) for one in board.profiles)
    if geometry not in _AXES:
        _AXES[geometry] = Axis(board)
    return _AXES[geometry]


def needed(axis: Axis, wanted: Mapping[str, int]) -> Prices:
    """How many cards so many slices need at least, and each profile's price in cards, in the order of `wanted`.

    No packing whatsoever does with fewer: cards are filled in the best way, and by fractions of ways.
    """
    ways = axis.ways(wanted)
    return prices([[way.get(name, 0) for name in wanted] for way in ways], list(wanted.values()))


_AXES: dict[tuple[object, ...], Axis] = {}
RARE = 1_000  # a base profile that nobody has asked for counts as one in so many times what was


def _weight(axis: Axis, mix: Mapping[str, int], name: str) -> int:
    """What was never asked for counts a little where it is common: room for it is not worth nothing."""
    seen = mix.get(name, 0)
    if seen > 0:
        return seen * RARE
    return 1 if name in axis.base else 0


def _spots(profile: Profile, units: int) -> Iterator[Spot]:
    engines = 1 << units if takes_media_engines(profile) else 0
    return (Spot(profile.name, slot, slot.mask | engines) for slot in profile.placements)


def _counts(wanted: Mapping[str, int]) -> Counts:
    return tuple(sorted((name, count) for name, count in wanted.items() if count > 0))


def _less(wanted: Counts, name: str) -> Counts:
    """One fewer of this profile."""
    return tuple((one, count - (one == name)) for one, count in wanted if count > (one == name))


def _tally(way: Iterable[Spot]) -> Counts:
    found: dict[str, int] = {}
    for spot in way:
        found[spot.profile] = found.get(spot.profile, 0) + 1
    return _counts(found)
