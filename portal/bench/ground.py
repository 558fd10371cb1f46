"""Ground of the bench's own: a database, a message server and settings that lead to nothing else; all ends with it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from portal.demo.launcher import OURS, ROOT
from portal.management.console import CouldNot
from portal.processes import CouldNotStart, free_port, last_words, spawn, start_valkey, stop, wait_until

SECRET = "a secret of the bench, which guards nothing at all, fifty and more"  # noqa: S105
PATIENCE = 900.0  # seconds for one measurement
PLANE_PATIENCE = 180.0
READY = "ready.json"


@dataclass
class Ground:
    """`database` says what keeps the tables, for the report."""

    folder: Path
    port: int
    database: str
    environment: dict[str, str]
    ends: ExitStack = field(repr=False)
    children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def measure(self, module: str, *words: str) -> dict[str, Any]:
        """Run a module as a child; the figures are its last line. Raises CouldNot with what it said."""
        log = self.folder / f"{module.rpartition('.')[2]}.log"
        with log.open("ab") as trouble:
            done = subprocess.run(
                [sys.executable, "-m", module, *words], cwd=ROOT, env=self.environment, stdout=subprocess.PIPE,
                stderr=trouble, text=True, check=False, timeout=PATIENCE,
            )  # fmt: skip
        try:
            figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        except (IndexError, ValueError):
            raise CouldNot(f"{module} ended with {done.returncode}. {last_words(log, 5)}") from None
        return figures

    def start(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        """A child that lives as long as the ground; what it says is in NAME.log."""
        process = spawn(
            [sys.executable, *words], log=self.log(name), environment=self.environment, folder=ROOT,
            dies_by=signal.SIGTERM,
        )  # fmt: skip
        self.children[name] = process
        self.ends.callback(stop, process)
        return process

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def api_server(self, nodes: int, cards: int) -> str:
        """The address of an API server of the bench's own."""
        words = ("-m", "portal.bench.apiserver", "--nodes", str(nodes), "--cards", str(cards))
        name = f"apiserver-{free_port()}"
        process, log = self.start(name, *words), self.log(name)
        wait_until(lambda: "\n" in log.read_text(), process, what="The bench's API server", log=log)
        return log.read_text().split()[0]

    def control_plane(self, name: str, *words: str) -> Path:
        """The file that tells of a real control plane without machines. Raises CouldNotStart."""
        file = self.folder / name / READY
        file.parent.mkdir()
        module = "tests.controlplane.serve"
        process = self.start(name, "-m", module, str(file.parent), "--fleet", "none", *words)
        wait_until(file.exists, process, what="The control plane", log=self.log(name), patience=PLANE_PATIENCE)
        return file

    def end(self, name: str) -> None:
        """A child that has done its part, before the next one is measured."""
        stop(self.children.pop(name), patience=10)

    def manage(self, *words: str) -> None:
        """A command of the portal's. Raises CouldNot."""
        words_ = [sys.executable, "manage.py", *words]
        done = subprocess.run(words_, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CouldNot(f"manage.py {words[0]} ended with {done.returncode}: {done.stderr.strip()[-300:]}")


@contextmanager
def ground() -> Iterator[Ground]:
    """Raises CouldNot where a message server, or any database, cannot be started."""
    with ExitStack() as ends:
        folder = Path(tempfile.mkdtemp(prefix="berth"))
        ends.callback(shutil.rmtree, folder, ignore_errors=True)
        try:
            messages, redis_url = start_valkey(folder / "messages")
        except CouldNotStart as trouble:
            raise CouldNot(str(trouble)) from None
        ends.callback(stop, messages)
        address, database = start_database(folder / "tables", ends)
        port = free_port()
        kept = {name: value for name, value in os.environ.items() if not name.startswith((*OURS, "TEST_"))}
        environment = {
            **kept, "BERTH_FOLDER": str(folder), "BERTH_URL": f"http://127.0.0.1:{port}", "BERTH_DEMO": "true",
            "BERTH_LOG_LEVEL": "WARNING", "REDIS_URL": redis_url, "SECRET_KEY": SECRET, "PYTHONPATH": str(ROOT),
            "DJANGO_SETTINGS_MODULE": "portal.settings", "PYTHONUNBUFFERED": "1", **address,
        }  # fmt: skip
        yield Ground(folder, port, database, environment, ends)


def start_database(folder: Path, ends: ExitStack) -> tuple[dict[str, str], str]:
    """PostgreSQL where one can be found; the embedded default else."""
    from tools.database import start_postgres, stop_postgres  # noqa: PLC0415  brings psycopg along

    try:
        process, address = start_postgres(folder)
    except CouldNotStart:
        return {}, "SQLite"
    ends.callback(stop_postgres, process)
    return {"DATABASE_URL": address}, "PostgreSQL"
