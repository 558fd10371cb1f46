"""Who is looked at without a wake-up: nobody, where nothing changed and nothing is due."""

from __future__ import annotations

from datetime import UTC, datetime
from datetime import timedelta as td
from typing import Any

import pytest

from scheduling import tasks, wake
from scheduling.models import Cluster
from scheduling.wake import is_due, patience
from tests.world import World

WALL = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
NOW = datetime(2026, 12, 4, 18, 0, tzinfo=UTC)  # the tables' clock: simulated time may be far from the wall's


def ago(seconds: float) -> datetime:
    return WALL - td(seconds=seconds)


CASES: dict[str, tuple[dict[str, Any], bool]] = {
    "one that was never looked at": ({"looked_at": None}, True),
    "one in which nothing happens": ({"looked_at": ago(59)}, False),
    "one that was not looked at for the safety interval": ({"looked_at": ago(60)}, True),
    "one whose time has come": ({"looked_at": ago(1), "due_at": NOW}, True),
    "one whose time is near": ({"looked_at": ago(1), "due_at": NOW + td(seconds=1)}, False),
    "one whose wish the last look heard": ({"looked_at": ago(5), "wanted_at": ago(6)}, False),
    "one whose wake-up was lost": ({"looked_at": ago(5), "wanted_at": ago(4)}, True),
    "one that failed a moment ago": ({"looked_at": ago(9), "failed_looks": 1}, False),
    "one that failed a tick ago": ({"looked_at": ago(10), "failed_looks": 1}, True),
    "one that failed twice": ({"looked_at": ago(19), "failed_looks": 2}, False),
    "one that failed very often, at last": ({"looked_at": ago(60), "failed_looks": 30_000}, True),
    "one whose looks broke, while it rests": ({"looked_at": None, "rest_until": WALL + td(seconds=1)}, False),
    "one whose rest is over": ({"looked_at": None, "rest_until": WALL}, True),
    "one last looked at in time to come: the wall clock was set back": ({"looked_at": ago(-3600)}, True),
}


@pytest.mark.parametrize("case", CASES)
def test_is_looked_at(case: str) -> None:
    facts, wanted = CASES[case]

    assert is_due(Cluster(**facts), NOW, WALL) is wanted


def test_trouble_is_looked_at_less_and_less_often_but_never_less_than_health() -> None:
    assert [patience(failed).total_seconds() for failed in range(6)] == [60, 10, 20, 40, 60, 60]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(tasks, "send", found.append)
    monkeypatch.setattr(wake, "send", found.append)
    monkeypatch.setattr(tasks, "our_turn", lambda *_: True)
    return found


def test_a_tick_sends_a_task_for_those_only(world: World, sent: list[int]) -> None:
    quiet = {"server": "http://127.0.0.1:1", "created_at": world.now, "looked_at": datetime.now(UTC)}
    Cluster.objects.create(name="quiet", **quiet)
    due = Cluster.objects.create(name="due", **quiet, due_at=world.now)
    tasks.tick()

    assert sent == [due.pk, world.cluster.pk]  # that one was never looked at


def test_a_tick_asks_the_tables_a_fixed_number_of_times(
    world: World, sent: list[int], django_assert_num_queries: Any
) -> None:
    for number in range(5):
        Cluster.objects.create(name=f"c{number}", server="http://127.0.0.1:1", created_at=world.now)
    tasks.tick()
    assert len(sent) == 6
    with django_assert_num_queries(1):
        assert len(list(wake.clusters_to_look_at(world.now, datetime.now(UTC)))) == 6


def test_a_wake_up_that_was_lost_is_found_by_the_next_tick(world: World, sent: list[int]) -> None:
    Cluster.objects.update(looked_at=datetime.now(UTC))
    tasks.tick()
    assert sent == []

    wake.wake_cycle(world.cluster.pk)  # the task is lost
    tasks.tick()

    assert sent == [world.cluster.pk]
