"""A month in tables: what was summed per team, person, model and flavor, with shown columns that sum. Pure: no tables.

Exact figures come in (`Cell`); what is shown has fewer places and is apportioned, so that each column sums to its
total. Teams are apportioned over the whole organisation before anybody's view is cut out of it: a team's figure never
depends on who looks.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction as F
from typing import Any
from uuid import UUID

from tenants.billing.rating import MICRO, Kind, apportion, rounded

PLACES = 2
"""Decimal places of shown money, card-hours and mean cards."""

PLATFORM_WORDS = {
    Kind.UNALLOCATED: "Unallocated",
    Kind.STRANDED: "Stranded",
    Kind.COLD_START: "Cold start",
    Kind.OUT_OF_SERVICE: "Out of service",
    Kind.FOREIGN: "Foreign",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """The finest sum that the tables are made of."""

    kind: Kind
    team: UUID | None
    team_name: str
    member: int | None
    member_name: str
    model: str
    sku: str
    card_seconds: F
    micro: int
    lines: int


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table. `amount` is exact; the other decimals are for reading and sum to those of the total."""

    key: Any  # team id, member id, model, sku or kind: what the drill-down asks with
    name: str
    card_seconds: F
    amount: Decimal
    card_hours: Decimal = Decimal(0)
    mean_cards: Decimal | None = None  # None while no hour of the month is posted
    shown: Decimal = Decimal(0)
    percent: Decimal | None = None  # of the amounts of its table; None where those are 0


@dataclass(frozen=True, slots=True)
class Tables:
    """Each table's rows sum to its total, column by column; the three totals sum as well."""

    charged: Row  # to the teams in view
    overhead: Row | None  # None where the viewer may not see the platform's lines
    total: Row
    by_team: list[Row]
    by_person: list[Row]
    by_model: list[Row]
    by_flavor: list[Row]
    platform: list[Row]
    lines: int


@dataclass(frozen=True, slots=True)
class MonthReport:
    """A month as the pages, the commands and the files show it."""

    period: str
    name: str
    zone: str
    currency: str
    since: datetime
    until: datetime
    posted_until: datetime | None  # the hour up to which every cluster's hours are in it; None before the first
    is_closed: bool
    closed_by: str
    closed_at: datetime | None
    set_aside: int  # lines in view that no price covers; they are in no sum
    tables: Tables


def tables(cells: Sequence[Cell], *, teams: Collection[UUID] | None, seconds: int) -> Tables:
    """`teams` are those in view, None for everything; `seconds` is how long the month ran so far, for the means."""
    used = [cell for cell in cells if cell.kind == Kind.USE]
    others = [cell for cell in cells if cell.kind != Kind.USE]
    total, charged, overhead = _totals(used, others, seconds)
    by_team = _rows(used, lambda cell: (cell.team, cell.team_name), charged, seconds)
    if teams is not None:
        by_team = [row for row in by_team if row.key in teams]
        used = [cell for cell in used if cell.team in teams]
        charged = total = _sum_of("Charged", by_team, seconds)
    by_model = _rows(used, lambda cell: (cell.model, cell.model), charged, seconds)
    return Tables(
        charged=charged,
        overhead=overhead if teams is None else None,
        total=replace(total, name="Total"),
        by_team=_with_percent(by_team),
        by_person=_with_percent(_rows(used, lambda cell: (cell.member, cell.member_name), charged, seconds)),
        by_model=_with_percent(by_model),
        by_flavor=_with_percent(_flavors(used, by_model, seconds)),
        platform=_platform_rows(others, overhead, seconds) if teams is None else [],
        lines=sum(cell.lines for cell in ([*used, *others] if teams is None else used)),
    )


def whole(key: Any, name: str, card_seconds: F, micro: int, seconds: int) -> Row:
    """A row that is rounded by itself: a grand total, of which others are parts."""
    amount = Decimal(micro).scaleb(-MICRO)
    return Row(
        key=key,
        name=name,
        card_seconds=card_seconds,
        amount=amount,
        card_hours=rounded(card_seconds / 3600, PLACES),
        mean_cards=rounded(card_seconds / seconds, PLACES) if seconds else None,
        shown=rounded(F(amount), PLACES),
    )


