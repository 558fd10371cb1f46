"""CSV that a spreadsheet can sum and cannot run."""

from __future__ import annotations

import csv
from decimal import Decimal
from fractions import Fraction as F
from typing import Any

import pytest

from tenants.billing import selectors
from tenants.billing.exports import lines_csv, safe, summary_csv
from tests.tenants.billing.builders import SLICE


@pytest.fixture
def june(ledger: Any) -> Any:
    ledger.june(
        ledger.robin("2026-06-03 12:00", "2026-06-03 13:30", sku=SLICE, share=F(3, 7), workload_name='=HYPERLINK("x")'),
        ledger.sasha("2026-06-10 00:00", "2026-06-10 00:20", workload_name="täst, with “quotes”\nand lines"),
    )
    return ledger


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines(keepends=True)))


def test_each_line_of_the_ledger_with_what_it_takes_to_recalculate_it(june: Any) -> None:
    rows = read("".join(lines_csv(selectors.lines_of("2026-06"), "UTC")))

    used = [row for row in rows if row["kind"] == "use"]
    assert [(row["started_at"], row["seconds"], row["amount"]) for row in used] == [
        ("2026-06-03T12:00:00Z", "3600", "1.885714"),
        ("2026-06-03T13:00:00Z", "1800", "0.942857"),
        ("2026-06-10T00:00:00Z", "1200", "1.333333"),
    ]
    for row in rows:
        share = F(int(row["share_numerator"]), int(row["share_denominator"]))
        exact = int(row["seconds"]) * share / 3600 * F(row["per_card_hour"])
        assert abs(F(row["amount"]) - exact) <= F(1, 2_000_000)
    assert {(row["period"], row["zone"], row["currency"]) for row in rows} == {("2026-06", "UTC", "EUR")}


def test_the_lines_sum_to_the_summary(june: Any) -> None:
    report = selectors.month("2026-06")
    lines = read("".join(lines_csv(selectors.lines_of("2026-06"), "UTC")))
    summary = read(summary_csv(report))

    def summed(table: str, column: str) -> Decimal:
        return sum((Decimal(row[column]) for row in summary if row["table"] == table), Decimal(0))

    total = next(row for row in summary if row["name"] == "Total")
    assert sum(Decimal(row["amount"]) for row in lines) == Decimal(total["exact_amount"])
    for column in ("amount", "exact_amount", "card_hours", "mean_cards"):
        assert summed("team", column) + summed("platform", column) == Decimal(total[column])
        assert summed("team", column) == summed("person", column) == summed("model", column) == summed("flavor", column)


def test_lines_are_streamed(june: Any, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        pieces = lines_csv(selectors.lines_of("2026-06").iterator(chunk_size=100), "UTC")
        assert next(pieces).startswith("period,zone,started_at")
        assert next(pieces).startswith("2026-06,UTC,2026-06-01T00:00:00Z")


def test_names_cannot_run_as_formulas(june: Any) -> None:
    rows = read("".join(lines_csv(selectors.lines_of("2026-06", kind="use"), "UTC")))

    assert [row["workload"] for row in rows][1:] == ['\'=HYPERLINK("x")', "täst, with “quotes”\nand lines"]


TEXTS = {
    "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1", "\r=1": "'\r=1",
    "notebook": "notebook", "a=b": "a=b", "": "", "'quoted": "'quoted",
}  # fmt: skip


@pytest.mark.parametrize(("text", "written"), TEXTS.items())
def test_safe(text: str, written: str) -> None:
    assert safe(text) == written
