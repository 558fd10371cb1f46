"""W1, W3, W5: Berth hears of the cluster by streams. One that forgets, or falls silent, hides nothing for long."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from scheduling.cluster.client import KubernetesPort
from scheduling.models import Workload
from scheduling.snapshot import held
from tests.controlplane.harbour import Harbour
from tests.faults.deeds import Answer, Shape, error_event
from tests.faults.proxy import Proxy, Rule, between

SILENCE = 1.5  # seconds of the wall clock
BOUND = 10.0  # on a machine that is busy with other things
OBJECTS = "/(pods|statefulsets)$"
LOOKS = 150
CONNECTIONS = 25
MOST_GROWTH = 12 * 2**20  # bytes over all those looks; the first ones fill caches


@dataclass
class Stream:
    """What becomes of the lines of watches once the test says so."""

    broken: threading.Event = field(default_factory=threading.Event)
    swallowed: int = 0

    async def silent(self, heard: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for line in heard:
            if not self.broken.is_set():
                yield line
            else:
                self.swallowed += 1

    async def gone(self, heard: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The first word after that never arrives: the stream ends with 410 as an event."""
        async for line in heard:
            if self.broken.is_set():
                self.swallowed += 1
                yield error_event(410, "Expired") + b"\n"
                return
            yield line

    async def cut(self, heard: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for line in heard:
            if self.broken.is_set():
                self.swallowed += 1
                return
            yield line


@contextmanager
def listening(harbour: Harbour, *, silence: float = 60.0) -> Iterator[Proxy]:
    """The harbour's port watches, through a proxy."""
    straight, old = harbour.port._api._connection, harbour.port
    with between(straight.server, authority_file=straight.authority_file, seed=1) as proxy:
        here = replace(straight, server=proxy.url, authority_file="")
        with KubernetesPort(here, silence=silence) as port:
            harbour.port = port
            yield proxy
        harbour.port = old


def comes_to_run(harbour: Harbour) -> Workload:
    harbour.port.watch(lambda: None, "test")
    harbour.until(lambda: harbour.port.observe(harbour.now).heard_at is not None, "the streams open")
    row = harbour.run()
    harbour.ages()
    return row


WAYS = ("an event", "a status")


@pytest.mark.parametrize("way", WAYS)
def test_w1_what_was_deleted_while_the_stream_was_forgotten_is_noticed(harbour: Harbour, way: str) -> None:
    stream = Stream()
    with listening(harbour) as proxy:
        proxy.on(Shape(stream.gone if way == "an event" else stream.cut), path=OBJECTS, watch=True, times=None)
        row = comes_to_run(harbour)
        lists = proxy.calls("GET", OBJECTS)
        if way == "a status":
            proxy.rules.insert(0, Rule(Answer(410), path=OBJECTS, watch=True, times=2))

        stream.broken.set()
        harbour.delete(harbour.object_path(row))
        harbour.until(lambda: harbour.phase(row) == "ended", "ended")

        assert stream.swallowed > 0, "its deletion was never heard of"
        assert proxy.calls("GET", OBJECTS) > lists
    assert harbour.read(row).phase_reason == "RemovedOutside"
    assert held() == {}


def test_w3_what_was_deleted_behind_a_silent_stream_is_noticed_within_the_bound(harbour: Harbour) -> None:
    stream = Stream()
    with listening(harbour, silence=SILENCE) as proxy:
        proxy.on(Shape(stream.silent), path=OBJECTS, watch=True, times=None)
        row = comes_to_run(harbour)

        stream.broken.set()
        harbour.delete(harbour.object_path(row))
        began = time.monotonic()
        harbour.until(lambda: harbour.phase(row) == "ended", "ended")

        assert time.monotonic() - began < BOUND
        assert stream.swallowed > 0
    assert held() == {}


def test_w5_threads_files_and_memory_stay_flat_over_many_connections_and_looks(harbour: Harbour) -> None:
    connection = harbour.port._api._connection
    harbour.run()
    for _ in range(20):  # what is made once
        harbour.cycle()
    before = threading.active_count(), files(), memory()

    for _ in range(CONNECTIONS):
        with KubernetesPort(connection) as port:
            port.watch(lambda: None, "flat")
            port.observe(harbour.now)
    for _ in range(LOOKS):
        harbour.cycle()

    harbour.seen(lambda: threading.active_count() <= before[0] + 1, "the threads gone")
    assert files() <= before[1] + 4
    assert memory() - before[2] < MOST_GROWTH


def files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def memory() -> int:
    """Resident bytes of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
