"""Since when it is quiet; unknown never counts as idle."""

from datetime import UTC, datetime
from datetime import timedelta as td

import pytest

from scheduling.telemetry.idle import idle_since, together

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


def minute(number):
    return None if number is None else NOON + td(minutes=number)


CASES = {  #                                  before last at  busy   since
    "busy is not idle": (None, 0, 1, 0.9, None),
    "busy ends idleness": (0, 9, 10, 0.9, None),
    "just busy enough": (0, 9, 10, 0.02, None),
    "the first quiet sample begins it": (None, 9, 10, 0.0, 10),
    "quiet goes on": (0, 9, 10, 0.019, 0),
    "unknown ends it": (0, 9, 10, None, None),
    "a gap begins it anew": (0, 9, 25, 0.0, 25),
    "a gap of ten minutes is none": (0, 9, 19, 0.0, 0),
    "without an earlier sample it begins now": (0, None, 10, 0.0, 10),
}


@pytest.mark.parametrize("case", CASES)
def test_idle_since(case):
    before, last, at, busy, since = CASES[case]

    assert idle_since(minute(before), minute(last), minute(at), busy) == minute(since)


def test_a_silent_long_computation_is_not_idle():
    """Z6: three hours at 90 % without a browser."""
    since = None
    for number in range(1, 181):
        since = idle_since(since, minute(number - 1), minute(number), 0.9)

    assert since is None


def test_one_sample_does_not_make_ninety_minutes():
    """Z15: quiet stretches between bursts start anew each time."""
    series = [0.0] * 60 + [0.8] + [0.0] * 60
    since = None
    for number, busy in enumerate(series):
        since = idle_since(since, minute(number - 1), minute(number), busy)

    assert since == minute(61)


TOGETHER = {
    "nobody said": ([], None),
    "all said": ([0.1, 0.5], 0.5),
    "one is unknown and the other busy": ([None, 0.5], 0.5),
    "one is unknown and the other quiet": ([None, 0.0], None),
    "all unknown": ([None, None], None),
}


@pytest.mark.parametrize("case", TOGETHER)
def test_several_cards_together(case):
    values, expected = TOGETHER[case]

    assert together(values) == expected
