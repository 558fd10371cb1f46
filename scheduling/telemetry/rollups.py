"""Hourly rollups of samples, and letting go of old ones. A rollup is made from its samples: twice is once."""

from collections.abc import Iterable
from datetime import datetime
from datetime import timedelta as td
from uuid import UUID

from django.db.models import Avg, Count, Max, Sum
from django.db.models.functions import TruncHour

from scheduling.models import CycleReport, Sample, UsageHour

KEEP_SAMPLES = td(hours=26)
KEEP_REPORTS = td(days=3)


def roll_up(placements: Iterable[UUID], since: datetime) -> None:
    """Recompute the rollups of these placements for all hours from the hour of `since` on."""
    hour = since.replace(minute=0, second=0, microsecond=0)
    rows = (
        Sample.objects.filter(placement__in=list(placements), at__gte=hour)
        .annotate(hour=TruncHour("at"))
        .values("placement_id", "hour")
        .annotate(
            samples=Count("id"),
            busy_samples=Count("busy"),
            busy_sum=Sum("busy"),
            busy_max=Max("busy"),
            memory_max_mib=Max("memory_used_mib"),
        )
        .order_by()
    )
    fresh = [UsageHour(**{**row, "busy_sum": row["busy_sum"] or 0.0}) for row in rows]
    fields = ["samples", "busy_samples", "busy_sum", "busy_max", "memory_max_mib"]
    UsageHour.objects.bulk_create(
        fresh, update_conflicts=True, unique_fields=["placement", "hour"], update_fields=fields
    )


def mean_busy(placement: UUID, since: datetime) -> float | None:
    """Mean of the samples since then that said how busy; None when none did."""
    found: float | None = Sample.objects.filter(placement=placement, at__gte=since).aggregate(mean=Avg("busy"))["mean"]
    return found


def forget(now: datetime) -> None:
    """Delete samples and cycle reports that have served their time; the rollups stay."""
    Sample.objects.filter(at__lt=now - KEEP_SAMPLES).delete()
    CycleReport.objects.filter(at__lt=now - KEEP_REPORTS).delete()
