"""What the API server holds of a few kinds, kept up to date by watches: the store that the stand-ins look into."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from contextlib import closing
from queue import SimpleQueue
from typing import NamedTuple

from scheduling.cluster.client import Connection, Session
from scheduling.cluster.port import ClusterError
from scheduling.cluster.simulated.kinds import Document, Key, Kind, key_of
from scheduling.cluster.simulated.store import Change, Store

LASTS = 300  # seconds of one watch
PATIENCE = 30.0  # seconds for the first list
BREATH = 0.1  # seconds after a watch that failed


class News(NamedTuple):
    """What a watch said: documents came, or went. `whole` is the kind of a complete list, as it stood at `version`."""

    documents: list[Document]
    gone: bool = False
    whole: Kind | None = None
    version: int = 0


class Mirror(Store):
    """Holds the server's documents under the server's versions. Older news than what it has is passed over."""

    def __init__(self) -> None:
        super().__init__()
        self.left: dict[Key, int] = {}  # what is gone, and as of which version

    def put(self, document: Document) -> Document:
        key, version = key_of(document), version_of(document)
        previous = self.get(key)
        if version <= max(version_of(previous) if previous else 0, self.left.get(key, 0)):
            return previous or document
        self.documents[key.plural][key] = document
        self._index(key, previous, document)
        self._record(Change(version, "MODIFIED" if previous else "ADDED", key, document, previous))
        return document

    def drop(self, document: Document) -> None:
        key, version = key_of(document), version_of(document)
        self.left[key] = max(version, self.left.get(key, 0))
        previous = self.get(key)
        if previous is None or version_of(previous) > version:
            return
        del self.documents[key.plural][key]
        self._index(key, previous, None)
        self._record(Change(version, "DELETED", key, document, previous))

    def hear(self, news: News) -> None:
        for document in news.documents:
            (self.drop if news.gone else self.put)(filled(document))
        if news.whole:
            there = {key_of(document) for document in news.documents}
            for key, document in list(self.documents[news.whole.plural].items()):
                if key not in there and version_of(document) <= news.version:  # else it was made since
                    self.drop(document)


class Ear:
    """Watches a few kinds for as long as the control plane lives, and tells one listener at a time."""

    def __init__(self, connection: Connection, kinds: Iterable[Kind]) -> None:
        self.mirror = Mirror()
        self.listener: SimpleQueue[News] | None = None
        self.lock = threading.Lock()
        self.reflectors = [Reflector(connection, kind, self.hear) for kind in kinds]

    def start(self) -> None:
        """Back when every kind has been listed once."""
        for reflector in self.reflectors:
            reflector.start()
        for reflector in self.reflectors:
            if not reflector.listed.wait(timeout=PATIENCE):
                raise ClusterError(f"The API server does not list its {reflector.kind.plural}.")

    def stop(self) -> None:
        """The threads end with their next word, or with this process."""
        for reflector in self.reflectors:
            reflector.ended.set()

    def hear(self, news: News) -> None:
        with self.lock:
            self.mirror.hear(news)
            if self.listener:
                self.listener.put(news)

    def tell(self, listener: SimpleQueue[News] | None) -> None:
        """From now on tell this listener, beginning with all that is there; None: nobody."""
        with self.lock:
            self.listener = listener
            for reflector in self.reflectors if listener else []:
                listener.put(News(list(self.mirror.documents[reflector.kind.plural].values())))

    def knows_of(self, plural: str) -> int:
        with self.lock:
            return len(self.mirror.documents[plural])


class Reflector(threading.Thread):
    """Lists and watches one kind, and says what it hears until it is ended."""

    def __init__(self, connection: Connection, kind: Kind, say: Callable[[News], None]) -> None:
        super().__init__(name=f"standins-{kind.plural}", daemon=True)
        self.kind, self.say = kind, say
        self.session = Session(connection)
        self.listed, self.ended = threading.Event(), threading.Event()

    def run(self) -> None:
        with closing(self.session):
            while not self.ended.is_set():
                try:
                    self.follow()
                except ClusterError:
                    self.ended.wait(BREATH)

    def follow(self) -> None:
        path = path_of(self.kind)
        found = json.loads(self.session.ask("GET", path))
        there = [self.named(item) for item in found["items"]]
        self.say(News(there, whole=self.kind, version=int(found["metadata"]["resourceVersion"])))
        self.listed.set()
        query = {
            "watch": "true",
            "resourceVersion": found["metadata"]["resourceVersion"],
            "allowWatchBookmarks": "true",
            "timeoutSeconds": LASTS,
        }
        for line in self.session.lines(path, query=query, silence=LASTS + 10.0):
            if self.ended.is_set():
                return
            self.tell(json.loads(line) if line.strip() else {})

    def tell(self, event: Document) -> None:
        match event.get("type"):
            case "ERROR":
                raise ClusterError(str(event["object"].get("message")))
            case "ADDED" | "MODIFIED" | "DELETED":
                self.say(News([self.named(event["object"])], gone=event["type"] == "DELETED"))

    def named(self, item: Document) -> Document:
        return item | {"apiVersion": self.kind.api_version, "kind": self.kind.kind}


def filled(document: Document) -> Document:
    """As controllers expect it: custom objects have no status before somebody writes one."""
    document.setdefault("status", {})
    return document


def version_of(document: Document) -> int:
    return int(document["metadata"]["resourceVersion"])


def path_of(kind: Kind, key: Key | None = None) -> str:
    """The path of one object, or of all objects of a kind in all namespaces."""
    group = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.api_version}"
    if key is None:
        return f"{group}/{kind.plural}"
    inside = f"/namespaces/{key.namespace}" if key.namespace else ""
    return f"{group}{inside}/{kind.plural}" + (f"/{key.name}" if key.name else "")
