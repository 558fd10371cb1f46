"""The HTTP door: a raw ASGI application that speaks the part of the Kubernetes API that Berth uses.

It routes, decodes and encodes; what a request does is decided in `api.py`. Everything that touches the objects holds
the world's lock and takes no time; only watches, followed logs and faults wait, and they wait without it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

import yaml

from . import discovery, errors, listing
from .api import APPLY_PATCH, DeleteOptions
from .clock import Clock
from .errors import ApiError
from .faults import Faults
from .kinds import BY_PLURAL, Document, Key, Kind
from .listing import Query
from .watching import Hub, Watch
from .world import World

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
LARGEST_BODY = 3 * 1024 * 1024
BOOKMARK_SECONDS = 30.0
WATCH_SECONDS = 1800.0
PODS = BY_PLURAL["pods"]


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    receive: Receive
    send: Send
    drop: Callable[[], None]  # closes the connection without an answer

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() in ("true", "1")

    def number(self, name: str, default: float = 0) -> float:
        text = self.query.get(name, "")
        try:
            return float(text) if text else default
        except ValueError:
            raise errors.bad_request(f"{name}: {text!r} is no number") from None

    def document(self) -> Any:
        """The decoded body; JSON, or YAML where the type says so."""
        style = self.style
        if "protobuf" in style:
            raise errors.unsupported_media_type("accepted media types include: application/json, application/yaml")
        try:
            return json.loads(self.body or b"{}")
        except ValueError as error:
            if "yaml" not in style:
                raise errors.bad_request(f"the body of the request is no JSON: {error}") from None
        try:
            return yaml.safe_load(self.body)
        except yaml.YAMLError as error:
            raise errors.bad_request(f"the body of the request is no YAML: {error}") from None

    @property
    def style(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip()

    @property
    def manager(self) -> str:
        """Who asks: fieldManager, or as the real server does, the first word of the user agent."""
        agent = self.headers.get("user-agent", "").partition("/")[0]
        named = self.query.get("fieldManager", "")
        return named if named or self.style == APPLY_PATCH else agent[:128] or "unknown"


@dataclass(frozen=True, slots=True)
class Target:
    """What a path names. `rest` is what follows a proxy subresource."""

    kind: Kind
    namespace: str
    name: str
    subresource: str
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    body: bytes
    type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


def as_answer(document: Any, code: int = 200) -> Answer:
    return Answer(code, json.dumps(document).encode())


class App:
    """One simulated cluster as an ASGI application. `connections` finds what to close when a reply shall be lost."""

    def __init__(self, world: World, clock: Clock, hub: Hub, faults: Faults) -> None:
        self.world = world
        self.clock = clock
        self.hub = hub
        self.faults = faults
        self.connections: Callable[[Any], None] = lambda client: None
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
            return await self.watch(request, target)
        if request.method == "GET" and target.subresource == "log" and request.flag("follow"):
            return await self.follow(request, target)
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
        document = api.patch(
            kind, *where, body, style=request.style, subresource=part, manager=manager, force=force
        )
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
                await request.send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            self.hub.close(watch)

    async def stream(self, request: Request, watch: Watch, gone: asyncio.Task[None]) -> None:
        until = time.monotonic() + request.number("timeoutSeconds", WATCH_SECONDS)
        marks = request.flag("allowWatchBookmarks")
        next_mark = time.monotonic() + BOOKMARK_SECONDS
        while not gone.done() and not watch.ended:
            watch.bell.clear()
            silent = {"", watch.query.kind.plural} & self.faults.silent
            with self.world.lock:
                lines = [] if silent else self.hub.lines(watch)
            now = time.monotonic()
            if marks and not silent and (now >= next_mark or now >= until) and not watch.ended:
                lines.append(self.hub.bookmark(watch))
                next_mark = now + BOOKMARK_SECONDS
            if lines:
                await request.send({"type": "http.response.body", "body": b"".join(lines), "more_body": True})
            if now >= until:
                return
            await first_of(watch.bell.wait(), gone, min(until, next_mark) - now)

    async def follow(self, request: Request, target: Target) -> None:
        """A followed log: what there is, then new lines as the simulated time passes, until the container ends."""
        with self.world.lock:
            self.world.api.get(PODS, target.namespace, target.name)
            text = self.log(request, target)
        gone = asyncio.create_task(disconnected(request.receive))
        await start_stream(request, "text/plain")
        try:
            while not gone.done():
                await request.send({"type": "http.response.body", "body": text.encode(), "more_body": True})
                since = self.world.now
                await first_of(asyncio.sleep(0.5), gone, 1.0)
                with self.world.lock:
                    pod = self.world.store.get(Key("pods", target.namespace, target.name))
                    if pod is None or pod["status"].get("phase") != "Running":
                        break
                    lines = self.world.parts["kubelet"].log_of(pod, request.query.get("container", ""), stamps=False)
                    text = "".join(f"{entry}\n" for at, entry in lines if at > since)
            await request.send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()


def found(document: Document | None) -> Answer:
    if document is None:
        raise errors.no_such_path()
    return as_answer(document)


def target_of(path: str) -> Target:
    """`/api/v1/namespaces/a/pods/b/log` and its like; NotFound for what is not served."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    match parts:
        case ["api", version, *rest] if rest:
            group = ""
        case ["apis", group, version, *rest] if rest:
            pass
        case _:
            raise errors.no_such_path()
    served = {kind.plural: kind for kind in BY_PLURAL.values() if (kind.group, kind.version) == (group, version)}
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] in BY_PLURAL:
        namespace, rest = rest[1], rest[2:]
    kind = served.get(rest[0])
    if kind is None or (namespace and not kind.namespaced):
        raise errors.no_such_path()
    name, subresource = (*rest[1:3], "", "")[:2]
    if len(rest) > 3 and subresource != "proxy":
        raise errors.no_such_path()
    if name and kind.namespaced and not namespace:
        raise errors.no_such_path()
    return Target(kind, namespace, name, subresource, "/".join(rest[3:]))


