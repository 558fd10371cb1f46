"""The meter's arithmetic: from held cards to money. Pure: no tables, no clock.

The idea: a card is held by shares (exact fractions) for whole seconds (integers), so card-seconds are exact and any way
to cut them up sums to the same. Money is rounded once, per ledger line, to a millionth (`price`); what people read with
fewer places is apportioned (`apportion`), so that a shown column sums to its shown total.

Instants are aware UTC and whole seconds; everything is half-open [from, until).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from datetime import timedelta as td
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction as F
from functools import lru_cache
from itertools import pairwise
from uuid import UUID
from zoneinfo import ZoneInfo

HOUR = td(hours=1)
SECOND = td(seconds=1)
MICRO = 6
"""Decimal places of an amount on a ledger line."""


class Kind(StrEnum):
    """The bucket a card-second lands in. All but USE belong to the platform."""

    USE = "use"
    COLD_START = "cold-start"
    UNALLOCATED = "unallocated"
    STRANDED = "stranded"
    OUT_OF_SERVICE = "out-of-service"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class Span:
    """Cards in one state from a time until a time, with the names that its lines will carry.

    `share` is in cards, all units together. A span that ends before it starts (a skewed clock) holds nothing.
    """

    kind: Kind
    resource: UUID | None  # the placement; None where nobody holds the card
    team: UUID | None
    team_name: str
    member: int | None
    member_name: str
    workload: UUID | None
    workload_name: str
    cluster: str
    pool: str
    node: str
    model: str
    sku: str
    share: F
    started_at: datetime
    ended_at: datetime

    def __post_init__(self) -> None:
        if self.share <= 0:
            raise ValueError(f"A share of {self.share} cards cannot be held; it has to be above 0.")
        if self.started_at != whole(self.started_at) or self.ended_at != whole(self.ended_at):
            raise ValueError("The meter counts whole seconds; floor the instants with whole().")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a span, no longer than the hour it lies in."""

    span: Span
    started_at: datetime
    ended_at: datetime

    @property
    def seconds(self) -> int:
        return (self.ended_at - self.started_at) // SECOND

    @property
    def card_seconds(self) -> F:
        return self.span.share * self.seconds


@dataclass(frozen=True, slots=True)
class RatePeriod:
    """A price per card-hour; it holds from an instant until the next one of the same SKU begins."""

    sku: str
    starts_at: datetime
    per_card_hour: Decimal
    rate: int | None = None  # the row it comes from


@dataclass(frozen=True, slots=True)
class Line:
    """A piece at one price: what becomes a charge. Without a rate it is set aside, never priced 0."""

    piece: Piece
    rate: RatePeriod | None

    @property
    def amount(self) -> Decimal | None:
        if self.rate is None:
            return None
        return price(self.piece.seconds, self.piece.span.share, self.rate.per_card_hour)

    @property
    def key(self) -> str:
        """The same for the same fact, whenever and however often it is posted."""
        span = self.piece.span
        what = span.resource or f"{span.cluster}/{span.pool}/{span.model}"
        return f"{span.kind}:{what}:{self.piece.started_at:%Y-%m-%dT%H:%M:%SZ}"


class RateBook:
    """All published prices, to be asked for the one that holds at an instant. A SKU reads model/sharing/capacity."""

    def __init__(self, periods: Iterable[RatePeriod]) -> None:
        self._by_sku: dict[str, list[RatePeriod]] = {}
        for period in sorted(periods, key=lambda period: period.starts_at):
            self._by_sku.setdefault(period.sku, []).append(period)
        self._changes: dict[tuple[str, bool], list[datetime]] = {}

    def at(self, sku: str, instant: datetime) -> RatePeriod | None:
        periods = self._by_sku.get(sku, [])
        index = bisect_right(periods, instant, key=lambda period: period.starts_at)
        return periods[index - 1] if index else None

    def overhead_at(self, sku: str, instant: datetime) -> RatePeriod | None:
        """What a card that nobody pays for is worth: its whole-card price, else the one price its model has."""
        if whole_card := self.at(sku, instant):
            return whole_card
        alike = [period for other in self._alike(sku) if (period := self.at(other, instant))]
        return alike[0] if len({period.per_card_hour for period in alike}) == 1 else None

    def changes(self, sku: str, *, overhead: bool) -> list[datetime]:
        """The instants at which the price of a SKU may change; those of its whole model for overhead."""
        if (sku, overhead) not in self._changes:
            skus = {sku, *self._alike(sku)} if overhead else {sku}
            starts = {period.starts_at for name in skus for period in self._by_sku.get(name, [])}
            self._changes[sku, overhead] = sorted(starts)
        return self._changes[sku, overhead]

    def _alike(self, sku: str) -> list[str]:
        return sorted(other for other in self._by_sku if _model_and_capacity(other) == _model_and_capacity(sku))


def _model_and_capacity(sku: str) -> tuple[str, str]:
    return sku.partition("/")[0], sku.rpartition("/")[2]


def whole_card_sku(model: str, capacity: str) -> str:
    return f"{model}/whole/{capacity}"


def whole(instant: datetime) -> datetime:
    """The whole second an instant lies in, in UTC: the only place where time is floored."""
    if instant.tzinfo is None:
        raise ValueError(f"{instant.isoformat()} has no time zone.")
    return instant.astimezone(UTC).replace(microsecond=0)


def hour_of(instant: datetime) -> datetime:
    """The start of the UTC hour that an instant lies in."""
    return instant.replace(minute=0, second=0, microsecond=0)


