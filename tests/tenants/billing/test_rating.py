"""The meter's arithmetic, with figures that a bookkeeper can check by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from datetime import timedelta as td
from decimal import Decimal
from fractions import Fraction as F
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.billing.rating import (
    Kind,
    Line,
    Piece,
    RateBook,
    RatePeriod,
    apportion,
    clipped,
    hour_marks,
    hours,
    marks,
    month_bounds,
    next_period,
    period_of,
    pieces,
    price,
    priced,
    prorated,
    rounded,
    whole,
)
from tests.tenants.billing.builders import H100, SLICE, WHOLE, at, book, span

CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[2] / "data/traps/chargeback_cases.json").read_text())
}
BERLIN, SEOUL, KOLKATA = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Seoul"), ZoneInfo("Asia/Kolkata")

instants = st.integers(0, 364 * 86400).map(lambda seconds: at("2026-01-01 00:00") + td(seconds=seconds))
shares = st.fractions(min_value=F(1, 48), max_value=16, max_denominator=48)


def span_of(case: dict[str, Any], **facts: Any) -> Any:
    return span(whole(datetime.fromisoformat(case["start"])), whole(datetime.fromisoformat(case["end"])), **facts)


def lines_of(case: dict[str, Any]) -> list[Line]:
    rates = case.get("rates") or [["2000-01-01T00:00:00Z", case["rate"]]]
    prices = RateBook(RatePeriod(WHOLE, datetime.fromisoformat(since), Decimal(sum_)) for since, sum_ in rates)
    return [line for piece in hours(span_of(case)) for line in priced(piece, prices)]


def cost(lines: list[Line]) -> Decimal:
    assert all(line.amount is not None for line in lines)
    return sum((line.amount or Decimal(0) for line in lines), Decimal(0))


def by_month(lines: list[Line], zone: ZoneInfo) -> dict[str, Decimal]:
    found: dict[str, Decimal] = {}
    for line in lines:
        period = period_of(line.piece.started_at, zone)
        found[period] = found.get(period, Decimal(0)) + (line.amount or Decimal(0))
    return found


def test_c5_a_stay_over_the_end_of_february_is_96_hours_in_each_month() -> None:
    # 25, 26, 27 and 28 February are 4 days; 1 to 4 March are 4 days: 4 x 24 = 96 hours each, at 1.00.
    assert by_month(lines_of(CASES["C-feb-mar"]), ZoneInfo("UTC")) == {"2026-02": 96, "2026-03": 96}


def test_c5_a_stay_that_ended_in_february_costs_nothing_in_march() -> None:
    months = by_month(lines_of(CASES["C-past-month-only"]), ZoneInfo("UTC"))

    # 10 to 20 February are 10 days of 24 hours, at 1.00.
    assert months == {"2026-02": 240}
    assert str(rounded(F(months.get("2026-03", Decimal(0))), 2)) == "0.00"


def test_c6_76_seconds_are_76_seconds() -> None:
    lines = lines_of(CASES["C-76s"])

    # 76 / 3600 x 2.00 = 0.04222…
    assert [line.piece.seconds for line in lines] == [76]
    assert str(cost(lines)) == "0.042222"
    assert str(rounded(F(cost(lines)), 2)) == "0.04"


@pytest.mark.parametrize("seconds", [0, -3], ids=["an end at its start", "an end 3 s before its start"])
def test_c6_a_stay_without_a_second_is_no_line(seconds: int) -> None:
    began = at("2026-09-19 05:44:57")

    assert list(hours(span(began, began + td(seconds=seconds)))) == []


def test_c10_four_quarters_of_a_card_for_an_hour_are_one_card_hour() -> None:
    quarters = [F(part) for _, part in CASES["C-quarter-x4"]["pods"]]
    held = [span("2026-06-01 10:00", "2026-06-01 11:00", share=share) for share in quarters]

    seconds = sum(piece.card_seconds for each in held for piece in hours(each))

    assert seconds / 3600 == F(CASES["C-quarter-x4"]["expect"]["gpu_hours"]) == 1


def test_c12_a_new_price_holds_from_its_instant_on() -> None:
    # 12 hours at 2.00 and 12 hours at 3.00: 24.00 + 36.00.
    assert cost(lines_of(CASES["C-rate-change"])) == 60


def test_c12_a_price_may_change_within_an_hour() -> None:
    prices = book((WHOLE, "2026-01-01 00:00", "2.00"), (WHOLE, "2026-06-15 00:20", "3.00"))
    piece = next(hours(span("2026-06-15 00:00", "2026-06-15 01:00")))

    lines = priced(piece, prices)

    # 20 minutes at 2.00 and 40 at 3.00.
    assert [(line.piece.seconds, line.amount) for line in lines] == [(1200, Decimal("0.666667")), (2400, 2)]


def test_c15_the_first_week_of_june_has_seven_days() -> None:
    stay = span("2026-05-30 00:00", "2026-06-08 00:00")

    week = clipped(stay, at("2026-06-01 00:00"), at("2026-06-08 00:00"))

    assert week.card_seconds == 7 * 24 * 3600
    assert clipped(stay, at("2026-06-08 00:00"), at("2026-06-09 00:00")).seconds == 0


def test_c15_a_day_costs_the_same_in_every_range_it_lies_in() -> None:
    stay, prices = (
        span("2026-05-30 07:13:11", "2026-06-08 21:00:05", share=F(1, 7)),
        book((WHOLE, "2026-01-01 00:00", "3.17")),
    )
    third = (at("2026-06-03 00:00"), at("2026-06-04 00:00"))

    def cost_of_the_third(since: str, until: str) -> Decimal:
        window = (at(since), at(until))
        found = pieces(clipped(stay, *window), marks(*window, ZoneInfo("UTC")))
        return cost(
            [line for piece in found if third[0] <= piece.started_at < third[1] for line in priced(piece, prices)]
        )

    assert cost_of_the_third("2026-06-01 00:00", "2026-06-08 00:00") == cost_of_the_third(
        "2026-06-03 00:00", "2026-06-04 00:00"
    )
    # 24 lines of 3600 / 7 card-seconds at 3.17: 0.452857 each.
    assert cost_of_the_third("2026-06-03 00:00", "2026-06-05 00:00") == 24 * Decimal("0.452857")


def test_c16_a_monthly_fee_from_the_20th_is_for_11_of_30_days() -> None:
    assert prorated(Decimal("90.00"), 11, 30) == Decimal("33.00")


@pytest.mark.parametrize(("part", "days"), [(-1, 30), (31, 30), (0, 0)])
def test_c16_no_part_of_a_month_is_longer_than_the_month(part: int, days: int) -> None:
    with pytest.raises(ValueError, match="no part of a period"):
        prorated(Decimal("90.00"), part, days)


PRICES = {  #                                  seconds  share     price        amount
    "an hour of a card":                      (3600, F(1), "4.20", "4.200000"),
    "an eighth of a card for a second":       (1, F(1, 8), "4.20", "0.000146"),
    "half a millionth is rounded up":         (1, F(1), "0.0018", "0.000001"),
    "less than half a millionth is nothing":  (1, F(1), "0.001799", "0.000000"),
    "a third is not cut to a float":          (3600, F(1, 3), "1.00", "0.333333"),
    "two thirds are rounded up":              (3600, F(2, 3), "1.00", "0.666667"),
    "eight cards for a month":                (31 * 86400, F(8), "99999.999999", "595199999.994048"),
    "a price of nothing":                     (3600, F(1), "0", "0.000000"),
}  # fmt: skip


@pytest.mark.parametrize(("seconds", "share", "per_card_hour", "amount"), PRICES.values(), ids=PRICES.keys())
def test_price(seconds: int, share: F, per_card_hour: str, amount: str) -> None:
    assert str(price(seconds, share, Decimal(per_card_hour))) == amount


ROUNDED = {
    "half a cent goes up": (F(5, 1000), "0.01"),
    "a credit of half a cent goes away from zero": (F(-5, 1000), "-0.01"),
    "a credit that rounds to nothing has no sign": (F(-4, 1000), "0.00"),
    "a number that a float cannot hold": (F("2.675"), "2.68"),
}


@pytest.mark.parametrize(("exact", "shown"), ROUNDED.values(), ids=ROUNDED.keys())
def test_rounded(exact: F, shown: str) -> None:
    assert str(rounded(exact, 2)) == shown


APPORTIONED = {  #                             total   parts                              shown
    "three thirds of a euro":                 ("1.00", [F(1, 3), F(1, 3), F(1, 3)], ["0.34", "0.33", "0.33"]),
    "the largest remainder gets the cent":    ("0.10", [F("0.031"), F("0.039"), F("0.030")], ["0.03", "0.04", "0.03"]),
    "nothing stays nothing":                  ("1.00", [F(0), F("0.995"), F("0.005")], ["0.00", "1.00", "0.00"]),
    "a credit among charges":                 ("1.00", [F("1.505"), F("-0.505")], ["1.51", "-0.51"]),
    "a total that others rounded away":       ("1.03", [F(1)], ["1.03"]),
    "nothing at all":                         ("0.00", [F(0), F(0)], ["0.00", "0.00"]),
    "no rows":                                ("0.00", [], []),
}  # fmt: skip


@pytest.mark.parametrize(("total", "parts", "shown"), APPORTIONED.values(), ids=APPORTIONED.keys())
def test_apportion(total: str, parts: list[F], shown: list[str]) -> None:
    assert [str(part) for part in apportion(Decimal(total), parts, 2)] == shown


def test_apportion_refuses_a_total_finer_than_its_parts() -> None:
    with pytest.raises(ValueError, match="more than 2 decimal places"):
        apportion(Decimal("1.001"), [F(1)], 2)


@given(st.lists(st.fractions(min_value=-1000, max_value=1000, max_denominator=10**6), min_size=1, max_size=20))
def test_apportioned_parts_sum_to_the_total_and_stay_within_a_cent(parts: list[F]) -> None:
    total = rounded(sum(parts, F(0)), 2)

    shown = apportion(total, parts, 2)

    assert sum(shown) == total
    assert all(abs(F(cents) - exact) < F(1, 100) for cents, exact in zip(shown, parts, strict=True))
    assert all(cents == 0 for cents, exact in zip(shown, parts, strict=True) if exact == 0)


@given(instants, st.integers(1, 10**6), shares, st.lists(st.integers(0, 10**6), max_size=8))
def test_cutting_a_span_anywhere_keeps_its_card_seconds(
    began: datetime, seconds: int, share: F, cuts: list[int]
) -> None:
    stay = span(began, began + td(seconds=seconds), share=share)
    at_these = sorted({began + td(seconds=cut) for cut in cuts})

    parts = [part for piece in hours(stay) for part in pieces(piece, at_these)]

    assert sum(part.card_seconds for part in parts) == share * seconds
    assert all(part.seconds > 0 for part in parts)
    assert [part.started_at for part in parts[1:]] == [part.ended_at for part in parts[:-1]]


@given(
    instants,
    st.integers(1, 200_000),
    shares,
    st.lists(st.tuples(instants, st.integers(0, 10**7)), min_size=1, max_size=5),
)
def test_price_changes_anywhere_keep_the_card_seconds(began: datetime, seconds: int, share: F, changes: Any) -> None:
    prices = RateBook(RatePeriod(WHOLE, since, Decimal(micro).scaleb(-6)) for since, micro in changes)
    stay = span(began, began + td(seconds=seconds), share=share)

    lines = [line for piece in hours(stay) for line in priced(piece, prices)]

    assert sum(line.piece.card_seconds for line in lines) == share * seconds
    assert len({line.key for line in lines}) == len(lines)


@given(instants, st.sampled_from([BERLIN, SEOUL, KOLKATA, ZoneInfo("America/St_Johns"), ZoneInfo("Asia/Beirut")]))
def test_every_instant_lies_in_exactly_the_month_it_is_put_in(instant: datetime, zone: ZoneInfo) -> None:
    period = period_of(instant, zone)
    since, until = month_bounds(period, zone)

    assert since <= instant < until
    assert month_bounds(next_period(period), zone)[0] == until


def test_a_month_is_cut_in_the_organisations_zone() -> None:
    assert month_bounds("2026-12", SEOUL) == (at("2026-11-30 15:00"), at("2026-12-31 15:00"))
    assert period_of(at("2026-11-30 14:59:59"), SEOUL) == "2026-11"
    assert period_of(at("2026-11-30 15:00"), SEOUL) == "2026-12"


def test_a_month_with_a_change_to_winter_time_has_an_hour_more() -> None:
    since, until = month_bounds("2026-10", BERLIN)

    assert until - since == td(days=31, hours=1)


def test_a_clock_set_back_over_the_months_first_midnight_leaves_no_instant_twice() -> None:
    # In Havana on 1 November 2026 the clock goes from 01:00 back to 00:00: midnight is there twice; the first counts.
    havana = ZoneInfo("America/Havana")

    assert period_of(at("2026-11-01 04:00"), havana) == period_of(at("2026-11-01 05:00"), havana) == "2026-11"
    assert period_of(at("2026-11-01 03:59:59"), havana) == "2026-10"


@pytest.mark.parametrize(
    "text", ["", "2026", "2026-13", "2026-00", "2026-1", "26-01", "2026-01-01", "november", "٢٠٢٦-٠١", "0001-01"]
)
def test_what_is_no_month_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a month; write it like 2026-11\."):
        month_bounds(text, SEOUL)


def test_lines_are_cut_at_hours_and_at_midnights_between_them() -> None:
    assert hour_marks(at("2026-06-01 17:30"), at("2026-06-01 19:00")) == [at("2026-06-01 18:00")]
    # Midnight in Kolkata is half past six in the evening, UTC.
    assert marks(at("2026-06-01 17:30"), at("2026-06-01 19:30"), KOLKATA) == [
        at("2026-06-01 18:00"),
        at("2026-06-01 18:30"),
        at("2026-06-01 19:00"),
    ]


def test_what_nobody_priced_has_no_amount() -> None:
    piece = next(hours(span("2026-06-01 10:00", "2026-06-01 11:00", sku="b200/whole/on-demand")))

    [line] = priced(piece, book((WHOLE, "2026-01-01 00:00", "4.20")))

    assert (line.rate, line.amount) == (None, None)


def test_time_before_the_first_price_is_not_given_the_later_one() -> None:
    piece = next(hours(span("2026-06-01 10:00", "2026-06-01 11:00")))

    lines = priced(piece, book((WHOLE, "2026-06-01 10:30", "4.20")))

    assert [(line.piece.seconds, line.amount) for line in lines] == [(1800, None), (1800, Decimal("2.10"))]


OVERHEAD = {
    "the whole card's price": ([(WHOLE, "4.20"), (SLICE, "5.00")], "4.20"),
    "the one price that the model has": ([(SLICE, "5.00"), (f"{H100}/mig-2g.20gb/on-demand", "5.00")], "5.00"),
    "no price among several": ([(SLICE, "5.00"), (f"{H100}/mig-2g.20gb/on-demand", "5.50")], None),
    "no price of another capacity type": ([(f"{H100}/whole/spot", "2.00")], None),
    "no price of another model": ([("h100-80gb-nvl/whole/on-demand", "2.00")], None),
}


@pytest.mark.parametrize(("prices", "expected"), OVERHEAD.values(), ids=OVERHEAD.keys())
def test_a_card_that_nobody_pays_for_is_worth(prices: list[tuple[str, str]], expected: str | None) -> None:
    [piece] = hours(span("2026-06-01 10:00", "2026-06-01 11:00", kind=Kind.UNALLOCATED, resource=None))

    [line] = priced(piece, book(*[(sku, "2026-01-01 00:00", sum_) for sku, sum_ in prices]))

    assert (line.rate and line.rate.per_card_hour) == (expected and Decimal(expected))


def test_a_key_is_the_same_for_the_same_fact_and_another_for_another() -> None:
    one = Line(
        Piece(span("2026-06-01 10:00", "2026-06-01 11:00"), at("2026-06-01 10:00"), at("2026-06-01 11:00")), None
    )
    cold = span("2026-06-01 10:00", "2026-06-01 11:00", kind=Kind.COLD_START)
    nobodys = span("2026-06-01 10:00", "2026-06-01 11:00", kind=Kind.STRANDED, resource=None)

    assert one.key == "use:00000000-0000-0000-0000-000000000064:2026-06-01T10:00:00Z"
    assert Line(clipped(cold, cold.started_at, cold.ended_at), None).key.startswith("cold-start:00000000-")
    assert Line(clipped(nobodys, nobodys.started_at, nobodys.ended_at), None).key == (
        "stranded:harbour-1/train/h100-80gb:2026-06-01T10:00:00Z"
    )


def test_instants_are_floored_to_seconds_in_utc() -> None:
    assert whole(datetime(2026, 6, 1, 12, 0, 7, 999_999, tzinfo=BERLIN)) == at("2026-06-01 10:00:07")
    with pytest.raises(ValueError, match="has no time zone"):
        whole(at("2026-06-01 00:00").replace(tzinfo=None))


IMPOSSIBLE = {
    "no share": {"share": F(0)},
    "a negative share": {"share": F(-1, 8)},
    "half a second": {"ended_at": datetime(2026, 6, 1, 11, 0, 0, 500_000, tzinfo=UTC)},
}


@pytest.mark.parametrize("facts", IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_a_span_refuses_to_exist_with(facts: dict[str, Any]) -> None:
    until = facts.pop("ended_at", "2026-06-01 11:00") if "ended_at" in facts else "2026-06-01 11:00"

    with pytest.raises(ValueError, match=r"."):
        span("2026-06-01 10:00", until, **facts)
