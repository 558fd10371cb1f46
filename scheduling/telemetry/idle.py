"""Since when a workload has been quiet. Pure; unknown never counts as idle.

Quiet means that its cards computed less than `QUIET` of the time in every sample since. A sample that says nothing,
or a gap longer than `GAP` between two samples, starts the count anew.
"""

from datetime import datetime
from datetime import timedelta as td

QUIET = 0.02
GAP = td(minutes=10)


def idle_since(
    before: datetime | None, last_sample: datetime | None, at: datetime, busy: float | None
) -> datetime | None:
    """Since when it is quiet, after a sample at `at`; `before` is what was known after `last_sample`."""
    if busy is None or busy >= QUIET:
        return None
    if before is None or last_sample is None or at - last_sample > GAP:
        return at
    return min(before, at)


def together(values: list[float | None]) -> float | None:
    """How busy several cards of one pod are: the busiest counts; None if any of them is unknown and none is busy."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    busiest = max(known)
    return busiest if len(known) == len(values) or busiest >= QUIET else None
