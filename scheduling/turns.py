"""Whose turn it is to serve a period of a periodic task: however many beats ring, each is served once.

The database decides. Periods are cut on the wall clock, so beats need not ring in step.
"""

from datetime import UTC, datetime
from datetime import timedelta as td

from django.db import IntegrityError, transaction
from django.db.models import Q

from scheduling.models import Turn


def our_turn(task: str, seconds: float, at: datetime | None = None) -> bool:
    """Whether the present period of so many seconds has not been served yet; from now on it has.

    A turn that lies far ahead was taken by a clock that has been set back since, and counts for nothing.
    """
    began = period_of(at or datetime.now(UTC), seconds)
    rows = Turn.objects.filter(task=task)
    if rows.filter(Q(began__lt=began) | Q(began__gt=began + td(seconds=seconds))).update(began=began):
        return True
    return not rows.exists() and _first(task, began)


def period_of(at: datetime, seconds: float) -> datetime:
    """When the period began that this instant lies in."""
    return datetime.fromtimestamp(int(at.timestamp() / seconds) * seconds, UTC)


def _first(task: str, began: datetime) -> bool:
    try:
        with transaction.atomic():
            Turn.objects.create(task=task, began=began)
    except IntegrityError:
        return False
    return True
