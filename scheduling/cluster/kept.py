"""One kind of a cluster's objects, kept in step: a whole list first, then each line of a watch.

Whoever lists and whoever listens share the shelf, so a look that had to list spares the stream its own list. No lock
is held during a call.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Condition
from typing import Any

from scheduling.cluster.api import GONE, Api, pages
from scheduling.cluster.documents import Unreadable
from scheduling.cluster.port import ClusterError
from scheduling.cluster.shelf import Change, Item, Shelf, highest, newer, number, older
from scheduling.cluster.sources import BOOKMARK, DELETED, ERROR, OF_OBJECTS, Heard, Source, read_line, read_page
from scheduling.planning.facts import Problem

NOT_FOUND = 404
REFUSALS = frozenset({401, 403, NOT_FOUND})  # nothing but a person changes them
ABSENT = 900.0  # seconds for which a kind that the server does not know counts as not there
PAST = 120.0  # seconds for which an answer from the past is not believed; then the cluster was restored from a backup

Changes = list[Change[Any]]


@dataclass(eq=False)
class Kept:
    """`resume` is where the watch goes on; "" when a whole list is due."""

    source: Source
    noted: Callable[[Changes], None]  # told of every change of a fact, under the lock
    word: Condition  # the mirror's lock; rung at every word
    shelf: Shelf[Any] = field(default_factory=Shelf)
    resume: str = ""
    path: str = ""
    absent: bool = False  # the server does not know the kind
    listening: bool = False  # somebody keeps a watch open, or looks again in a while
    open: bool = False  # and nothing is known to be wrong with it
    error: ClusterError | None = None
    heard: float = float("-inf")  # when the server last said anything about this kind, on the monotonic clock
    heard_at: datetime | None = None  # the same, on the wall clock
    problems: tuple[Problem, ...] = ()
    odd: Problem | None = None  # the last thing in the stream that could not be understood
    past_since: float | None = None
    _streamed: int | None = None  # how far the open watch has come by its own words

    @property
    def query(self) -> dict[str, str | int]:
        return {"labelSelector": self.source.selector} if self.source.selector else {}

    def is_current(self, bound: float) -> bool:
        """Is there a stream, and has it said anything within so many seconds?"""
        return self.listening and self.open and time.monotonic() - self.heard <= (ABSENT if self.absent else bound)

    def has_reached(self, version: int | None) -> bool:
        """Has the stream come so far? What cannot be compared it has not."""
        return version is not None and self.shelf.version is not None and self.shelf.version >= version

    # Lists

    def read(self, api: Api, *, floor: int | None = None, another: Callable[[], bool] = lambda: False) -> Changes:
        """List the whole kind and take it in. Raises a ClusterError.

        An answer older than what was seen before (or than `floor`) is not believed: the server speaks from its past.
        Unless it is `another` cluster by now, or it insists.
        """
        began, began_at = time.monotonic(), datetime.now(UTC)
        floor = highest(floor, highest(self.shelf.version, self.shelf.mark))
        items, problems, said = self._listed(api)
        version = number(said)
        if older(version, floor):
            self._judge(version, floor, another)
        with self.word:
            if not self.resume or not older(version, self.shelf.version):
                self.resume = said
            changes = self.shelf.replace(items, version)
            if self.absent:
                self.shelf.forget()  # a kind that is defined again comes with the objects that it had, as old as before
            self.past_since, self.error = None, None
            self.problems = tuple(problems)
            self._speaks(began, began_at)
            self.noted(changes)
        return changes

    def _listed(self, api: Api) -> tuple[list[Item], list[Problem], str]:
        """All pages, in the newest version that the server speaks."""
        trouble: ClusterError | None = None
        for path in (self.path,) if self.path else self.source.paths:
            try:
                found = list(pages(api, path, self.query))
            except ClusterError as error:
                self.path = ""
                if error.status != NOT_FOUND:
                    raise
                trouble = error
                continue
            self.path, self.absent = path, False
            return self._decoded(found)
        if not self.source.missing:
            raise trouble or ClusterError(f"There is no way to list {self.source.kind}.", retry=False)
        self.absent = True
        return [], [Problem(self.source.kind, "", self.source.missing)], ""

    def _decoded(self, found: list[bytes]) -> tuple[list[Item], list[Problem], str]:
        items: list[Item] = []
        problems: list[Problem] = []
        version = ""
        for page in found:
            try:
                more, odd, meta = read_page(page, self.source)
            except Unreadable as error:
                raise ClusterError(f"The cluster answered with something that is not a list: {error}.") from None
            items += more
            problems += odd
            version = version or meta.resource_version
        return items, problems, version

    def _judge(self, version: int | None, floor: int | None, another: Callable[[], bool]) -> None:
        now = time.monotonic()
        self.past_since = now if self.past_since is None else self.past_since
        if now - self.past_since < PAST and not another():
            raise ClusterError(
                f"The cluster answered from its past: its {self.source.kind} list is of version {version}, "
                f"and {floor} was seen before. It is asked again."
            )
        with self.word:
            self.shelf.forget()

    # Lines

    def opened(self) -> None:
        """The server has taken the watch."""
        with self.word:
            self.open, self.error, self._streamed = True, None, number(self.resume)
            self._speaks(time.monotonic(), datetime.now(UTC))

    def hear(self, line: bytes) -> Changes:
        """Take in one line. Raises Unreadable for one that says nothing, ClusterError for one that ends the watch."""
        heard = read_line(line, self.source) if line.strip() else Heard("")
        if heard.word == ERROR:
            status = heard.status
            text = f"The cluster ended a watch: {(status and status.message) or 'without a reason'}."
            raise ClusterError(text, status=status.code if status else None)
        with self.word:
            if heard.word == BOOKMARK and older(number(heard.version), self._streamed):
                raise ClusterError("The cluster's watch went back in time; it is listed anew.", status=GONE)
            self._speaks(time.monotonic(), datetime.now(UTC))
            changes = self._taken(heard)
            if heard.word in OF_OBJECTS or heard.word == BOOKMARK:
                self._came_to(heard.version)
            elif heard.word:
                self.odd = Problem(self.source.kind, "", f"the watch says {heard.word[:40]!r}, which is ignored")
            self.noted(changes)
        return changes

    def _taken(self, heard: Heard) -> Changes:
        item = heard.item
        if item is None:
            return []
        if heard.word == DELETED or item.fact is None:
            change = self.shelf.bury(item.key, item.uid, item.version)
        else:
            change = self.shelf.take(item)
        return [] if change is None else [change]

    def _came_to(self, version: str) -> None:
        if version and newer(number(version), self._streamed):
            self.resume = version
            self._streamed = highest(self._streamed, number(version))
        self.shelf.heard(number(version))

    def _speaks(self, at: float, wall: datetime) -> None:
        self.heard = max(self.heard, at)
        self.heard_at = wall if self.heard_at is None else max(self.heard_at, wall)
        self.word.notify_all()
