"""A proxy between Berth and an API server that misbehaves by a script, the same way each time for the same seed.

    with between(url, seed=7) as proxy:
        proxy.on(Answer(429, retry_after=7), path="/nodes$")
        proxy.on(Lose(), method="PATCH", path="statefulsets", times=1)
        proxy.on(Answer(500), times=None, chance=0.3)
        ...                                          # Berth talks to proxy.url
        assert proxy.calls("PATCH") == 2             # the history says what was asked, and what was done to it

HTTP/1.1 on loopback; towards the server plain or with TLS. Answers are passed on as they come, so watches stay streams.
"""

from __future__ import annotations

import asyncio
import random
import re
import socket
import ssl
import struct
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol
from urllib.parse import urlsplit

PASSED = "passed"
PIECE = 2**16
LONGEST_HEAD = 2**20
NOW_AND_AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends a reset
BODILESS = {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}

Lines = Callable[[AsyncIterator[bytes]], AsyncIterator[bytes]]
"""What becomes of the lines of a watch."""


class Gone(Exception):
    """One of the two sides has hung up."""


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    target: str  # with its query
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def watch(self) -> bool:
        return re.search(r"[?&]watch=(true|1)", self.target) is not None


@dataclass(frozen=True, slots=True)
class Call:
    """One line of the history."""

    at: float  # time.monotonic()
    method: str
    path: str
    watch: bool
    done: str  # "passed", or the deed that it met


class Deed(Protocol):
    """One way to treat a request."""

    async def meet(self, exchange: Exchange) -> None: ...


@dataclass(slots=True)
class Rule:
    """Which requests meet a deed: the next `times` that match (for ever when None), after `spared` of them."""

    deed: Deed
    method: str = ""
    path: str = ""  # a regular expression found anywhere in the path
    watch: bool | None = None
    times: int | None = 1
    spared: int = 0
    chance: float = 1.0

    def fits(self, request: Request) -> bool:
        return (
            self.method.upper() in ("", request.method)
            and self.watch in (None, request.watch)
            and re.search(self.path, request.path) is not None
        )

    def strikes(self, dice: random.Random) -> bool:
        """Whether this one of the fitting requests is hit; counts down."""
        if self.times == 0 or (self.chance < 1.0 and dice.random() >= self.chance):
            return False
        if self.spared:
            self.spared -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True


@dataclass
class Proxy:
    """A running proxy: its address, its script and its history."""

    server: str
    seed: int
    trust: ssl.SSLContext | None = None
    url: str = ""
    rules: list[Rule] = field(default_factory=list)
    history: list[Call] = field(default_factory=list)
    dice: random.Random = field(init=False)
    open: set[asyncio.StreamWriter] = field(default_factory=set)  # both sides of every connection so far
    tasks: set[asyncio.Task[None] | None] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)

    def on(
        self,
        deed: Deed,
        method: str = "",
        path: str = "",
        *,
        watch: bool | None = None,
        times: int | None = 1,
        spared: int = 0,
        chance: float = 1.0,
    ) -> Rule:
        """Let matching requests meet this; of several rules the first that strikes counts."""
        rule = Rule(deed, method, path, watch, times, spared, chance)
        self.rules.append(rule)
        return rule

    def calm(self) -> None:
        """No more faults."""
        self.rules.clear()

    def calls(self, method: str = "", path: str = "", *, since: int = 0) -> int:
        """How many calls the history has, from its entry `since` on."""
        found = self.history[since:]
        return sum(method in ("", call.method) and bool(re.search(path, call.path)) for call in found)

    def writes(self, since: int = 0) -> list[Call]:
        return [call for call in self.history[since:] if call.method != "GET"]

    def met(self) -> Counter[str]:
        """How often each deed was done."""
        return Counter(call.done for call in self.history)

    def judge(self, request: Request) -> Deed | None:
        struck = (rule for rule in list(self.rules) if rule.fits(request) and rule.strikes(self.dice))
        deed = next((rule.deed for rule in struck), None)
        done = PASSED if deed is None else type(deed).__name__.lower()
        self.history.append(Call(time.monotonic(), request.method, request.path, request.watch, done))
        return deed

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client's connection, request by request."""
        self.open |= {writer}
        self.tasks |= {asyncio.current_task()}
        try:
            while request := await read_request(reader):
                deed = self.judge(request)
                exchange = Exchange(self, request, writer)
                await (exchange.deliver() if deed is None else deed.meet(exchange))
        except (Gone, OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # whoever hung up knows it, and at the end nobody is left
        finally:
            writer.close()


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and the means to treat it."""

    proxy: Proxy
    request: Request
    client: asyncio.StreamWriter

    async def deliver(self, shape: Lines | None = None) -> None:
        """Ask the server and pass its answer on, as it comes or through `shape`."""
        async with aclosing(self.answer(shape)) as parts:
            async for part in parts:
                self.client.write(part)
                await self.client.drain()

    async def answer(self, shape: Lines | None = None) -> AsyncGenerator[bytes, None]:
        """The server's answer as it goes to the client: a head, then chunks. The server has done its work by then."""
        where = urlsplit(self.proxy.server)
        reader, writer = await asyncio.open_connection(
            where.hostname, where.port, ssl=self.proxy.trust, limit=LONGEST_HEAD
        )
        self.proxy.open |= {writer}
        try:
            writer.write(request_bytes(self.request))
            await writer.drain()
            status, headers = await read_head(reader)
            code = int(status.split(" ")[1])
            kept = [(name, text) for name, text in headers if name.lower() not in HOP]
            bodiless = code in BODILESS or self.request.method == "HEAD"
            yield head(status, [*kept, *([] if bodiless else [("Transfer-Encoding", "chunked")])])
            if bodiless:
                return
            body = pieces(reader, {name.lower(): text for name, text in headers})
            async for piece in shape(lines(body)) if shape else body:
                yield chunk(piece)
            yield b"0\r\n\r\n"
        finally:
            writer.transport.abort()  # a goodbye over TLS would outlive the loop

    async def reply(self, status: int, body: bytes, headers: list[tuple[str, str]]) -> None:
        """Answer in the server's place."""
        words = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"
        self.client.write(head(words, [*headers, ("Content-Length", str(len(body)))]) + body)
        await self.client.drain()

    def hang_up(self) -> None:
        """With a reset, as a crashed machine's kernel does it."""
        line: socket.socket = self.client.get_extra_info("socket")
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NOW_AND_AT_ONCE)
        self.client.transport.abort()
        raise Gone


