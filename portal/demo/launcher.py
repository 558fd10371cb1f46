"""Starts the whole product on this machine as children of one process, and ends all of it.

The children, in the order in which they start: the message server (Valkey), the cluster, the portal (uvicorn) and one
worker with its beat (Celery); before the portal, one child makes the tables and their history. Each has a session of
its own, says what it has to say into a log file, and dies with this process. Knows no Django.

The cluster is simulated, on a clock that runs fast, or a real control plane, whose objects bear the wall clock's time.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from portal.demo.place import HOST, Place, read_place, write_place
from portal.processes import CouldNotStart, free_port, last_words, spawn, start_valkey
from tenants.clock import Pace, set_rate, write_pace

ROOT = Path(__file__).resolve().parent.parent.parent
SIMULATED, CONTROL_PLANE = "simulated", "controlplane"
CLUSTERS = (SIMULATED, CONTROL_PLANE)
REAL_TIME = 1.0
MARK = ".berth-demo"  # in every folder that a demo has made: only such a folder is emptied
CALM = 1.0  # the rate while the children start: the fleet stands still until somebody can watch it
PATIENCE = 50.0  # seconds for the start of everything
STEP = 0.02  # seconds between two looks at the children
POLITE = 1.5  # seconds that a child has to end by itself
STOPPERS = (signal.SIGINT, signal.SIGTERM)
OURS = ("BERTH_", "CELERY_", "DATABASE_URL", "REDIS_URL", "SECRET_KEY", "DJANGO_")


class Stopped(Exception):
    """Somebody asked us to end: Ctrl-C or TERM."""


@dataclass(frozen=True, slots=True)
class Child:
    """One process of the demo and the file that it writes to."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path


@dataclass(slots=True)
class Demo:
    """A running demo. `children` are those that have to live as long as it does, in their order of starting."""

    folder: Path
    port: int
    rate: float
    quick: Mapping[str, str] = field(default_factory=dict)  # further settings, for whoever drives it
    cluster: str = SIMULATED
    cluster_port: int = field(default_factory=free_port)  # of the simulated one
    children: list[Child] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def cluster_url(self) -> str:
        return self.place.server

    @property
    def is_real(self) -> bool:
        """Whether its time is the wall clock's."""
        return self.cluster == CONTROL_PLANE

    @property
    def place_file(self) -> Path:
        """Says where the cluster is; a control plane writes it itself, once it is up."""
        return self.folder / "controlplane" / "ready.json" if self.is_real else self.folder / "cluster.json"

    @property
    def place(self) -> Place:
        """Raises CouldNotStart before the cluster has said where it is."""
        found = read_place(self.place_file)
        if found is None:
            raise CouldNotStart(f"The cluster has not said where it is; see {self.logs}.")
        return found

    @property
    def clock(self) -> Path:
        return self.folder / "clock.json"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"


def check_port(port: int) -> None:
    """Raises CouldNotStart when somebody listens there already."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as fault:
            raise CouldNotStart(f"Port {port} is not free ({fault.strerror}); choose another with --port.") from None


def empty_folder(folder: Path) -> None:
    """Make the folder, or empty one that an earlier demo made. Raises CouldNotStart for a folder that is not ours."""
    try:
        if folder.exists() and any(folder.iterdir()) and not (folder / MARK).exists():
            raise CouldNotStart(f"{folder} holds something that no demo has made; name an empty or a new folder.")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / MARK).write_text("Made by a demo, and emptied by the next one.\n")
    except OSError as fault:
        raise CouldNotStart(f"{folder} cannot be the demo's folder: {fault.strerror}.") from None


@contextmanager
def running(demo: Demo) -> Iterator[Demo]:
    """The demo from its first child to its last: started on entry, ended on exit, however that comes about."""
    try:
        start(demo)
        yield demo
    finally:
        with undisturbed():
            end(demo)


def start(demo: Demo) -> None:
    """Start everything; returns when the portal answers. Raises CouldNotStart with what a child said last."""
    demo.logs.mkdir(parents=True, exist_ok=True)
    if not demo.is_real:
        wall = datetime.now(UTC)
        write_pace(demo.clock, Pace(wall=wall, simulated=wall, rate=CALM))
    server, address = start_valkey(demo.logs)
    demo.children.append(Child("messages", server, demo.logs / "valkey.log"))
    demo.environment = environment(demo, address)
    write_environment(demo)
    add_cluster(demo)
    make_tables(demo)
    add(demo, "portal", *portal_words(demo))
    add(demo, "worker", "-m", "celery", "-A", "portal", "worker", "-B", *WORKER)
    wait(demo, lambda: answers(f"{demo.url}/ready"), "The portal was")
    if not demo.is_real:
        set_rate(demo.clock, demo.rate)


def add_cluster(demo: Demo) -> None:
    if demo.is_real:
        folder = demo.place_file.parent
        add(demo, "cluster", "-m", "tests.controlplane.serve", str(folder), "--delays", "watchable")
        return
    add(demo, "cluster", "-m", "scheduling.cluster.simulated", "--port", str(demo.cluster_port))
    write_place(demo.place_file, Place(f"http://{HOST}:{demo.cluster_port}"))


def make_tables(demo: Demo) -> None:
    """The tables and their history, by a child that ends when they are there."""
    child = launch(demo, "tables", "-m", "portal.demo.prepare", str(demo.place_file))
    try:
        wait(demo, lambda: ended_well(child), "The tables were")
    finally:
        end_child(child)


def portal_words(demo: Demo) -> Sequence[str]:
    return (
        *("-m", "uvicorn", "portal.asgi:application", "--host", HOST, "--port", str(demo.port)),
        *("--no-access-log", "--log-level", "warning", "--timeout-graceful-shutdown", "1"),
    )


WORKER = ("-P", "threads", "-c", "4", "-l", "INFO", "--without-gossip", "--without-mingle", "--without-heartbeat")


def environment(demo: Demo, redis_url: str) -> dict[str, str]:
    """Ours for the children: none of the caller's settings, so that no demo ever meets a real database."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    return {
        **kept,
        **({} if demo.is_real else {"BERTH_CLOCK": str(demo.clock)}),
        "BERTH_DEMO": "true",
        "BERTH_FOLDER": str(demo.folder),
        "BERTH_URL": demo.url,
        "BERTH_ZONE": "Europe/Berlin",
        "BERTH_TICK_SECONDS": "1",
        "BERTH_LOOK_SECONDS": "5",  # minutes of the demo's time
        "BERTH_SAMPLE_SECONDS": "1",
        "BERTH_RATE_SECONDS": "5",
        "BERTH_LOG_LEVEL": "WARNING",
        "REDIS_URL": redis_url,
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        **demo.quick,
    }


