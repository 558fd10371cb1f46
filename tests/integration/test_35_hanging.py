"""D35: clusters that take calls and never answer, more than the worker has threads; the others keep their pace."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from portal.demo import launcher
from portal.demo.visitor import until
from tests.integration.site import Site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
HANGING = 6  # the worker has four threads
SLOWER = 6.0  # seconds that a start may take longer, at the worst
ADD = """
from django.utils import timezone
from scheduling.models import Cluster
for number, port in enumerate({ports}):
    Cluster.objects.create(name=f"hanging-{{number}}", server=f"http://127.0.0.1:{{port}}", created_at=timezone.now())
"""
REMOVE = 'from scheduling.models import Cluster; Cluster.objects.filter(name__startswith="hanging").delete()'
TOLD = """
from scheduling.models import Cluster
told = Cluster.objects.filter(name__startswith="hanging", seen_at=None).values_list("trouble", flat=True)
print(sum("It is asked again at" in text for text in told))
"""


class Mute:
    """A server that takes every call and never answers."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        self.calls: list[socket.socket] = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                self.calls.append(self.listener.accept()[0])
            except OSError:
                return

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for call in self.calls:
            call.close()


@contextmanager
def mute(count: int) -> Iterator[list[Mute]]:
    found = [Mute() for _ in range(count)]
    try:
        yield found
    finally:
        for one in found:
            one.close()


def test_35_clusters_that_hang_do_not_slow_the_others(site: Site) -> None:
    quiet = max(start(site, f"quiet-{number}") for number in range(2))
    with mute(HANGING) as servers:
        said(site, ADD.format(ports=[one.port for one in servers]))
        try:
            until(lambda: all(one.calls for one in servers), "every one of them was called", patience=120.0)
            slow = [start(site, f"beside-{number}") for number in range(5)]
            until(
                lambda: said(site, TOLD) == str(HANGING),
                "their circuits open, and that said",
                patience=120.0,
            )
            slow += [start(site, f"after-{number}") for number in range(2)]
        finally:
            said(site, REMOVE)

    assert max(slow) <= quiet + SLOWER, (quiet, slow)


def start(site: Site, name: str) -> float:
    """Seconds from the click until it runs; it is ended again."""
    began = time.monotonic()
    key = site.open(name)
    site.reaches("running", key)
    lasted = time.monotonic() - began
    site.end(key)
    return lasted


def said(site: Site, words: str) -> str:
    command = [sys.executable, "manage.py", "shell", "--verbosity", "0", "-c", words]
    done = subprocess.run(
        command, cwd=launcher.ROOT, env=site.demo.environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
