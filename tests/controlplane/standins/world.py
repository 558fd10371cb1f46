"""A world whose objects live in a real API server: the simulation's own controllers move them there.

So the kubelet, the device plugin, GPU Feature Discovery, the MIG manager, the DCGM exporter and the provider are the
very ones of the simulated cluster. What they read comes from watches, what they write goes out as requests, and what
the simulation has beside them (scheduler, Jobs, StatefulSets, garbage, quota, node lifecycle) is Kubernetes itself.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from datetime import UTC, datetime
from datetime import timedelta as td
from queue import Empty, SimpleQueue
from typing import Any

from scheduling.cluster.api import JSON, MERGE
from scheduling.cluster.client import Connection, Session
from scheduling.cluster.port import ClusterError
from scheduling.cluster.simulated import Delays
from scheduling.cluster.simulated.api import DeleteOptions
from scheduling.cluster.simulated.clock import fine_stamp, stamp
from scheduling.cluster.simulated.kinds import BY_PLURAL, Document, Key, copy, key_of
from scheduling.cluster.simulated.world import Controller, World
from tests.controlplane.standins.mirror import Ear, Mirror, News, filled, path_of

logger = logging.getLogger(__name__)
TICK = 0.05  # seconds: the longest nap
AGAIN = td(seconds=0.2)  # after a controller could not do its work
TRIES = 5  # of a change that others keep overtaking
NOT_FOUND, CONFLICT = 404, 409


class RealWorld(World):
    """Moved by one thread of its own, from `start` to `stop`."""

    def __init__(self, connection: Connection, ear: Ear, delays: Delays, identity: str) -> None:
        self.mirror = Mirror()
        super().__init__(now(), delays, identity, store=self.mirror)
        self.ear = ear
        self.door = Session(connection)
        self.news: SimpleQueue[News] = SimpleQueue()
        self.released: set[str] = set()  # uids of pods that the kubelet has let go
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="standins", daemon=True)

    def start(self) -> None:
        self.ear.tell(self.news)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self.ear.tell(None)
        self._thread.join(timeout=10)
        self.door.close()

    def _run(self) -> None:
        while not self._ended.is_set():
            heard = self._listen()
            with self.lock:
                for news in heard:
                    self.mirror.hear(news)
                self.step(now())

    def _listen(self) -> list[News]:
        """What has come since; waits until there is something, or something is due."""
        due = self.next_due()
        nap = min(TICK, max(0.001, (due - now()).total_seconds())) if due else TICK
        heard: list[News] = []
        try:
            heard.append(self.news.get(timeout=nap))
            while True:
                heard.append(self.news.get_nowait())
        except Empty:
            return heard

    def react(self, controller: Controller, key: Key) -> None:
        """As in life, a controller that fails is tried again; the others go on."""
        try:
            controller.reconcile(key)
        except ClusterError as error:
            logger.info("%s could not look after %s: %s", type(controller).__name__, key, error)
            self.wake(self.now + AGAIN, controller, key)
        except Exception:
            logger.exception("%s stumbled over %s.", type(controller).__name__, key)

    # What controllers do

    def edit(self, key: Key, change: Any) -> Document | None:
        for _ in range(TRIES):
            live = self.store.get(key)
            if live is None:
                return None
            document = copy(live)
            change(document)
            try:
                return self._write(key, live, document)
            except ClusterError as error:
                if error.status == NOT_FOUND:
                    return None
                if error.status != CONFLICT:
                    raise
                self._look_again(key)
        raise ClusterError(f"{key} changes all the time.")

    def _write(self, key: Key, live: Document, document: Document) -> Document:
        """Send what differs, the status by its own door."""
        for part, path in ((("metadata", "spec"), ""), (("status",), "/status")):
            patch = difference({name: live.get(name, {}) for name in part}, {n: document.get(n, {}) for n in part})
            if not patch:
                continue
            patch.setdefault("metadata", {})["resourceVersion"] = live["metadata"]["resourceVersion"]
            answer = self.door.ask("PATCH", path_of(BY_PLURAL[key.plural], key) + path, body=patch, content=MERGE)
            live = self._heard_back(answer)
        return live

    def _look_again(self, key: Key) -> None:
        try:
            self._heard_back(self.door.ask("GET", path_of(BY_PLURAL[key.plural], key)))
        except ClusterError as error:
            if error.status != NOT_FOUND:
                raise

    def _heard_back(self, answer: bytes) -> Document:
        document: Document = filled(json.loads(answer))
        self.mirror.put(document)
        return document

    def create(self, document: Document) -> Document:
        key = key_of(document)
        path = path_of(BY_PLURAL[key.plural], Key(key.plural, key.namespace, ""))
        return self._heard_back(self.door.ask("POST", path, body=document))

    def delete(self, key: Key, options: DeleteOptions | None = None) -> None:
        self._delete(key, {"propagationPolicy": (options and options.propagation) or "Background"})

    def _delete(self, key: Key, body: Document) -> None:
        try:
            self.door.ask("DELETE", path_of(BY_PLURAL[key.plural], key), body=body, content=JSON)
        except ClusterError as error:
            if error.status not in {NOT_FOUND, CONFLICT}:
                raise

    def let_go(self, key: Key) -> None:
        """The kubelet's last word about a pod. A Job's finalizer may hold it for a while; that is not its business."""
        live = self.store.get(key)
        if live and live["metadata"]["uid"] not in self.released:
            self.released.add(live["metadata"]["uid"])
            self.forget(key)

    def forget(self, key: Key) -> None:
        live = self.store.get(key)
        if live is None:
            return
        if key.plural != "pods" and live["metadata"].get("finalizers"):
            self.edit(key, lambda live: live["metadata"].pop("finalizers", None))
        if key.plural == "pods" or not live["metadata"].get("deletionTimestamp"):
            self._delete(key, {"gracePeriodSeconds": 0, "preconditions": {"uid": live["metadata"]["uid"]}})

    def event(self, about: Document, word: str, reason: str, message: str, source: str) -> None:
        metadata = about["metadata"]
        namespace = metadata.get("namespace") or "default"
        self._events += 1
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{metadata['name']}.{time.time_ns():x}.{self._events}", "namespace": namespace},
            "involvedObject": {"kind": about["kind"], "apiVersion": about["apiVersion"], "name": metadata["name"],
                               "namespace": metadata.get("namespace", ""), "uid": metadata["uid"]},
            "type": word,
            "reason": reason,
            "message": message,
            "count": 1,
            "firstTimestamp": stamp(self.now),
            "lastTimestamp": stamp(self.now),
            "eventTime": fine_stamp(self.now),
            "action": reason,
            "source": {"component": source},
            "reportingComponent": source,
            "reportingInstance": source,
        }  # fmt: skip
        try:
            self.door.ask("POST", f"/api/v1/namespaces/{namespace}/events", body=body)
        except ClusterError as error:  # as in life: an event that does not arrive is no trouble
            logger.info("An event was lost: %s", error)


def difference(before: Any, after: Any) -> dict[str, Any]:
    """The merge patch that makes one map of the other; empty when there is nothing to do."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if value == old and name in before:
            continue
        if isinstance(value, dict) and isinstance(old, dict):
            patch[name] = difference(old, value)
        else:
            patch[name] = value
    return {name: value for name, value in patch.items() if value != {} or not isinstance(before.get(name), dict)}


def now() -> datetime:
    return datetime.now(UTC)
