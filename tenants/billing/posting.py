"""What some hours of one cluster come to: its ledger lines and the balance of each pool. Pure: no tables, no clock.

Posting writes exactly this, and the consistency check compares the ledger with exactly this.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from zoneinfo import ZoneInfo

from tenants.billing.balance import CardInterval, Hold, PoolBalance, balance
from tenants.billing.rating import (
    SECOND,
    Kind,
    Line,
    RateBook,
    Span,
    clipped,
    hour_of,
    marks,
    pieces,
    priced,
    whole_card_sku,
)

PLATFORM = "Platform"
NOBODYS = (Kind.UNALLOCATED, Kind.STRANDED, Kind.OUT_OF_SERVICE, Kind.FOREIGN)


@dataclass(frozen=True, slots=True)
class Hours:
    """What is known of [since, until) of one cluster, whole hours; spans and cards may reach beyond."""

    cluster: str
    since: datetime
    until: datetime
    spans: Sequence[Span]  # of kind USE and COLD_START
    cards: Sequence[CardInterval]
    capacities: Mapping[str, str] = field(default_factory=dict)  # pool -> on-demand, spot

    def __post_init__(self) -> None:
        if self.since != hour_of(self.since) or self.until != hour_of(self.until):
            raise ValueError("Hours are posted whole.")
        if {span.cluster for span in self.spans} - {self.cluster}:
            raise ValueError(f"A span of another cluster is no part of the hours of {self.cluster}.")


@dataclass(frozen=True, slots=True)
class Rated:
    """The lines (those without a rate are to be set aside), and per (pool, hour) where the card-seconds went."""

    lines: list[Line]
    balances: dict[tuple[str, datetime], PoolBalance]
    doubts: list[str]


def rate_hours(hours: Hours, book: RateBook, zone: ZoneInfo) -> Rated:
    """Lines are cut at UTC hours, at the zone's midnights and where a price changes."""
    cuts = marks(hours.since, hours.until, zone)
    lines = [
        line
        for span in hours.spans
        for piece in pieces(clipped(span, hours.since, hours.until), cuts)
        for line in priced(piece, book)
    ]
    balances: dict[tuple[str, datetime], PoolBalance] = defaultdict(PoolBalance)
    for (pool, model), facts in _by_pool_and_model(hours).items():
        sku = whole_card_sku(model, hours.capacities.get(pool, "on-demand"))
        windows = _bounds(hours, sorted({*cuts, *book.changes(sku, overhead=True)}))
        for since, until, cards, holds in _windows(windows, facts):
            found = balance(since, until, cards, holds)
            balances[pool, hour_of(since)] += found
            lines += _nobodys_lines(hours.cluster, pool, model, sku, since, until, found, book)
    return Rated(lines, dict(balances), doubts(hours.spans))


def doubts(spans: Sequence[Span]) -> list[str]:
    """Facts that cannot be: said, and counted as no time at all."""
    return [
        f"{span.workload_name} ({span.kind}) ends {(span.started_at - span.ended_at) // SECOND} s before it starts, "
        f"at {span.started_at:%Y-%m-%d %H:%M:%S} UTC; it is counted as 0 s."
        for span in spans
        if span.ended_at < span.started_at
    ]


@dataclass(slots=True)
class _Facts:
    cards: list[CardInterval] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)


def _by_pool_and_model(hours: Hours) -> dict[tuple[str, str], _Facts]:
    """A pool may hold cards of several models, each worth its own price; a hold belongs with its node's cards."""
    facts: dict[tuple[str, str], _Facts] = defaultdict(_Facts)
    models = {(interval.pool, interval.node): interval.model for interval in hours.cards}
    for interval in hours.cards:
        facts[interval.pool, interval.model].cards.append(interval)
    for span in hours.spans:
        model = models.get((span.pool, span.node), span.model)
        hold = Hold(span.node, span.share, span.kind, span.started_at, span.ended_at)
        facts[span.pool, model].holds.append(hold)
    return facts


def _bounds(hours: Hours, cuts: Sequence[datetime]) -> list[datetime]:
    return [hours.since, *(cut for cut in cuts if hours.since < cut < hours.until), hours.until]


def _windows(
    bounds: Sequence[datetime], facts: _Facts
) -> Iterator[tuple[datetime, datetime, list[CardInterval], list[Hold]]]:
    """Each window between two bounds with what touches it; windows that nothing touches are left out."""
    cards: dict[int, list[CardInterval]] = defaultdict(list)
    holds: dict[int, list[Hold]] = defaultdict(list)
    for interval in facts.cards:
        for n in _touched(bounds, interval):
            cards[n].append(interval)
    for hold in facts.holds:
        for n in _touched(bounds, hold):
            holds[n].append(hold)
    for n in sorted({*cards, *holds}):
        yield bounds[n], bounds[n + 1], cards[n], holds[n]


def _touched(bounds: Sequence[datetime], over: CardInterval | Hold) -> range:
    """The numbers of the windows that an interval touches; none where it holds no second."""
    if over.ended_at <= over.started_at:
        return range(0)
    last = bisect_left(bounds, over.ended_at)
    first = bisect_left(bounds, over.started_at)
    starts_on_a_bound = first < len(bounds) and bounds[first] == over.started_at
    return range(max(0, first - (not starts_on_a_bound)), min(last, len(bounds) - 1))


def _nobodys_lines(
    cluster: str, pool: str, model: str, sku: str, since: datetime, until: datetime, found: PoolBalance, book: RateBook
) -> Iterator[Line]:
    """One line per bucket that nobody pays for; its share is the mean number of cards, exactly."""
    seconds = (until - since) // SECOND
    for kind in NOBODYS:
        if card_seconds := found.of(kind):
            span = Span(
                kind, None, None, PLATFORM, None, "", None, "", cluster, pool, "", model, sku,
                card_seconds / seconds, since, until,
            )  # fmt: skip
            yield from priced(clipped(span, since, until), book)
