"""The simulated world: the objects, the time, and the controllers that move the objects as time passes.

`step(now)` does everything that is due until `now`, each thing at the very moment when it is due, so the outcome does
not depend on how often somebody steps. After each moment the controllers run until none of them has anything to do.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import datetime
from datetime import timedelta as td
from threading import RLock
from typing import Any, ClassVar

from .api import Api, DeleteOptions
from .clock import fine_stamp, stamp
from .delays import Delays
from .errors import ApiError
from .kinds import BY_PLURAL, Document, Key, copy, key_of
from .store import Change, Store

RESTLESS = 200_000
"""Reactions within one moment after which the controllers are fighting each other."""


class Controller:
    """Brings one kind of thing from what it is to what it should be. May be called at any time, any number of times."""

    kinds: ClassVar[frozenset[str]] = frozenset()  # plurals whose changes it hears of

    def __init__(self, world: World) -> None:
        self.world = world

    def reconcile(self, key: Key) -> None:
        """Look at one object again; it may be gone."""
        raise NotImplementedError

    def finish(self) -> None:
        """Called when nothing else is left to do in this moment."""


class World:
    def __init__(
        self, start: datetime, delays: Delays | None = None, identity: str = "berth", store: Store | None = None
    ) -> None:
        self.lock = RLock()
        self.now = start
        self.started = start
        self.delays = delays or Delays()
        self.store = store or Store()
        self.api = Api(self.store, lambda: self.now, identity)
        self.controllers: list[Controller] = []
        self.parts: dict[str, Any] = {}  # controllers that others ask by name
        self._by_kind: dict[str, list[Controller]] = {plural: [] for plural in BY_PLURAL}
        self._queue: dict[tuple[Controller, Key], None] = {}
        self._timers: list[tuple[datetime, int, Controller, Key]] = []
        self._set: set[tuple[datetime, Controller, Key]] = set()
        self._order = 0
        self._events = 0
        self.store.listeners.append(self._heard)

    # Time

    def step(self, now: datetime) -> None:
        """Everything that is due until `now`, in order. Free when there is nothing."""
        with self.lock:
            self.settle()
            while self._timers and self._timers[0][0] <= now:
                self.now = max(self.now, self._timers[0][0])
                self._pop_due()
                self.settle()
            self.now = max(self.now, now)
            self.settle()

    def next_due(self) -> datetime | None:
        return self._timers[0][0] if self._timers else None

    def wake(self, at: datetime, controller: Controller, key: Key) -> None:
        """Have the controller look at the key again at that time."""
        if at <= self.now:
            self._queue[controller, key] = None
        elif (at, controller, key) not in self._set:
            self._set.add((at, controller, key))
            self._order += 1
            heapq.heappush(self._timers, (at, self._order, controller, key))

    def after(self, delay: str) -> datetime:
        return self.now + self.delays.of(delay)

    def settle(self) -> None:
        """Let the controllers react to each other until all is quiet."""
        reactions = 0
        while True:
            while self._queue:
                controller, key = next(iter(self._queue))
                del self._queue[controller, key]
                self.react(controller, key)
                reactions += 1
                if reactions > RESTLESS:
                    raise RuntimeError(
                        f"The simulated cluster does not come to rest at {self.now}: {controller}, {key}"
                    )
            for controller in self.controllers:
                controller.finish()
            if not self._queue:
                return

    def react(self, controller: Controller, key: Key) -> None:
        controller.reconcile(key)

    # What controllers do

    def add(self, controller: Controller, name: str = "") -> None:
        self.controllers.append(controller)
        if name:
            self.parts[name] = controller
        for plural in controller.kinds:
            self._by_kind[plural].append(controller)

    def get(self, plural: str, namespace: str, name: str) -> Document | None:
        return self.store.get(Key(plural, namespace, name))

    def edit(self, key: Key, change: Callable[[Document], None]) -> Document | None:
        """Change a copy of the object and store it if it became another one; None when the object is gone."""
        live = self.store.get(key)
        if live is None:
            return None
        document = copy(live)
        change(document)
        if document == live:
            return live
        if document.get("spec") != live.get("spec"):
            document["metadata"]["generation"] = live["metadata"].get("generation", 0) + 1
        return self.store.put(document)

    def create(self, document: Document) -> Document:
        """Create as any client does; ApiError when validation or quota refuses."""
        kind = BY_PLURAL[key_of(document).plural]
        return self.api.create(kind, document["metadata"].get("namespace", ""), document)

    def delete(self, key: Key, options: DeleteOptions | None = None) -> None:
        """Delete as any client does; nothing happens when it is gone already."""
        try:
            self.api.delete(BY_PLURAL[key.plural], key.namespace, key.name, options or DeleteOptions("Background"))
        except ApiError as error:
            if error.code != 404:
                raise

    def let_go(self, key: Key) -> None:
        """A kubelet has no more to do with a pod: it goes, unless a finalizer still holds it."""
        live = self.store.get(key)
        if live and live["metadata"].get("finalizers"):
            self.edit(key, lambda live: live["metadata"].update(deletionGracePeriodSeconds=0))
        else:
            self.forget(key)

    def forget(self, key: Key) -> None:
        """Take an object away at once, whatever holds it."""
        if self.store.get(key) is not None:
            self.store.remove(key)

    def event(self, about: Document, word: str, reason: str, message: str, source: str) -> None:
        """Write an Event about an object, in its namespace."""
        metadata = about["metadata"]
        namespace = metadata.get("namespace") or "default"
        self._events += 1
        name = f"{metadata['name']}.{self._events:016x}"
        self.store.put(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": name, "namespace": namespace, "uid": self.api.new_uid(),
                             "creationTimestamp": stamp(self.now)},
                "involvedObject": {"kind": about["kind"], "apiVersion": about["apiVersion"], "name": metadata["name"],
                                   "namespace": metadata.get("namespace", ""), "uid": metadata["uid"],
                                   "resourceVersion": metadata.get("resourceVersion", "")},
                "type": word,
                "reason": reason,
                "message": message,
                "count": 1,
                "firstTimestamp": stamp(self.now),
                "lastTimestamp": stamp(self.now),
                "eventTime": fine_stamp(self.now),
                "source": {"component": source},
                "reportingComponent": source,
            }
        )  # fmt: skip

    def describe(self) -> Document:
        """Behind the curtain, for people: time, timers, cards and who holds them."""
        devices = self.parts["devices"]
        return {
            "now": self.now.isoformat(),
            "nextDue": due.isoformat() if (due := self.next_due()) else None,
            "version": self.store.version,
            "objects": {plural: len(found) for plural, found in self.store.documents.items() if found},
            "nodes": {name: devices.describe(name) for name in sorted(devices.machines)},
        }

    def _pop_due(self) -> None:
        at = self._timers[0][0]
        while self._timers and self._timers[0][0] <= at:
            due, _, controller, key = heapq.heappop(self._timers)
            self._set.discard((due, controller, key))
            self._queue[controller, key] = None

    def _heard(self, change: Change) -> None:
        for controller in self._by_kind[change.key.plural]:
            self._queue[controller, change.key] = None


def set_condition(status: Document, type_: str, value: str, reason: str, message: str, now: datetime) -> None:
    """Write one condition; its transition time changes with its value only. Empty reasons are left out."""
    conditions = status.setdefault("conditions", [])
    known = next((entry for entry in conditions if entry["type"] == type_), None)
    fresh: Document = {"type": type_, "status": value}
    fresh |= {name: text for name, text in (("reason", reason), ("message", message)) if text}
    same = known is not None and known["status"] == value
    fresh["lastTransitionTime"] = known.get("lastTransitionTime") if known and same else stamp(now)
    if known is None:
        conditions.append(fresh)
        return
    beat = {"lastHeartbeatTime": stamp(now)} if "lastHeartbeatTime" in known and not same else {}
    kept = {name: text for name, text in known.items() if name not in ("reason", "message")}
    known.clear()
    known.update(kept | beat | fresh)


def condition(document: Document, type_: str) -> Document | None:
    conditions = (document.get("status") or {}).get("conditions") or []
    return next((entry for entry in conditions if entry.get("type") == type_), None)


def is_true(document: Document, type_: str) -> bool:
    found = condition(document, type_)
    return found is not None and found["status"] == "True"


def owned_by(owner: Document) -> list[Document]:
    """The ownerReferences of something that a controller makes for its owner."""
    metadata = owner["metadata"]
    return [
        {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"],
         "controller": True, "blockOwnerDeletion": True}
    ]  # fmt: skip


def dependents(world: World, owner: Document, plural: str) -> list[Document]:
    """What the object owns of one kind, in the order of names."""
    keys = sorted(key for key in world.store.dependents.get(owner["metadata"]["uid"], set()) if key.plural == plural)
    return [document for key in keys if (document := world.store.get(key)) is not None]


def soon(moment: datetime, seconds: float) -> datetime:
    return moment + td(seconds=seconds)
