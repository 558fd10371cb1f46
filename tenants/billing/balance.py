"""Where every card-second of a pool went. Pure: no tables, no clock.

The idea: at every instant each card of a node is in exactly one bucket. What people hold counts first, because they
pay for it; then what is known to be in the way; what remains is free. Where facts overlap (a card falls sick under a
running workload, two looks disagree about a minute) the earlier bucket of this order keeps the time:

    used > cold start > foreign > out of service > stranded > unallocated

so that, exactly: present + overlap == used + cold start + foreign + out of service + stranded + unallocated. `overlap`
is what was held beyond the cards that are known: never hidden in a negative remainder, always reported.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from fractions import Fraction as F
from itertools import pairwise

from tenants.billing.rating import SECOND, Kind

NOTHING = F(0)


@dataclass(frozen=True, slots=True)
class CardInterval:
    """The cards of one node, and what of them was not to be had, in cards; unchanged from a time until a time."""

    node: str
    pool: str
    model: str
    cards: F
    out_of_service: F
    stranded: F
    foreign: F
    started_at: datetime
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class Hold:
    """A share of a node's cards that a workload holds; `kind` is USE or COLD_START."""

    node: str
    share: F
    kind: Kind
    started_at: datetime
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class PoolBalance:
    """Card-seconds by bucket. Refuses to exist unless they sum to what was there."""

    present: F = NOTHING
    used: F = NOTHING
    cold_start: F = NOTHING
    unallocated: F = NOTHING
    stranded: F = NOTHING
    out_of_service: F = NOTHING
    foreign: F = NOTHING
    overlap: F = NOTHING

    def __post_init__(self) -> None:
        if sentence := imbalance(self):
            raise ValueError(sentence)

    def __add__(self, other: "PoolBalance") -> "PoolBalance":
        return PoolBalance(*(getattr(self, name) + getattr(other, name) for name in BUCKETS))

    def of(self, kind: Kind) -> F:
        """The card-seconds of one bucket."""
        return self.used if kind == Kind.USE else F(getattr(self, kind.name.lower()))


BUCKETS = tuple(field.name for field in fields(PoolBalance))


def imbalance(row: object) -> str:
    """What is wrong with a row of buckets (of this class or of the table), in a sentence; "" when they sum."""
    present, used, cold, free, stranded, sick, foreign, overlap = (getattr(row, name) for name in BUCKETS)
    if min(present, used, cold, free, stranded, sick, foreign, overlap) < 0:
        return "A bucket is below 0 card-seconds."
    found = used + cold + free + stranded + sick + foreign
    if present + overlap == found:
        return ""
    return f"The buckets hold {found} card-seconds; the cards that were there gave {present + overlap}."


@dataclass(slots=True)
class _Level:
    """How much there is of everything on one node at an instant, in cards."""

    cards: F = NOTHING
    used: F = NOTHING
    cold_start: F = NOTHING
    foreign: F = NOTHING
    out_of_service: F = NOTHING
    stranded: F = NOTHING


def balance(since: datetime, until: datetime, cards: Iterable[CardInterval], holds: Iterable[Hold]) -> PoolBalance:
    """The buckets of [since, until), in card-seconds, over the nodes of one pool."""
    steps: dict[str, dict[datetime, _Level]] = defaultdict(lambda: defaultdict(_Level))
    for interval in cards:
        _step(steps[interval.node], since, until, interval, _cards_of(interval))
    for hold in holds:
        _step(steps[hold.node], since, until, hold, {_bucket(hold): hold.share})
    totals = dict.fromkeys(BUCKETS, NOTHING)
    for of_node in steps.values():
        for seconds, level in _levels(of_node):
            for name, amount in _split(level).items():
                totals[name] += amount * seconds
    return PoolBalance(**totals)


def _cards_of(interval: CardInterval) -> dict[str, F]:
    return {
        "cards": interval.cards,
        "foreign": interval.foreign,
        "out_of_service": interval.out_of_service,
        "stranded": interval.stranded,
    }


def _bucket(hold: Hold) -> str:
    if hold.kind not in (Kind.USE, Kind.COLD_START):
        raise ValueError(f"A workload's share is in use or starting, not {hold.kind}.")
    return "used" if hold.kind == Kind.USE else "cold_start"


def _step(
    steps: dict[datetime, _Level], since: datetime, until: datetime, over: CardInterval | Hold, amounts: dict[str, F]
) -> None:
    """Note what is added where the interval begins and taken away where it ends, inside the window."""
    started_at, ended_at = max(over.started_at, since), min(over.ended_at, until)
    if ended_at <= started_at:
        return
    for name, amount in amounts.items():
        if amount:
            setattr(steps[started_at], name, getattr(steps[started_at], name) + amount)
            setattr(steps[ended_at], name, getattr(steps[ended_at], name) - amount)


def _levels(steps: dict[datetime, _Level]) -> Iterator[tuple[int, _Level]]:
    """(seconds, level) between each two steps of one node."""
    level = _Level()
    instants = sorted(steps)
    for instant, following in pairwise(instants):
        step = steps[instant]
        for name in _Level.__slots__:
            if change := getattr(step, name):
                setattr(level, name, getattr(level, name) + change)
        yield (following - instant) // SECOND, level


def _split(level: _Level) -> dict[str, F]:
    """Each card of the level in one bucket, by the order of precedence."""
    held = level.used + level.cold_start
    left = max(NOTHING, level.cards - held)
    split = {"present": level.cards, "used": level.used, "cold_start": level.cold_start}
    split["overlap"] = max(NOTHING, held - level.cards)
    for name in ("foreign", "out_of_service", "stranded"):
        split[name] = min(left, max(NOTHING, getattr(level, name)))
        left -= split[name]
    return split | {"unallocated": left}
