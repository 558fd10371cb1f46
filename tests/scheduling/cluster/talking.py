"""A server that lists and talks by a script, and remembers what it was asked."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from scheduling.cluster.api import JSON, Query
from scheduling.cluster.port import ClusterError

NODES, PODS = "/api/v1/nodes", "/api/v1/pods"
STATEFUL_SETS, JOBS = "/apis/apps/v1/statefulsets", "/apis/batch/v1/jobs"
IDENTITY = "/api/v1/namespaces/kube-system"


def listed(version: str, *items: Any) -> dict[str, Any]:
    return {"kind": "List", "metadata": {"resourceVersion": version}, "items": list(items)}


def node(version: str = "1", name: str = "n", *, ready: str = "True", heartbeat: str = "t0", uid: str = "") -> Any:
    return {
        "metadata": {"uid": uid or f"uid-{name}", "name": name, "resourceVersion": version},
        "status": {"conditions": [{"type": "Ready", "status": ready, "lastHeartbeatTime": heartbeat}]},
    }


def event(change: str, item: Any = None, **parts: Any) -> bytes:
    return json.dumps({"type": change, "object": item if item is not None else parts}).encode()


def bookmark(version: str) -> bytes:
    return event("BOOKMARK", metadata={"resourceVersion": version})


class Talking:
    """Lists come one after the other, the last again and again; so do streams, which end when their lines are told."""

    def __init__(self) -> None:
        self.lists: dict[str, list[Any]] = {path: [listed("1")] for path in (NODES, PODS, STATEFUL_SETS, JOBS)}
        self.streams: dict[str, list[list[Any]]] = {}
        self.lists[IDENTITY] = [{"metadata": {"uid": "this cluster"}}]
        self.asked: list[str] = []
        self.watched: list[tuple[str, str]] = []

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Mapping[str, Any] | None = None,
        content: str = JSON,
        timeout: float | None = None,
    ) -> bytes:
        self.asked.append(path)
        answers = self.lists.get(path, [ClusterError("not found", status=404, retry=False)])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return json.dumps(answer).encode()

    def lines(self, path: str, *, query: Query, silence: float, begun: Callable[[], None]) -> Iterator[bytes]:
        self.watched.append((path, str(query["resourceVersion"])))
        begun()
        script = self.streams.get(path, [])
        for line in script.pop(0) if script else ():
            if isinstance(line, Exception):
                raise line
            yield line
