"""When a cluster is left alone: because it asked for that, or because it does not answer.

One per cluster and process. After a 429 or 503 with Retry-After nobody calls before that time is over. After some calls
in a row without any answer (or without one to who we are, 401) the circuit opens: calls fail at once for a pause that
grows, then one call at a time tries, with little patience, and only one of all open circuits of the process at a time.
So a cluster that hangs costs its worker a few seconds now and then, and the other clusters keep their pace.
"""

import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from datetime import timedelta as td

from scheduling.cluster.port import ClusterError

FAILURES = 3  # in a row, until the circuit opens
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds
JITTER = 0.2  # of a pause, so that many processes do not come back at the same instant
TRIAL_PATIENCE = 4.0  # seconds for the first byte of an answer
UNAUTHORIZED = 401
OVERLOADED = frozenset({429, 503})
BEHIND = ("/proxy/", "/log")  # answered by a pod or a kubelet: what those do says nothing of the API server

_trial = threading.Lock()
"""Held by the one call of this process that tries a cluster which did not answer."""


class Circuit:
    """Safe to use from several threads. `clock` is monotonic and in seconds."""

    def __init__(self, clock: Callable[[], float] | None = None, dice: random.Random | None = None) -> None:
        self._own_clock = clock
        self._dice = dice or random.Random()  # noqa: S311 (spreads calls, guards nothing)
        self._lock = threading.Lock()
        self._failures = 0
        self._openings = 0
        self._open_until = 0.0
        self._told_until = 0.0
        self._trying = False
        self._trouble = ""  # why it is open, and until when: an instant, so that the same state says the same words
        self._told = ""

    @contextmanager
    def call(self, path: str = "", *, tries: bool = True) -> Iterator[float]:
        """The frame of one call: raises a ClusterError instead of letting it through, and remembers how it ended.

        Yields the most seconds to wait for an answer. What waits long by nature, as a watch, does not try a cluster
        that did not answer (`tries`); it comes when somebody else has found it well.
        """
        trial = self._admit(tries=tries)
        behind = any(part in path for part in BEHIND)
        try:
            yield TRIAL_PATIENCE if trial else math.inf
        except ClusterError as error:
            if not behind or error.status not in {None, *OVERLOADED}:
                self._ended(error)
            raise
        else:
            self._heard()
        finally:
            if trial:
                self._trying = False
                _trial.release()

    def _admit(self, *, tries: bool) -> bool:
        """Whether this call is a trial. Raises a ClusterError while nobody is to call."""
        with self._lock:
            now = self._now()
            if now < self._told_until:
                raise ClusterError(self._told, after=self._told_until - now)
            if now < self._open_until:
                raise ClusterError(self._trouble, after=self._open_until - now)
            if self._failures < FAILURES:
                return False
            if not tries or self._trying or not _trial.acquire(blocking=False):
                raise ClusterError(self._trouble, after=FIRST_PAUSE)
            self._trying = True
            return True

    def _ended(self, error: ClusterError) -> None:
        if error.status is None or error.status == UNAUTHORIZED:
            self._failed(error)
            return
        self._heard()
        if error.after and error.status in OVERLOADED:
            with self._lock:
                self._told_until = max(self._told_until, self._now() + error.after)
                self._told = f"{error} It asked not to be called before {instant_in(error.after)}."

    def _heard(self) -> None:
        with self._lock:
            self._failures = self._openings = 0
            self._open_until = 0.0

    def _failed(self, error: ClusterError) -> None:
        with self._lock:
            self._failures += 1
            now = self._now()
            if self._failures < FAILURES or now < self._open_until:
                return
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(self._openings, 10))
            pause *= 1.0 - JITTER * self._dice.random()
            self._openings += 1
            self._open_until = now + pause
            self._trouble = f"{error} It is asked again at {instant_in(pause)}."

    def _now(self) -> float:
        return self._own_clock() if self._own_clock else seconds()


def seconds() -> float:
    """The clock of every circuit that was given none."""
    return time.monotonic()


def instant_in(seconds: float) -> str:
    return f"{datetime.now(UTC) + td(seconds=seconds):%H:%M:%S} UTC"