# The proxy as a whole


@contextmanager
def between(server: str, *, authority_file: str = "", seed: int = 1) -> Iterator[Proxy]:
    """A proxy to the server at this address, in a thread of its own until the end. Its seed is in a failing test's
    output, for playing it again."""
    trust = ssl.create_default_context(cafile=authority_file or None) if server.startswith("https:") else None
    proxy = Proxy(server, seed, trust)
    print(f"fault proxy before {server}: seed {seed}")
    ready, ends = threading.Event(), Ends()
    thread = threading.Thread(target=lambda: asyncio.run(run(proxy, ready, ends)), name="proxy", daemon=True)
    thread.start()
    ready.wait(10)
    try:
        yield proxy
    finally:
        ends.end()
        thread.join(10)


@dataclass
class Ends:
    """How the thread of the tests ends the proxy's loop."""

    loop: asyncio.AbstractEventLoop | None = None
    over: asyncio.Event | None = None

    def end(self) -> None:
        if self.loop is not None and self.over is not None:
            self.loop.call_soon_threadsafe(self.over.set)


async def run(proxy: Proxy, ready: threading.Event, ends: Ends) -> None:
    ends.loop, ends.over = asyncio.get_running_loop(), asyncio.Event()
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=LONGEST_HEAD)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    ready.set()
    await ends.over.wait()
    server.close()
    for task in proxy.tasks:
        if task is not None:
            task.cancel()
    await asyncio.gather(*(task for task in proxy.tasks if task is not None), return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
    for writer in proxy.open:
        writer.transport.abort()
    for _ in range(5):  # aborted transports let go of their sockets in the loop's next rounds
        await asyncio.sleep(0)


# HTTP

HOP = {"transfer-encoding", "content-length", "connection", "keep-alive"}


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request of a connection; None when the client is done."""
    try:
        first, headers = await read_head(reader)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    method, target, _ = first.split(" ", 2)
    length = next((int(text) for name, text in headers if name.lower() == "content-length"), 0)
    return Request(method, target, tuple(headers), await reader.readexactly(length))


async def read_head(reader: asyncio.StreamReader) -> tuple[str, list[tuple[str, str]]]:
    first, *rest = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
    return first, [(name.strip(), text.strip()) for name, _, text in (line.partition(":") for line in rest)]


def request_bytes(request: Request) -> bytes:
    """To the server: one request a connection, and watches unpacked, so that their lines can be told apart."""
    left_out = HOP | ({"accept-encoding"} if request.watch else set())
    kept = [(name, text) for name, text in request.headers if name.lower() not in left_out]
    sized = [*kept, ("Connection", "close"), ("Content-Length", str(len(request.body)))]
    return head(f"{request.method} {request.target} HTTP/1.1", sized) + request.body


def head(first: str, headers: list[tuple[str, str]]) -> bytes:
    return "\r\n".join([first, *(f"{name}: {text}" for name, text in headers), "", ""]).encode("latin-1")


def chunk(piece: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(piece), piece)


async def pieces(reader: asyncio.StreamReader, headers: dict[str, str]) -> AsyncIterator[bytes]:
    """A body as it comes, however its length is told."""
    if "chunked" in headers.get("transfer-encoding", ""):
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            yield await reader.readexactly(size)
            await reader.readexactly(2)
        return
    left = int(headers["content-length"]) if "content-length" in headers else None
    while left != 0:
        piece = await reader.read(min(PIECE, left or PIECE))
        if not piece:
            return
        left = None if left is None else left - len(piece)
        yield piece


async def lines(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whole lines, each with its end."""
    rest = b""
    async for part in parts:
        *whole, rest = (rest + part).split(b"\n")
        for line in whole:
            yield line + b"\n"
    if rest:
        yield rest
