"""From a click to its pod: people POST to the API at a steady pace; the control plane is watched for their pods.

A child of the bench: READY URL PER_SECOND SECONDS; prints figures as JSON. The portal and a worker run beside it.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django

TEAMS = 20
NODES, CARDS = 10, 64
CLICKERS = 20
SILENCE = 120.0
PATIENCE = 60.0  # seconds for the last pod
WARM_UP = 20  # clicks that are not counted: processes that have just started import what they need
CSRF = "bench" * 6 + "be"  # 32 letters


def main(ready: str, url: str, per_second: int, seconds: int) -> dict[str, Any]:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    from portal.bench.plane import machines, read_plane  # noqa: PLC0415  models exist only now
    from portal.bench.tables import make_world, session_of  # noqa: PLC0415
    from tenants import clock  # noqa: PLC0415

    plane, clicks = read_plane(Path(ready)), per_second * seconds
    world = make_world(
        now=clock.now(), teams=TEAMS, cards=-(-(clicks + WARM_UP) // TEAMS) + 1, server=plane.server,
        token_file=plane.token_file, authority=plane.authority_file,
    )  # fmt: skip
    sessions = [session_of(user) for user in world.people]
    with machines(plane, NODES, CARDS):
        seen: dict[str, float] = {}
        watcher = threading.Thread(target=watch, args=(plane, seen), daemon=True)
        watcher.start()
        wait(lambda: watched(world.cluster), "No worker watches the cluster.")
        click(Clicks(url, world, sessions), WARM_UP, per_second, seen)
        began = click(Clicks(url, world, sessions), clicks, per_second, seen)
    return figures_of([seen[key] - at for key, at in began.items()])


class Clicks:
    """One client for each thread, with the sessions of everybody."""

    def __init__(self, url: str, world: Any, sessions: list[str]) -> None:
        self.host = urlsplit(url).netloc
        self.world = world
        self.sessions = sessions
        self.own = threading.local()

    def post(self, number: int) -> str:
        """Open one Job; answers its key."""
        at = number % len(self.sessions)
        body = {
            "team": str(self.world.teams[at].pk), "name": f"click-{uuid.uuid4().hex[:12]}", "kind": "job",
            "flavor": self.world.flavor.sku, "command": "sleep 3600", "cpu_milli": 1000, "memory_mib": 1024,
        }  # fmt: skip
        headers = {
            "Cookie": f"session={self.sessions[at]}; csrf={CSRF}", "X-CSRFToken": CSRF,
            "Content-Type": "application/json",
        }  # fmt: skip
        line = self._line()
        line.request("POST", "/api/v1/workloads/", json.dumps(body), headers)
        answer = line.getresponse()
        told = answer.read()
        if answer.status != http.HTTPStatus.CREATED:
            raise RuntimeError(f"A click was answered {answer.status}: {told[:300]!r}")
        return str(json.loads(told)["id"])

    def _line(self) -> http.client.HTTPConnection:
        if not hasattr(self.own, "line"):
            self.own.line = http.client.HTTPConnection(self.host, timeout=30)
        line: http.client.HTTPConnection = self.own.line
        return line


def click(clicks: Clicks, count: int, per_second: int, seen: dict[str, float]) -> dict[str, float]:
    """So many, each at its own instant whatever became of those before; answers when each was made, by key."""
    began: dict[str, float] = {}

    def one(number: int) -> None:
        time.sleep(max(0.0, start + number / per_second - time.monotonic()))
        at = time.monotonic()
        began[clicks.post(number)] = at

    start = time.monotonic() + 0.5
    with ThreadPoolExecutor(CLICKERS) as threads:
        list(threads.map(one, range(count)))
    wait(lambda: began.keys() <= seen.keys(), "Not every click has a pod.")
    return began


def watch(plane: Any, seen: dict[str, float]) -> None:
    """When the API server told of each workload's first pod."""
    from scheduling.cluster import names  # noqa: PLC0415
    from scheduling.cluster.client import Session  # noqa: PLC0415

    with closing(Session(plane.admin)) as door:
        query: dict[str, str | int] = {"watch": "true", "timeoutSeconds": 600, "labelSelector": names.WORKLOAD}
        for line in door.lines("/api/v1/pods", query=query, silence=SILENCE):
            at = time.monotonic()
            labels = json.loads(line)["object"]["metadata"].get("labels") or {}
            if key := labels.get(names.WORKLOAD):
                seen.setdefault(key, at)


def watched(cluster: Any) -> bool:
    from scheduling.models import Cluster  # noqa: PLC0415
    from scheduling.wake import send  # noqa: PLC0415

    send(cluster.pk)
    return Cluster.objects.filter(pk=cluster.pk, heard_at__isnull=False).exists()


def wait(holds: Any, trouble: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(trouble)
        time.sleep(0.2)


def figures_of(late: list[float]) -> dict[str, Any]:
    ordered = sorted(late)
    last = len(ordered) - 1
    return {
        "clicks": len(ordered),
        "median": ordered[last // 2],
        "p99": ordered[round(last * 0.99)],
        "longest": ordered[-1],
    }


if __name__ == "__main__":
    found = main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:5]))
    print(json.dumps(found))
    sys.stdout.flush()
    os._exit(0)  # threads that watch have nothing to say any more
