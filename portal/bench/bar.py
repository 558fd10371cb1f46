"""One figure beside the yardstick of the same run."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bar:
    """`value` in seconds unless its name says otherwise; `ratio` is how many yardsticks it is. The bar bounds the
    value, or the ratio where it was measured beside its yardstick."""

    name: str
    value: float
    yardstick: float
    ratio: float
    bar: float
    holds: bool

    @property
    def words(self) -> str:
        if self.name.endswith(PART) or BESIDE in self.name:
            return f"{self.bar:g} yardsticks"
        if self.yardstick == self.bar or self.name.startswith(PLAIN):
            return f"{self.bar:g}"
        return f"{self.bar:g} s"


PLAIN = "openb"  # figures that are no times, beside a yardstick that bounds nothing
PART = ", as a part of the client's"
BESIDE = ", beside "
RATE = f"{BESIDE}Kueue's"
GROWTH = f"{BESIDE}the begin's"
BEST_FIT = f"{BESIDE}best fit's"
FGD = f"{BESIDE}FGD's"
LARGE = 999.0  # a ratio to nothing


def bar_of(name: str, value: float, bar: float, yardstick: float) -> Bar:
    """A figure that may be at most `bar`."""
    return Bar(name, value, round(yardstick, 6), round(value / yardstick, 3), bar, value <= bar)


def share_of(name: str, value: float, part: float, yardstick: float) -> Bar:
    """A figure that may be at most a `part` of its yardstick."""
    ratio = value / yardstick
    return Bar(name + PART, round(value, 6), round(yardstick, 6), round(ratio, 4), part, ratio <= part)


def count_of(name: str, value: float, most: float) -> Bar:
    """A figure that is no time, or has no yardstick but what was promised: at most that."""
    return Bar(name, round(value, 4), most, round(value / most, 3) if most else value, most, value <= most)


def at_least(name: str, value: float, times: float, yardstick: float) -> Bar:
    """A rate that is to be so many times its yardstick's."""
    ratio = value / yardstick
    return Bar(name + RATE, round(value, 2), round(yardstick, 2), round(ratio, 3), times, ratio >= times)


def less_than(name: str, value: float, times: float, yardstick: float) -> Bar:
    """A figure that may be at most so many times what it was before."""
    ratio = value / yardstick
    return Bar(name + GROWTH, round(value, 2), round(yardstick, 2), round(ratio, 3), times, ratio <= times)


def beside(name: str, value: float, times: float, yardstick: float, *, whose: str) -> Bar:
    """A figure that is to be at least so many times somebody else's of the same run."""
    ratio = value / yardstick
    return Bar(f"{name}{BESIDE}{whose}", round(value, 4), round(yardstick, 4), round(ratio, 4), times, ratio >= times)


def no_less(name: str, value: float, least: float, yardstick: float) -> Bar:
    """A figure that has to be at least so much, whatever its yardstick is."""
    return Bar(name, round(value, 3), round(yardstick, 3), round(value / yardstick, 4), least, value >= least)


def loss_beside(name: str, value: float, times: float, yardstick: float) -> Bar:
    """A loss that may be at most so many times its yardstick's, which its name tells; nothing lost always holds."""
    ratio = value / yardstick if yardstick else LARGE if value else 0.0
    return Bar(name, round(value, 4), round(yardstick, 4), round(ratio, 4), times, value <= times * yardstick)
