"""Prices: drafted, published, and never changing the past."""

from __future__ import annotations

from datetime import timedelta as td
from decimal import Decimal
from typing import Any

import pytest

from tenants.billing import selectors
from tenants.billing.models import RateCard
from tenants.billing.services import draft_rate_card, publish_rate_card
from tenants.errors import AlreadyDecided, Refused
from tests.tenants.billing.builders import SLICE, WHOLE, at
from tests.tenants.billing.conftest import LATER, MAY

OTHER = "b200-180gb/whole/on-demand"
JUNE = at("2026-06-01 00:00")


def draft(ledger: Any, sku: str = WHOLE, price: str = "5.00", **facts: Any) -> RateCard:
    facts = {"starts_at": LATER, "by": ledger.world.omar, "now": LATER, **facts}
    return draft_rate_card("July", {sku: Decimal(price)}, **facts)


def test_a_draft_counts_for_nothing(ledger: Any) -> None:
    draft(ledger, OTHER, starts_at=MAY)

    assert selectors.prices_at(LATER) == {WHOLE: Decimal("4.00"), SLICE: Decimal("4.40")}
    assert selectors.rate_book().at(OTHER, LATER) is None


def test_a_published_price_holds_from_its_instant_until_the_next_of_its_sku(ledger: Any) -> None:
    publish_rate_card(draft(ledger), by=ledger.world.omar, now=LATER)

    assert selectors.prices_at(LATER - td(seconds=1)) == {WHOLE: Decimal("4.00"), SLICE: Decimal("4.40")}
    assert selectors.prices_at(LATER) == {WHOLE: Decimal("5.00"), SLICE: Decimal("4.40")}
    book = selectors.rate_book()
    prices = [
        period and period.per_card_hour for period in (book.at(WHOLE, LATER - td(seconds=1)), book.at(WHOLE, LATER))
    ]
    assert prices == [Decimal("4.00"), Decimal("5.00")]
    assert book.at(WHOLE, MAY - td(seconds=1)) is None


def test_a_card_is_published_once(ledger: Any) -> None:
    card = draft(ledger, starts_at=LATER + td(days=1))
    publish_rate_card(card, by=ledger.world.omar, now=LATER)

    with pytest.raises(AlreadyDecided, match="“July” is published already"):
        publish_rate_card(card, by=ledger.world.farah, now=LATER + td(hours=1))

    card.refresh_from_db()
    assert (card.published_by, card.published_at) == (ledger.world.omar, LATER)


REFUSED = {
    "the past of a SKU that has a price": (
        WHOLE, {"starts_at": JUNE},
        r"has a price since 01 May 2026, and a new price never changes the past; let the card start now or later\.",
    ),
    "the instant at which another card begins": (
        WHOLE, {"starts_at": MAY, "now": MAY},
        r"“Prices” already prices h100-80gb/whole/on-demand from that instant; choose another one\.",
    ),
    "another currency": (
        OTHER, {"currency": "KRW"},
        r"The card is in KRW, the ledger in EUR; draft it in that currency\.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("sku", "facts", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_publishing_refuses(ledger: Any, sku: str, facts: dict[str, Any], sentence: str) -> None:
    card = draft(ledger, sku, **facts)

    with pytest.raises(Refused, match=sentence):
        publish_rate_card(card, by=ledger.world.omar, now=facts.get("now", LATER))

    card.refresh_from_db()
    assert card.published_at is None


def test_hours_that_are_charged_keep_their_price_even_if_the_clock_says_they_are_to_come(ledger: Any) -> None:
    ledger.post("2026-06-01 10:00", "2026-06-01 12:00", ledger.robin("2026-06-01 10:00", "2026-06-01 12:00"))
    card = draft(ledger, starts_at=at("2026-06-01 11:00"))

    with pytest.raises(
        Refused, match=r"is charged until 01 June 2026, 12:00 UTC, and a new price never changes the past"
    ):
        publish_rate_card(card, by=ledger.world.omar, now=at("2026-06-01 11:00"))


def test_a_sku_that_had_no_price_may_get_one_for_the_past(ledger: Any) -> None:
    publish_rate_card(draft(ledger, OTHER, starts_at=JUNE), by=ledger.world.omar, now=LATER)

    assert selectors.prices_at(JUNE)[OTHER] == 5


@pytest.mark.parametrize("price", ["-0.01", "NaN", "Infinity"])
def test_a_draft_refuses_a_price_of(ledger: Any, price: str) -> None:
    with pytest.raises(Refused, match="a price is 0 or more") as caught:
        draft(ledger, price=price)

    assert caught.value.field == "prices"


def test_a_draft_refuses_to_be_empty(ledger: Any) -> None:
    with pytest.raises(Refused, match="needs at least one price"):
        draft_rate_card("Empty", {}, starts_at=LATER, by=ledger.world.omar, now=LATER)
