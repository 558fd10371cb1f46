"""What some hours come to: lines and balances that agree with each other."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction as F
from zoneinfo import ZoneInfo

import pytest

from tenants.billing.posting import Hours, rate_hours
from tenants.billing.rating import Kind
from tests.tenants.billing.builders import H100, SLICE, WHOLE, at, book, cards, hours, span

UTC = ZoneInfo("UTC")
PRICES = book((WHOLE, "2026-01-01 00:00", "4.00"), (SLICE, "2026-01-01 00:00", "4.40"))
DAY = ("2026-06-01 00:00", "2026-06-02 00:00")


def summed(rated: object) -> dict[Kind, F]:
    found: dict[Kind, F] = {}
    for line in rated.lines:  # type: ignore[attr-defined]
        kind = line.piece.span.kind
        found[kind] = found.get(kind, F(0)) + line.piece.card_seconds
    return found


def test_use_goes_to_the_team_and_the_rest_to_the_platform() -> None:
    given = hours(
        "2026-06-01 10:00", "2026-06-01 11:00",
        cards(*DAY, 2),
        span("2026-06-01 10:10", "2026-06-01 10:12", kind=Kind.COLD_START),
        span("2026-06-01 10:12", "2026-06-01 12:00"),
    )  # fmt: skip

    rated = rate_hours(given, PRICES, UTC)

    assert [
        (line.piece.span.kind, line.piece.span.team_name, line.piece.seconds, line.amount) for line in rated.lines
    ] == [
        (Kind.COLD_START, "Platform", 120, Decimal("0.133333")),
        (Kind.USE, "Vision", 2880, Decimal("3.2")),
        # Two cards less 50 minutes of one: 4200 card-seconds in the hour, at 4.00 per card-hour.
        (Kind.UNALLOCATED, "Platform", 3600, Decimal("4.666667")),
    ]
    assert rated.lines[-1].piece.span.share == F(4200, 3600)


def test_lines_sum_to_the_buckets() -> None:
    given = hours(
        "2026-06-01 00:00", "2026-06-02 00:00",
        cards(*DAY, 8, stranded=F(1, 8), out_of_service=F(1), foreign=F(2)),
        span("2026-06-01 03:17:05", "2026-06-01 19:40:59", sku=SLICE, share=F(3, 7)),
        span("2026-06-01 05:00:01", "2026-06-01 05:01:01", kind=Kind.COLD_START, share=F(4)),
    )  # fmt: skip

    rated = rate_hours(given, PRICES, UTC)

    total = sum(rated.balances.values(), start=next(iter(rated.balances.values())).__class__())
    assert len(rated.balances) == 24
    assert summed(rated) == {kind: total.of(kind) for kind in Kind}
    assert total.present == 8 * 86400


def test_a_price_change_in_the_hour_cuts_the_platforms_lines_too() -> None:
    prices = book((WHOLE, "2026-01-01 00:00", "4.00"), (WHOLE, "2026-06-01 10:30", "6.00"))
    given = hours("2026-06-01 10:00", "2026-06-01 11:00", cards(*DAY), span("2026-06-01 10:00", "2026-06-01 10:15"))

    rated = rate_hours(given, prices, UTC)

    # A quarter hour used at 4.00, a quarter hour free at 4.00, half an hour free at 6.00.
    assert [(line.piece.span.kind, line.piece.card_seconds, line.amount) for line in rated.lines] == [
        (Kind.USE, F(900), Decimal(1)),
        (Kind.UNALLOCATED, F(900), Decimal(1)),
        (Kind.UNALLOCATED, F(1800), Decimal(3)),
    ]
    assert len(rated.balances) == 1


def test_a_midnight_between_two_utc_hours_cuts_every_line() -> None:
    given = hours("2026-06-30 18:00", "2026-06-30 19:00", cards("2026-06-30 00:00", "2026-07-01 00:00", 2),
                  span("2026-06-30 00:00", "2026-07-01 00:00"))  # fmt: skip

    rated = rate_hours(given, PRICES, ZoneInfo("Asia/Kolkata"))

    half_past_six = at("2026-06-30 18:30")
    assert {line.piece.started_at for line in rated.lines} == {at("2026-06-30 18:00"), half_past_six}
    assert all(not line.piece.started_at < half_past_six < line.piece.ended_at for line in rated.lines)
    assert [found.present for found in rated.balances.values()] == [7200]


def test_cards_of_two_models_in_one_pool_are_worth_their_own_prices() -> None:
    prices = book((WHOLE, "2026-01-01 00:00", "4.00"), ("a10g-24gb/whole/on-demand", "2026-01-01 00:00", "1.00"))
    given = hours("2026-06-01 10:00", "2026-06-01 11:00", cards(*DAY), cards(*DAY, 2, node="node-2", model="a10g-24gb"))

    rated = rate_hours(given, prices, UTC)

    assert {line.piece.span.model: line.amount for line in rated.lines} == {H100: 4, "a10g-24gb": 2}
    assert [found.present for found in rated.balances.values()] == [3 * 3600]


def test_a_pools_capacity_type_chooses_the_price_of_its_free_cards() -> None:
    prices = book((WHOLE, "2026-01-01 00:00", "4.00"), (f"{H100}/whole/spot", "2026-01-01 00:00", "1.50"))
    plain = hours("2026-06-01 10:00", "2026-06-01 11:00", cards(*DAY))
    spot = Hours(plain.cluster, plain.since, plain.until, plain.spans, plain.cards, capacities={"train": "spot"})

    assert [line.amount for line in rate_hours(spot, prices, UTC).lines] == [Decimal("1.5")]


def test_what_has_no_price_is_a_line_without_an_amount() -> None:
    given = hours(
        "2026-06-01 10:00",
        "2026-06-01 11:00",
        cards(*DAY, model="b200"),
        span(*DAY, model="b200", sku="b200/whole/on-demand"),
    )

    [line] = rate_hours(given, PRICES, UTC).lines

    assert (line.piece.card_seconds, line.amount) == (F(3600), None)


def test_c6_a_stay_that_ends_before_it_starts_is_said_and_counted_as_nothing() -> None:
    given = hours(
        "2026-06-01 10:00", "2026-06-01 11:00", cards(*DAY), span("2026-06-01 10:30:03", "2026-06-01 10:30:00")
    )

    rated = rate_hours(given, PRICES, UTC)

    assert rated.doubts == [
        "notebook (use) ends 3 s before it starts, at 2026-06-01 10:30:03 UTC; it is counted as 0 s."
    ]
    assert summed(rated) == {Kind.UNALLOCATED: 3600}


def test_facts_on_the_bounds_belong_to_one_hour_only() -> None:
    given = hours("2026-06-01 10:00", "2026-06-01 12:00", cards("2026-06-01 10:00", "2026-06-01 11:00"),
                  span("2026-06-01 11:00", "2026-06-01 12:00", node="node-2"))  # fmt: skip

    rated = rate_hours(given, PRICES, UTC)

    found = {hour.hour: (row.present, row.used, row.overlap) for (_, hour), row in rated.balances.items()}
    assert found == {10: (F(3600), F(0), F(0)), 11: (F(0), F(3600), F(3600))}


def test_hours_are_posted_whole() -> None:
    with pytest.raises(ValueError, match="Hours are posted whole"):
        hours("2026-06-01 10:00", "2026-06-01 10:30")
