"""The whole product as real processes, and the hand that breaks them. Invariants are read from its tables and cluster.

The launcher is used for starting only: it would end everything when a child dies.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from portal.demo import launcher
from portal.demo.launcher import Child, Demo
from portal.demo.visitor import Visitor, until
from portal.processes import find_valkey, listen
from scheduling.cluster import names

SLICE = "h100-80gb/mig-1g.10gb/on-demand"
PATIENCE = 60.0  # seconds for whatever has to come right again


@dataclass
class Site:
    """A demo that nobody watches over, and Robin of Vision who uses it."""

    demo: Demo
    robin: Visitor = field(init=False)
    most_pods: Counter[str] = field(default_factory=Counter)  # of each workload, in any look

    def enter(self) -> None:
        self.robin = Visitor(self.demo.url, "robin")
        self.robin.log_in()

    # Breaking and mending

    def kill(self, name: str) -> None:
        """As the kernel does it when memory is short: no last words, the children too."""
        child = self._child(name)
        os.killpg(child.process.pid, signal.SIGKILL)
        child.process.wait()
        self.demo.children.remove(child)

    def signal(self, name: str, number: signal.Signals) -> None:
        os.killpg(self._child(name).process.pid, number)

    def start_worker(self, name: str = "worker") -> None:
        """A worker with a beat of its own."""
        words = ("-m", "celery", "-A", "portal", "worker", "-B", "-n", f"{name}@here", *launcher.WORKER)
        self.demo.children.append(launcher.launch(self.demo, name, *words))

    def start_messages(self) -> None:
        """A message server where the old one was, empty."""
        port = urlsplit(self.demo.environment["REDIS_URL"]).port
        process, _ = listen(find_valkey(), self.demo.logs, int(port or 0))
        self.demo.children.append(Child("messages", process, self.demo.logs / "valkey.log"))

    def trouble(self, **fault: Any) -> None:
        """Let the simulated cluster misbehave."""
        where, body = f"{self.demo.cluster_url}/simulation/faults", json.dumps(fault).encode()
        urllib.request.urlopen(where, data=body, timeout=5).close()  # noqa: S310 (an address of our own making)

    # Using

    def open(self, name: str) -> str:
        """A workspace on the smallest slice; answers its key."""
        team = self.robin.get("/api/v1/me/").data["teams"][0]["id"]
        body = {"team": team, "name": name, "kind": "workspace", "flavor": SLICE}
        return str(self.robin.post("/api/v1/workloads/", body, status=201).data["id"])

    def end(self, *keys: str) -> None:
        for key in keys:
            self.robin.post(f"/api/v1/workloads/{key}/end/")
        self.reaches("ended", *keys)

    def reaches(self, phase: str, *keys: str) -> None:
        """Wait until all are there, counting their pods all the while."""

        def look() -> bool:
            self.count_pods()
            return {self.phase(key) for key in keys} == {phase}

        until(look, f"{phase} of {len(keys)}", patience=PATIENCE)

    def wait_placed(self, key: str) -> None:
        """Until its place is in the tables: a worker is about to put it into the cluster."""
        until(lambda: self.placements(key), f"A place for {key}", patience=PATIENCE)

    def phase(self, key: str) -> str:
        return str(self.robin.get(f"/api/v1/workloads/{key}/").data["phase"])

    # Invariants

    def count_pods(self) -> None:
        """Keep the most pods that each workload was ever seen to have (I3)."""
        seen = Counter(self.pods())
        self.most_pods |= seen

    def pods(self) -> list[str]:
        """The workloads of the pods that hold something, as the cluster has them."""
        with urllib.request.urlopen(f"{self.demo.cluster_url}/api/v1/pods", timeout=5) as answer:  # noqa: S310
            items = json.load(answer)["items"]
        live = [item for item in items if item["status"].get("phase") not in ("Succeeded", "Failed")]
        labels = [item["metadata"].get("labels") or {} for item in live]
        return [found[names.WORKLOAD] for found in labels if names.WORKLOAD in found]

    def findings(self) -> list[str]:
        """What `consistency` finds: tables against cluster against ledger (I1, I2, I4, I5)."""
        words = [sys.executable, "manage.py", "consistency", "--json"]
        done = subprocess.run(
            words, cwd=launcher.ROOT, env=self.demo.environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode in (0, 1), done.stderr
        return [f"{found['check']} {found['where']}: {found['text']}" for found in json.loads(done.stdout)["findings"]]

    def placements(self, key: str) -> int:
        return int(self.table("SELECT count(*) FROM scheduling_placement WHERE workload_id = ?", key)[0][0])

    def gaps(self, key: str) -> list[tuple[Any, ...]]:
        """Versions of transitions that are missing or out of order (I6)."""
        rows = self.table("SELECT version FROM scheduling_transition WHERE workload_id = ? ORDER BY version", key)
        return [row for index, row in enumerate(rows) if row[0] != index]

    def table(self, query: str, key: str) -> list[tuple[Any, ...]]:
        file = next(self.demo.folder.glob("*.sqlite3"))
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=20)) as tables:
            return tables.execute(query, (key.replace("-", ""),)).fetchall()

    def _child(self, name: str) -> Child:
        return next(child for child in self.demo.children if child.name == name)
