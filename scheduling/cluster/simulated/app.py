"""The HTTP door: a raw ASGI application that speaks the part of the Kubernetes API that Berth uses.

It routes, decodes and encodes; what a request does is decided in `api.py`. Everything that touches the objects holds
the world's lock and takes no time; only watches, followed logs and faults wait, and they wait without it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

from . import discovery, errors, listing
from .api import APPLY_PATCH
from .clock import Clock
from .errors import ApiError
from .faults import Faults
from .kinds import BY_PLURAL, Document, Key
from .requests import (
    LARGEST_BODY,
    Answer,
    Receive,
    Request,
    Scope,
    Send,
    Target,
    as_answer,
    delete_options,
    disconnected,
    end_stream,
    query_of,
    read_request,
    respond,
    start_stream,
    target_of,
)
from .watching import Hub, Watch
from .world import World

BOOKMARK_SECONDS = 30.0  # of its own time
LEAST_BOOKMARK_SECONDS = 1.0  # of the wall clock, however fast its time runs
WATCH_SECONDS = 1800.0
PODS = BY_PLURAL["pods"]


class App:
    """One simulated cluster as an ASGI application. `connections` finds what to close when a reply shall be lost."""

    def __init__(self, world: World, clock: Clock, hub: Hub, faults: Faults) -> None:
        self.world = world
        self.clock = clock
        self.hub = hub
        self.faults = faults
        self.connections: Callable[[Any], None] = lambda _: None
        self.manual_advance: Callable[[float], None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        self.hub.loop = asyncio.get_running_loop()
        request = await read_request(scope, receive, send, lambda: self.connections(scope.get("client")))
        try:
            await self.meet_faults(request)
            answer = await self.answer(request)
        except ApiError as error:
            answer = Answer(error.code, json.dumps(error.status()).encode(), headers=error.headers)
        if answer is None:
            return
        if self.faults.take(request.method, request.path, "lose"):
            request.drop()
            return
        await respond(request, answer)

    async def meet_faults(self, request: Request) -> None:
        if request.path.startswith("/simulation/"):
            return
        slow = self.faults.take(request.method, request.path, "delay")
        if slow:
            await asyncio.sleep(slow.seconds)
        wrong = self.faults.take(request.method, request.path, "answer")
        if wrong:
            raise wrong.error()

    async def answer(self, request: Request) -> Answer | None:
        """The answer, or None when it has been streamed."""
        if len(request.body) > LARGEST_BODY:
            raise ApiError(413, "RequestEntityTooLarge", f"limit is {LARGEST_BODY} bytes")
        plain = self.plain(request)
        if plain is not None:
            return plain
        target = target_of(request.path)
        if request.method == "GET" and not target.name and request.flag("watch"):
            await self.watch(request, target)
            return None
        if request.method == "GET" and target.subresource == "log" and request.flag("follow"):
            await self.follow(request, target)
            return None
        with self.world.lock:
            if request.method == "GET":
                return self.read(request, target)
            self.world.step(self.clock.now())
            try:
                return self.write(request, target)
            finally:
                self.world.api.rehearsing = False
                self.world.settle()

    # Without objects

    def plain(self, request: Request) -> Answer | None:
        parts = [part for part in request.path.split("/") if part]
        match parts:
            case ["version"]:
                return as_answer(discovery.VERSION)
            case ["healthz" | "readyz" | "livez", *_]:
                return Answer(200, b"ok", "text/plain")
            case ["api"]:
                return as_answer(discovery.core())
            case ["apis"]:
                return as_answer(discovery.groups())
            case ["apis", group] if group in discovery.group_names():
                return as_answer(discovery.group(group))
            case ["api", version]:
                return found(discovery.resources("", version))
            case ["apis", group, version]:
                return found(discovery.resources(group, version))
            case ["simulation", what]:
                return self.simulation(request, what)
        return None

    def simulation(self, request: Request, what: str) -> Answer:
        """The doors that no real cluster has."""
        match request.method, what:
            case "GET", "state":
                with self.world.lock:
                    return as_answer(self.world.describe())
            case "POST", "faults":
                self.faults.by_name(request.document())
                return as_answer({"status": "Success"})
            case "POST", "advance" if self.manual_advance:
                self.manual_advance(float(request.document().get("seconds", 0)))
                return as_answer({"now": self.world.now.isoformat()})
        raise errors.no_such_path()

    # Reading

    def read(self, request: Request, target: Target) -> Answer:
        kind, store = target.kind, self.world.store
        if not target.name:
            query = query_of(request, target)
            return Answer(200, listing.page(store, query))
        match target.subresource:
            case "" | "status":
                document = self.world.api.get(kind, target.namespace, target.name)
                return Answer(200, store.json(Key(kind.plural, target.namespace, target.name), document))
            case "scale" if kind.has_scale:
                return as_answer(self.world.api.scale_of(kind, target.namespace, target.name))
            case "log":
                return Answer(200, self.log(request, target).encode(), "text/plain")
            case "proxy":
                return self.proxy(target)
        raise errors.method_not_allowed()

    def log(self, request: Request, target: Target) -> str:
        pod = self.world.api.get(PODS, target.namespace, target.name)
        lines = self.world.parts["kubelet"].log_of(
            pod, request.query.get("container", ""), stamps=request.flag("timestamps")
        )
        since = request.number("sinceSeconds", -1)
        shown = [text for at, text in lines if since < 0 or (self.world.now - at).total_seconds() <= since]
        tail = int(request.number("tailLines", -1))
        shown = shown if tail < 0 else shown[len(shown) - tail :] if tail else []
        text = "".join(f"{entry}\n" for entry in shown)
        limit = int(request.number("limitBytes", 0))
        return text[:limit] if limit else text

    def proxy(self, target: Target) -> Answer:
        """The API server's way into a pod. Only the DCGM exporters listen."""
        name, _, port = target.name.partition(":")
        pod = self.world.api.get(PODS, target.namespace, name)
        text = self.world.parts["exporter"].serve(pod, port, target.rest)
        return Answer(200, text.encode(), "text/plain; version=0.0.4; charset=utf-8")

    # Writing

    def write(self, request: Request, target: Target) -> Answer:
        api, kind = self.world.api, target.kind
        api.rehearsing = bool(request.query.get("dryRun"))
        match request.method:
            case "POST" if target.subresource == "eviction":
                return self.evict(request, target)
            case "POST" if not target.name:
                return as_answer(api.create(kind, target.namespace, request.document(), request.manager), 201)
            case "PUT" | "PATCH" if target.name:
                return self.change(request, target)
            case "DELETE" if target.name and not target.subresource:
                return self.delete(request, target)
            case "DELETE" if not target.name:
                return self.delete_many(request, target)
        raise errors.method_not_allowed()

    def change(self, request: Request, target: Target) -> Answer:
        api, kind, where = self.world.api, target.kind, (target.namespace, target.name)
        body, manager, part = request.document(), request.manager, target.subresource
        if part == "scale" and kind.has_scale:
            return as_answer(self.rescale(request, target, body))
        if part not in ("", "status") or (part == "status" and not kind.has_status):
            raise errors.method_not_allowed()
        if request.method == "PUT":
            return as_answer(api.replace(kind, *where, body, subresource=part, manager=manager))
        there = self.world.store.get(Key(kind.plural, *where)) is not None
        force = request.flag("force")
        document = api.patch(kind, *where, body, style=request.style, subresource=part, manager=manager, force=force)
        return as_answer(document, 200 if there else 201)

    def rescale(self, request: Request, target: Target, body: Any) -> Document:
        api, where = self.world.api, (target.kind, target.namespace, target.name)
        if request.method == "PATCH":
            if request.style == APPLY_PATCH:
                raise errors.unsupported_media_type("apply is not supported on /scale here; use a merge patch")
            body = api.patched_scale(*where, body, request.style)
        return api.scale(*where, body, request.manager)

    def evict(self, request: Request, target: Target) -> Answer:
        options = delete_options(request.document().get("deleteOptions") or {}, {})
        self.world.api.delete(target.kind, target.namespace, target.name, options)
        return as_answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)

    def delete(self, request: Request, target: Target) -> Answer:
        options = delete_options(request.document() if request.body else {}, request.query)
        before = self.world.store.version
        document = self.world.api.delete(target.kind, target.namespace, target.name, options)
        gone = self.world.store.get(Key(target.kind.plural, target.namespace, target.name)) is None
        if not gone or target.kind is PODS or before == self.world.store.version:
            return as_answer(document)
        details = errors.about(target.kind, target.name) | {"uid": document["metadata"]["uid"]}
        return as_answer(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        )

    def delete_many(self, request: Request, target: Target) -> Answer:
        """deletecollection: everything that the selectors choose."""
        body = request.document() if request.body else {}
        listed = json.loads(listing.page(self.world.store, query_of(request, target)))
        for item in listed["items"]:
            metadata = item["metadata"]
            options = delete_options(body, request.query)
            self.world.api.delete(target.kind, metadata.get("namespace", ""), metadata["name"], options)
        return as_answer(listed)

    # Streams

    async def watch(self, request: Request, target: Target) -> None:
        if request.flag("sendInitialEvents"):
            raise ApiError(422, "Invalid", "sendInitialEvents is forbidden: this server streams no lists")
        version = request.query.get("resourceVersion", "")
        with self.world.lock:
            watch = self.hub.open(query_of(request, target), version)
        gone = asyncio.create_task(disconnected(request.receive))
        try:
            await start_stream(request, "application/json")
            await self.stream(request, watch, gone)
            if watch.ended == "cut":
                request.drop()
            else:
                await end_stream(request)
        finally:
            gone.cancel()
            self.hub.close(watch)

    async def stream(self, request: Request, watch: Watch, gone: asyncio.Task[None]) -> None:
        until = time.monotonic() + request.number("timeoutSeconds", WATCH_SECONDS)
        marks = request.flag("allowWatchBookmarks")
        pace = max(LEAST_BOOKMARK_SECONDS, BOOKMARK_SECONDS / self.clock.rate())
        next_mark = time.monotonic() + pace
        while not gone.done() and not watch.ended:
            watch.bell.clear()
            silent = {"", watch.query.kind.plural} & self.faults.silent
            with self.world.lock:
                lines = [] if silent else self.hub.lines(watch)
            now = time.monotonic()
            if now >= next_mark or now >= until:
                next_mark = now + pace
                lines += [self.hub.bookmark(watch)] if marks and not silent and not watch.ended else []
            if lines:
                await request.send({"type": "http.response.body", "body": b"".join(lines), "more_body": True})
            if now >= until or watch.ended:
                return
            await first_of(watch.bell.wait(), gone, min(until, next_mark) - now)

    async def follow(self, request: Request, target: Target) -> None:
        """A followed log: what there is, then new lines as the simulated time passes, until the container ends."""
        with self.world.lock:
            text, since = self.log(request, target), self.world.now
        gone = asyncio.create_task(disconnected(request.receive))
        await start_stream(request, "text/plain")
        try:
            while not gone.done():
                await request.send({"type": "http.response.body", "body": text.encode(), "more_body": True})
                await first_of(asyncio.sleep(0.5), gone, 1.0)
                with self.world.lock:
                    pod = self.world.store.get(Key("pods", target.namespace, target.name))
                    if pod is None or pod["status"].get("phase") != "Running":
                        break
                    lines = self.world.parts["kubelet"].log_of(pod, request.query.get("container", ""), stamps=False)
                    text = "".join(f"{entry}\n" for at, entry in lines if at > since)
                    since = self.world.now
            await end_stream(request)
        finally:
            gone.cancel()


def found(document: Document | None) -> Answer:
    if document is None:
        raise errors.no_such_path()
    return as_answer(document)


async def first_of(wait: Awaitable[Any], gone: asyncio.Task[None], seconds: float) -> None:
    task = asyncio.ensure_future(wait)
    await asyncio.wait({task, gone}, timeout=max(seconds, 0), return_when=asyncio.FIRST_COMPLETED)
    task.cancel()
