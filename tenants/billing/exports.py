"""A month as CSV: each line, streamed, or the tables of the summary.

A text that a spreadsheet would take for a formula gets an apostrophe in front; numbers stay numbers. A share is two
whole numbers, because a spreadsheet makes a date of "7/8".
"""

import csv
from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from io import StringIO

from tenants.billing.models import Charge
from tenants.billing.report import MonthReport, Row

LINE_COLUMNS = (
    "period", "zone", "started_at", "ended_at", "kind", "team", "member", "workload", "workload_id", "placement",
    "cluster", "pool", "node", "model", "sku", "share_numerator", "share_denominator", "seconds", "per_card_hour",
    "amount", "currency", "key", "corrects",
)  # fmt: skip
SUMMARY_COLUMNS = (
    "period", "zone", "table", "name", "card_hours", "mean_cards", "percent", "amount", "exact_amount", "currency",
    "state",
)  # fmt: skip
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")

Cell = str | int | Decimal | None


def lines_csv(lines: Iterable[Charge], zone: str) -> Iterator[str]:
    """The file in pieces, a line of the ledger each; pass a queryset's iterator() to keep memory flat."""
    yield _written(LINE_COLUMNS)
    for line in lines:
        yield _written(_line_cells(line, zone))


def summary_csv(report: MonthReport) -> str:
    """The tables of a month, one below the other; the rows of each table sum to its total."""
    tables = report.tables
    named = {
        "team": tables.by_team,
        "person": tables.by_person,
        "model": tables.by_model,
        "flavor": tables.by_flavor,
        "platform": tables.platform,
        "total": [row for row in (tables.charged, tables.overhead, tables.total) if row],
    }
    rows = (_row_cells(report, table, row) for table, rows in named.items() for row in rows)
    return _written(SUMMARY_COLUMNS) + "".join(_written(cells) for cells in rows)


def safe(text: str) -> str:
    """The text, so that no spreadsheet runs it."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def _line_cells(line: Charge, zone: str) -> list[Cell]:
    return [
        line.period, zone, _instant(line.started_at), _instant(line.ended_at), line.kind, line.team_name,
        line.member_name, line.workload_name, _id(line.workload_id), _id(line.resource_id), line.cluster, line.pool,
        line.node, line.model, line.sku, line.share.numerator, line.share.denominator, line.seconds, line.per_card_hour,
        line.amount, line.currency, line.key, line.corrects_id,
    ]  # fmt: skip


def _row_cells(report: MonthReport, table: str, row: Row) -> list[Cell]:
    state = "closed" if report.is_closed else "draft"
    return [
        report.period, report.zone, table, row.name, row.card_hours, row.mean_cards, row.percent, row.shown, row.amount,
        report.currency, state,
    ]  # fmt: skip


def _written(cells: Iterable[Cell]) -> str:
    file = StringIO()
    csv.writer(file).writerow([safe(cell) if isinstance(cell, str) else cell for cell in cells])
    return file.getvalue()


def _instant(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _id(value: object) -> str:
    return "" if value is None else str(value)
