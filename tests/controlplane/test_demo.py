"""The demo before a real control plane, as `make demo CLUSTER=controlplane` starts it: pages on it, and nothing stays.

Its story is told by `make test-cluster` itself.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest

from portal.demo.visitor import Visitor, until
from portal.processes import free_port, spawn, stop, wait_until
from tests.controlplane.test_serve import processes_with

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 90.0
SECRETS = ("papers/", "berth.token", "ready.json")


@pytest.mark.controlplane
@pytest.mark.timeout(180)
def test_its_pages_show_the_real_fleet_and_nothing_outlives_it() -> None:
    with tempfile.TemporaryDirectory(prefix="berth") as name:
        folder, port, log = Path(name) / "demo", free_port(), Path(name) / "log"
        words = ["demo", "--cluster", "controlplane", "--port", str(port), "--folder", str(folder)]
        process = spawn([sys.executable, ROOT / "manage.py", *words], log=log, dies_by=signal.SIGTERM)
        try:
            wait_until(lambda: b"ready http" in log.read_bytes(), process, what="The demo", log=log, patience=PATIENCE)
            look_around(f"http://127.0.0.1:{port}")
            family = {Path(words[0]).name for words in processes_with(str(folder))}
            assert family >= {"etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager"}
        finally:
            stop(process, patience=20)

        assert process.returncode == 0
        assert "in real time" in log.read_text()
        deadline = time.monotonic() + 10
        while processes_with(str(folder)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert processes_with(str(folder)) == []


def look_around(url: str) -> None:
    """Omar's fleet page is alive, and nobody's pages name a file of ours."""
    omar, robin = Visitor(url, "omar"), Visitor(url, "robin")
    for visitor in (omar, robin):
        visitor.log_in()
    until(lambda: "tracking-lab" in omar.get("/fleet/").text, "Something that runs on the fleet's page", patience=30)
    pages = [who.get(path).text for who in (omar, robin) for path in ("/fleet/", "/", "/workloads/", "/api/v1/fleet/")]
    assert "a100-burst" in pages[0]
    assert [word for word in SECRETS for page in pages if word in page] == []
