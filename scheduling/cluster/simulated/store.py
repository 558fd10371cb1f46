"""The objects, in memory, with what a watch needs: one counter of versions and a bounded history per kind.

A stored document is never changed in place: a writer copies it, changes the copy and puts that. So a list, a watch
and a controller may hold references without locks, and the JSON of one version is made once.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .errors import expired
from .kinds import KINDS, Document, Key, key_of

HISTORY = 5_000
"""Changes of one kind that a watch may still ask for; older ones answer 410 Expired."""


class Change(NamedTuple):
    version: int
    type: str  # ADDED, MODIFIED, DELETED
    key: Key
    document: Document
    previous: Document | None


Listener = Callable[[Change], None]


class Store:
    def __init__(self, history: int = HISTORY) -> None:
        self.version = 1
        self.documents: dict[str, dict[Key, Document]] = {kind.plural: {} for kind in KINDS}
        self.dependents: dict[str, set[Key]] = {}  # uid of an owner -> what it owns
        self.listeners: list[Listener] = []
        self._limit = history
        self._history: dict[str, deque[Change]] = {kind.plural: deque() for kind in KINDS}
        self._forgotten: dict[str, int] = {kind.plural: 0 for kind in KINDS}
        self._encoded: dict[Key, bytes] = {}

    def get(self, key: Key) -> Document | None:
        return self.documents[key.plural].get(key)

    def all(self, plural: str, namespace: str = "") -> list[Document]:
        """In the order of namespace and name, as etcd keeps them."""
        found = self.documents[plural]
        return [found[key] for key in sorted(found) if not namespace or key.namespace == namespace]

    def put(self, document: Document) -> Document:
        """Store a new version of the document under its own name and tell everybody."""
        key = key_of(document)
        previous = self.get(key)
        self.version += 1
        document["metadata"]["resourceVersion"] = str(self.version)
        self.documents[key.plural][key] = document
        self._index(key, previous, document)
        self._record(Change(self.version, "MODIFIED" if previous else "ADDED", key, document, previous))
        return document

    def remove(self, key: Key) -> Document:
        """Forget the document; KeyError when it is not there. The last version carries the version of its removal."""
        previous = self.documents[key.plural].pop(key)
        self.version += 1
        last = previous | {"metadata": previous["metadata"] | {"resourceVersion": str(self.version)}}
        self._index(key, previous, None)
        self._record(Change(self.version, "DELETED", key, last, previous))
        return last

    def item_json(self, key: Key, document: Document) -> bytes:
        """The document's JSON without apiVersion and kind, as it stands in a list; made once per version."""
        if self.get(key) is not document:
            return as_item(document)
        if key not in self._encoded:
            self._encoded[key] = as_item(document)
        return self._encoded[key]

    def json(self, key: Key, document: Document) -> bytes:
        """The whole document as JSON."""
        head = json.dumps({"kind": document["kind"], "apiVersion": document["apiVersion"]}, separators=(",", ":"))
        return head[:-1].encode() + b"," + self.item_json(key, document)[1:]

    def changes_since(self, plural: str, version: int) -> Iterator[Change]:
        """Changes of a kind after a version, oldest first; Expired when some of them are forgotten."""
        self.check_remembered(plural, version)
        history = self._history[plural]
        fresh: list[Change] = []
        for change in reversed(history):
            if change.version <= version:
                break
            fresh.append(change)
        return reversed(fresh)

    def check_remembered(self, plural: str, version: int) -> None:
        if version < self._forgotten[plural]:
            raise expired(version, self._forgotten[plural])

    def forget_history(self, plural: str = "") -> None:
        """As after a compaction: watches from any earlier version are too old."""
        for name in [plural] if plural else list(self._history):
            self._history[name].clear()
            self.version += 1
            self._forgotten[name] = self.version

    def _record(self, change: Change) -> None:
        self._encoded.pop(change.key, None)
        history = self._history[change.key.plural]
        history.append(change)
        if len(history) > self._limit:
            self._forgotten[change.key.plural] = history.popleft().version
        for listener in self.listeners:
            listener(change)

    def _index(self, key: Key, previous: Document | None, document: Document | None) -> None:
        before, after = owner_uids(previous), owner_uids(document)
        for uid in before - after:
            self.dependents.get(uid, set()).discard(key)
        for uid in after - before:
            self.dependents.setdefault(uid, set()).add(key)


def as_item(document: Document) -> bytes:
    inner = {name: value for name, value in document.items() if name not in ("apiVersion", "kind")}
    return json.dumps(inner, separators=(",", ":")).encode()


def owner_uids(document: Document | None) -> set[str]:
    if document is None:
        return set()
    return {owner["uid"] for owner in document["metadata"].get("ownerReferences") or []}
