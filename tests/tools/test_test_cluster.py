"""What makes the run of the cluster's tests fail: a test, a skipped one, none at all, or a step of the story."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tools import test_cluster as runner

COUNTS = {
    "all passed": (0, {"passed": 3, "skipped": 0}, 0),
    "one failed": (1, {"passed": 2, "failed": 1}, 1),
    "one was skipped": (0, {"passed": 2, "skipped": 1}, 1),
    "none ran": (5, {"passed": 0}, 1),
    "it never came to count": (3, None, 1),
}


@pytest.fixture
def pytest_runs(monkeypatch: pytest.MonkeyPatch) -> Any:
    """In place of pytest: notes its words, leaves counts, and ends with a status."""
    seen: list[list[str]] = []

    def arrange(status: int, counts: dict[str, int] | None) -> list[list[str]]:
        def run(words: list[str], *, env: dict[str, str], **_: Any) -> Any:
            seen.append(words)
            if counts is not None:
                Path(env["BERTH_REPORT"]).write_text(json.dumps(counts))
            return SimpleNamespace(returncode=status)

        monkeypatch.setattr(subprocess, "run", run)
        return seen

    return arrange


@pytest.mark.parametrize(("status", "counts", "expected"), COUNTS.values(), ids=COUNTS)
def test_the_tests_verdict(
    pytest_runs: Any, tmp_path: Path, status: int, counts: dict[str, int] | None, expected: int
) -> None:
    pytest_runs(status, counts)

    assert runner.run_tests([], tmp_path / "report.json") == expected


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (1, 1), (2, 1)])
def test_the_story_decides_too_and_is_shown(
    pytest_runs: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: int, expected: int
) -> None:
    pytest_runs(0, {"passed": 1})
    monkeypatch.setattr(runner, "STORY", ("-c", f"print('ok  the fleet'); raise SystemExit({code})"))

    assert runner.main([]) == expected
    assert "ok  the fleet" in capsys.readouterr().out


def test_picked_tests_run_without_the_story(pytest_runs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = pytest_runs(0, {"passed": 1})
    monkeypatch.setattr(runner, "spawn", lambda *words, **options: pytest.fail("the story was begun"))

    assert runner.main(["-k", "rights"]) == 0
    assert seen[0][-2:] == ["-k", "rights"]
    assert "controlplane" in seen[0]


def test_a_story_that_does_not_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "STORY", ("-c", "import time; time.sleep(600)"))
    monkeypatch.setattr(runner, "PATIENCE", 0.2)

    with runner.telling(tmp_path / "log") as story:
        assert runner.outcome(story, tmp_path / "log") == 1

    assert story.poll() is not None
    assert "did not come to its end" in capsys.readouterr().out
