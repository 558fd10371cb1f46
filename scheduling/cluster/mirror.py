"""Hearing of changes: watches that only ring a bell. What changed is read by the next look, whole.

So nothing has to be kept in step: a watch that breaks, is told 410 Gone, or goes silent rings once and starts anew
where the collection then stands. Nodes report themselves every few seconds; only what matters to us rings.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduling.cluster import names
from scheduling.cluster.client import KubernetesPort
from scheduling.cluster.port import ClusterError

LASTS = 240  # seconds after which the server ends a watch by itself
SILENCE = 300.0  # seconds without a line, bookmarks included, after which a watch counts as dead

OURS = f"{names.MANAGED_BY}={names.MANAGER}"


@dataclass(frozen=True, slots=True)
class Collection:
    """What is watched."""

    path: str
    selector: str = ""


PODS = Collection("/api/v1/pods", OURS)
NODES = Collection("/api/v1/nodes")
WATCHED = (PODS, NODES)


@dataclass(slots=True)
class Watch:
    """One collection's changes, from where it stands now."""

    port: KubernetesPort
    collection: Collection
    _seen: dict[str, str] = field(default_factory=dict)

    def rings(self) -> Iterator[None]:
        """One ring per change that matters, and one at the beginning. Ends when the server ends the stream.

        The version is read before the first ring: what changes after the look that it brings is in the stream.
        """
        version = self.port.version(self.collection.path, self._query())
        yield None
        for line in self._lines(version):
            if self._matters(line):
                yield None

    def _lines(self, version: str) -> Iterator[bytes]:
        watch: dict[str, str | int] = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": LASTS,
        }
        yield from self.port.lines(self.collection.path, query=self._query() | watch, silence=SILENCE)

    def _query(self) -> dict[str, str | int]:
        return {"labelSelector": self.collection.selector} if self.collection.selector else {}

    def _matters(self, line: bytes) -> bool:
        """Odd lines ring too: a look too many costs little."""
        if not line.strip():
            return False
        try:
            return self._means(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return True

    def _means(self, event: Any) -> bool:
        kind, item = event["type"], event["object"]
        if kind == "BOOKMARK":
            return False
        if kind == "ERROR":
            raise ClusterError(f"The cluster ended a watch: {item.get('message', 'without a reason')}.")
        return self._is_new(kind, item)

    def _is_new(self, kind: str, item: Mapping[str, Any]) -> bool:
        meta = item.get("metadata") or {}
        uid = str(meta.get("uid", ""))
        if kind == "DELETED":
            self._seen.pop(uid, None)
            return True
        told = gist(item)
        if self._seen.get(uid) == told:
            return False
        self._seen[uid] = told
        return True


def gist(item: Mapping[str, Any]) -> str:
    """What matters of a pod or node, as text: not its heartbeats, versions and managed fields."""
    meta, spec, status = (item.get(part) or {} for part in ("metadata", "spec", "status"))
    conditions = [(one.get("type"), one.get("status")) for one in status.get("conditions") or []]
    return json.dumps(
        [
            meta.get("labels"), meta.get("annotations"), meta.get("deletionTimestamp"), spec.get("unschedulable"),
            spec.get("taints"), spec.get("nodeName"), status.get("phase"), status.get("containerStatuses"),
            status.get("allocatable"), status.get("capacity"), conditions,
        ],
        sort_keys=True, default=str,
    )  # fmt: skip
