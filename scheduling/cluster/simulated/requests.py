"""One HTTP request: what it names, what it asks for, and how its answer goes out."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

import yaml

from . import errors
from .api import APPLY_PATCH, DeleteOptions
from .kinds import BY_PLURAL, Kind
from .listing import Query

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
LARGEST_BODY = 3 * 1024 * 1024


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
    name, subresource = (*rest[1:3], "", "")[:2]
    misplaced = kind is not None and kind.namespaced != bool(namespace)
    if kind is None or (misplaced and (namespace or name)) or (len(rest) > 3 and subresource != "proxy"):
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


async def end_stream(request: Request) -> None:
    await request.send({"type": "http.response.body", "body": b"", "more_body": False})


async def disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
