"""`chargeback --month`: what the month cost."""

from __future__ import annotations

import csv
from decimal import Decimal
from typing import Any

import pytest
from django.db import DatabaseError

from scheduling.handover import hand_over
from tenants.billing import selectors
from tenants.billing.models import PoolHour
from tenants.billing.services import close_month
from tests.portal.commands.running import run
from tests.scheduling.past import LATE, Past
from tests.tenants.billing.builders import at

COLUMNS = {"key", "name", "card_seconds", "card_hours", "mean_cards", "amount", "exact_amount", "percent"}


@pytest.fixture
def past(world: Any) -> Past:
    """Robin's two cards for an hour and a half at 4.20, in four hours of eight cards."""
    made = Past(world)
    made.cards("08:00")
    made.held("09:00:00", "09:01:00", "10:31:00", count=2)
    hand_over(LATE)
    return made


def test_the_promised_keys_and_figures(past: Past) -> None:
    outcome = run("chargeback", "--month", "2026-12", "--json")

    report = outcome.json
    assert (outcome.code, outcome.sentences, report["findings"]) == (0, [], [])
    assert {name: report[name] for name in ("month", "zone", "currency", "from", "until", "posted_until", "state")} == {
        "month": "2026-12",
        "zone": "UTC",
        "currency": "EUR",
        "from": "2026-12-01T00:00:00+00:00",
        "until": "2027-01-01T00:00:00+00:00",
        "posted_until": "2026-12-01T12:00:00+00:00",
        "state": "draft",
    }
    assert (report["closed_by"], report["closed_at"], report["lines"], report["set_aside"]) == (None, None, 7, 0)
    assert report["team"] == [
        {
            "key": str(past.world.vision.pk),
            "name": "Vision",
            "card_seconds": "10800",
            "card_hours": "3.00",
            "mean_cards": "0.75",
            "amount": "12.60",
            "exact_amount": "12.600000",
            "percent": "100.0",
        }
    ]
    assert [row["name"] for row in report["person"] + report["model"] + report["flavor"]] == [
        "Robin", "h100-80gb", "h100-80gb/whole/on-demand",
    ]  # fmt: skip
    # Two cards' minute of cold start at 4.20; 32 card-hours less the above are free.
    assert {row["key"]: row["amount"] for row in report["platform"] if row["amount"] != "0.00"} == {
        "unallocated": "121.66",
        "cold-start": "0.14",
    }
    assert [set(report[name]) for name in ("charged", "overhead", "total")] == [COLUMNS] * 3


def test_every_column_sums(past: Past) -> None:
    report = run("chargeback", "--month", "2026-12", "--json").json

    for column in ("card_seconds", "card_hours", "mean_cards", "amount", "exact_amount"):
        sums = [sum(Decimal(row[column]) for row in report[table]) for table in ("team", "person", "model", "flavor")]
        assert sums == [Decimal(report["charged"][column])] * 4
        parts = Decimal(report["charged"][column]) + Decimal(report["overhead"][column])
        assert parts == Decimal(report["total"][column])


def test_the_table_says_zone_currency_and_state(past: Past) -> None:
    outcome = run("chargeback", "--month", "2026-12")

    lines = outcome.out.splitlines()
    assert lines[0] == "December 2026 (UTC), open; amounts in EUR"
    assert ["Vision", "3.00", "0.75", "12.60", "100.0"] in [line.split() for line in lines]
    assert ["Total", "32.00", "8.00", "134.40"] in [line.split() for line in lines]


def test_the_summary_and_the_lines_as_csv(past: Past) -> None:
    summary = list(csv.DictReader(run("chargeback", "--month", "2026-12", "--format", "csv").out.splitlines()))
    lines = list(csv.DictReader(run("chargeback", "--month", "2026-12", "--format", "csv", "--lines").out.splitlines()))

    [total] = [row for row in summary if row["name"] == "Total"]
    assert total["exact_amount"] == "134.400000"
    assert len(lines) == 7
    assert sum(Decimal(row["amount"]) for row in lines) == Decimal(total["exact_amount"])


def test_a_name_cannot_move_the_cursor(past: Past) -> None:
    past.world.vision.name = "Vis\x1b[2Jion"
    past.world.vision.save()
    past.held("11:00", "11:00", "11:10")
    hand_over(LATE)

    assert "\x1b" not in run("chargeback", "--month", "2026-12").out


def test_a_month_without_lines_is_empty_and_no_fault(past: Past) -> None:
    outcome = run("chargeback", "--month", "2025-01", "--json")

    assert (outcome.code, outcome.json["total"]["amount"], outcome.json["lines"]) == (0, "0.00", 0)


def test_a_month_that_does_not_balance_ends_with_one_and_says_why(past: Past) -> None:
    PoolHour.objects.filter(hour__hour=9).update(present="1")

    outcome = run("chargeback", "--month", "2026-12")

    assert outcome.code == 1
    [sentence] = outcome.sentences
    assert sentence.startswith("h100-train of harbour-1 in 2026-12-01 09h: ")
    assert sentence.endswith("The buckets hold 28800 card-seconds; the cards that were there gave 1.")


def test_lines_without_a_price_end_with_one_and_are_in_no_sum(world: Any) -> None:
    past = Past(world)
    past.cards("08:00")
    past.held("08:00", "08:00", "09:30", flavor=past.odd_flavor())
    hand_over(LATE)

    outcome = run("chargeback", "--month", "2026-12", "--json")

    sentence = "2 lines of h100-80gb/odd/on-demand without a price; publish a rate card that covers it."
    assert (outcome.code, outcome.sentences) == (1, [f"2026-12: {sentence}"])
    assert outcome.json["findings"] == [{"check": "set-aside", "where": "2026-12", "text": sentence}]
    assert (outcome.json["set_aside"], outcome.json["charged"]["amount"]) == (2, "0.00")


def test_a_closed_month_says_who_closed_it_and_when(past: Past) -> None:
    past.seen(at("2027-01-01 00:06"))
    hand_over(at("2027-01-01 00:06"))
    close_month("2026-12", by=past.world.farah, now=at("2027-01-02 09:00"))

    report = run("chargeback", "--month", "2026-12", "--json").json

    assert (report["state"], report["closed_by"], report["closed_at"]) == (
        "closed",
        "Farah",
        "2027-01-02T09:00:00+00:00",
    )
    assert run("chargeback", "--month", "2026-12").out.startswith("December 2026 (UTC), closed by Farah;")


def test_tables_that_are_not_there_are_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> None:
        raise DatabaseError("no such table: billing_charge")

    monkeypatch.setattr(selectors, "month", missing)

    outcome = run("chargeback", "--month", "2026-12")

    assert outcome.code == 2
    assert " ".join(outcome.sentences) == (
        "The tables cannot be read: no such table: billing_charge. Check DATABASE_URL or BERTH_FOLDER; "
        "`manage.py migrate` makes new tables."
    )


REFUSED = {
    "a month that is none": (["--month", "2026-13"], "--month: “2026-13” is not a month; write it like 2026-11."),
    "the format that is to come": (
        ["--month", "2026-12", "--format", "focus"],
        "--format: the FOCUS format is not there yet; use csv or json.",
    ),
    "lines without csv": (["--month", "2026-12", "--lines"], "--lines: it goes with --format csv."),
}


@pytest.mark.django_db
@pytest.mark.parametrize(("arguments", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_it_refuses(arguments: list[str], sentence: str) -> None:
    outcome = run("chargeback", *arguments)

    assert (outcome.code, outcome.out, outcome.sentences) == (2, "", [sentence])
