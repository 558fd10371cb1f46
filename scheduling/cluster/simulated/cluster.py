"""The whole simulated cluster: world, clock, faults and HTTP door, put together."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from datetime import timedelta as td
from types import FrameType
from typing import Any

import uvicorn

from . import seeding
from .app import App
from .clock import Clock, ManualClock
from .delays import Delays
from .faults import Faults
from .kinds import Document
from .watching import Hub
from .world import World

logger = logging.getLogger(__name__)
TICK = 0.05
"""Seconds of the wall clock between two looks at a clock that runs by itself."""


class SimulatedCluster:
    """A small honest Kubernetes. In tests: with a manual clock, in this process, served on a free loopback port."""

    def __init__(
        self,
        documents: Iterable[Document] = (),
        clock: Clock | None = None,
        delays: Delays | None = None,
        identity: str = "berth",
    ) -> None:
        self.clock = clock or ManualClock(datetime.fromisoformat("2026-12-01T08:00:00+00:00"))
        self.world = World(self.clock.now(), delays, identity)
        self.hub = Hub(self.world.store)
        self.faults = Faults(self.world, self.hub)
        seeding.furnish(self.world, self.faults)
        seeding.plant(self.world, documents)
        self.world.settle()
        self.app = App(self.world, self.clock, self.hub, self.faults)
        if isinstance(self.clock, ManualClock):
            self.app.manual_advance = lambda seconds: self.advance(seconds=seconds)

    def step(self) -> None:
        """Do what is due by now."""
        self.world.step(self.clock.now())

    def advance(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0) -> None:
        """Let time pass, moment by due moment. Only with a manual clock."""
        if not isinstance(self.clock, ManualClock):
            raise TypeError("This cluster's clock runs by itself; only a ManualClock can be advanced.")
        with self.world.lock:
            self.clock.advance(td(seconds=seconds, minutes=minutes, hours=hours))
            self.step()

    @contextmanager
    def serve(self, port: int = 0) -> Iterator[str]:
        """Serve on loopback in a thread; yields the URL."""
        server = Server(self, port)
        thread = threading.Thread(target=server.run, name="simulated-cluster", daemon=True)
        thread.start()
        try:
            server.wait_until_started(thread)
            yield server.url
        finally:
            server.should_exit = server.force_exit = True
            thread.join(timeout=5)


class Server(uvicorn.Server):
    """uvicorn on a loopback port of its own; where the clock runs by itself, it also steps the world."""

    def __init__(self, cluster: SimulatedCluster, port: int) -> None:
        self.cluster = cluster
        self.listener = socket.create_server(("127.0.0.1", port))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        super().__init__(
            uvicorn.Config(
                cluster.app, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=1,
                timeout_keep_alive=75,
                date_header=False,
            )
        )  # fmt: skip
        cluster.app.connections = self.drop

    def run(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002 - the listener is our own
        ticker = threading.Thread(target=self.tick, name="simulated-time", daemon=True)
        if not isinstance(self.cluster.clock, ManualClock):
            ticker.start()
        super().run(sockets=[self.listener])

    async def main_loop(self) -> None:
        """uvicorn's own looks ten times a second whether it shall end; tests start and end many servers."""
        await self.on_tick(0)
        while not self.should_exit:  # noqa: ASYNC110 - others set the flag, from other threads
            await asyncio.sleep(TICK / 5)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Open watches end first, so that nobody waits for them."""
        self.cluster.hub.end("", "closed")
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a signal's handler takes both
        """Ctrl-C or SIGTERM: an orderly end, not a death by signal."""
        self.should_exit = self.force_exit = True

    def tick(self) -> None:
        while not self.should_exit:
            try:
                self.cluster.step()
            except Exception:  # a bug in one controller must not stop the time for the others
                logger.exception("The simulated cluster stumbled at %s.", self.cluster.world.now)
            time.sleep(TICK)

    def drop(self, client: Any) -> None:
        """Close a client's connection in the middle."""
        for connection in list(self.server_state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None and tuple(transport.get_extra_info("peername") or ()) == tuple(client or ()):
                transport.abort()

    def wait_until_started(self, thread: threading.Thread) -> None:
        until = time.monotonic() + 10
        while not self.started:
            if time.monotonic() > until or not thread.is_alive():
                raise RuntimeError("The simulated cluster's server did not start within 10 s.")
            time.sleep(0.005)
