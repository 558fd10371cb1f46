"""The launcher: what it refuses, what its children get, and that nothing of it stays."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from portal.demo import launcher
from portal.demo.launcher import MARK, Child, Demo
from portal.processes import CouldNotStart, free_port, spawn

ROOT = launcher.ROOT
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
WITH_A_CHILD = (
    "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
    "print('up', flush=True); time.sleep(60)"
)


def test_a_port_that_somebody_listens_on_is_refused() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(CouldNotStart, match=f"Port {port} is not free .* choose another with --port"):
            launcher.check_port(port)


def test_a_free_port_is_taken() -> None:
    launcher.check_port(free_port())


def test_a_folder_that_is_not_a_demos_is_left_alone(tmp_path: Path) -> None:
    kept = tmp_path / "thesis.txt"
    kept.write_text("three years of work")
    with pytest.raises(CouldNotStart, match="holds something that no demo has made"):
        launcher.empty_folder(tmp_path)
    assert kept.read_text() == "three years of work"


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(CouldNotStart, match="cannot be the demo's folder"):
        launcher.empty_folder(file)


def test_the_folder_of_an_earlier_demo_is_emptied(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    launcher.empty_folder(folder)
    (folder / "berth.sqlite3").write_text("old")
    launcher.empty_folder(folder)
    assert [path.name for path in folder.iterdir()] == [MARK]


def test_children_get_our_settings_and_none_of_the_callers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    callers = ("DATABASE_URL", "SECRET_KEY", "SECRET_KEY_FILE", "BERTH_DATABASE_POOL", "DJANGO_SETTINGS_MODULE")
    for name in callers:
        monkeypatch.setenv(name, "the caller's")
    demo = Demo(tmp_path, 8123, 60.0, quick={"BERTH_TICK_SECONDS": "0.25"})
    found = launcher.environment(demo, "redis://127.0.0.1:1/0")
    assert not set(callers) & set(found)
    assert found["BERTH_FOLDER"] == str(tmp_path)
    assert found["BERTH_CLOCK"] == str(tmp_path / "clock.json")
    assert found["BERTH_URL"] == "http://127.0.0.1:8123"
    assert found["BERTH_DEMO"] == "true"
    assert found["BERTH_TICK_SECONDS"] == "0.25"
    assert found["PATH"] == os.environ["PATH"]


def test_other_commands_get_the_same_settings_from_a_file(tmp_path: Path) -> None:
    demo = Demo(tmp_path / "o'clock", 8123, 60.0)
    demo.folder.mkdir()
    demo.environment = launcher.environment(demo, "redis://127.0.0.1:1/0")
    launcher.write_environment(demo)
    file = demo.folder / "environment"
    found = subprocess.run(
        ["sh", "-c", '. "$0"; echo "$BERTH_FOLDER $BERTH_ZONE"', str(file)], capture_output=True, text=True, check=True
    )
    assert found.stdout == f"{demo.folder} Europe/Berlin\n"
    assert "PATH=" not in file.read_text()


def test_a_child_that_ends_is_told_with_its_last_words(tmp_path: Path) -> None:
    demo = Demo(tmp_path, 1, 60.0, children=[child(tmp_path, "portal", "print('no more cards'); raise SystemExit(3)")])
    demo.children[0].process.wait(10)
    with pytest.raises(CouldNotStart, match=r"The portal ended with 3\. It said: no more cards"):
        launcher.watch(demo)


def test_a_failed_task_is_told_with_its_last_words(tmp_path: Path) -> None:
    task = child(tmp_path, "tables", "raise SystemExit('the disk is full')")
    task.process.wait(10)
    with pytest.raises(CouldNotStart, match=r"Making the tables ended with 1\. It said: the disk is full"):
        launcher.ended_well(task)


def test_the_end_reaches_stubborn_children_and_their_children(tmp_path: Path) -> None:
    demo = Demo(tmp_path, 1, 60.0, children=[child(tmp_path, "a", STUBBORN), child(tmp_path, "b", WITH_A_CHILD)])
    for each in demo.children:
        eventually(lambda each=each: "up" in each.log.read_text(), "the child is up")
    groups = [each.process.pid for each in demo.children]
    launcher.end(demo)
    assert demo.children == []
    assert [pid for group in groups for pid in members(group)] == []


def test_a_second_ctrl_c_waits_until_everything_has_ended() -> None:
    said: list[str] = []

    def end() -> None:
        with launcher.stoppable():
            with launcher.undisturbed():
                os.kill(os.getpid(), signal.SIGINT)
                said.append("everything has ended")
            said.append("never reached")

    with pytest.raises(launcher.Stopped):
        end()
    assert said == ["everything has ended"]


def test_children_are_ended_in_reverse_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("messages", "cluster", "portal", "worker")
    ended: list[str] = []
    monkeypatch.setattr(launcher, "end_child", lambda each: ended.append(each.name))
    demo = Demo(tmp_path, 1, 60.0, children=[child(tmp_path, name, "pass") for name in names])
    for each in demo.children:
        each.process.wait(10)
    launcher.end(demo)
    assert ended == ["worker", "portal", "cluster", "messages"]


@pytest.mark.slow
def test_term_ends_everything_politely_and_soon(tmp_path: Path) -> None:
    with demo_process(tmp_path / "demo") as (process, _):
        family = descendants(process.pid)
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert time.monotonic() - started < 4
        assert alive(family) == []


@pytest.mark.slow
def test_nothing_outlives_a_killed_launcher(tmp_path: Path) -> None:
    with demo_process(tmp_path / "demo") as (process, _):
        eventually(lambda: len(descendants(process.pid)) == 5, "messages, cluster, portal, worker and its beat run")
        family = descendants(process.pid)
        process.kill()
        process.wait(10)
        eventually(lambda: alive(family) == [], "every child is gone")


@pytest.mark.slow
def test_a_child_that_dies_ends_the_demo_with_a_sentence(tmp_path: Path) -> None:
    with demo_process(tmp_path / "demo") as (process, log):
        family = descendants(process.pid)
        (victim,) = [pid for pid in family if "uvicorn" in command_of(pid)]
        os.kill(victim, signal.SIGKILL)
        assert process.wait(10) == 2
        assert "The portal ended with -9." in log.read_text()
        assert alive(family) == []


def child(folder: Path, name: str, program: str) -> Child:
    log = folder / f"{name}.log"
    return Child(name, spawn([sys.executable, "-c", program], log=log), log)


@contextmanager
def demo_process(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A demo started as people start it, once it is ready."""
    log, port = folder.with_suffix(".log"), free_port()
    words: list[str | Path] = [sys.executable, ROOT / "manage.py", "demo", "--port", str(port), "--folder", folder]
    process = spawn(words, log=log)
    try:
        eventually(lambda: f"ready http://127.0.0.1:{port}\n" in log.read_text(), "the demo is ready", patience=50)
        assert launcher.answers(f"http://127.0.0.1:{port}/ready")
        yield process, log
    finally:
        process.kill()
        process.wait(10)


def descendants(pid: int) -> list[int]:
    """The process's children, their children, and so on."""
    parents = {found: parent for found, (parent, _, _) in everybody().items()}
    family, waiting = [], [pid]
    while waiting:
        born = [found for found, parent in parents.items() if parent == waiting[0]]
        waiting = [*waiting[1:], *born]
        family += born
    return family


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if pid in everybody()]


def members(group: int) -> list[int]:
    return [pid for pid, (_, found, _) in everybody().items() if found == group]


def everybody() -> dict[int, tuple[int, int, str]]:
    """Every process that is more than a name: its parent, its group and its state. Whom nobody has buried is dead."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent, group = (entry / "stat").read_text().rpartition(") ")[2].split()[:3]
            except OSError:  # gone meanwhile
                continue
            found[int(entry.name)] = (int(parent), int(group), state)
    return {pid: facts for pid, facts in found.items() if facts[2] != "Z"}


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def eventually(happened: object, what: str, *, patience: float = 10.0) -> None:
    assert callable(happened)
    deadline = time.monotonic() + patience
    while not happened():
        assert time.monotonic() < deadline, f"Not within {patience:g} s: {what}."
        time.sleep(0.02)
