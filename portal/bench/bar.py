"""One figure beside the yardstick of the same run."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bar:
    """Seconds; `ratio` is how many yardsticks they are. The bar bounds the value, or the ratio of a `share_of`."""

    name: str
    value: float
    yardstick: float
    ratio: float
    bar: float
    holds: bool

    @property
    def words(self) -> str:
        return f"{self.bar:g} {'yardsticks' if self.name.endswith(PART) else 's'}"


PART = ", as a part of the client's"


def bar_of(name: str, value: float, bar: float, yardstick: float) -> Bar:
    """A figure that may be at most `bar`."""
    return Bar(name, value, round(yardstick, 6), round(value / yardstick, 3), bar, value <= bar)


def share_of(name: str, value: float, part: float, yardstick: float) -> Bar:
    """A figure that may be at most a `part` of its yardstick."""
    ratio = value / yardstick
    return Bar(name + PART, round(value, 6), round(yardstick, 6), round(ratio, 4), part, ratio <= part)
