"""What can be done to a request, and to the lines of a watch."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from tests.faults.proxy import Exchange, Lines


@dataclass(frozen=True, slots=True)
class Answer:
    """A refusal in the server's place; the server hears nothing of it."""

    status: int
    retry_after: int | None = None
    message: str = "a fault on request"
    reason: str = ""
    causes: tuple[str, ...] = ()

    async def meet(self, exchange: Exchange) -> None:
        said = {"kind": "Status", "status": "Failure", "message": self.message, "code": self.status}
        details = {"causes": [{"reason": cause} for cause in self.causes]}
        body = json.dumps(said | {"reason": self.reason, "details": details}).encode()
        wait = [] if self.retry_after is None else [("Retry-After", str(self.retry_after))]
        await exchange.reply(self.status, body, [("Content-Type", "application/json"), *wait])


@dataclass(frozen=True, slots=True)
class Lose:
    """The server does its work; its answer is lost."""

    async def meet(self, exchange: Exchange) -> None:
        async for _ in exchange.answer():
            pass
        exchange.hang_up()


@dataclass(frozen=True, slots=True)
class Reset:
    """The connection breaks before the server hears anything, or after so many parts of its answer."""

    after: int = 0

    async def meet(self, exchange: Exchange) -> None:
        left = self.after
        if left:
            async for part in exchange.answer():
                exchange.client.write(part)
                await exchange.client.drain()
                left -= 1
                if not left:
                    break
        exchange.hang_up()


@dataclass(frozen=True, slots=True)
class Hang:
    """Taken and never answered, until `over` is set or the proxy ends. The server does its work `after_all` or not."""

    over: threading.Event = field(default_factory=threading.Event)
    after_all: bool = False

    async def meet(self, exchange: Exchange) -> None:
        if self.after_all:
            async for _ in exchange.answer():
                pass
        while not self.over.is_set():  # noqa: ASYNC110 (set by a test's thread)
            await asyncio.sleep(0.01)
        exchange.hang_up()


@dataclass(frozen=True, slots=True)
class Hold:
    """Held back until `over` is set, and delivered then, even if whoever asked is dead by that time: a late message."""

    over: threading.Event = field(default_factory=threading.Event)
    met: threading.Event = field(default_factory=threading.Event)

    async def meet(self, exchange: Exchange) -> None:
        self.met.set()
        while not self.over.is_set():  # noqa: ASYNC110 (set by a test's thread)
            await asyncio.sleep(0.01)
        await exchange.deliver()


@dataclass(frozen=True, slots=True)
class Drip:
    """The answer comes in small drops with pauses."""

    pause: float = 0.01  # seconds
    size: int = 64  # bytes

    async def meet(self, exchange: Exchange) -> None:
        async for part in exchange.answer():
            for start in range(0, len(part), self.size):
                exchange.client.write(part[start : start + self.size])
                await exchange.client.drain()
                await asyncio.sleep(self.pause)


@dataclass(frozen=True, slots=True)
class Shape:
    """The lines of a watch go through a function: said twice, swapped, spoilt, held back."""

    lines: Lines

    async def meet(self, exchange: Exchange) -> None:
        await exchange.deliver(self.lines)


# Shapes of watches


async def twice(heard: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for line in heard:
        yield line
        yield line


async def swapped(heard: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Each two lines in the wrong order."""
    first: bytes | None = None
    async for line in heard:
        if first is None:
            first = line
            continue
        yield line
        yield first
        first = None


def begun_with(*said: bytes) -> Lines:
    """Some lines of our own before what the server says."""

    async def shape(heard: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        for line in said:
            yield line + b"\n"
        async for line in heard:
            yield line

    return shape


def among(*said: bytes) -> Lines:
    """One line of our own after each of the server's, in turn."""

    async def shape(heard: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        count = 0
        async for line in heard:
            yield line
            yield said[count % len(said)] + b"\n"
            count += 1

    return shape


def silent_after(count: int) -> Lines:
    """So many lines, then nothing more on a stream that stays open."""

    async def shape(heard: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        left = count
        async for line in heard:
            if left > 0:
                left -= 1
                yield line

    return shape


def error_event(code: int, reason: str) -> bytes:
    """How the server ends a watch that it accepted: 410, reason Expired."""
    status = {"kind": "Status", "status": "Failure", "message": "too old resource version", "reason": reason}
    return json.dumps({"type": "ERROR", "object": status | {"code": code}}).encode()
