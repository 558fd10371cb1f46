"""Watches: what one client still has to hear, and the bell that rings when there is more."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass, field

from .errors import ApiError, bad_request
from .kinds import Document, key_of
from .listing import Query
from .selectors import Test, both
from .store import Change, Store


@dataclass(eq=False, slots=True)
class Watch:
    """One open watch. `version` is what the client has heard; `ended` says how a fault ends it."""

    query: Query
    version: int
    test: Test
    bell: asyncio.Event = field(default_factory=asyncio.Event)
    ended: str = ""  # "", cut, expired
    silent: bool = False


class Hub:
    """Rings the bells of the watches whose kind changed; writers may live in another thread."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.loop: asyncio.AbstractEventLoop | None = None
        self.watches: set[Watch] = set()
        self.lock = threading.Lock()
        store.listeners.append(lambda change: self.ring(change.key.plural))

    def open(self, query: Query, version: str) -> Watch:
        """A new watch; Expired when the history does not reach back to the version."""
        test = both(query.labels, query.fields, query.kind)
        start = read_version(version)
        if start:
            self.store.check_remembered(query.kind.plural, start)
        watch = Watch(query, start, test)
        with self.lock:
            self.watches.add(watch)
        return watch

    def close(self, watch: Watch) -> None:
        with self.lock:
            self.watches.discard(watch)

    def end(self, plural: str, how: str) -> int:
        """End the open watches of a kind (all kinds when empty) by a fault; how many there were."""
        hit = [watch for watch in self.open_watches() if plural in ("", watch.query.kind.plural)]
        for watch in hit:
            watch.ended = how
        self.ring(plural)
        return len(hit)

    def ring(self, plural: str = "") -> None:
        bells = [watch.bell for watch in self.open_watches() if plural in ("", watch.query.kind.plural)]
        if not bells or self.loop is None or self.loop.is_closed():
            return
        for bell in bells:
            self.loop.call_soon_threadsafe(bell.set)

    def open_watches(self) -> list[Watch]:
        with self.lock:
            return list(self.watches)

    def lines(self, watch: Watch) -> list[bytes]:
        """The events that the client has not heard yet, as lines. The first call of a watch without version lists."""
        plural = watch.query.kind.plural
        if watch.version == 0:
            watch.version = self.store.version
            present = self.store.all(plural, watch.query.namespace)
            return [line("ADDED", self.store, document) for document in present if watch.test(document)]
        try:
            changes = list(self.store.changes_since(plural, watch.version))
        except ApiError as error:
            watch.ended = "expired"
            return [error_line(error)]
        watch.version = self.store.version
        return [text for change in changes if (text := self.event(watch, change))]

    def event(self, watch: Watch, change: Change) -> bytes:
        """The event as this watch sees it: an object that leaves the selection is DELETED for it."""
        if watch.query.namespace not in ("", change.key.namespace):
            return b""
        before = change.previous is not None and watch.test(change.previous)
        now = change.type != "DELETED" and watch.test(change.document)
        if now:
            return line("MODIFIED" if before else "ADDED", self.store, change.document)
        return line("DELETED", self.store, change.document) if before else b""

    def bookmark(self, watch: Watch) -> bytes:
        kind = watch.query.kind
        metadata = {"resourceVersion": str(watch.version), "creationTimestamp": None}
        body = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
        return json.dumps({"type": "BOOKMARK", "object": body}).encode() + b"\n"


def line(word: str, store: Store, document: Document) -> bytes:
    return b'{"type":"' + word.encode() + b'","object":' + store.json(key_of(document), document) + b"}\n"


def error_line(error: ApiError) -> bytes:
    return json.dumps({"type": "ERROR", "object": error.status()}).encode() + b"\n"


def read_version(text: str) -> int:
    if not text:
        return 0
    if not text.isdigit():
        raise bad_request(f"Invalid value: {text!r}: a resourceVersion is a number")
    return int(text)
