"""The days of a month as a picture of stacked bars. Geometry only; the template draws it."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from tenants.billing.days import Day

WIDTH, HEIGHT = 400, 150
BASE = 18  # of the axis below the bars


@dataclass(frozen=True, slots=True)
class Bar:
    """One day: three stacked parts, from the bottom up."""

    day: Day
    x: float
    width: float
    parts: list[tuple[str, float, float]]  # kind, y, height

    @property
    def middle(self) -> float:
        return round(self.x + self.width / 2, 2)


@dataclass(frozen=True, slots=True)
class Bars:
    bars: list[Bar]
    width: int
    height: int
    floor: int
    top: Decimal  # what the whole height stands for


def bars_of(days: Sequence[Day]) -> Bars | None:
    """None where the month has nothing to draw."""
    top = max((day.total for day in days), default=Decimal(0))
    if top <= 0:
        return None
    step = WIDTH / len(days)
    bars = [bar_of(day, index * step, step, top) for index, day in enumerate(days)]
    return Bars(bars, WIDTH, HEIGHT + BASE, HEIGHT, top)


def bar_of(day: Day, x: float, step: float, top: Decimal) -> Bar:
    parts, y = [], float(HEIGHT)
    for kind, amount in (("used", day.used), ("idle", day.idle), ("other", day.other)):
        height = max(0.0, float(amount / top) * (HEIGHT - 6))
        y -= height
        parts.append((kind, round(y, 2), round(height, 2)))
    return Bar(day, round(x + step * 0.14, 2), round(step * 0.72, 2), parts)
