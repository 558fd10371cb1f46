"""Spans, cards and prices in a word each; and hours to post."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction as F
from typing import Any
from uuid import UUID

from tenants.billing.balance import CardInterval
from tenants.billing.posting import PLATFORM, Hours
from tenants.billing.rating import Kind, RateBook, RatePeriod, Span

H100 = "h100-80gb"
WHOLE = f"{H100}/whole/on-demand"
SLICE = f"{H100}/mig-1g.10gb/on-demand"
TEAM = UUID(int=1)
PLACEMENT = UUID(int=100)
WORKLOAD = UUID(int=1000)


def at(text: str) -> datetime:
    """ "2026-06-14 12:00", in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def span(since: str | datetime, until: str | datetime, **facts: Any) -> Span:
    """One whole card in use on node-1 of the pool train."""
    facts = {"kind": Kind.USE, "team": TEAM, "team_name": "Vision", "member": 7, "member_name": "Robin", **facts}
    if facts["kind"] != Kind.USE:
        facts |= {"team": None, "team_name": PLATFORM, "member": None, "member_name": "", "sku": WHOLE}
    usual: dict[str, Any] = {
        "resource": PLACEMENT,
        "workload": WORKLOAD,
        "workload_name": "notebook",
        "cluster": "harbour-1",
        "pool": "train",
        "node": "node-1",
        "model": H100,
        "sku": WHOLE,
        "share": F(1),
    }
    return Span(started_at=instant(since), ended_at=instant(until), **usual | facts)


def cards(since: str | datetime, until: str | datetime, number: int = 1, **facts: Any) -> CardInterval:
    """So many healthy cards of node-1 in the pool train."""
    usual: dict[str, Any] = {
        "node": "node-1",
        "pool": "train",
        "model": H100,
        "cards": F(number),
        "out_of_service": F(0),
        "stranded": F(0),
        "foreign": F(0),
    }
    return CardInterval(started_at=instant(since), ended_at=instant(until), **usual | facts)


def book(*prices: tuple[str, str, str]) -> RateBook:
    """Prices as (sku, from, per card-hour)."""
    return RateBook(RatePeriod(sku, at(since), Decimal(price)) for sku, since, price in prices)


def hours(since: str, until: str, *facts: Span | CardInterval, cluster: str = "harbour-1") -> Hours:
    return Hours(
        cluster=cluster,
        since=at(since),
        until=at(until),
        spans=[fact for fact in facts if isinstance(fact, Span)],
        cards=[fact for fact in facts if isinstance(fact, CardInterval)],
    )


def instant(given: str | datetime) -> datetime:
    return at(given) if isinstance(given, str) else given