def parts_of(total: Row, parts: Sequence[Row], seconds: int) -> list[Row]:
    """The rows with shown figures that sum to the total's."""
    hours = apportion(total.card_hours, [part.card_seconds / 3600 for part in parts], PLACES)
    shown = apportion(total.shown, [F(part.amount) for part in parts], PLACES)
    means: Sequence[Decimal | None] = [None] * len(parts)
    if seconds and total.mean_cards is not None:
        means = apportion(total.mean_cards, [part.card_seconds / seconds for part in parts], PLACES)
    return [replace(part, card_hours=hours[n], shown=shown[n], mean_cards=means[n]) for n, part in enumerate(parts)]


def _totals(used: Sequence[Cell], others: Sequence[Cell], seconds: int) -> tuple[Row, Row, Row]:
    """(everything, charged to teams, borne by the platform); the latter two sum to the first."""
    total = whole(None, "Total", *_sums([*used, *others]), seconds)
    parts = [_exact(None, "Charged", used), _exact(None, "Platform", others)]
    charged, overhead = parts_of(total, parts, seconds)
    return total, charged, overhead


def _rows(cells: Sequence[Cell], by: Callable[[Cell], tuple[Any, str]], total: Row, seconds: int) -> list[Row]:
    """The cells grouped, dearest first. A name that changed in the month is shown as it was last."""
    groups: dict[Any, list[Cell]] = {}
    names: dict[Any, str] = {}
    for cell in cells:
        key, name = by(cell)
        groups.setdefault(key, []).append(cell)
        names[key] = name
    exact = [_exact(key, names[key], found) for key, found in groups.items()]
    return parts_of(total, sorted(exact, key=_dearest_first), seconds)


def _flavors(cells: Sequence[Cell], models: Sequence[Row], seconds: int) -> list[Row]:
    """Apportioned within their model, so that the flavors of a model sum to what its own row shows."""
    rows: list[Row] = []
    for model in models:
        ours = [cell for cell in cells if cell.model == model.key]
        rows += _rows(ours, lambda cell: (cell.sku, cell.sku), model, seconds)
    return sorted(rows, key=_dearest_first)


def _dearest_first(row: Row) -> tuple[Decimal, str, str]:
    return -row.amount, row.name, str(row.key)


def _platform_rows(cells: Sequence[Cell], total: Row, seconds: int) -> list[Row]:
    """One row for each bucket that nobody pays for, also for those with nothing in them."""
    rows = [
        _exact(str(kind), words, [cell for cell in cells if cell.kind == kind])
        for kind, words in PLATFORM_WORDS.items()
    ]
    return _with_percent(parts_of(total, rows, seconds))


def _exact(key: Any, name: str, cells: Iterable[Cell]) -> Row:
    card_seconds, micro = _sums(cells)
    return Row(key=key, name=name, card_seconds=card_seconds, amount=Decimal(micro).scaleb(-MICRO))


def _sums(cells: Iterable[Cell]) -> tuple[F, int]:
    found = list(cells)
    return sum((cell.card_seconds for cell in found), F(0)), sum(cell.micro for cell in found)


def _sum_of(name: str, rows: Sequence[Row], seconds: int) -> Row:
    """A total made of shown figures, so that it is their sum whatever was left out of view."""
    zero = Decimal(0).scaleb(-PLACES)
    return Row(
        key=None,
        name=name,
        card_seconds=sum((row.card_seconds for row in rows), F(0)),
        amount=sum((row.amount for row in rows), Decimal(0).scaleb(-MICRO)),
        card_hours=sum((row.card_hours for row in rows), zero),
        mean_cards=sum((row.mean_cards or zero for row in rows), zero) if seconds else None,
        shown=sum((row.shown for row in rows), zero),
    )


def _with_percent(rows: Sequence[Row]) -> list[Row]:
    total = sum((F(row.amount) for row in rows), F(0))
    if not total:
        return list(rows)
    percents = apportion(Decimal("100.0"), [F(row.amount) / total * 100 for row in rows], 1)
    return [replace(row, percent=percents[n]) for n, row in enumerate(rows)]
