"""When set-up has to work, and when a second call may return at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools import setup


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose .venv has a Python and whose locks are short; installing is noted, not done."""
    venv = tmp_path / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    for lock in setup.LOCKS["dev"]:
        (tmp_path / lock).write_text(f"{lock}==1\n")
    for name, value in {
        "ROOT": tmp_path,
        "VENV": venv,
        "PYTHON": venv / "bin/python",
        "PLACE": venv / ".place",
    }.items():
        monkeypatch.setattr(setup, name, value)
    setup.PLACE.write_text(str(venv))
    monkeypatch.setattr(setup, "install", lambda locks, _python: (tmp_path / "installed").write_text(f"{len(locks)}"))
    return tmp_path


def installs(project: Path, wanted: str) -> bool:
    """Whether a call had something to install."""
    (project / "installed").unlink(missing_ok=True)
    assert setup.main([wanted]) == 0
    return (project / "installed").exists()


def test_the_second_call_does_nothing(project: Path) -> None:
    assert installs(project, "test") is True
    assert installs(project, "test") is False


def test_a_larger_set_includes_a_smaller_one(project: Path) -> None:
    assert installs(project, "dev") is True
    assert installs(project, "run") is False
    assert installs(project, "test") is False


def test_a_smaller_set_does_not_include_a_larger_one(project: Path) -> None:
    installs(project, "run")
    assert installs(project, "dev") is True


def test_a_changed_lock_is_installed(project: Path) -> None:
    installs(project, "run")
    (project / "requirements.txt").write_text("another==2\n")
    assert installs(project, "run") is True


def test_a_lock_of_the_developers_does_not_disturb_who_only_runs(project: Path) -> None:
    installs(project, "run")
    (project / "requirements-dev.txt").write_text("another==2\n")
    assert installs(project, "run") is False


def test_an_environment_that_was_moved_is_not_trusted(project: Path) -> None:
    installs(project, "run")
    setup.PLACE.write_text("/somewhere/else/.venv")
    assert setup.is_ready("run") is False


@pytest.mark.parametrize("arguments", [["everything"], ["run", "test"]])
def test_what_is_no_set_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert setup.main(arguments) == 2
    assert "run|test|dev" in capsys.readouterr().err


def test_a_failed_installation_is_a_sentence_and_leaves_no_stamp(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_locks: list[Path], _python: Path) -> None:
        raise subprocess.CalledProcessError(1, ["uv", "pip", "install"])

    monkeypatch.setattr(setup, "install", fail)

    assert setup.main(["run"]) == 2
    assert "uv pip install … ended with 1." in capsys.readouterr().err
    assert setup.is_ready("run") is False


def test_modules_are_compiled_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert "PYTHONDONTWRITEBYTECODE" not in setup.environment()


@pytest.mark.parametrize("lock", setup.LOCKS["dev"])
def test_a_lock_holds_hashes_and_no_address(lock: str) -> None:
    text = (Path(setup.__file__).parent.parent / lock).read_text()
    assert "--hash=sha256:" in text
    assert "://" not in text
    assert "index" not in text.replace("index-", "")
