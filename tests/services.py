"""A pytest plugin: the servers that tests run against, and the settings that lead to them.

Every process that runs tests gets its own message server. The database is SQLite, or with `--database postgres` a
PostgreSQL that one process starts and all share; pytest-django then gives each of them a database of its own.
TEST_REDIS_URL and TEST_DATABASE_URL name servers to use instead; tests write to them and empty them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from portal.processes import start_valkey, stop
from tools.database import start_postgres, stop_postgres

OURS = ("BERTH_", "CELERY_", "DATABASE_URL", "REDIS_URL", "SECRET_KEY")
KEPT = ("BERTH_BROWSER", "BERTH_REPORT")
endings: list[Callable[[], None]] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    choices = ("sqlite", "postgres")
    parser.addoption("--database", choices=choices, default="sqlite", help="what the tests keep their tables in")
    clusters = ("simulated", "controlplane")
    parser.addoption("--cluster", choices=clusters, default="simulated", help="what the contract suite runs against")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, None, None]:
    """Set the environment before pytest-django reads the settings: a wrapper comes before every plain hook."""
    options = early_config.known_args_namespace
    folder = own_folder()
    forget_settings()
    os.environ["BERTH_FOLDER"] = str(folder)
    if options.database == "postgres":
        use_postgres()
    if not spreads_tests(options.numprocesses):
        use_messages(folder / "messages")
    return (yield)


def pytest_unconfigure() -> None:
    while endings:
        endings.pop()()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what this run's database and cluster can answer; on PostgreSQL all that has tables and no browser."""
    on_postgres = config.getoption("--database") == "postgres"
    kept = [item for item in items if (belongs_on_postgres(item) if on_postgres else not has(item, "postgres"))]
    on_real = config.getoption("--cluster") == "controlplane"
    kept = [item for item in kept if (belongs_on_real_cluster(item) if on_real else not needs_real_cluster(item))]
    left_out = [item for item in items if item not in set(kept)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def pytest_report_header(config: pytest.Config) -> str:
    return f"database: {config.getoption('--database')}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Leave the counts for tools/test.py, which adds up two runs."""
    if report := os.environ.get("BERTH_REPORT"):
        words = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")
        counts = {word: len(terminalreporter.getreports(word)) for word in words}
        Path(report).write_text(json.dumps(counts), encoding="utf-8")


def own_folder() -> Path:
    """A new folder that is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="berth"))
    endings.append(lambda: shutil.rmtree(folder, ignore_errors=True))
    return folder


def use_postgres() -> None:
    """Lead the settings to PostgreSQL. The first process starts it; those that it starts inherit the address."""
    if not os.environ.get("TEST_DATABASE_URL"):
        process, address = start_postgres(own_folder())
        endings.append(lambda: stop_postgres(process))
        os.environ["TEST_DATABASE_URL"] = address
    os.environ.update(
        DATABASE_URL=os.environ["TEST_DATABASE_URL"],
        SECRET_KEY="a secret of the tests, which guards nothing at all",
        BERTH_URL="http://127.0.0.1:8000",
    )


def use_messages(folder: Path) -> None:
    if given := os.environ.get("TEST_REDIS_URL"):
        worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
        os.environ["REDIS_URL"] = f"{given.rstrip('/')}/{worker}"
        return
    process, os.environ["REDIS_URL"] = start_valkey(folder)
    endings.append(lambda: end(process))


def end(process: subprocess.Popen[bytes]) -> None:
    stop(process)


def forget_settings() -> None:
    """The tests' settings come from here alone, whatever the caller's environment says."""
    for name in list(os.environ):
        if name.startswith(OURS) and name not in KEPT:
            del os.environ[name]


def spreads_tests(processes: object) -> bool:
    """Whether this process only hands tests out to others (pytest -n 2)."""
    return bool(processes) and "PYTEST_XDIST_WORKER" not in os.environ


def belongs_on_postgres(item: pytest.Item) -> bool:
    return touches_tables(item) and not has(item, "sqlite") and not has(item, "browser")


def belongs_on_real_cluster(item: pytest.Item) -> bool:
    return wants(item, "cluster", "on_cluster") or needs_real_cluster(item)


def needs_real_cluster(item: pytest.Item) -> bool:
    return wants(item, "control_plane") or has(item, "controlplane")


def wants(item: pytest.Item, *fixtures: str) -> bool:
    return bool(set(fixtures) & set(getattr(item, "fixturenames", ())))


def touches_tables(item: pytest.Item) -> bool:
    return has(item, "postgres") or has(item, "django_db") or wants(item, "db", "transactional_db")


def has(item: pytest.Item, marker: str) -> bool:
    return item.get_closest_marker(marker) is not None