def hours(span: Span) -> Iterator[Piece]:
    """The span cut at UTC hours."""
    return pieces(Piece(span, span.started_at, span.ended_at), hour_marks(span.started_at, span.ended_at))


def pieces(piece: Piece, marks: Sequence[datetime]) -> Iterator[Piece]:
    """The piece cut at those of the ascending marks that lie inside it; nothing where it holds no second."""
    if piece.ended_at <= piece.started_at:
        return
    inside = marks[bisect_right(marks, piece.started_at) : bisect_left(marks, piece.ended_at)]
    bounds = [piece.started_at, *inside, piece.ended_at]
    for started_at, ended_at in pairwise(bounds):
        yield Piece(piece.span, started_at, ended_at)


def clipped(span: Span, since: datetime, until: datetime) -> Piece:
    """The part of a span inside [since, until)."""
    return Piece(span, max(span.started_at, since), min(span.ended_at, until))


def hour_marks(since: datetime, until: datetime) -> list[datetime]:
    """Every full UTC hour in (since, until)."""
    first = hour_of(since) + HOUR
    return [first + n * HOUR for n in range(max(0, -((first - until) // HOUR)))]


def marks(since: datetime, until: datetime, zone: ZoneInfo) -> list[datetime]:
    """Where lines are cut: at UTC hours and at the zone's midnights, which may lie between two of them."""
    midnights = {mark for mark in day_starts(since, until, zone) if since < mark < until}
    return sorted({*hour_marks(since, until), *midnights})


def priced(piece: Piece, book: RateBook) -> list[Line]:
    """The piece cut where its price changes, each part with the price that holds there, or with none."""
    overhead = piece.span.kind != Kind.USE
    find = book.overhead_at if overhead else book.at
    sku = piece.span.sku
    parts = pieces(piece, book.changes(sku, overhead=overhead))
    return [Line(part, find(sku, part.started_at)) for part in parts]


def price(seconds: int, share: F, per_card_hour: Decimal) -> Decimal:
    """What a share of a card costs for so many seconds, to a millionth: the only rounding between meter and ledger."""
    return rounded(F(seconds, 3600) * share * F(per_card_hour), MICRO)


def prorated(fee: Decimal, part_days: int, days: int) -> Decimal:
    """The part of a fee for part_days out of the whole period's days (not of the days that are left)."""
    if not 0 <= part_days <= days or not days:
        raise ValueError(f"{part_days} of {days} days are no part of a period.")
    return rounded(F(fee) * F(part_days, days), MICRO)


def rounded(exact: F, places: int) -> Decimal:
    """Half up (away from zero), by integers, so that nothing is rounded twice; never "-0.00"."""
    numerator, denominator = abs(exact.numerator) * 10**places, exact.denominator
    units = (2 * numerator + denominator) // (2 * denominator)
    return Decimal(-units if exact < 0 else units).scaleb(-places)


def apportion(total: Decimal, parts: Sequence[F], places: int) -> list[Decimal]:
    """The parts with so many places, summing to the total: each is floored, the largest remainders get the rest."""
    if not parts:
        return []
    unit = F(1, 10**places)
    floors = [part // unit for part in parts]
    missing = F(total) / unit - sum(floors)
    if missing.denominator != 1:
        raise ValueError(f"{total} has more than {places} decimal places.")
    by_remainder = sorted(range(len(parts)), key=lambda n: (floors[n] - parts[n] / unit, parts[n] == 0))
    each, rest = divmod(int(missing), len(parts))
    for rank, n in enumerate(by_remainder):
        floors[n] += each + (rank < rest)
    return [Decimal(units).scaleb(-places) for units in floors]


def period_of(instant: datetime, zone: ZoneInfo) -> str:
    """The month that an instant belongs to, as "2026-11"."""
    local = instant.astimezone(zone)
    period = f"{local.year:04d}-{local.month:02d}"
    # Where the clock is set back over the month's first midnight, local time shows the old month once more.
    return next_period(period) if instant >= month_bounds(period, zone)[1] else period


@lru_cache(maxsize=1024)
def month_bounds(period: str, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """The month as [from, until) in UTC. Raises ValueError for anything that is not like "2026-11"."""
    first = first_day(period)
    return midnight(first, zone), midnight(first_day(next_period(period)), zone)


def next_period(period: str) -> str:
    first = first_day(period)
    return f"{first.year + first.month // 12:04d}-{first.month % 12 + 1:02d}"


def first_day(period: str) -> date:
    """Raises ValueError with a sentence."""
    year, dash, month = period.partition("-")
    digits = len(year) == 4 and len(month) == 2 and (year + month).isascii() and (year + month).isdigit()
    if not (dash and digits and 1 <= int(month) <= 12 and 1970 <= int(year) <= 9000):
        raise ValueError(f"“{period[:20]}” is not a month; write it like 2026-11.")
    return date(int(year), int(month), 1)


def day_starts(since: datetime, until: datetime, zone: ZoneInfo) -> list[datetime]:
    """The zone's midnights from the day of `since` to the day after `until`, as UTC."""
    first = since.astimezone(zone).date()
    days = (until.astimezone(zone).date() - first).days + 2
    return [midnight(first + td(days=n), zone) for n in range(days)]


def midnight(day: date, zone: ZoneInfo) -> datetime:
    """Where a day begins in a zone, as UTC; where midnight is skipped, the instant at which it would have been."""
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)
