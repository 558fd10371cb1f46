"""Where the simulation gets its time from: a clock that tests turn by hand, or the one that Berth's processes share."""

from __future__ import annotations

from datetime import UTC, datetime
from datetime import timedelta as td
from typing import Protocol

from tenants import clock


class Clock(Protocol):
    def now(self) -> datetime: ...

    def rate(self) -> float:
        """Its seconds per second of the wall clock."""


class ManualClock:
    """Stands still until somebody moves it."""

    def __init__(self, start: datetime) -> None:
        if start.tzinfo is None:
            raise ValueError("The simulated clock starts at a time without a zone; give an aware UTC time.")
        self._now = start.astimezone(UTC)

    def now(self) -> datetime:
        return self._now

    def rate(self) -> float:
        return 1.0

    def advance(self, step: td) -> None:
        if step < td(0):
            raise ValueError("Time runs forward only.")
        self._now += step


class SharedClock:
    """The wall clock, or the clock file that `BERTH_CLOCK` names."""

    def now(self) -> datetime:
        return clock.now()

    def rate(self) -> float:
        return clock.rate()


def stamp(moment: datetime) -> str:
    """A Kubernetes time: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def fine_stamp(moment: datetime) -> str:
    """A Kubernetes MicroTime."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
