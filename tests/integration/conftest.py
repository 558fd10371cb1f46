"""One site for all tests of this folder that run in one process; each leaves it whole."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.demo.launcher import ROOT, Demo, empty_folder, running
from portal.processes import free_port, stop
from tests.faults.proxy import between
from tests.integration.site import Site, settings_of
from tools.database import start_postgres, stop_postgres


@pytest.fixture(scope="session")
def running_site() -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="berth") as name:  # short: a socket's path holds few characters
        postgres, address = start_postgres(Path(name) / "tables")
        try:
            yield from demo_on(address, Path(name) / "site")
        finally:
            stop_postgres(postgres)


def demo_on(postgres: str, folder: Path) -> Iterator[Site]:
    empty_folder(folder)
    demo = Demo(folder=folder, port=free_port(), rate=60.0, quick=settings_of(postgres, folder))
    with running(demo), between(demo.cluster_url) as proxy:
        site = Site(demo, proxy)
        site.table("UPDATE scheduling_cluster SET server = %s", proxy.url)
        words = [sys.executable, "-m", "tests.integration.checker"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(words, cwd=ROOT, env=demo.environment, text=True, **pipes) as site.checker:
            try:
                yield site
            finally:
                stop(site.checker)


@pytest.fixture
def site(running_site: Site) -> Iterator[Site]:
    """The site, whole before and after, with Robin logged in. Afterwards every invariant holds."""
    running_site.most_pods.clear()
    running_site.opened.clear()
    running_site.make_whole()
    running_site.enter()
    yield running_site
    running_site.make_whole()
    running_site.comes_to_rest()
    assert set(running_site.most_pods.values()) <= {1}, "A workload had two pods at once."