def query_of(request: Request, target: Target) -> Query:
    query = request.query
    return Query(
        target.kind,
        target.namespace,
        query.get("labelSelector", ""),
        query.get("fieldSelector", ""),
        int(request.number("limit")),
        query.get("continue", ""),
    )


def delete_options(body: Any, query: dict[str, str]) -> DeleteOptions:
    body = body if isinstance(body, dict) else {}
    grace = body.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
    conditions = body.get("preconditions") or {}
    how = body.get("propagationPolicy") or query.get("propagationPolicy", "")
    if how not in ("", "Background", "Foreground", "Orphan"):
        raise errors.bad_request(f"propagationPolicy: {how!r} is none of Background, Foreground, Orphan")
    return DeleteOptions(
        how,
        None if grace in (None, "") else int(grace),
        conditions.get("uid") or "",
        conditions.get("resourceVersion") or "",
    )


async def read_request(scope: Scope, receive: Receive, send: Send, drop: Callable[[], None]) -> Request:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body") or len(body) > LARGEST_BODY:
            break
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    path = scope.get("raw_path", scope["path"].encode()).decode("latin-1")
    return Request(scope["method"], path, query, headers, body, receive, send, drop)


async def respond(request: Request, answer: Answer) -> None:
    headers = {"content-type": answer.type, "content-length": str(len(answer.body))} | answer.headers
    await request.send(
        {
            "type": "http.response.start",
            "status": answer.code,
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
    )
    await request.send({"type": "http.response.body", "body": answer.body})


async def start_stream(request: Request, content_type: str) -> None:
    headers = [(b"content-type", content_type.encode())]
    await request.send({"type": "http.response.start", "status": 200, "headers": headers})
    # A first empty chunk, so that the client sees the headers before the first event.
    await request.send({"type": "http.response.body", "body": b"", "more_body": True})


async def disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def first_of(wait: Awaitable[Any], gone: asyncio.Task[None], seconds: float) -> None:
    task = asyncio.ensure_future(wait)
    await asyncio.wait({task, gone}, timeout=max(seconds, 0), return_when=asyncio.FIRST_COMPLETED)
    task.cancel()
