"""Reading variables: what is nonsense is refused, in a sentence that names the variable."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from portal import environment as read

NAME = "BERTH_THING"

GOOD: dict[str, tuple[str, Callable[[], Any], Any]] = {
    "a text keeps its inner blanks": (" two words ", lambda: read.env(NAME), "two words"),
    "an empty text is the default": ("", lambda: read.env(NAME, "x"), "x"),
    "true in any case": ("TRUE", lambda: read.envbool(NAME, default=False), True),
    "0 is false": ("0", lambda: read.envbool(NAME, default=True), False),
    "an empty boolean is the default": ("", lambda: read.envbool(NAME, default=True), True),
    "a number at its lower end": ("1", lambda: read.envint(NAME, 5, least=1, most=9), 1),
    "seconds may have a fraction": ("0.5", lambda: read.envseconds(NAME, 10, least=0.1, most=60), 0.5),
    "a choice": ("b", lambda: read.envchoice(NAME, "a", "ab"), "b"),
    "a list loses its empty parts": ("a, ,b,", lambda: read.envlist(NAME), ["a", "b"]),
    "a zone": ("Europe/Berlin", lambda: read.envzone(NAME, "UTC"), "Europe/Berlin"),
    "a currency": ("CHF", lambda: read.envcurrency(NAME, "EUR"), "CHF"),
    "an origin on https": (
        "https://berth.example.org/",
        lambda: read.envorigin(NAME, "", insecure=False).hostname,
        "berth.example.org",
    ),
    "plain http on this machine": (
        "http://localhost:9000",
        lambda: read.envorigin(NAME, "", insecure=False).port,
        9000,
    ),
}


def redis() -> object:
    return read.envurl(NAME, schemes=["redis"])


BAD: dict[str, tuple[str, Callable[[], Any], str]] = {
    "no boolean": ("maybe", lambda: read.envbool(NAME, default=False), "BERTH_THING is 'maybe'; write true or false."),
    "no whole number": ("1.5", lambda: read.envint(NAME, 5, least=1, most=9), "is '1.5'; write a whole number."),
    "a number too large": ("10", lambda: read.envint(NAME, 5, least=1, most=9), "is 10; choose 1 to 9."),
    "seconds in words": ("ten", lambda: read.envseconds(NAME, 1, least=0.1, most=60), "write a number of seconds."),
    "seconds without end": ("inf", lambda: read.envseconds(NAME, 1, least=0.1, most=60), "choose 0.1 to 60 seconds."),
    "seconds that are no number": ("nan", lambda: read.envseconds(NAME, 1, least=0.1, most=60), "choose 0.1 to 60"),
    "no such choice": ("c", lambda: read.envchoice(NAME, "a", "ab"), "is 'c'; choose one of a, b."),
    "no such zone": ("Mars/Olympus", lambda: read.envzone(NAME, "UTC"), "write an IANA zone such as Europe/Berlin"),
    "a zone that climbs out of the folder": ("../../etc/passwd", lambda: read.envzone(NAME, "UTC"), "IANA zone"),
    "a zone that is a folder": ("Europe", lambda: read.envzone(NAME, "UTC"), "IANA zone"),
    "a currency in small letters": ("eur", lambda: read.envcurrency(NAME, "EUR"), "three capital letters"),
    "a currency's sign": ("€", lambda: read.envcurrency(NAME, "EUR"), "three capital letters"),
    "an address of another kind": (
        "ftp://x/",
        redis,
        "'ftp://'; begin it with redis://",
    ),
    "an address with an absurd port": (
        "redis://x:99999",
        redis,
        "is no address",
    ),
    "an address with a broken bracket": ("redis://[::1", redis, "is no address"),
    "an origin with a path": (
        "https://example.org/berth",
        lambda: read.envorigin(NAME, "", insecure=False),
        "write scheme and host only",
    ),
    "plain http to other machines": (
        "http://berth.example.org",
        lambda: read.envorigin(NAME, "", insecure=False),
        "sends sessions in the clear",
    ),
    "a database without a name": (
        "postgres://u:p@host/",
        lambda: read.envdatabase(NAME, Path(), pool=0),
        "names no database",
    ),
}


@pytest.mark.parametrize(("text", "ask", "expected"), GOOD.values(), ids=GOOD)
def test_what_makes_sense_is_read(
    monkeypatch: pytest.MonkeyPatch, text: str, ask: Callable[[], Any], expected: Any
) -> None:
    monkeypatch.setenv(NAME, text)
    assert ask() == expected


@pytest.mark.parametrize(("text", "ask", "sentence"), BAD.values(), ids=BAD)
def test_nonsense_is_refused(monkeypatch: pytest.MonkeyPatch, text: str, ask: Callable[[], Any], sentence: str) -> None:
    monkeypatch.setenv(NAME, text)
    with pytest.raises(ImproperlyConfigured) as refusal:
        ask()
    assert NAME in str(refusal.value)
    assert sentence in str(refusal.value)


def test_a_refused_address_does_not_show_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "mysql://berth:hunter2@host/berth")
    with pytest.raises(ImproperlyConfigured) as refusal:
        read.envdatabase(NAME, Path(), pool=0)
    assert "hunter2" not in str(refusal.value)


def test_a_secret_may_lie_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from a file\n")
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "secret"))
    assert read.envsecret(NAME) == "from a file"


SECRETS = {
    "both are set": ("file", "text", "keep one of them"),
    "the file is not there": ("missing", "", "cannot be read: No such file or directory."),
    "the file is empty": ("empty", "", "is empty"),
    "the file is no text": ("binary", "", "it is not UTF-8 text"),
}


@pytest.mark.parametrize(("file", "text", "sentence"), SECRETS.values(), ids=SECRETS)
def test_a_secret_is_refused_when(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str, text: str, sentence: str
) -> None:
    for name, content in {"file": b"x", "empty": b" \n", "binary": b"\xff\xfe"}.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / file))
    monkeypatch.setenv(NAME, text)

    with pytest.raises(ImproperlyConfigured, match=NAME) as refusal:
        read.envsecret(NAME)

    assert sentence in str(refusal.value)


def test_postgresql_by_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "postgres://berth:p%40ss@db.example:6432/berth%5Fone?sslmode=require")

    entry = read.envdatabase(NAME, Path(), pool=8)

    assert entry["ENGINE"] == "django.db.backends.postgresql"
    assert (entry["USER"], entry["PASSWORD"], entry["HOST"], entry["PORT"]) == ("berth", "p@ss", "db.example", "6432")
    assert entry["NAME"] == "berth_one"
    assert entry["OPTIONS"] == {"sslmode": "require", "pool": {"min_size": 1, "max_size": 8, "timeout": 20}}


def test_postgresql_by_socket_and_without_a_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "postgres:///berth?host=/run/postgresql")
    entry = read.envdatabase(NAME, Path(), pool=0)
    assert (entry["HOST"], entry["PORT"], entry["OPTIONS"]) == ("/run/postgresql", "", {})


def test_sqlite_takes_its_lock_at_the_start_of_a_transaction(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(NAME, f"sqlite://{tmp_path}/a.sqlite3")
    entry = read.envdatabase(NAME, Path(), pool=0)
    assert entry["NAME"] == tmp_path / "a.sqlite3"
    assert entry["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


def test_a_kept_secret_is_made_once_and_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "var" / "secret_key"

    first, second = read.kept_secret(path), read.kept_secret(path)

    assert first == second
    assert len(first) >= 50
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["secret_key"]
