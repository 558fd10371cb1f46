"""A cluster as this process knows it: facts that watches keep in step, and our own writes at once.

A look is answered from here without a call while every stream is alive. A stream that is not, or that is behind what
another process saw or wrote, is listed; so a mirror without streams is a plain look by lists. What it hands out says
how old it is, and is never older than what Berth itself has seen or written before.
"""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from datetime import timedelta as td
from typing import Any

from scheduling.cluster.api import document_in, path_of
from scheduling.cluster.documents import Unreadable
from scheduling.cluster.kept import REFUSALS, Kept
from scheduling.cluster.listening import Ear, Server
from scheduling.cluster.port import ClusterError, Observation, Picture
from scheduling.cluster.shelf import Change, Item, Key, highest, number
from scheduling.cluster.sources import JOBS, NODES, PODS, STATEFUL_SETS, Source, read_item
from scheduling.planning.facts import NodeFact, PodFact, Problem

SILENCE = 90.0  # seconds; a server sends a bookmark about once a minute
PATIENCE = 1.0  # seconds that a look waits for streams that are behind
FINISHED = ("Succeeded", "Failed")

log = logging.getLogger(__name__)


@dataclass
class Mirror:
    """Thread-safe. `silence`: seconds without a word after which a stream counts as dead, and what it told as old."""

    api: Server
    pools: Source | None = None  # what tells the sizes of pools, where a provider keeps that in the cluster
    silence: float = SILENCE
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    revision: int = 0  # grows with every change that matters
    _word: threading.Condition = field(default_factory=lambda: threading.Condition(threading.RLock()))
    _kept: dict[str, Kept] = field(default_factory=dict)
    _touched: dict[str, int] = field(default_factory=dict)  # node -> revision at which something of it changed last
    _taken: int | None = None  # the revision that is written down
    _identity: str | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        for source in (NODES, PODS, STATEFUL_SETS, JOBS, *((self.pools,) if self.pools else ())):
            self._kept[source.kind] = Kept(source, self._note, self._word)

    # Listening

    def watch(self, ring: Callable[[], None], name: str = "") -> None:
        """Keep the mirror in step from now on, a thread for each kind; `ring` at changes that matter."""
        if self._threads:
            return
        for kept in self._kept.values():
            ear = Ear(kept, self.api, self.silence, self._stop, lambda found: self._ring(found, ring),
                      self._is_another_cluster)  # fmt: skip
            thread = threading.Thread(target=ear.listen, name=f"mirror-{name}-{kept.source.kind}", daemon=True)
            self._threads.append(thread)
            thread.start()

    @property
    def is_watching(self) -> bool:
        return bool(self._threads) and not self._stop.is_set()

    def stop(self) -> None:
        """End the threads; whoever waits in a read has to be woken by closing the connection."""
        self._stop.set()

    def join(self) -> None:
        """Wait a moment for the threads; one that sits in a connection attempt ends by itself, a little later."""
        end = time.monotonic() + PATIENCE
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, end - time.monotonic()))

    # Looking

    def observe(self, now: datetime, at_least: Picture | None = None) -> Observation:
        """What the cluster is like. Raises a ClusterError when not even its nodes are known.

        `at_least`: what another process has seen and written; what is handed out is not older.
        """
        began = datetime.now(UTC)
        missing: list[Problem] = []
        at_least = self._comparable(at_least)
        for kept in self._due(at_least):
            try:
                self._read(kept, at_least)
            except ClusterError as error:
                if kept.source is NODES:
                    raise
                missing.append(Problem(kept.source.kind, "", str(error)))
        self._know_identity()
        return self._observation(now, began, missing)

    def taken(self, seen: Observation) -> None:
        """A look is written down: `changed` of the next ones counts from there."""
        if seen.revision is None:
            return
        with self._word:
            self._taken = max(self._taken or 0, seen.revision)
            self._touched = {node: at for node, at in self._touched.items() if at > seen.revision}
            for kept in self._kept.values():
                kept.odd = None

    def picture(self) -> Picture:
        """How far this mirror has seen and written, for whoever looks next."""
        with self._word:
            marks = {kind: kept.shelf.mark for kind, kept in self._kept.items()}
        return Picture(
            self.token, self._identity or "", {kind: mark for kind, mark in marks.items() if mark is not None}
        )

    def _due(self, at_least: Picture | None) -> list[Kept]:
        """The kinds that have to be listed for this look."""
        if at_least is None:
            return [kept for kept in self._kept.values() if not kept.is_current(self.silence)]
        if at_least.torn:
            return list(self._kept.values())
        self._wait_for(at_least)
        return [
            kept
            for kept in self._kept.values()
            if not (kept.is_current(self.silence) and self._has_reached(kept, at_least))
        ]

    def _comparable(self, at_least: Picture | None) -> Picture | None:
        """What is asked of this mirror: nothing where it looked last itself, all anew where the cluster is another."""
        if at_least is None or (at_least.by == self.token and not at_least.torn):
            return None
        if at_least.identity and self._know_identity() not in ("", at_least.identity):
            return replace(at_least, versions={}, torn=True)
        return at_least

    def _wait_for(self, at_least: Picture) -> None:
        """A moment for streams that are about to say what is missing."""
        end = time.monotonic() + PATIENCE
        with self._word:
            while any(
                kept.is_current(self.silence) and not self._has_reached(kept, at_least) for kept in self._kept.values()
            ):
                left = end - time.monotonic()
                if left <= 0:
                    return
                self._word.wait(left)

    def _has_reached(self, kept: Kept, at_least: Picture) -> bool:
        if kept.absent:
            return True
        wanted = at_least.versions.get(kept.source.kind)
        if not kept.has_reached(wanted):
            return False
        kept.shelf.mark = highest(kept.shelf.mark, wanted)
        return True

    def _read(self, kept: Kept, at_least: Picture | None) -> None:
        if kept.listening and kept.error is not None and kept.error.status in REFUSALS:
            raise kept.error  # its own thread asks again, rarely
        known = at_least is not None and at_least.identity in ("", self._identity or at_least.identity)
        floor = at_least.versions.get(kept.source.kind) if known and at_least else None
        kept.read(self.api, floor=floor, another=lambda: self._is_another_cluster(at_least))

    def _observation(self, now: datetime, began: datetime, missing: list[Problem]) -> Observation:
        with self._word:
            kinds = self._kept
            sizes = kinds[self.pools.kind].shelf.facts if self.pools else ()
            watched = all(kept.is_current(self.silence) for kept in kinds.values())
            heard = min((kept.heard_at for kept in kinds.values() if kept.heard_at and not kept.absent), default=began)
            odd = [kept.odd for kept in kinds.values() if kept.odd]
            return Observation(
                at=now,
                nodes=kinds[NODES.kind].shelf.facts,
                pods=kinds[PODS.kind].shelf.facts,
                objects=(*kinds[STATEFUL_SETS.kind].shelf.facts, *kinds[JOBS.kind].shelf.facts),
                sizes=sizes,
                complete=not missing,
                problems=(*(one for kept in kinds.values() for one in kept.problems), *odd, *missing),
                changed=None if self._taken is None else frozenset(self._touched),
                heard_at=heard if watched else None,
                age=max(td(0), began - heard),
                revision=self.revision,
            )

    # Our own writes

    def find(self, kind: str, key: Key) -> Item | None:
        kept = self._kept.get(kind)
        with self._word:
            return kept.shelf.find(key) if kept else None

    def wrote(self, kind: str, body: bytes) -> None:
        """The server's answer to a write of ours: the object as it is now."""
        kept = self._kept.get(kind)
        if kept is None:
            return
        try:
            item, _ = read_item(body, kept.source)
        except Unreadable as error:
            log.warning("What the cluster answered to a write cannot be read: %s", error)
            return
        if not item.key[1] or item.fact is None:
            return
        with self._word:
            change = kept.shelf.take(item)
            self._note([change] if change else [])

    def amended(self, kind: str, key: Key, version: str, **facts: Any) -> None:
        """A write of ours to a part of an object, as its scale: only these facts are new."""
        kept = self._kept.get(kind)
        if kept is None:
            return
        with self._word:
            held = kept.shelf.find(key)
            if held is None:
                return
            fact: Any = held.fact
            change = kept.shelf.take(held._replace(version=number(version), fact=replace(fact, **facts)))
            self._note([change] if change else [])

    def removed(self, kind: str, key: Key, uid: str) -> None:
        """The server has told us that the object is gone."""
        kept = self._kept.get(kind)
        if kept is None:
            return
        with self._word:
            change = kept.shelf.bury(key, uid, None, final=True)
            self._note([change] if change else [])

    # What changed

    def _note(self, changes: Iterable[Change[Any]]) -> None:
        """Under the lock."""
        for change in changes:
            if not matters(change):
                continue
            self.revision += 1
            for node in nodes_of(change):
                self._touched[node] = self.revision

    def _ring(self, changes: Iterable[Change[Any]], ring: Callable[[], None]) -> None:
        if any(matters(change) and not is_small(change) for change in changes):
            ring()

    # Which cluster this is

    def _know_identity(self) -> str:
        if self._identity is None:
            self._identity = self._ask_identity()
        return self._identity or ""

    def _ask_identity(self) -> str | None:
        """The uid of a namespace that lives as long as its cluster; None when nobody answers."""
        try:
            document = document_in(self.api.ask("GET", path_of("Namespace", "", "kube-system")))
        except ClusterError as error:
            return "" if error.status in REFUSALS else None
        return str(document.get("metadata", {}).get("uid", ""))

    def _is_another_cluster(self, at_least: Picture | None = None) -> bool:
        """Versions went back: is it because another cluster answers at this address? Then all is forgotten."""
        before = self._identity or (at_least.identity if at_least else "")
        found = self._ask_identity()
        if not before or not found or found == before:
            return False
        self._identity = found
        with self._word:
            for kept in self._kept.values():
                kept.shelf.forget()
                kept.resume = ""
        return True


def matters(change: Change[Any]) -> bool:
    """Is anything different that a plan or a page looks at? Of foreign pods only what they hold, and where."""
    return gist(change.before) != gist(change.after)


def gist(fact: Any) -> Any:
    if isinstance(fact, PodFact) and fact.workload is None:
        if fact.phase in FINISHED:
            return None
        return (fact.namespace, fact.node, dict(fact.requests), fact.cpu_milli, fact.memory_mib)
    return fact


def is_small(change: Change[Any]) -> bool:
    """A foreign pod that holds no card: it is seen with the next look, and wakes nobody."""
    facts = [fact for fact in change if fact is not None]
    return all(isinstance(fact, PodFact) and fact.workload is None and not fact.requests for fact in facts)


def nodes_of(change: Change[Any]) -> set[str]:
    """The nodes that a change is about."""
    names = {fact.name if isinstance(fact, NodeFact) else fact.node if isinstance(fact, PodFact) else ""
             for fact in change if fact is not None}  # fmt: skip
    return names - {""}
