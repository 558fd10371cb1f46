"""When a cluster is left alone: because it asked for that, or because it does not answer.

One per cluster and process. After a 429 or 503 with Retry-After nobody calls before that time is over. After some calls
in a row without any answer (or without one to who we are, 401) the circuit opens: calls fail at once for a pause that
grows, then one call at a time tries.

A cluster that has not answered this process yet, or not the last time, is in doubt: it is waited for with little
patience, and only two such clusters at a time, so that however many hang, the worker's other threads are free for those
that do not.
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

_slots = threading.BoundedSemaphore(2)
"""Of this process, each held by a cluster in doubt that is being waited for."""
IN_LINE = "It was not asked now: other clusters that do not answer are being tried first."


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
        self._proven = False
        self._waited_for = 0  # calls under way since it is in doubt
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
                self._done()

    def _admit(self, *, tries: bool) -> bool:
        """Whether this call is a trial. Raises a ClusterError while nobody is to call."""
        with self._lock:
            now = self._now()
            if now < self._told_until:
                raise ClusterError(self._told, after=self._told_until - now)
            if now < self._open_until:
                raise ClusterError(self._trouble, after=self._open_until - now)
            opened = self._failures >= FAILURES
            if opened and (self._waited_for or not tries):
                raise ClusterError(self._trouble, after=FIRST_PAUSE)
            if not tries or (self._proven and not self._failures):
                return False
            if not self._waited_for and not _slots.acquire(blocking=False):
                raise ClusterError(self._trouble or IN_LINE, after=FIRST_PAUSE)
            self._waited_for += 1
            return True

    def _done(self) -> None:
        with self._lock:
            self._waited_for -= 1
            if not self._waited_for:
                _slots.release()

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
            self._proven = True
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
