"""The control plane as a child process: what it says when it is ready, and that nothing of it outlives anybody."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from portal.processes import spawn, stop, wait_until
from scheduling.cluster.client import Connection, Session
from scheduling.cluster.port import ClusterError
from tests.controlplane.kueue.yardstick import admission
from tests.controlplane.serve import READY, parse

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0
NODES = "/api/v1/nodes"


@pytest.fixture
def folder() -> Iterator[Path]:
    """With a short path, as a socket's path must be short."""
    with tempfile.TemporaryDirectory(prefix="berth") as name:
        yield Path(name)


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
    log = folder / "serve.log"
    process = spawn([sys.executable, "-m", "tests.controlplane.serve", folder, *words], log=log, folder=ROOT)
    try:
        wait_until((folder / READY).exists, process, what="The control plane", log=log, patience=PATIENCE)
        yield process, json.loads((folder / READY).read_text())
    finally:
        stop(process, patience=20)


@pytest.mark.controlplane
@pytest.mark.timeout(120)
def test_it_says_where_it_is_and_ends_all_that_it_has_started(folder: Path) -> None:
    with serving(folder) as (process, told):
        ours = Connection(told["server"], token_file=told["token_file"], authority_file=told["authority_file"])
        theirs = Connection(
            told["server"],
            certificate_file=told["admin_certificate"],
            key_file=told["admin_key"],
            authority_file=told["authority_file"],
        )
        with closing(Session(ours)) as berth, closing(Session(theirs)) as admin:
            nodes = json.loads(berth.ask("GET", NODES))["items"]
            secrets = json.loads(admin.ask("GET", "/api/v1/secrets"))["items"]
            with pytest.raises(ClusterError, match=r"does not let .* list secrets in the whole cluster"):
                berth.ask("GET", "/api/v1/secrets")
        programs = {words[0] for words in processes_with(str(folder))}
        stop(process, patience=20)

    assert (len(nodes), secrets) == (4, [])
    assert {Path(name).name for name in programs} >= {"etcd", "kube-apiserver", "kube-scheduler"}
    assert process.returncode == 0
    assert not (folder / READY).exists()
    assert processes_with(str(folder)) == []


@pytest.mark.controlplane
@pytest.mark.timeout(120)
def test_it_ends_with_its_parent_and_begins_without_a_fleet(folder: Path) -> None:
    script = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-m', 'tests.controlplane.serve', sys.argv[1], '--fleet', 'none'])\n"
        "time.sleep(600)\n"
    )
    parent = spawn([sys.executable, "-c", script, folder], log=folder / "parent.log", folder=ROOT)
    try:
        wait_until((folder / READY).exists, parent, what="It", log=folder / "parent.log", patience=PATIENCE)
        told = json.loads((folder / READY).read_text())
        ours = Connection(told["server"], token_file=told["token_file"], authority_file=told["authority_file"])
        with closing(Session(ours)) as berth:
            assert json.loads(berth.ask("GET", NODES))["items"] == []
    finally:
        stop(parent, by=signal.SIGKILL)

    deadline = time.monotonic() + PATIENCE
    while processes_with(str(folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_with(str(folder)) == []


def test_it_serves_the_demos_fleet_unless_told_otherwise() -> None:
    assert (parse(["x"]).fleet, parse(["x", "--fleet", "none"]).fleet) == ("demo", "none")


@pytest.mark.controlplane
@pytest.mark.timeout(120)
def test_kueue_runs_beside_it_if_asked_for(folder: Path) -> None:
    with serving(folder, "--fleet", "none", "--kueue") as (_, told):
        admin = Connection(
            told["server"],
            certificate_file=told["admin_certificate"],
            key_file=told["admin_key"],
            authority_file=told["authority_file"],
        )
        assert admission(admin, jobs=2, queues=1, tidy=False).jobs == 2


def test_where_nothing_can_be_built_it_says_so_in_one_sentence(folder: Path) -> None:
    """No programs, no Go: as on a machine that has neither."""
    script = (
        "import sys; from pathlib import Path; from tools import controlplane\n"
        "controlplane.CACHE = Path(sys.argv[1]) / 'cache'\n"
        "from tests.controlplane.serve import main; sys.exit(main([sys.argv[1]]))\n"
    )
    words = [sys.executable, "-c", script, str(folder)]
    bare = {name: value for name, value in os.environ.items() if name != "KUBEBUILDER_ASSETS"} | {"PATH": "/nowhere"}

    done = subprocess.run(words, cwd=ROOT, env=bare, capture_output=True, text=True, check=False, timeout=30)

    assert (done.returncode, done.stdout) == (2, "")
    assert "make controlplane" in done.stderr
    assert done.stderr.count("\n") == 1


def processes_with(text: str) -> list[list[str]]:
    """The command lines of all processes that name it, but for those that look."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if any(text in word for word in words):
            found.append(words)
    return found
