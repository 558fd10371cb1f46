"""Runs every test that needs a real control plane, and beside them the demo's story on one: `make test-cluster`.

`make test-cluster ARGS="-k rights"` picks tests, and then the story is not told. Nothing is skipped in silence: a
skipped test fails the run, as does a step of the story that did not happen. Everything that was started ends with it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from portal.processes import deathbed, spawn, stop

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("tests/contract", "tests/controlplane")
STORY = ("manage.py", "demo", "--once", "--cluster", "controlplane")
PATIENCE = 240.0  # seconds for the story once the tests are through; it takes less than two minutes


def main(arguments: list[str]) -> int:
    """0 only if tests ran, none failed or was skipped, and every step of the story happened."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="berth") as name:
        folder = Path(name)
        if arguments:
            status = run_tests(arguments, folder / "report.json")
        else:
            with telling(folder / "story.log") as story:
                status = max(run_tests([], folder / "report.json"), outcome(story, folder / "story.log"))
    print(f"The cluster's tests took {time.monotonic() - started:.0f} s.", flush=True)
    return status


@contextmanager
def telling(log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The story as a process of its own: it mostly waits, so it does not hold up the tests."""
    story = spawn([sys.executable, *STORY], log=log, folder=ROOT)
    try:
        yield story
    finally:
        stop(story)


def run_tests(arguments: list[str], report: Path) -> int:
    words = [sys.executable, "-m", "pytest", "-q", "--cluster", "controlplane", *FOLDERS, *arguments]
    status = subprocess.run(
        words,
        cwd=ROOT,
        env={**os.environ, "BERTH_REPORT": str(report)},
        preexec_fn=deathbed(signal.SIGTERM),
        check=False,
    ).returncode
    counts = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    if counts.get("skipped"):
        print(f"{counts['skipped']} tests were skipped; a skipped test proves nothing, so this run has failed.")
    return 1 if status or counts.get("skipped") or not counts.get("passed") else 0


def outcome(story: subprocess.Popen[bytes], log: Path) -> int:
    """Wait for the story and say what it said."""
    print("\nThe story on a real control plane", flush=True)
    try:
        status = story.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        status = 1
        print(f"It did not come to its end within {PATIENCE:g} s after the tests.")
    print(log.read_text(encoding="utf-8", errors="replace"), flush=True)
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
