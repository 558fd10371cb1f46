"""Fixtures for every test. The people and the fleet of the stories are in world.py."""

from __future__ import annotations

import inspect
import os
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from datetime import timedelta as td
from pathlib import Path
from typing import Any

import pytest

from portal.processes import start_valkey, stop
from tests.world import world
from tools.database import start_postgres, stop_postgres

__all__ = ["world"]

MORNING = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)  # a Tuesday
LOOPBACK = ("127.", "::1", "localhost")


class Clock:
    """A clock that stands until somebody moves it."""

    def __init__(self, at: datetime = MORNING) -> None:
        self.time = at

    def now(self) -> datetime:
        return self.time

    def set(self, at: datetime) -> datetime:
        self.time = at
        return at

    def advance(self, **duration: float) -> datetime:
        """Move on by a duration in the words of timedelta: advance(minutes=90)."""
        return self.set(self.time + td(**duration))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Every caller of `clock.now()` sees this time, which stands at MORNING until the test moves it."""
    stopped = Clock()
    monkeypatch.setattr("tenants.clock.now", stopped.now)
    return stopped


@pytest.fixture(scope="session")
def django_db_modify_db_settings() -> None:
    """SQLite in a file, as in real life: in memory, threads would share one connection and none of the locks."""
    from django.conf import settings

    default = settings.DATABASES["default"]
    if settings.EMBEDDED:
        default["TEST"]["NAME"] = str(settings.FOLDER / "test.sqlite3")
    elif worker := os.environ.get("PYTEST_XDIST_WORKER"):
        default["TEST"]["NAME"] = f"test_berth_{worker}"


@pytest.fixture(autouse=True)
def _eager_tasks() -> Iterator[None]:
    """Tasks run where they are called and raise what goes wrong. Tests with a real worker start one themselves."""
    from portal.celery import app

    before = app.conf.task_always_eager, app.conf.task_eager_propagates
    app.conf.task_always_eager, app.conf.task_eager_propagates = True, True
    yield
    app.conf.task_always_eager, app.conf.task_eager_propagates = before


@pytest.fixture
async def messages() -> AsyncIterator[Any]:
    """The channel layer, empty before and closed after; every async test has it."""
    from channels.layers import get_channel_layer

    layer = get_channel_layer()
    await layer.flush()
    yield layer
    await layer.close_pools()


@pytest.fixture(autouse=True)
def _close_messages(request: pytest.FixtureRequest) -> None:
    if inspect.iscoroutinefunction(getattr(request, "function", None)):
        request.getfixturevalue("messages")


@pytest.fixture(scope="session")
def redis_url() -> str:
    """The address of this process's message server."""
    return os.environ["REDIS_URL"]


@pytest.fixture(scope="session")
def control_plane() -> Iterator[Any]:
    """A real control plane for the whole run (a fleet.Site). Its folder has a short path, as a socket's must be."""
    from tests.controlplane import fleet

    with tempfile.TemporaryDirectory(prefix="berth") as folder, fleet.running(Path(folder)) as site:
        yield site


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A message server for this test alone, to be stopped or filled up: (process, address)."""
    process, address = start_valkey(tmp_path / "valkey")
    yield process, address
    stop(process)


@pytest.fixture
def postgres() -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """An empty PostgreSQL for this test alone, to be killed or locked up: (process, address)."""
    with tempfile.TemporaryDirectory(prefix="berth") as folder:
        process, address = start_postgres(Path(folder))
        yield process, address
        stop_postgres(process)


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Where browser tests keep what they saw."""
    folder = Path(__file__).parent.parent / "artifacts" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(autouse=True, scope="session")
def _no_network() -> Iterator[None]:
    """A test that talks to anybody but this machine fails, whatever catches its exceptions."""
    with pytest.MonkeyPatch.context() as patch:
        for verb in ("connect", "connect_ex"):
            patch.setattr(socket.socket, verb, guarded(getattr(socket.socket, verb)))
        yield


def guarded(connect: Any) -> Any:
    def connect_here(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not str(address[0]).startswith(LOOPBACK):
            self.close()
            pytest.fail(f"A test wants to talk to {address[0]}; tests stay on this machine.")
        return connect(self, address)

    return connect_here
