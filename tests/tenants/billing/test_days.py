"""What each day of a month cost."""

from __future__ import annotations

from datetime import UTC, date, datetime
from datetime import timedelta as td
from decimal import Decimal
from typing import Any

from tenants.billing.days import Day, days_of
from tenants.billing.models import Charge, to_micro
from tests.world import H100, World


def line(world: World, at: datetime, kind: str, amount: str, **facts: Any) -> None:
    Charge.objects.create(
        key=f"{kind}:{at.isoformat()}:{amount}", period="2026-11", hour=at.replace(minute=0), kind=kind,
        team=world.vision if kind == "use" else None, team_name="Vision" if kind == "use" else "Platform",
        cluster="harbour-1", model=H100, sku=f"{H100}/whole/on-demand", share=1, started_at=at,
        ended_at=at + td(minutes=1), seconds=60, per_card_hour_micro=1, amount_micro=to_micro(Decimal(amount)),
        currency="EUR", posted_at=at, **facts,
    )  # fmt: skip


def test_every_day_is_there_and_each_line_on_its_own(world: World) -> None:
    line(world, datetime(2026, 11, 3, 10, tzinfo=UTC), "use", "1.5")
    line(world, datetime(2026, 11, 3, 11, tzinfo=UTC), "use", "0.5")
    line(world, datetime(2026, 11, 3, 12, tzinfo=UTC), "unallocated", "4")
    line(world, datetime(2026, 11, 3, 13, tzinfo=UTC), "stranded", "1")
    line(world, datetime(2026, 11, 3, 14, tzinfo=UTC), "cold-start", "0.25")

    days = days_of("2026-11")

    assert len(days) == 30
    assert days[2] == Day(date(2026, 11, 3), Decimal(2), Decimal(5), Decimal("0.25"))
    assert days[2].total == Decimal("7.25")
    assert sum(day.total for day in days) == Decimal("7.25")


def test_a_day_is_cut_in_the_organisations_zone(world: World, settings: Any) -> None:
    settings.BERTH_ZONE = "Asia/Seoul"
    line(world, datetime(2026, 11, 3, 14, 59, tzinfo=UTC), "use", "1")
    line(world, datetime(2026, 11, 3, 15, 0, tzinfo=UTC), "use", "2")

    days = days_of("2026-11")

    assert (days[2].used, days[3].used) == (Decimal(1), Decimal(2))


def test_who_may_not_see_the_platforms_lines_gets_none_of_them(world: World) -> None:
    line(world, datetime(2026, 11, 3, 10, tzinfo=UTC), "use", "1")
    line(world, datetime(2026, 11, 3, 10, tzinfo=UTC), "unallocated", "9")

    assert days_of("2026-11", teams=[world.vision.pk])[2] == Day(date(2026, 11, 3), Decimal(1), Decimal(0), Decimal(0))
    assert days_of("2026-11", teams=[world.speech.pk])[2].total == 0


def test_one_query(world: World, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        days_of("2026-02")
