"""The ledger against itself: each thing that cannot happen, made to happen, is found and said in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tenants.billing import checks
from tenants.billing.models import Charge, PoolHour, Statement
from tenants.billing.services import close_month
from tests.tenants.billing.builders import at
from tests.tenants.billing.conftest import LATER

TENTH = at("2026-06-10 00:00")


@pytest.fixture
def june(ledger: Any) -> Any:
    ledger.june(
        ledger.robin("2026-06-03 12:00", "2026-06-03 13:30"), ledger.sasha("2026-06-10 00:00", "2026-06-10 00:20")
    )
    return ledger


def test_a_ledger_that_is_whole_has_no_findings(june: Any) -> None:
    assert [*checks.reconciliation("2026-06"), *checks.overlaps(), *checks.closings(), *checks.set_aside_lines()] == []


def bad_line(**facts: Any) -> None:
    """One more line, as somebody with the database's password could write it."""
    line = Charge.objects.filter(kind="use").last()
    assert line is not None
    line.pk, line.key = None, "forged"
    for name, value in facts.items():
        setattr(line, name, value)
    line.save(force_insert=True)


def hour(**facts: Any) -> None:
    PoolHour.objects.filter(hour=TENTH).update(**facts)


SPOILED: dict[str, tuple[Callable[[], Any], str, str]] = {
    "a bucket that is too small": (
        lambda: hour(unallocated="0"), "buckets",
        "The buckets hold 1200 card-seconds; the cards that were there gave 28800.",
    ),
    "a bucket below zero": (
        lambda: hour(unallocated="-1200", used="28800"), "buckets", "A bucket is below 0 card-seconds.",
    ),
    "two buckets with the wrong lines": (
        lambda: hour(used="1201", unallocated="27599"), "lines-and-buckets",
        "The lines of use sum to 1200 card-seconds, the bucket holds 1201.",
    ),
    "an hour without a balance": (
        lambda: PoolHour.objects.filter(hour=TENTH).delete(), "lines-and-buckets",
        "1200 card-seconds of use have lines and no balance.",
    ),
    "a line too many": (
        bad_line, "lines-and-buckets", "The lines of use sum to 2400 card-seconds, the bucket holds 1200.",
    ),
    "a line with a wrong amount": (
        lambda: bad_line(amount_micro=1_333_334), "line-sums", "1200 s of 1 cards at 4.000000 are not 1.333334.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "check", "sentence"), SPOILED.values(), ids=SPOILED.keys())
def test_it_finds(june: Any, spoil: Callable[[], Any], check: str, sentence: str) -> None:
    spoil()

    found = checks.reconciliation("2026-06")

    assert (check, sentence) in [(finding.check, finding.text) for finding in found]


def test_it_finds_a_closed_month_that_got_another_line(june: Any) -> None:
    close_month("2026-06", by=june.world.farah, now=LATER)
    assert checks.closings() == []
    bad_line()

    [finding] = checks.closings()

    lines = Charge.objects.count()
    assert (finding.check, finding.where) == ("closed-month", "2026-06")
    assert finding.text == f"It was closed with {lines - 1} lines and now has {lines}, or their sums differ."


def test_it_finds_what_was_held_beyond_the_cards(june: Any) -> None:
    june.post("2026-07-01 00:00", "2026-07-01 01:00", june.robin("2026-07-01 00:00", "2026-07-01 00:01"))

    [finding] = checks.overlaps()

    assert (
        str(finding) == "train of harbour-1 in 2026-07-01 00h: 60 card-seconds were held beyond the 0 that were there."
    )


def test_lines_that_wait_for_a_price_are_counted_by_sku(june: Any) -> None:
    new = {"sku": "b200-180gb/whole/on-demand", "model": "b200-180gb"}
    june.post("2026-07-01 00:00", "2026-07-01 03:00", june.robin("2026-07-01 00:00", "2026-07-01 03:00", **new))

    assert [str(finding) for finding in checks.set_aside_lines()] == [
        "2026-07: 3 lines of b200-180gb/whole/on-demand without a price; publish a rate card that covers it."
    ]
    assert checks.set_aside_lines("2026-06") == []


def test_lines_that_wait_for_a_price_are_no_gap_between_lines_and_buckets(june: Any) -> None:
    new = {"sku": "b200-180gb/whole/on-demand", "model": "b200-180gb"}
    june.post("2026-07-01 00:00", "2026-07-01 03:00", june.robin("2026-07-01 00:00", "2026-07-01 03:00", **new))

    assert checks.reconciliation("2026-07") == []


def test_a_month_of_half_an_hour_zone_takes_the_hours_that_it_cuts(june: Any, in_zone: Any) -> None:
    in_zone("Asia/Kolkata")

    assert checks.reconciliation("2026-06") == []
    assert Statement.objects.count() == 1
