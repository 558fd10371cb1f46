"""Posting: once, whole, into the right month, and never changed after."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta as td
from decimal import Decimal
from fractions import Fraction as F
from typing import Any
from uuid import UUID

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenants.billing import selectors, services
from tenants.billing.models import Charge, Meter, PoolHour, SetAside, from_micro, to_micro
from tenants.billing.rating import Kind
from tenants.billing.services import close_month, post_hours, reprice_set_aside
from tenants.errors import Refused
from tests.tenants.billing.builders import SLICE, WHOLE, at, cards, hours, span
from tests.tenants.billing.conftest import LATER

DAY = ("2026-06-01 00:00", "2026-06-02 00:00")
NEW_SKU = "b200-180gb/whole/on-demand"


def test_a_line_carries_names_price_and_amount(ledger: Any) -> None:
    ledger.post(
        "2026-06-01 10:00",
        "2026-06-01 11:00",
        ledger.robin("2026-06-01 10:00", "2026-06-01 10:30", sku=SLICE, share=F(1, 8)),
    )

    line = Charge.objects.get(kind=Kind.USE)
    # Half an hour of an eighth of a card at 4.40: 0.275.
    assert (line.team_name, line.member_name, line.workload_name, line.node) == (
        "Vision",
        "Robin",
        "notebook",
        "node-1",
    )
    assert (line.share, line.seconds, line.card_seconds, line.per_card_hour) == (F(1, 8), 1800, F(225), Decimal("4.4"))
    assert (line.amount, line.currency, line.period, line.hour) == (
        Decimal("0.275"),
        "EUR",
        "2026-06",
        at("2026-06-01 10:00"),
    )
    assert (line.rate and line.rate.sku) == SLICE


def test_c1_posting_three_times_is_posting_once(ledger: Any) -> None:
    facts = (
        ledger.robin("2026-06-03 07:13:11", "2026-06-09 21:00:05"),
        ledger.sasha("2026-06-30 20:00", "2026-07-01 03:00"),
    )

    first = ledger.june(*facts)
    before = ledger.rows()
    again = [ledger.june(*facts), ledger.june(*facts)]

    assert (first.charges, first.findings) == (len(before), [])
    assert [(posted.charges, posted.pool_hours, posted.findings) for posted in again] == [(0, 0, [])] * 2
    assert ledger.rows() == before
    # 6 days and 13:46:54, and four hours, at 4.00 per card-hour: 157 hours and 2814 seconds more, and 16.00.
    assert selectors.month("2026-06").tables.charged.shown == Decimal("631.13") + 16
    assert selectors.totals("2026-06").card_seconds == 8 * 30 * 86400


def test_c1_posting_that_is_killed_in_the_middle_leaves_nothing_and_goes_on_later(
    ledger: Any, monkeypatch: Any
) -> None:
    facts = (ledger.robin("2026-06-03 07:13:11", "2026-06-09 21:00:05"),)
    with monkeypatch.context() as patch:
        patch.setattr(services, "_pool_hours", lambda *_: 1 / 0)  # after the lines were written
        with pytest.raises(ZeroDivisionError):
            ledger.june(*facts)
    assert (ledger.rows(), Meter.objects.count()) == ([], 0)

    ledger.june(*facts)

    assert selectors.totals("2026-06").card_seconds == 8 * 30 * 86400


def test_hour_by_hour_is_the_same_ledger_as_all_at_once(ledger: Any) -> None:
    facts = (cards(*DAY, 2), ledger.robin("2026-06-01 03:17:05", "2026-06-01 09:40:59", share=F(3, 7)))
    with transaction.atomic():
        ledger.post(*DAY, *facts)
        at_once = ledger.rows()
        transaction.set_rollback(True)

    for hour in range(24):
        ledger.post(clock_at(hour), clock_at(hour + 1), *facts)

    assert ledger.rows() == at_once


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 86400), st.integers(0, 86400), st.integers(1, 8)), max_size=6),
    st.lists(st.tuples(st.integers(0, 23), st.integers(1, 24)), max_size=4),
)
def test_posting_any_facts_in_any_steps_and_again_gives_the_same_ledger(ledger: Any, held: Any, steps: Any) -> None:
    facts = [cards(*DAY, 3), *(held_for(ledger, number, *some) for number, some in enumerate(held))]
    with transaction.atomic():
        ledger.post(*DAY, *facts)
        at_once = ledger.rows()
        transaction.set_rollback(True)
    with transaction.atomic():
        reached = 0
        for back_to, length in steps:
            until = min(24, max(reached, back_to) + length)
            assert ledger.post(clock_at(min(back_to, reached)), clock_at(until), *facts).findings == []
            reached = max(reached, until)
        assert ledger.post(*DAY, *facts).findings == []
        in_steps = ledger.rows()
        transaction.set_rollback(True)

    assert in_steps == at_once


def held_for(ledger: Any, number: int, one: int, other: int, eighths: int) -> Any:
    """A stay between two seconds of the day."""
    stay = ledger.robin(*DAY, resource=UUID(int=500 + number), share=F(eighths, 8))
    since, until = sorted((one, other))
    return replace(stay, started_at=at(DAY[0]) + td(seconds=since), ended_at=at(DAY[0]) + td(seconds=until))


def clock_at(hour: int) -> str:
    return f"2026-06-01 {hour:02d}:00" if hour < 24 else DAY[1]


def test_hours_may_not_be_left_out(ledger: Any) -> None:
    ledger.post("2026-06-01 10:00", "2026-06-01 11:00")

    with pytest.raises(ValueError, match=r"harbour-1 is posted until 2026-06-01 11:00 UTC; post from there\."):
        ledger.post("2026-06-01 12:00", "2026-06-01 13:00")


def test_facts_that_change_after_posting_are_found_and_change_nothing(ledger: Any) -> None:
    hour = ("2026-06-01 10:00", "2026-06-01 11:00")
    ledger.post(*hour, cards(*DAY), ledger.robin("2026-06-01 10:00", "2026-06-01 10:30"))
    before = ledger.rows()

    again = ledger.post(*hour, cards(*DAY), ledger.robin("2026-06-01 10:00", "2026-06-01 10:20"))

    assert [(found.check, found.text) for found in again.findings] == [
        (
            "differing-charge",
            "From 2026-06-01 10:00:00 UTC the ledger has 1800 s of 1 cards, the facts have 1200 s of 1.",
        ),
        (
            "differing-charge",
            "From 2026-06-01 10:00:00 UTC the ledger has 3600 s of 1/2 cards, the facts have 3600 s of 2/3.",
        ),
        ("differing-balance", "The balance of the hour from 2026-06-01 10:00 UTC is not what the facts say."),
    ]
    assert ledger.rows() == before


def test_facts_that_come_and_go_after_posting_are_found(ledger: Any) -> None:
    hour = ("2026-06-01 10:00", "2026-06-01 11:00")
    ledger.post(*hour, cards(*DAY, 2), ledger.robin("2026-06-01 10:00", "2026-06-01 11:00"))

    again = ledger.post(*hour, cards(*DAY, 2), ledger.sasha("2026-06-01 10:00", "2026-06-01 11:00"))

    assert {(found.check, found.where) for found in again.findings} == {
        ("missing-charge", "speech-run"),
        ("charge-without-facts", "notebook"),
    }


def test_a_month_is_cut_in_the_organisations_zone(ledger: Any, in_zone: Any) -> None:
    in_zone("Asia/Kolkata")  # July begins at half past six in the evening of 30 June, UTC.

    ledger.post("2026-06-30 18:00", "2026-06-30 19:00", ledger.robin("2026-06-30 18:00", "2026-06-30 19:00"))

    found = Charge.objects.filter(kind=Kind.USE).values_list("period", "seconds", "hour")
    assert list(found) == [("2026-06", 1800, at("2026-06-30 18:00")), ("2026-07", 1800, at("2026-06-30 18:00"))]


def test_a_late_line_counts_in_the_open_month_and_is_dated_as_what_it_is(ledger: Any) -> None:
    ledger.june(ledger.robin("2026-06-03 10:00", "2026-06-03 11:00"))
    ledger.post("2026-07-01 00:00", "2026-07-02 00:00")
    close_month("2026-06", by=ledger.world.farah, now=LATER)
    before = selectors.totals("2026-06")

    late = hours(
        "2026-06-30 22:00",
        "2026-07-01 01:00",
        ledger.sasha("2026-06-30 22:00", "2026-06-30 23:00", cluster="harbour-2"),
        cluster="harbour-2",
    )
    post_hours(late, now=LATER)

    line = Charge.objects.get(cluster="harbour-2", kind=Kind.USE)
    assert (line.period, line.started_at) == ("2026-07", at("2026-06-30 22:00"))
    assert selectors.totals("2026-06") == before


def test_c12_a_later_price_leaves_posted_lines_as_they_are(ledger: Any) -> None:
    ledger.post("2026-06-01 10:00", "2026-06-01 11:00", ledger.robin(*DAY))
    ledger.publish({WHOLE: "9.00"}, at("2026-06-01 11:30"))

    ledger.post("2026-06-01 10:00", "2026-06-01 13:00", ledger.robin(*DAY))

    amounts = Charge.objects.filter(kind=Kind.USE).values_list("seconds", "amount_micro")
    assert list(amounts) == [(3600, 4_000_000), (1800, 2_000_000), (1800, 4_500_000), (3600, 9_000_000)]


def test_what_has_no_price_is_set_aside_and_shown_not_charged(ledger: Any) -> None:
    posted = ledger.post("2026-06-01 10:00", "2026-06-01 11:00", ledger.robin(*DAY, sku=NEW_SKU, model="b200-180gb"))

    row = selectors.set_aside("2026-06").get()
    assert (posted.charges, posted.set_aside) == (0, 1)
    assert (row.sku, row.card_seconds, row.team_name) == (NEW_SKU, F(3600), "Vision")
    assert row.reason == f"No published price for {NEW_SKU} at 2026-06-01 10:00 UTC."
    assert PoolHour.objects.get().used == 3600


def test_what_was_set_aside_is_charged_once_there_is_a_price(ledger: Any) -> None:
    facts = ("2026-06-01 10:00", "2026-06-01 11:00", ledger.robin(*DAY, sku=NEW_SKU, model="b200-180gb"))
    ledger.post(*facts)
    assert reprice_set_aside(now=LATER) == 0
    ledger.publish({NEW_SKU: "6.00"}, at("2026-05-15 00:00"), now=LATER)

    repriced = [reprice_set_aside(now=LATER), reprice_set_aside(now=LATER)]

    assert repriced == [1, 0]
    assert Charge.objects.get().amount == 6
    assert (selectors.set_aside().count(), SetAside.objects.get().posted_at) == (0, LATER)
    assert ledger.post(*facts).findings == []


def test_a_price_from_the_middle_of_a_set_aside_line_is_not_enough(ledger: Any) -> None:
    facts = ("2026-06-01 10:00", "2026-06-01 11:00", ledger.robin(*DAY, sku=NEW_SKU, model="b200-180gb"))
    ledger.post(*facts)
    ledger.publish({NEW_SKU: "6.00"}, at("2026-06-01 10:30"), now=LATER)

    assert reprice_set_aside(now=LATER) == 0
    assert Charge.objects.count() == 0
    assert ledger.post(*facts).findings == []


def test_the_platform_pays_for_what_nobody_used(ledger: Any) -> None:
    ledger.post(
        "2026-06-01 10:00",
        "2026-06-01 11:00",
        cards(*DAY, 2, stranded=F(1, 8)),
        span("2026-06-01 10:00", "2026-06-01 10:02", kind=Kind.COLD_START),
    )

    found: Any = Charge.objects.values_list("kind", "team", "team_name", "workload_name", "amount_micro")
    # At 4.00: two minutes of a card; an eighth for an hour; two cards less those.
    assert sorted(found) == [
        ("cold-start", None, "Platform", "notebook", 133_333),
        ("stranded", None, "Platform", "", 500_000),
        ("unallocated", None, "Platform", "", 7_366_667),
    ]


WAYS = {
    "update of a queryset": lambda line: Charge.objects.filter(pk=line.pk).update(amount_micro=1),
    "delete of a queryset": lambda line: Charge.objects.filter(pk=line.pk).delete(),
    "bulk_update": lambda line: Charge.objects.bulk_update([line], ["amount_micro"]),
    "update through a team": lambda line: line.team.__class__ and Charge.objects.all().update(team_name="X"),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_a_line_is_never_changed_by(ledger: Any, way: Any) -> None:
    ledger.post("2026-06-01 10:00", "2026-06-01 11:00", ledger.robin(*DAY))
    before = ledger.rows()

    with pytest.raises(Refused, match="never changed or removed"):
        way(Charge.objects.get())

    assert ledger.rows() == before


def test_the_database_refuses_a_change_as_well(ledger: Any) -> None:
    ledger.post("2026-06-01 10:00", "2026-06-01 11:00", ledger.robin(*DAY))
    line = Charge.objects.get()
    line.amount_micro = 1

    with pytest.raises(DatabaseError, match="never changed or removed"), transaction.atomic():
        line.save()
    with (
        pytest.raises(DatabaseError, match="never changed or removed"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("UPDATE billing_charge SET team_name = 'Nobody'")


@pytest.mark.postgres
def test_postgresql_refuses_a_removal_as_well(ledger: Any) -> None:
    ledger.post("2026-06-01 10:00", "2026-06-01 11:00", ledger.robin(*DAY))

    with pytest.raises(DatabaseError, match="never changed or removed"), transaction.atomic():
        Charge.objects.get().delete()


IMPOSSIBLE = {
    "a_team_pays_for_use_and_the_platform_for_the_rest": {"kind": "stranded"},
    "a_charge_covers_some_time": {"seconds": 0},
    "a_charged_price_is_not_negative": {"per_card_hour_micro": -1},
    "only_a_correction_is_negative": {"amount_micro": -1},
    "charge_kind_is_known": {"kind": "free"},
}


@pytest.mark.parametrize(("rule", "facts"), IMPOSSIBLE.items(), ids=IMPOSSIBLE.keys())
def test_the_table_refuses(ledger: Any, rule: str, facts: dict[str, Any]) -> None:
    ledger.post("2026-06-01 10:00", "2026-06-01 11:00", ledger.robin(*DAY))
    line = Charge.objects.get()
    line.pk, line.key = None, "another"
    for name, value in facts.items():
        setattr(line, name, value)

    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        line.save(force_insert=True)

    assert rule in str(caught.value) or "a_team_pays_for_use" in str(caught.value)


def test_the_same_key_is_not_written_twice(ledger: Any) -> None:
    ledger.post("2026-06-01 10:00", "2026-06-01 11:00", ledger.robin(*DAY))
    line = Charge.objects.get()
    line.pk = None

    with pytest.raises(IntegrityError), transaction.atomic():
        line.save(force_insert=True)


def test_millionths_and_amounts_are_the_same_money() -> None:
    assert (to_micro(Decimal("1.000001")), str(from_micro(1_000_001))) == (1_000_001, "1.000001")
    assert str(from_micro(0)) == "0.000000"
    with pytest.raises(ValueError, match="more than 6 decimal places"):
        to_micro(Decimal("0.0000001"))
