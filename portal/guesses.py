"""Counts failed log-ins, so that nobody guesses passwords by the thousand.

Ten failures of one name from one address, or a hundred of one name or from one address, close that way for a quarter
of an hour. Counts live in Redis, shared by all processes; while Redis is away each process counts by itself.
"""

import hashlib
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass

import redis

from scheduling.announce import connection

log = logging.getLogger(__name__)

WINDOW = 15 * 60  # seconds
OF_PAIR, OF_ONE = 10, 100  # failures allowed within the window
MOST_KEPT = 10_000  # names and addresses that one process remembers by itself


@dataclass(frozen=True, slots=True)
class Guess:
    """Who somebody says to be, and from where."""

    username: str
    address: str

    def limits(self) -> Iterator[tuple[str, int]]:
        """The counters that a failure counts in, and how far each may go."""
        name = self.username.lower()
        yield _key("pair", name, self.address), OF_PAIR
        yield _key("name", name), OF_ONE
        yield _key("address", self.address), OF_ONE


def seconds_to_wait(guess: Guess) -> int:
    """0 where the person may try; else how long the fullest counter stays closed."""
    found = [_read(key) for key, _ in guess.limits()]
    full = [wait for (count, wait), (_, most) in zip(found, guess.limits(), strict=True) if count >= most]
    return max(full, default=0)


def note_failure(guess: Guess) -> None:
    for key, _ in guess.limits():
        _add(key)


def forget(guess: Guess) -> None:
    """A success clears what was counted for this name from this address."""
    key = next(guess.limits())[0]
    _alone.pop(key, None)
    try:
        connection().delete(key)
    except redis.RedisError as error:
        log.warning("Failed log-ins are counted per process: %s", error)


_alone: dict[str, tuple[int, float]] = {}
"""Count and end of its window (monotonic seconds), for when Redis is away."""


def _key(*parts: str) -> str:
    """Names are hashed: a counter tells nobody whom it is about, and is short however long the name."""
    return "berth:guesses:" + hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _read(key: str) -> tuple[int, int]:
    """(failures, seconds until they are forgotten)."""
    try:
        with connection().pipeline(transaction=False) as pipe:
            pipe.get(key)
            pipe.ttl(key)
            count, wait = pipe.execute()
    except redis.RedisError:
        count, until = _alone.get(key, (0, 0.0))
        wait = int(until - time.monotonic()) + 1
    return (int(count or 0), int(wait)) if int(wait) > 0 else (0, 0)


def _add(key: str) -> None:
    try:
        with connection().pipeline() as pipe:
            pipe.incr(key)
            pipe.expire(key, WINDOW, nx=True)
            pipe.execute()
    except redis.RedisError as error:
        log.warning("Failed log-ins are counted per process: %s", error)
        _add_alone(key, time.monotonic())


def _add_alone(key: str, now: float) -> None:
    count, until = _alone.get(key, (0, 0.0))
    if until <= now:
        count, until = 0, now + WINDOW
    if len(_alone) >= MOST_KEPT:
        _alone.pop(next(iter(_alone)))
    _alone[key] = (count + 1, until)
