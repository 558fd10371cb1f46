"""`chargeback --month 2026-11`: what the month cost, as a table, JSON or CSV."""

from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any

from django.db import DatabaseError

from portal.management.console import DONE, FINDINGS, Console, CouldNot, printable, unreadable_tables
from tenants.billing import checks, selectors
from tenants.billing.exports import lines_csv, summary_csv
from tenants.billing.findings import Finding
from tenants.billing.report import MonthReport, Row

TABLES = {"team": "by_team", "person": "by_person", "model": "by_model", "flavor": "by_flavor", "platform": "platform"}


class Command(Console):
    help = "Print what a month cost, by team, person, GPU model and flavor, and what nobody was charged for."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--month", required=True, metavar="YYYY-MM")
        parser.add_argument("--format", choices=["table", "csv", "json", "focus"], default="table")
        parser.add_argument("--json", action="store_true", help="the same as --format json")
        parser.add_argument("--lines", action="store_true", help="with --format csv: each line of the ledger")

    def work(self, **options: Any) -> int:
        wanted = "json" if options["json"] else options["format"]
        if wanted == "focus":
            raise CouldNot("--format: the FOCUS format is not there yet; use csv or json.")
        if options["lines"] and wanted != "csv":
            raise CouldNot("--lines: it goes with --format csv.")
        try:
            report = selectors.month(options["month"])
            findings = [*checks.reconciliation(report.period), *checks.set_aside_lines(report.period)]
            self.show(report, findings, "lines" if options["lines"] else wanted)
        except ValueError as error:
            raise CouldNot(f"--month: {error}") from None
        except DatabaseError as error:
            raise unreadable_tables(error) from None
        for finding in findings:
            self.complain(f"{finding}")
        return FINDINGS if findings else DONE

    def show(self, report: MonthReport, findings: Iterable[Finding], wanted: str) -> None:
        if wanted == "lines":
            for line in lines_csv(selectors.lines_of(report.period).iterator(chunk_size=2000), report.zone):
                self.stdout.write(line, ending="")
        elif wanted == "csv":
            self.stdout.write(summary_csv(report), ending="")
        elif wanted == "json":
            self.print_json(as_json(report, findings))
        else:
            self.stdout.write("\n".join(as_text(report)))


def as_json(report: MonthReport, findings: Iterable[Finding]) -> dict[str, Any]:
    """The keys that docs/commands.md promises; money and hours are strings, so that nobody rounds them."""
    tables = report.tables
    return {
        "month": report.period,
        "zone": report.zone,
        "currency": report.currency,
        "from": report.since.isoformat(),
        "until": report.until.isoformat(),
        "posted_until": report.posted_until.isoformat() if report.posted_until else None,
        "state": "closed" if report.is_closed else "draft",
        "closed_by": report.closed_by or None,
        "closed_at": report.closed_at.isoformat() if report.closed_at else None,
        "lines": tables.lines,
        "set_aside": report.set_aside,
        "charged": row_as_json(tables.charged),
        "overhead": row_as_json(tables.overhead) if tables.overhead else None,
        "total": row_as_json(tables.total),
        **{name: [row_as_json(row) for row in getattr(tables, table)] for name, table in TABLES.items()},
        "findings": [{"check": each.check, "where": each.where, "text": each.text} for each in findings],
    }


def row_as_json(row: Row) -> dict[str, Any]:
    return {
        "key": None if row.key is None else str(row.key),
        "name": row.name,
        "card_seconds": str(row.card_seconds),
        "card_hours": str(row.card_hours),
        "mean_cards": None if row.mean_cards is None else str(row.mean_cards),
        "amount": str(row.shown),
        "exact_amount": str(row.amount),
        "percent": None if row.percent is None else str(row.percent),
    }


def as_text(report: MonthReport) -> list[str]:
    tables = report.tables
    state = f"closed by {report.closed_by}" if report.is_closed else "open"
    lines = [f"{report.name} ({report.zone}), {state}; amounts in {report.currency}"]
    for name, table in TABLES.items():
        title = "Borne by the platform" if name == "platform" else f"By {name}"
        lines += ["", row_as_text(title, "card-hours", "cards, mean", "amount", "%")]
        rows = getattr(tables, table)
        lines += [row_as_text(row.name, row.card_hours, row.mean_cards, row.shown, row.percent) for row in rows]
    sums = [row for row in (tables.charged, tables.overhead, tables.total) if row]
    return [*lines, "", *(row_as_text(row.name, row.card_hours, row.mean_cards, row.shown) for row in sums)]


def row_as_text(name: str, *figures: object) -> str:
    cells = "".join(f"{'' if figure is None else str(figure):>14}" for figure in figures)
    return f"{printable(name)[:44]:<44}{cells}".rstrip()
