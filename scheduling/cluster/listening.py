"""The ear of one kind: list, watch, and again, until told to stop. Whatever breaks, it goes on, and never in haste."""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from scheduling.cluster.api import GONE, Api, Query
from scheduling.cluster.documents import Unreadable
from scheduling.cluster.kept import REFUSALS, Changes, Kept
from scheduling.cluster.port import ClusterError, WentSilent

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds between two tries
RARELY = 300.0  # where nothing but a person can help, or a kind is not there at all
FIRST_REFUSED = 30.0
LASTS = (240, 480)  # seconds after which the server ends a watch by itself; not all of them at once
WORTHWHILE = 5.0  # a watch that lasted so long was no failure

log = logging.getLogger(__name__)


class Server(Api, Protocol):
    """One connection to one API server that can also be listened to."""

    def lines(self, path: str, *, query: Query, silence: float, begun: Callable[[], None]) -> Iterator[bytes]:
        """The lines of a watch as they come; `begun` once the server has taken it. Raises WentSilent."""


@dataclass
class Ear:
    """`heard` is called with the changes that matter to somebody."""

    kept: Kept
    api: Server
    silence: float
    stop: threading.Event
    heard: Callable[[Changes], None]
    another: Callable[[], bool]
    failures: int = 0

    def listen(self) -> None:
        self.kept.listening = True
        try:
            while not self.stop.is_set():
                self.stop.wait(self.turn())
        finally:
            self.kept.listening = self.kept.open = False

    def turn(self) -> float:
        """List where that is due, then watch until the stream ends. Answers the seconds to rest."""
        began = time.monotonic()
        try:
            if not self.kept.resume:
                self._tell(self.kept.read(self.api, another=self.another))
            if self.kept.absent:
                return self._looked()
            self._watch()
        except ClusterError as error:
            return self._failed(error, began)
        except Unreadable as error:  # it may have been a change: the list shows it
            self._anew()
            self.kept.odd = error.problem
            return self._pause(began)
        except Exception:
            log.exception("Listening to %s failed; it begins anew.", self.kept.source.kind)
            self._anew()
            return self._pause(began)
        return self._pause(began) if time.monotonic() - began < WORTHWHILE else 0.0

    def _watch(self) -> None:
        query: dict[str, str | int] = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self.kept.resume,
            "timeoutSeconds": random.randint(*LASTS),  # noqa: S311
        }
        asked = self.kept.query | query
        for line in self.api.lines(self.kept.path, query=asked, silence=self.silence, begun=self._begun):
            self._tell(self.kept.hear(line))
            if self.stop.is_set():
                return

    def _begun(self) -> None:
        """Raises ClusterError when we were told to stop just before: nobody would end this stream."""
        self.kept.opened()
        if self.stop.is_set():
            raise ClusterError("Nobody listens any more.")

    def _tell(self, changes: Changes) -> None:
        if changes:
            self.heard(changes)

    def _failed(self, error: ClusterError, began: float) -> float:
        """A stream that went silent or is told 410 Gone lists anew; others go on where they were."""
        pause = self._pause(began)
        if self.stop.is_set():
            return 0.0
        if error.status == GONE or isinstance(error, WentSilent):
            self._anew()
            return 0.0 if self.failures == 1 else pause
        log.info("Listening to %s was interrupted: %s", self.kept.source.kind, error)
        self.kept.open, self.kept.error = False, error
        if error.status in REFUSALS:
            self._anew()
            pause = min(RARELY, FIRST_REFUSED * 2 ** min(self.failures - 1, 8))
        return max(pause, error.after or 0.0)

    def _looked(self) -> float:
        """The kind is not there; one look in a while is enough."""
        self.kept.open, self.kept.resume, self.failures = True, "", 0
        return RARELY

    def _anew(self) -> None:
        self.kept.open, self.kept.resume = False, ""

    def _pause(self, began: float) -> float:
        """Growing, and not the same for all who failed together."""
        if time.monotonic() - began >= WORTHWHILE:
            self.failures = 0
        self.failures += 1
        return min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self.failures - 1, 8)) * random.uniform(0.5, 1.5)  # noqa: S311
