"""What each day of a month cost, for the picture of the month. Reads only."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from datetime import timedelta as td
from decimal import Decimal
from uuid import UUID

from django.db.models import Sum
from django.db.models.functions import TruncDate

from tenants.billing import house
from tenants.billing.models import from_micro
from tenants.billing.rating import Kind, first_day, next_period
from tenants.billing.selectors import lines_of


@dataclass(frozen=True, slots=True)
class Day:
    """One day in the organisation's zone: used by teams, and what the platform bore (zero where it is not in view)."""

    day: date
    used: Decimal
    idle: Decimal  # unallocated and stranded
    other: Decimal  # cold start, out of service, foreign

    @property
    def total(self) -> Decimal:
        return self.used + self.idle + self.other


def days_of(period: str, *, teams: Collection[UUID] | None = None) -> list[Day]:
    """Every day of the month, also those without a line. One query."""
    rows = (
        lines_of(period, teams=teams)
        .order_by()
        .values_list(TruncDate("started_at", tzinfo=house.zone()), "kind")
        .annotate(micro=Sum("amount_micro"))
    )
    sums: dict[tuple[date, str], int] = {(day, kind): micro for day, kind, micro in rows}
    days = (first_day(next_period(period)) - first_day(period)).days
    return [_day(first_day(period) + td(days=index), sums) for index in range(days)]


def _day(day: date, sums: dict[tuple[date, str], int]) -> Day:
    idle = (Kind.UNALLOCATED, Kind.STRANDED)
    other = (Kind.COLD_START, Kind.OUT_OF_SERVICE, Kind.FOREIGN)
    return Day(
        day=day,
        used=from_micro(sums.get((day, str(Kind.USE)), 0)),
        idle=from_micro(sum(sums.get((day, str(kind)), 0) for kind in idle)),
        other=from_micro(sum(sums.get((day, str(kind)), 0) for kind in other)),
    )
