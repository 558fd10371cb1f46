"""Counting failed log-ins, with Redis and without."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from portal import guesses
from portal.guesses import OF_ONE, OF_PAIR, WINDOW, Guess, forget, note_failure, seconds_to_wait
from scheduling.announce import connection

HERE, THERE = "192.0.2.1", "192.0.2.2"


class Away:
    """A Redis that does not answer."""

    def pipeline(self, **_: Any) -> Any:
        raise redis.ConnectionError("away")

    def delete(self, *_: str) -> None:
        raise redis.ConnectionError("away")


@pytest.fixture(params=["with Redis", "without"], autouse=True)
def _counters(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    connection().flushdb()
    if request.param == "without":
        monkeypatch.setattr(guesses, "connection", Away)
    yield
    guesses._alone.clear()


def fail(times: int, name: str = "robin", address: str = HERE) -> None:
    for _ in range(times):
        note_failure(Guess(name, address))


def test_a_few_failures_close_nothing() -> None:
    fail(OF_PAIR - 1)

    assert seconds_to_wait(Guess("robin", HERE)) == 0


def test_ten_close_the_name_from_that_address_only() -> None:
    fail(OF_PAIR)

    assert 0 < seconds_to_wait(Guess("robin", HERE)) <= WINDOW
    assert seconds_to_wait(Guess("ROBIN", HERE)) > 0
    assert seconds_to_wait(Guess("robin", THERE)) == 0
    assert seconds_to_wait(Guess("dana", HERE)) == 0


def test_a_hundred_of_one_name_close_it_from_everywhere() -> None:
    for number in range(OF_ONE):
        fail(1, address=f"198.51.100.{number}")

    assert seconds_to_wait(Guess("robin", THERE)) > 0
    assert seconds_to_wait(Guess("dana", "198.51.100.7")) == 0


def test_a_hundred_from_one_address_close_it_for_every_name() -> None:
    for number in range(OF_ONE):
        fail(1, name=f"person-{number}")

    assert seconds_to_wait(Guess("robin", HERE)) > 0
    assert seconds_to_wait(Guess("robin", THERE)) == 0


def test_a_success_forgets_the_failures_before_it() -> None:
    fail(OF_PAIR)

    forget(Guess("robin", HERE))

    assert seconds_to_wait(Guess("robin", HERE)) == 0


def test_failures_are_forgotten_after_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guesses, "connection", Away)
    fail(OF_PAIR)
    later = time.monotonic() + WINDOW + 1

    monkeypatch.setattr("portal.guesses.time.monotonic", lambda: later)

    assert seconds_to_wait(Guess("robin", HERE)) == 0
    fail(1)
    assert guesses._alone[next(Guess("robin", HERE).limits())[0]][0] == 1


def test_what_one_process_keeps_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guesses, "connection", Away)
    monkeypatch.setattr(guesses, "MOST_KEPT", 30)

    for number in range(100):
        fail(1, name="x" * 1000 + str(number), address=str(number))

    assert len(guesses._alone) <= 30
    assert max(map(len, guesses._alone)) < 60
