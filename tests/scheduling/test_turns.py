"""However many beats ring, each period is served once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from datetime import timedelta as td

import pytest
from django.db import connection

from scheduling import tasks
from scheduling.turns import our_turn, period_of

NOON = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


@pytest.mark.django_db
def test_a_hundred_periods_of_two_beats_out_of_step_are_a_hundred_turns():
    rings = [NOON + td(seconds=10 * number + late) for number in range(100) for late in (1, 6)]

    assert sum(our_turn("tick", 10, at) for at in rings) == 100


@pytest.mark.django_db
def test_tasks_have_turns_of_their_own():
    assert our_turn("tick", 10, NOON)
    assert our_turn("sample", 10, NOON)
    assert not our_turn("tick", 10, NOON)


@pytest.mark.django_db
def test_a_clock_that_was_set_back_stops_nothing():
    assert our_turn("tick", 10, NOON + td(minutes=10))
    assert our_turn("tick", 10, NOON)
    assert not our_turn("tick", 10, NOON + td(seconds=1))


@pytest.mark.django_db
def test_another_length_of_the_period_stops_nothing():
    assert our_turn("tick", 1, NOON)
    assert our_turn("tick", 10, NOON + td(seconds=10))
    assert our_turn("tick", 1, NOON + td(seconds=11))


def test_periods_are_cut_on_the_wall_clock():
    assert period_of(NOON + td(seconds=9.9), 10) == NOON
    assert period_of(NOON + td(seconds=0.35), 0.1) == NOON + td(seconds=0.3)


@pytest.mark.django_db(transaction=True)
def test_of_eight_at_once_one_has_the_turn():
    def ask(_: int) -> bool:
        try:
            return our_turn("tick", 10, NOON)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(8))) == 1


@pytest.mark.django_db
def test_a_tick_of_a_served_period_sends_nothing(world, monkeypatch):
    sent = []
    monkeypatch.setattr(tasks, "our_turn", lambda task, seconds: False)
    monkeypatch.setattr(tasks, "send", sent.append)

    tasks.tick()

    assert sent == []


@pytest.mark.django_db
@pytest.mark.parametrize("message", [{"reason": "a newer version says why"}, {"generation": 7, "trace": {"id": "x"}}])
def test_what_a_newer_version_sends_besides_is_understood(world, monkeypatch, message):
    seen = []
    monkeypatch.setattr(tasks, "look_after", seen.append)

    tasks.cycle(world.cluster.pk, "a new argument", **message)

    assert seen == [world.cluster.pk]
