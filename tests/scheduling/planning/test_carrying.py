"""Erlang's formula, against its published figures; what a change of layout carries, and whether it is worth it."""

from datetime import timedelta as td
from fractions import Fraction as F

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.planning.carrying import ONE, Line, Yard
from scheduling.planning.facts import CutRules
from scheduling.planning.weighing import Terms, won, worth_it_ahead

CALM = settings(deadline=None, derandomize=True, max_examples=60)
LOST: dict[str, tuple[F, int, F]] = {
    "no instance at all": (F(3), 0, F(1)),
    "one for a load of one": (F(1), 1, F(1, 2)),
    "two for a load of one": (F(1), 2, F(1, 5)),
    "ten for a load of ten": (F(10), 10, F("0.2146")),
    "five for a load of two and a half": (F(5, 2), 5, F("0.0697")),
    "many more than are wanted": (F(1), 40, F(0)),
}


@pytest.mark.parametrize(("load", "instances", "lost"), LOST.values(), ids=LOST)
def test_a_load_finds_no_instance(load: F, instances: int, lost: F) -> None:
    carried = F(Line(load).carried(instances), ONE)

    assert abs(1 - carried / load - lost) < F(1, 10_000)


@CALM
@given(st.fractions(F(1, 10), 60, max_denominator=50), st.integers(0, 80))
def test_each_further_instance_carries_less_and_none_carries_more_than_is_wanted(load: F, instances: int) -> None:
    line = Line(load)
    here, next_, then = (line.carried(instances + more) for more in range(3))
    grain = 8  # of 2**32: whole numbers are rounded down

    assert 0 <= here <= next_ + grain
    assert then - next_ <= next_ - here + grain
    assert here <= min(load * ONE, instances * ONE + grain)


WEIGHTS = {"1g": F(1, 7), "3g": F(3, 7), "": F(1)}


def yard(usual: dict[str, F], **stock: int) -> Yard:
    return Yard(usual, WEIGHTS, {f"{name[1:]}": count for name, count in stock.items()})


def test_what_is_short_is_worth_more_than_what_is_plenty() -> None:
    there = yard({"1g": F(4), "3g": F(4)}, _1g=14, _3g=2)

    assert there.gain({"1g": 7}, {"3g": 2}) > F(2, 5)
    assert there.gain({"3g": 2}, {"1g": 7}) < F(-2, 5)


def test_moving_counts_from_then_on() -> None:
    there = yard({"1g": F(4), "3g": F(4)}, _1g=14, _3g=2)
    first = there.gain({"1g": 7}, {"3g": 2})

    there.move({"1g": 7}, {"3g": 2})

    assert there.stock == {"1g": 7, "3g": 4}
    assert there.gain({"1g": 7}, {"3g": 2}) < first


def test_what_nobody_usually_wants_carries_nothing() -> None:
    there = Yard({"1g": F(0), "5g": F(3)}, WEIGHTS, {"1g": 7})

    assert there.gain({}, {"1g": 7}) == there.carries({"1g": 7}) == there.carries({"5g": 1}) == 0


TERMS = Terms.of(CutRules(minutes=5, horizon=td(hours=1)))


def test_minutes_out_of_service_are_paid_for_with_what_they_would_have_carried() -> None:
    busy, idle = yard({"1g": F(70)}, _1g=70), yard({"3g": F(1)}, _1g=70)
    waiting = F(3, 7)

    assert won(idle, TERMS, {"1g": 7}, {"3g": 2}, 1, waiting) > won(busy, TERMS, {"1g": 7}, {"3g": 2}, 1, waiting)
    assert won(busy, TERMS, {"1g": 7}, {"3g": 2}, 1) < 0


def test_longer_cuts_need_more_reason() -> None:
    there = yard({"1g": F(4), "3g": F(3)}, _1g=14, _3g=4)
    gain = there.gain({"1g": 7}, {"3g": 2})
    long = Terms(minutes=60 * gain / 2 + 1, horizon=F(60))

    assert worth_it_ahead(there, TERMS, {"1g": 7}, {"3g": 2}, 1) is (60 * gain > 2 * 5)
    assert not worth_it_ahead(there, long, {"1g": 7}, {"3g": 2}, 1)