def write_environment(demo: Demo) -> None:
    """Lines for a shell, so that the other commands can look at the demo's tables while it runs."""
    ours = {name: value for name, value in demo.environment.items() if name.startswith(OURS)}
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in sorted(ours.items())]
    (demo.folder / "environment").write_text("".join(lines))


def add(demo: Demo, name: str, *words: str) -> None:
    """One more child that has to live as long as the demo."""
    demo.children.append(launch(demo, name, *words))


def launch(demo: Demo, name: str, *words: str) -> Child:
    log = demo.logs / f"{name}.log"
    return Child(name, spawn([sys.executable, *words], log=log, environment=demo.environment), log)


def wait(demo: Demo, done: Callable[[], bool], what: str) -> None:
    """Until `done()`, while every child lives."""
    deadline = time.monotonic() + PATIENCE
    while not done():
        watch(demo)
        if time.monotonic() > deadline:
            raise CouldNotStart(f"{what} not ready within {PATIENCE:g} seconds; see {demo.logs}.")
        time.sleep(STEP)


def watch(demo: Demo) -> None:
    """Raises CouldNotStart when a child has ended: the demo is whole or it is not there."""
    for child in demo.children:
        if child.process.poll() is not None:
            raise CouldNotStart(f"The {child.name} ended with {child.process.returncode}. {last_words(child.log)}")


def ended_well(child: Child) -> bool:
    """Whether a child that has a task is through with it. Raises CouldNotStart when it failed."""
    status = child.process.poll()
    if status:
        raise CouldNotStart(f"Making the {child.name} ended with {status}. {last_words(child.log)}")
    return status is not None


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 (an address of our own making)
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def stay(demo: Demo) -> None:
    """Watch the children until somebody stops us (Stopped) or one of them ends (CouldNotStart)."""
    while True:
        watch(demo)
        time.sleep(0.2)


def end(demo: Demo) -> None:
    """End the children, the last one first: politely, and by force when that takes too long."""
    for child in reversed(demo.children):
        end_child(child)
    demo.children.clear()


@contextmanager
def undisturbed() -> Iterator[None]:
    """A second Ctrl-C waits until everything has ended. A mask would not do: any other thread could take the signal."""
    came: list[int] = []
    before = {number: signal.signal(number, lambda late, _: came.append(late)) for number in STOPPERS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came and callable(handler := before[signal.Signals(came[0])]):
        handler(came[0], None)


def end_child(child: Child) -> None:
    if child.process.poll() is None:
        child.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            child.process.wait(POLITE)
    kill_group(child.process)
    child.process.wait()


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Nothing that a child has started outlives it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()


@contextmanager
def stoppable() -> Iterator[None]:
    """Ctrl-C and TERM raise Stopped inside; while the demo ends, and after that, they change nothing."""
    before = {number: signal.signal(number, ask_to_stop) for number in STOPPERS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ask_to_stop(number: int, frame: object) -> None:
    for known in STOPPERS:
        signal.signal(known, signal.SIG_IGN)
    raise Stopped
