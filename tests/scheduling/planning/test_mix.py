"""What is usually asked for: counted with decay, and nothing at all while it would be chance."""

from __future__ import annotations

import pytest

from scheduling.planning.mix import LARGEST, Ask, Habit, Mix, learned, mix_of

SMALL, LARGE = Ask(1_000, 2_000, 1, 250), Ask(8_000, 64_000, 8, 1000)


def parts(mix: Mix | None) -> dict[Ask, float]:
    return dict(zip(mix.asks, mix.parts, strict=True))


def test_parts_are_of_all_requests_and_kinds_stand_once() -> None:
    assert parts(mix_of([(SMALL, 2.0), (LARGE, 1.0), (SMALL, 1.0)])) == {SMALL: 0.75, LARGE: 0.25}


@pytest.mark.parametrize("weighed", [[], [(SMALL, 0.0)]])
def test_nothing_asked_is_no_mix(weighed: list[tuple[Ask, float]]) -> None:
    assert mix_of(weighed) is None


def test_the_order_in_which_requests_came_does_not_matter() -> None:
    one = Ask(1, 1, 1, 1000, frozenset({"T4", "P100", "G2"}))
    assert mix_of([(one, 1.0), (SMALL, 2.0)]) == mix_of([(SMALL, 2.0), (one, 1.0)])


def test_shares_are_counted_by_size_and_whole_cards_are_none() -> None:
    other = SMALL._replace(cpu_milli=7)
    assert Mix((SMALL, other, LARGE), (0.5, 0.25, 0.25)).shares() == {250: 0.75}


def test_a_habit_says_nothing_before_it_has_seen_enough() -> None:
    habit = Habit()
    for _ in range(299):
        habit.add(SMALL)
    assert habit.mix() is None
    for _ in range(20):  # the old ones already weigh a little less
        habit.add(SMALL)
    assert parts(habit.mix()) == {SMALL: 1.0}


def test_what_was_asked_a_half_life_ago_counts_half() -> None:
    habit = Habit(half_life=100)
    habit.add(SMALL)
    for _ in range(99):
        habit.add(LARGE)
    habit.add(SMALL)
    found = parts(habit.mix(least=1))
    newest, older = 1.0, 0.5
    total = sum(2.0 ** (-age / 100) for age in range(101))
    assert found[SMALL] == pytest.approx((newest + older) / total)


def test_a_habit_stays_a_number_however_long_it_is_kept() -> None:
    habit = Habit(half_life=1)
    habit.add(LARGE)
    for _ in range(500):
        habit.add(SMALL)
    assert habit._weight < LARGEST * 2
    assert parts(habit.mix(least=1)) == {SMALL: 1.0}


def test_a_known_mix_is_as_good_as_seen() -> None:
    habit = Habit()
    habit.know(Mix((SMALL, LARGE), (0.5, 0.5)))
    assert parts(habit.mix()) == {SMALL: 0.5, LARGE: 0.5}


AGES = {  #                         requests with their age in half-lives   known?
    "enough fresh ones":           ([(SMALL, 0.0)] * 300,                  True),
    "one too few":                 ([(SMALL, 0.0)] * 299,                  False),
    "twice as many a half-life ago": ([(SMALL, 1.0)] * 600,                True),
    "many, but long ago":          ([(SMALL, 10.0)] * 10_000,              False),
    "dated in the future is today": ([(SMALL, -50.0)] * 300,               True),
}  # fmt: skip


@pytest.mark.parametrize(("past", "known"), AGES.values(), ids=AGES)
def test_history_is_a_mix_as_soon_as_it_weighs_enough(past: list[tuple[Ask, float]], known: bool) -> None:
    assert (learned(past) is not None) == known
