"""The whole product as real processes, and the hand that breaks them: PostgreSQL, a message server, the simulated
cluster behind the fault proxy, the portal and workers.

The launcher is used for starting only: it would end everything when a child dies.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import Signals
from typing import Any
from urllib.parse import urlsplit

import psycopg
import redis
from celery import Celery

from portal.demo import launcher
from portal.demo.launcher import Child, Demo
from portal.demo.visitor import DidNotHappen, Visitor, until
from portal.processes import find_valkey, listen
from scheduling.cluster import names
from tenants.clock import set_rate
from tests.faults.proxy import Call, Proxy

SLICE = "h100-80gb/mig-1g.10gb/on-demand"
PATIENCE = 60.0  # seconds for whatever has to come right again
REST = 2.2  # seconds in which a site at rest writes nothing: two ticks
PACE = 60.0  # of tables and cluster against the wall
QUEUE = "berth:celery"
WHOLE = ("messages", "cluster", "portal", "worker")
PREFIX = {"global_keyprefix": "berth:"}


@dataclass
class Site:
    """A demo that nobody watches over, and Robin of Vision who uses it."""

    demo: Demo
    proxy: Proxy
    robin: Visitor = field(init=False)
    checker: subprocess.Popen[str] = field(init=False)
    most_pods: Counter[str] = field(default_factory=Counter)  # of each workload, in any look
    opened: list[str] = field(default_factory=list)  # names of this test's workloads

    def enter(self) -> None:
        self.robin = Visitor(self.demo.url, "robin")
        self.robin.log_in()

    # Breaking and mending

    def kill(self, name: str) -> None:
        """As the kernel does it when memory is short: no last words, the children too."""
        child = self.child(name)
        with suppress(ProcessLookupError):
            os.killpg(child.process.pid, Signals.SIGKILL)
        child.process.wait()
        self.demo.children.remove(child)

    def signal(self, name: str, number: Signals) -> None:
        os.killpg(self.child(name).process.pid, number)

    def signal_only(self, name: str, number: Signals) -> None:
        """As a supervisor does it: the process, not what it has started."""
        self.child(name).process.send_signal(number)

    def forget(self, name: str) -> None:
        """A child that has ended by itself."""
        self.demo.children.remove(self.child(name))

    def make_whole(self) -> None:
        """Whatever a test has left: one portal, one worker, one message server, and nothing else."""
        self.mend()
        for child in list(self.demo.children):
            if child.process.poll() is not None or child.name not in WHOLE:
                self.kill(child.name)
        if not self.has("messages"):
            self.start_messages()
        if not self.has("portal"):
            self.start_portal()
        if not self.has("worker"):
            self.start_worker()

    def start_worker(self, name: str = "worker", *, beat: bool = True, threads: int = 4, **settings: str) -> None:
        """A worker, with a beat of its own unless told otherwise. Returns at once; its log begins anew."""
        words = ("-P", "threads", "-c", str(threads), "-l", "INFO", "--without-gossip", "--without-mingle")
        beats = ("-B", "-s", str(self.demo.folder / f"beat-{name}")) if beat else ()
        self._celery(name, "worker", *words, "--without-heartbeat", "-n", f"{name}@here", *beats, **settings)

    def start_beat(self, name: str, **settings: str) -> None:
        self._celery(name, "beat", "-s", str(self.demo.folder / name), **settings)

    def start_portal(self, **settings: str) -> None:
        words = [sys.executable, *launcher.portal_words(self.demo)]
        self._start("portal", words, **settings)
        until(lambda: launcher.answers(f"{self.demo.url}/ready"), "The portal's answer", patience=PATIENCE)

    def start_messages(self) -> None:
        """A message server where the old one was, empty."""
        port = urlsplit(self.demo.environment["REDIS_URL"]).port
        process, _ = listen(find_valkey(), self.demo.logs, int(port or 0))
        self.demo.children.append(Child("messages", process, self.demo.logs / "valkey.log"))

    def has(self, name: str) -> bool:
        return any(child.name == name for child in self.demo.children)

    def lives(self, name: str) -> bool:
        return self.child(name).process.poll() is None

    def break_at(self, point: str, name: str, deed: str) -> None:
        """From now on whoever handles this cluster or workload suffers this at a named point (tests/…/points)."""
        (self.demo.folder / "points" / point).write_text(json.dumps({"name": name, "deed": deed}))

    def mend(self) -> None:
        """No more faults, wherever they were asked for."""
        self.proxy.calm()
        self.pace(PACE)
        for point in ("look", "put"):
            (self.demo.folder / "points" / point).unlink(missing_ok=True)

    def pace(self, rate: float) -> None:
        """How fast the time of tables and cluster runs."""
        set_rate(self.demo.clock, rate)

    # Messages

    def messages(self) -> redis.Redis:
        """A connection to the message server; to be closed."""
        return redis.Redis.from_url(self.demo.environment["REDIS_URL"])

    def send(self, task: str, *words: Any, **facts: Any) -> None:
        """A message as another process of ours, or of another version, would send it."""
        app = Celery(broker=self.demo.environment["REDIS_URL"])
        app.conf.broker_transport_options = PREFIX
        with app.connection_for_write() as line:
            app.send_task(task, args=words, kwargs=facts, connection=line, retry=False)

    def notes(self, file: str) -> list[str]:
        """What the processes wrote down at a point."""
        path = self.demo.folder / "points" / file
        return path.read_text().splitlines() if path.exists() else []

    def log(self, name: str) -> str:
        return (self.demo.logs / f"{name}.log").read_text(errors="replace")

    # Using

    def open(self, name: str) -> str:
        """A workspace on the smallest slice; answers its key."""
        team = self.robin.get("/api/v1/me/").data["teams"][0]["id"]
        body = {"team": team, "name": name, "kind": "workspace", "flavor": SLICE}
        self.opened.append(name)
        return str(self.robin.post("/api/v1/workloads/", body, status=201).data["id"])

    def end(self, *keys: str) -> None:
        for key in keys:
            self.robin.post(f"/api/v1/workloads/{key}/end/")
        self.reaches("ended", *keys)

    def reaches(self, phase: str, *keys: str, patience: float = PATIENCE) -> float:
        """Wait until all are there, counting their pods all the while; answers the seconds that it took."""
        began = time.monotonic()

        def look() -> bool:
            self.count_pods()
            return {self.phase(key) for key in keys} == {phase}

        until(look, f"{phase} of {len(keys)}", patience=patience)
        return time.monotonic() - began

    def phase(self, key: str) -> str:
        return str(self.value("SELECT phase FROM scheduling_workload WHERE id = %s", key))

    # The cluster

    def count_pods(self) -> None:
        """Keep the most pods that each workload was ever seen to have (I3)."""
        self.most_pods |= Counter(self.pods())

    def pods(self) -> list[str]:
        """The workloads of the pods that hold something, as the cluster has them."""
        items = self._listed("/api/v1/pods")
        live = [item for item in items if item["status"].get("phase") not in ("Succeeded", "Failed")]
        labels = [item["metadata"].get("labels") or {} for item in live]
        return [found[names.WORKLOAD] for found in labels if names.WORKLOAD in found]

    def uids(self, key: str) -> set[str]:
        """Of the objects that stand for a workload, as the cluster has them."""
        items = [item["metadata"] for item in self._listed("/apis/apps/v1/statefulsets")]
        return {item["uid"] for item in items if (item.get("labels") or {}).get(names.WORKLOAD) == key}

    def writes(self, since: int = 0) -> list[Call]:
        """Calls that change something of this test's workloads."""
        return [call for call in self.proxy.writes(since) if any(f"/{name}-" in call.path for name in self.opened)]

    # Invariants

    def wrong(self) -> list[str]:
        """What does not hold in tables, cluster and ledger (I1 to I6, I9, I10)."""
        assert self.checker.stdin is not None
        assert self.checker.stdout is not None
        self.checker.stdin.write("\n")
        self.checker.stdin.flush()
        return list(json.loads(self.checker.stdout.readline()))

    def comes_to_rest(self) -> None:
        """Everything holds soon, and then two ticks pass in which nothing of ours is written (I8)."""
        found: list[str] = []

        def whole() -> bool:
            found[:] = self.wrong()
            return not found

        try:
            until(whole, "All that has to hold", patience=PATIENCE)
        except DidNotHappen:
            raise AssertionError(found) from None
        before = len(self.proxy.history)
        time.sleep(REST)
        assert [f"{call.method} {call.path}" for call in self.writes(before)] == []

    def placements(self, key: str) -> int:
        return int(self.value("SELECT count(*) FROM scheduling_placement WHERE workload_id = %s", key))

    def gaps(self, key: str) -> list[tuple[Any, ...]]:
        """Versions of transitions that are missing or out of order (I6)."""
        rows = self.table("SELECT version FROM scheduling_transition WHERE workload_id = %s ORDER BY version", key)
        return [row for index, row in enumerate(rows) if row[0] != index]

    # Tables

    def table(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.demo.environment["DATABASE_URL"].replace("postgres:", "postgresql:")) as tables:
            rows = tables.execute(query, values)
            return rows.fetchall() if rows.description else []

    def value(self, query: str, *values: Any) -> Any:
        return self.table(query, *values)[0][0]

    def add_cluster(self, name: str) -> int:
        """A row of a further cluster, for which the same server answers."""
        return int(self.value(ADD_CLUSTER, name))

    def drop_clusters(self, name: str) -> None:
        """Take out clusters on which nothing ran."""
        rows = "(SELECT id FROM scheduling_cluster WHERE name LIKE %s)"
        for table in ("cyclereport", "cardspan", "node", "nodepool"):
            self.table(f"DELETE FROM scheduling_{table} WHERE cluster_id IN {rows}", name)
        self.table("DELETE FROM scheduling_cluster WHERE name LIKE %s", name)

    def child(self, name: str) -> Child:
        return next(child for child in self.demo.children if child.name == name)

    def _celery(self, name: str, *words: str, **settings: str) -> None:
        self._start(name, [sys.executable, "-m", "celery", "-A", "portal", *words], **settings)

    def _start(self, name: str, words: list[str], **settings: str) -> None:
        log = self.demo.logs / f"{name}.log"
        log.write_text("")
        environment = {**self.demo.environment, **settings}
        self.demo.children.append(Child(name, launcher.spawn(words, log=log, environment=environment), log))

    def _listed(self, path: str) -> list[dict[str, Any]]:
        with urllib.request.urlopen(self.demo.cluster_url + path, timeout=10) as answer:  # noqa: S310
            return list(json.load(answer)["items"])


def settings_of(postgres: str, folder: Path) -> dict[str, str]:
    """For the children: PostgreSQL, short patience, and where they find what they have to suffer."""
    points = folder / "points"
    points.mkdir()
    return {
        "DATABASE_URL": postgres,
        "DJANGO_SETTINGS_MODULE": "tests.integration.settings",
        "SECRET_KEY": "a secret of the tests, which guards nothing at all, but is long",
        "BERTH_LOG_LEVEL": "INFO",
        "POINTS_FOLDER": str(points),
    }


ADD_CLUSTER = """INSERT INTO scheduling_cluster
SELECT (jsonb_populate_record(row, jsonb_build_object('id', nextval(pg_get_serial_sequence('scheduling_cluster', 'id')),
 'name', %s::text, 'seen_at', null, 'lease_token', '', 'lease_until', null))).*
FROM scheduling_cluster row ORDER BY id LIMIT 1 RETURNING id"""
