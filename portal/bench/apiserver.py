"""An API server of the bench's own: answers in a millisecond, counts what it is asked, and starts every pod at once.

    python -m portal.bench.apiserver --nodes 1250 --cards 8

It speaks as much of the API as Berth does: lists, watches, server-side apply, deletion. It judges nothing. The address
is its first line; GET /counts tells what was asked. Ends with its parent.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import signal
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from portal.bench.machines import node_document
from portal.processes import die_with

Document = dict[str, Any]
DELAY = 0.001  # seconds before every answer
BOOKMARKS = 5.0  # seconds between two bookmarks of a watch
KNOWN = ("nodes", "namespaces", "pods", "services", "configmaps", "persistentvolumeclaims", "statefulsets", "jobs")
NOT_FOUND, CONFLICT = 404, 409


@dataclass
class Store:
    """Objects by plural, then by namespace and name; every write has a version, and is told to who watches."""

    objects: defaultdict[str, dict[tuple[str, str], Document]] = field(default_factory=lambda: defaultdict(dict))
    watchers: defaultdict[str, set[asyncio.Queue[Document]]] = field(default_factory=lambda: defaultdict(set))
    counts: Counter[str] = field(default_factory=Counter)
    versions: Iterator[int] = field(default_factory=lambda: itertools.count(2))

    def write(self, plural: str, key: tuple[str, str], document: Document, word: str) -> Document:
        document["metadata"]["resourceVersion"] = str(next(self.versions))
        if word == "DELETED":
            self.objects[plural].pop(key, None)
        else:
            self.objects[plural][key] = document
        for queue in self.watchers[plural]:
            queue.put_nowait({"type": word, "object": document})
        return document

    def apply(self, plural: str, key: tuple[str, str], wanted: Document, *, anew: bool) -> Document | None:
        """None where it was made for another version than there is, or `anew` where there is one."""
        there, meta = self.objects[plural].get(key), wanted["metadata"]
        named = meta.pop("resourceVersion", None)
        if there is not None and (anew or named not in (None, there["metadata"]["resourceVersion"])):
            return None
        kept = there["metadata"] if there else {"uid": f"uid-{next(self.versions)}", "creationTimestamp": now()}
        wanted["metadata"] = {**meta, **{name: kept[name] for name in ("uid", "creationTimestamp")}}
        made = self.write(plural, key, wanted, "MODIFIED" if there else "ADDED")
        if plural in ("jobs", "statefulsets") and there is None:
            self.start_pod(key, made)
        return made

    def start_pod(self, key: tuple[str, str], owner: Document) -> None:
        name = (key[0], f"{key[1]}-0")
        self.write("pods", name, pod_of(owner, name, f"uid-{next(self.versions)}"), "ADDED")

    def remove(self, plural: str, key: tuple[str, str]) -> bool:
        found = self.objects[plural].get(key)
        if found is None:
            return False
        self.write(plural, key, found, "DELETED")
        if plural in ("jobs", "statefulsets"):
            self.remove("pods", (key[0], f"{key[1]}-0"))
        return True


def pod_of(owner: Document, name: tuple[str, str], uid: str) -> Document:
    """It runs from the first instant, on the node that it asks for."""
    template = owner["spec"]["template"]
    meta = {**template.get("metadata", {}), "namespace": name[0], "name": name[1], "uid": uid}
    meta["creationTimestamp"] = now()
    meta["ownerReferences"] = [{"kind": owner["kind"], "name": owner["metadata"]["name"], "controller": True,
                                "apiVersion": owner["apiVersion"], "uid": owner["metadata"]["uid"]}]  # fmt: skip
    running = {"name": "main", "ready": True, "restartCount": 0, "state": {"running": {"startedAt": now()}}}
    status = {"phase": "Running", "startTime": now(), "containerStatuses": [running]}
    status["conditions"] = [{"type": "Ready", "status": "True"}]
    spec = {**template["spec"], "nodeName": node_of(template["spec"])}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}


def node_of(spec: Document) -> str:
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    said = [*terms[0].get("matchFields", ()), *terms[0].get("matchExpressions", ())]
    return str(said[0]["values"][0])


def now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


# HTTP


@dataclass(frozen=True, slots=True)
class Call:
    method: str
    plural: str
    namespace: str
    name: str
    watches: bool
    body: Document

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name

    @property
    def counted(self) -> str:
        if self.watches:
            return "watches"
        if self.method != "GET":
            return f"writes of {self.plural}"
        return f"reads of {self.plural}" if self.name else f"lists of {self.plural}"


def call_of(method: str, target: str, body: bytes) -> Call:
    """Of /api/v1/… or /apis/GROUP/VERSION/…, with or without a namespace and a name."""
    where = urlsplit(target)
    steps = where.path.strip("/").split("/")
    steps = steps[2:] if steps[0] == "api" else steps[3:]
    namespace = ""
    if len(steps) > 2 and steps[0] == "namespaces":
        namespace, steps = steps[1], steps[2:]
    plural, name = [*steps, "", ""][:2]
    watches = parse_qs(where.query).get("watch") == ["true"]
    return Call(method, plural, namespace, name, watches, json.loads(body) if body else {})


def answer_to(store: Store, call: Call) -> tuple[int, Document]:
    if call.plural not in KNOWN:
        return refusal(NOT_FOUND)
    if call.method == "GET" and not call.name:
        meta = {"resourceVersion": str(next(store.versions))}
        return 200, {"kind": "List", "metadata": meta, "items": list(store.objects[call.plural].values())}
    if call.method in ("PATCH", "POST"):
        key = (call.namespace, str(call.body["metadata"]["name"]))
        made = store.apply(call.plural, key, call.body, anew=call.method == "POST")
        return (200, made) if made else refusal(CONFLICT)
    found = store.objects[call.plural].get(call.key)
    if found is None:
        return refusal(NOT_FOUND)
    if call.method == "DELETE":
        store.remove(call.plural, call.key)
    return 200, found


def refusal(status: int) -> tuple[int, Document]:
    reason = {NOT_FOUND: "NotFound", CONFLICT: "Conflict"}[status]
    return status, {"kind": "Status", "status": "Failure", "reason": reason, "message": reason, "code": status}


async def serve(store: Store, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            first, *lines = head.decode("latin-1").split("\r\n")
            method, target, _ = first.split(" ")
            named = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
            body = await reader.readexactly(int(named.get("content-length", 0)))
            if target == "/counts":
                send(writer, 200, dict(store.counts))
                continue
            call = call_of(method, target, body)
            store.counts[call.counted] += 1
            if call.watches and call.plural in KNOWN:
                await watch(store, call, writer)
                return
            await asyncio.sleep(DELAY)
            send(writer, *answer_to(store, call))
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


def send(writer: asyncio.StreamWriter, status: int, document: Document) -> None:
    body = json.dumps(document, separators=(",", ":")).encode()
    head = f"HTTP/1.1 {status} so\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)


async def watch(store: Store, call: Call, writer: asyncio.StreamWriter) -> None:
    """What changes from now on; our clients list first and ask at once, so nothing is missed in between."""
    queue: asyncio.Queue[Document] = asyncio.Queue()
    store.watchers[call.plural].add(queue)
    try:
        writer.write(b"HTTP/1.1 200 so\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not writer.is_closing():
            try:
                event = await asyncio.wait_for(queue.get(), BOOKMARKS)
            except TimeoutError:
                meta = {"resourceVersion": str(next(store.versions))}
                event = {"type": "BOOKMARK", "object": {"metadata": meta}}
            line = json.dumps(event, separators=(",", ":")).encode() + b"\n"
            writer.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
            await writer.drain()
    finally:
        store.watchers[call.plural].discard(queue)


async def run(nodes: int, cards: int) -> None:
    store = Store()
    for number in range(nodes):
        name = f"node-{number:05}"
        document = node_document(name, cards)
        document["metadata"] |= {"uid": f"uid-{name}", "creationTimestamp": "2026-12-01T08:00:00Z"}
        store.write("nodes", ("", name), document, "ADDED")
    store.write("namespaces", ("", "kube-system"), {"metadata": {"name": "kube-system", "uid": "bench"}}, "ADDED")
    server = await asyncio.start_server(lambda *pair: serve(store, *pair), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(prog="portal.bench.apiserver", description=__doc__)
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--cards", type=int, default=8)
    options = parser.parse_args()
    die_with(os.getppid(), signal.SIGTERM)
    asyncio.run(run(options.nodes, options.cards))


if __name__ == "__main__":
    main()
