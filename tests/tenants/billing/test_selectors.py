"""Reading a month: what is in view, what it is made of, and that reading costs the same whatever its size."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction as F
from typing import Any
from uuid import UUID

import pytest

from tenants.billing import selectors
from tenants.billing.models import Meter
from tenants.billing.rating import Kind
from tenants.billing.services import close_month
from tests.tenants.billing.builders import SLICE, WHOLE, at, cards
from tests.tenants.billing.conftest import LATER

NOTEBOOK = UUID(int=1)


@pytest.fixture
def june(ledger: Any) -> Any:
    """Robin's eighth of a card for a day over midnight, and two placements of Sasha's run."""
    ledger.june(
        ledger.robin("2026-06-03 12:00", "2026-06-04 12:00", sku=SLICE, share=F(1, 8)),
        ledger.sasha("2026-06-10 00:00", "2026-06-10 10:00", share=F(2)),
        ledger.sasha("2026-06-11 00:00:30", "2026-06-11 01:00", resource=UUID(int=201), node="node-2", share=F(2)),
    )
    return ledger


def test_the_month_by_team_person_model_and_flavor(june: Any) -> None:
    tables = selectors.month("2026-06").tables

    # 24 hours of an eighth at 4.40 are 13.20; 10 hours of two cards at 4.00 are 80.00, 3570 seconds of them 7.933333.
    assert [(row.name, str(row.shown), str(row.card_hours)) for row in tables.by_team] == [
        ("Speech", "87.93", "21.98"),
        ("Vision", "13.20", "3.00"),
    ]
    assert [(row.name, row.amount) for row in tables.by_flavor] == [
        (WHOLE, Decimal("87.933333")),
        (SLICE, Decimal("13.2")),
    ]
    assert [(row.name, row.percent) for row in tables.by_person] == [
        ("Sasha", Decimal("86.9")),
        ("Robin", Decimal("13.1")),
    ]
    assert [row.name for row in tables.by_model] == ["h100-80gb"]
    assert tables.by_team[1].mean_cards == Decimal("0.00")  # 3 card-hours in 720 hours


def test_what_the_page_says_of_the_month(ledger: Any, in_zone: Any) -> None:
    in_zone("Asia/Seoul")
    ledger.june()

    report = selectors.month("2026-06")

    assert (report.name, report.zone, report.currency) == ("June 2026", "Asia/Seoul", "EUR")
    assert (report.since, report.until) == (at("2026-05-31 15:00"), at("2026-06-30 15:00"))
    assert (report.posted_until, report.is_closed, report.closed_by) == (at("2026-07-01 00:00"), False, "")


def test_a_month_keeps_the_zone_that_it_was_cut_in(june: Any, in_zone: Any) -> None:
    in_zone("Asia/Seoul")

    assert (selectors.month("2026-06").zone, selectors.month("2026-06").since) == ("UTC", at("2026-06-01 00:00"))
    assert selectors.month("2026-05").zone == "Asia/Seoul"


def test_a_month_closed_says_by_whom(june: Any) -> None:
    close_month("2026-06", by=june.world.farah, now=LATER)

    report = selectors.month("2026-06")

    assert (report.is_closed, report.closed_by, report.closed_at) == (True, "Farah", LATER)


def test_the_tables_are_the_ledger(june: Any) -> None:
    totals, tables = selectors.totals("2026-06"), selectors.month("2026-06").tables

    assert (tables.charged.amount, tables.lines) == (Decimal("101.133333"), totals.lines)
    assert tables.total.card_seconds == totals.card_seconds == 8 * 720 * 3600 + 2 * 3570  # node-2 has no cards: overlap


def test_a_teams_viewer_sees_no_row_of_another_team(june: Any) -> None:
    vision = [june.world.vision.pk]

    tables = selectors.month("2026-06", teams=vision).tables

    everything = str(
        [tables, *selectors.lines_of("2026-06", teams=vision), *selectors.workloads_of("2026-06", teams=vision)]
    )
    assert "Vision" in everything
    assert not {"Speech", "Sasha", "speech-run", "Platform"} & {
        word for word in ("Speech", "Sasha", "speech-run", "Platform") if word in everything
    }
    assert selectors.placements_of("2026-06", UUID(int=2), teams=vision) == []
    assert selectors.lines_of("2026-06", teams=[]).count() == 0
    assert selectors.month("2026-06", teams=[]).tables.total.shown == 0


def test_from_a_team_down_to_the_placements_of_a_charge(june: Any) -> None:
    [row] = [selectors.as_workload_row(row) for row in selectors.workloads_of("2026-06", team=june.world.speech)]
    placements = selectors.placements_of("2026-06", row.workload)

    assert (row.name, row.member_name, row.seconds, row.amount) == ("speech-run", "Sasha", 39570, Decimal("87.933333"))
    assert [(p.node, p.seconds, p.share, p.card_seconds, p.per_card_hour, p.amount) for p in placements] == [
        ("node-1", 36000, F(2), F(72000), Decimal(4), Decimal(80)),
        ("node-2", 3570, F(2), F(7140), Decimal(4), Decimal("7.933333")),
    ]
    assert sum(p.amount for p in placements) == row.amount
    assert (placements[0].since, placements[0].until) == (at("2026-06-10 00:00"), at("2026-06-10 10:00"))


def test_lines_can_be_narrowed_down(june: Any) -> None:
    lines = selectors.lines_of(
        "2026-06", kind=Kind.USE, workload_id=NOTEBOOK, since=at("2026-06-04 00:00"), until=at("2026-06-04 06:00")
    )

    assert [line.hour.hour for line in lines] == [0, 1, 2, 3, 4, 5]
    assert selectors.lines_of("2026-05").count() == 0


def test_c15_a_day_costs_the_same_in_every_range(june: Any) -> None:
    def fourth(since: str, until: str) -> Decimal:
        lines = selectors.lines_of("2026-06", kind=Kind.USE, since=at(since), until=at(until))
        return sum((line.amount for line in lines if line.started_at.day == 4), Decimal(0))

    assert (
        fourth("2026-06-01 00:00", "2026-06-08 00:00")
        == fourth("2026-06-04 00:00", "2026-06-05 00:00")
        == Decimal("6.6")
    )


def test_a_pools_hours_newest_first(june: Any) -> None:
    rows = list(selectors.hours_of("harbour-1", "train", since=at("2026-06-10 00:00"), until=at("2026-06-10 03:00")))

    assert [(row.hour.hour, row.used, row.unallocated) for row in rows] == [
        (hour, F(7200), F(21600)) for hour in (2, 1, 0)
    ]


def test_what_was_used_between_two_instants_and_by_whom(june: Any) -> None:
    june_10 = (at("2026-06-10 00:00"), at("2026-06-11 00:00"))

    assert selectors.used_between(*june_10) == selectors.Used(36000, F(72000), Decimal(80))
    assert selectors.used_between(*june_10, teams=[june.world.vision.pk]) == selectors.Used(0, F(0), Decimal(0))
    assert selectors.used_by(NOTEBOOK) == selectors.Used(86400, F(10800), Decimal("13.2"))


def test_hours_that_are_missing_are_those_of_the_cluster_furthest_behind(june: Any) -> None:
    assert selectors.hours_missing("2026-06") is None
    Meter.objects.create(cluster="harbour-2", since=at("2026-06-01 00:00"), until=at("2026-06-30 20:00"))

    missing = selectors.hours_missing("2026-06")

    assert missing is not None
    assert (missing[0].cluster, missing[1]) == ("harbour-2", 4)


def test_reading_costs_the_same_number_of_queries_whatever_its_size(
    ledger: Any, django_assert_num_queries: Any
) -> None:
    def read() -> None:
        with django_assert_num_queries(4):
            selectors.month("2026-06")
        with django_assert_num_queries(1):
            list(selectors.workloads_of("2026-06")[:50])
        with django_assert_num_queries(1):
            selectors.placements_of("2026-06", NOTEBOOK)
        with django_assert_num_queries(1):
            list(selectors.lines_of("2026-06")[:50])
        with django_assert_num_queries(2):
            selectors.totals("2026-06")

    ledger.post("2026-06-01 00:00", "2026-06-01 01:00", ledger.robin("2026-06-01 00:00", "2026-06-01 01:00"))
    read()
    more = [
        ledger.robin("2026-06-01 00:00", "2026-06-02 00:00", resource=UUID(int=n), workload=UUID(int=n))
        for n in range(300, 320)
    ]
    ledger.post("2026-06-01 01:00", "2026-06-02 00:00", cards("2026-06-01 00:00", "2026-06-02 00:00"), *more)
    read()


def test_the_months_that_have_lines_newest_first(june: Any) -> None:
    june.post("2026-07-01 00:00", "2026-07-01 01:00", june.robin("2026-07-01 00:00", "2026-07-01 01:00"))

    assert [statement.period for statement in selectors.periods()] == ["2026-07", "2026-06"]


def test_prices_at_an_instant_cost_one_query(june: Any, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        assert selectors.prices_at(LATER) == {WHOLE: Decimal("4.00"), SLICE: Decimal("4.40")}
    assert selectors.prices_at(at("2026-04-30 00:00")) == {}
