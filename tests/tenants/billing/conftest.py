"""A ledger to post into: two teams, prices from May on, and a cluster's hours in June."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from tenants.billing import house
from tenants.billing.balance import CardInterval
from tenants.billing.models import Charge, RateCard
from tenants.billing.rating import Span
from tenants.billing.services import Posted, draft_rate_card, post_hours, publish_rate_card
from tests.tenants.billing.builders import SLICE, WHOLE, at, cards, hours, span

PRICES = {WHOLE: "4.00", SLICE: "4.40"}
MAY = at("2026-05-01 00:00")
LATER = at("2026-07-03 09:00")


@dataclass
class Ledger:
    """Vision's Robin and Speech's Sasha hold cards of one pool."""

    world: Any

    def robin(self, since: str, until: str, **facts: Any) -> Span:
        return self._held(self.world.vision, self.world.robin, since, until, {"workload": UUID(int=1), **facts})

    def sasha(self, since: str, until: str, **facts: Any) -> Span:
        facts = {"resource": UUID(int=200), "workload": UUID(int=2), "workload_name": "speech-run", **facts}
        return self._held(self.world.speech, self.world.sasha, since, until, facts)

    def post(self, since: str, until: str, *facts: Span | CardInterval, now: datetime = LATER, **where: Any) -> Posted:
        return post_hours(hours(since, until, *facts, **where), now=now)

    def june(self, *facts: Span | CardInterval, **where: Any) -> Posted:
        """The whole of June with eight cards, from the facts of the test."""
        return self.post(
            "2026-06-01 00:00", "2026-07-01 00:00", cards("2026-06-01 00:00", "2026-07-01 00:00", 8), *facts, **where
        )

    def publish(self, prices: Mapping[str, str], starts_at: datetime, now: datetime | None = None) -> RateCard:
        sums = {sku: Decimal(price) for sku, price in prices.items()}
        card = draft_rate_card("Prices", sums, starts_at=starts_at, by=self.world.omar, now=now or starts_at)
        publish_rate_card(card, by=self.world.omar, now=now or starts_at)
        return card

    def rows(self) -> list[tuple[Any, ...]]:
        """The whole ledger, without its row numbers and the time of posting."""
        return sorted(
            Charge.objects.values_list("key", "period", "kind", "team_name", "seconds", "share", "amount_micro", "rate")
        )

    def _held(self, team: Any, member: Any, since: str, until: str, facts: dict[str, Any]) -> Span:
        made = span(since, until, **facts)
        who = {"team": team.pk, "team_name": team.name, "member": member.pk, "member_name": str(member)}
        return replace(made, **who) if made.team else made


@pytest.fixture
def ledger(world: Any) -> Ledger:
    made = Ledger(world)
    made.publish(PRICES, MAY)
    return made


@pytest.fixture
def in_zone(settings: Any) -> Any:
    """Cut months in another zone than UTC: in_zone("Asia/Seoul")."""

    def cut(name: str) -> None:
        settings.BERTH_ZONE = name
        assert house.zone().key == name

    return cut
