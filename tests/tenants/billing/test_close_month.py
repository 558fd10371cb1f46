"""Closing a month: once, complete, balanced, by somebody."""

from __future__ import annotations

from datetime import timedelta as td
from fractions import Fraction as F
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from tenants.billing import selectors
from tenants.billing.models import Charge, Meter, PoolHour, Statement
from tenants.billing.services import close_month
from tenants.errors import AlreadyDecided, Refused
from tests.tenants.billing.builders import at
from tests.tenants.billing.conftest import LATER

NEW_SKU = "b200-180gb/whole/on-demand"


def close(ledger: Any, period: str = "2026-06", **facts: Any) -> Statement:
    return close_month(period, **{"by": ledger.world.farah, "now": LATER, **facts})


def test_closing_writes_down_who_when_and_how_much(ledger: Any) -> None:
    ledger.june(ledger.robin("2026-06-03 10:00", "2026-06-03 11:00"))

    statement = close(ledger)

    assert (statement.state, statement.closed_by, statement.closed_at) == ("closed", ledger.world.farah, LATER)
    # 8 cards in 720 hours at 4.00 are 23,040.00, of which Robin's hour is 4.00.
    assert (statement.charged_micro, statement.overhead_micro) == (4_000_000, 23_036_000_000)
    assert (statement.lines, statement.card_seconds) == (721, F(8 * 720 * 3600))


def test_the_second_one_is_told_who_was_first(ledger: Any) -> None:
    ledger.june()
    close(ledger)

    with pytest.raises(AlreadyDecided, match=r"Farah closed 2026-06 on 03 July 2026 at 09:00 UTC\."):
        close(ledger, by=ledger.world.omar, now=LATER + td(hours=1))

    assert Statement.objects.get().closed_by == ledger.world.farah


def test_a_month_that_is_not_over_stays_open(ledger: Any, in_zone: Any) -> None:
    in_zone("Asia/Seoul")
    ledger.june()

    with pytest.raises(Refused, match=r"June 2026 ends on 01 July 2026 at 00:00 \(Asia/Seoul\); close it after that\."):
        close(ledger, now=at("2026-06-30 14:59"))

    assert close(ledger, now=at("2026-06-30 15:00")).is_closed


def test_a_month_with_hours_missing_stays_open(ledger: Any) -> None:
    ledger.june()
    Meter.objects.update(until=at("2026-06-29 20:00"))

    with pytest.raises(
        Refused, match=r"28 hours of June 2026 not posted yet: harbour-1 stands at 29 June, 20:00 UTC\."
    ):
        close(ledger)


def test_a_month_with_lines_that_have_no_price_stays_open(ledger: Any) -> None:
    ledger.june(ledger.robin("2026-06-03 10:00", "2026-06-03 13:00", sku=NEW_SKU))

    with pytest.raises(Refused, match=r"3 lines of June 2026 without a price; publish a rate card"):
        close(ledger)


def test_a_month_that_does_not_balance_stays_open(ledger: Any) -> None:
    ledger.june()
    PoolHour.objects.filter(hour=at("2026-06-03 10:00")).update(unallocated="3600")

    with pytest.raises(
        Refused, match=r"June 2026 does not balance: .* The buckets hold 3600 card-seconds; .* gave 28800\."
    ):
        close(ledger)

    assert not Statement.objects.get().is_closed


def test_an_overlap_is_reported_but_keeps_no_month_open(ledger: Any) -> None:
    overlap = ledger.sasha("2026-06-03 10:00", "2026-06-03 11:00", node="node-9")

    ledger.june(overlap)

    assert close(ledger).is_closed


REFUSED = {
    "a month without lines": ("2026-05", "Nothing was posted for May 2026; there is nothing to close."),
    "no month at all": ("June", "“June” is not a month; write it like 2026-11."),
}


@pytest.mark.parametrize(("period", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_closing_refuses(ledger: Any, period: str, sentence: str) -> None:
    ledger.june()

    with pytest.raises(Refused) as caught:
        close(ledger, period)

    assert caught.value.text == sentence


def test_a_closed_month_takes_no_more_lines(ledger: Any) -> None:
    ledger.june()
    close(ledger)
    before = selectors.totals("2026-06")

    ledger.post("2026-07-01 00:00", "2026-07-01 02:00", ledger.robin("2026-06-30 00:00", "2026-07-01 02:00"))

    assert selectors.totals("2026-06") == before
    assert set(Charge.objects.filter(hour__gte=at("2026-07-01 00:00")).values_list("period", flat=True)) == {"2026-07"}


def test_the_table_refuses_a_closed_statement_without_a_sum(ledger: Any) -> None:
    ledger.june()

    with pytest.raises(IntegrityError, match="a_closed_statement_says_who_when_and_how_much"), transaction.atomic():
        Statement.objects.update(state="closed")
