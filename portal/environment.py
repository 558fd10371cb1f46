"""Reads settings from environment variables. What makes no sense is refused in a sentence that names the variable."""

import math
import os
import re
import stat
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.core.exceptions import ImproperlyConfigured
from django.core.management.utils import get_random_secret_key

BOOLEANS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
BY_KUBERNETES = re.compile(r"BERTH(_\w+)?_(SERVICE|PORT)(_\w+)?")  # set in every pod beside a Service named berth
LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")


_read: set[str] = set()


def env(name: str, default: str = "") -> str:
    """The variable's text without surrounding blanks; `default` where it is unset or empty."""
    _read.add(name)
    return os.environ.get(name, "").strip() or default


def refuse_unknown(elsewhere: Iterable[str]) -> None:
    """A variable of ours that nobody reads is a misspelt one: what it was meant to change would silently not happen.

    `elsewhere` are names that others than the settings read.
    """
    known = _read.union(elsewhere)
    for name in sorted(os.environ):
        if name.startswith("BERTH_") and name not in known and not BY_KUBERNETES.fullmatch(name):
            nearest = (
                "".join(f"; did you mean {other}?" for other in get_close_matches(name, known, n=1, cutoff=0.8)) or "."
            )
            raise ImproperlyConfigured(f"{name} is no setting of Berth{nearest} docs/settings.md lists them.")


def envbool(name: str, *, default: bool) -> bool:
    text = env(name)
    if not text:
        return default
    if text.lower() not in BOOLEANS:
        raise ImproperlyConfigured(f"{name} is {text!r}; write true or false.")
    return BOOLEANS[text.lower()]


def envint(name: str, default: int, *, least: int, most: int) -> int:
    """A whole number in [least, most]."""
    text = env(name, str(default))
    try:
        number = int(text)
    except ValueError:
        raise ImproperlyConfigured(f"{name} is {text!r}; write a whole number.") from None
    if not least <= number <= most:
        raise ImproperlyConfigured(f"{name} is {number}; choose {least} to {most}.")
    return number


def envseconds(name: str, default: float, *, least: float, most: float) -> float:
    """A number of seconds in [least, most]; fractions are allowed."""
    text = env(name, str(default))
    try:
        seconds = float(text)
    except ValueError:
        raise ImproperlyConfigured(f"{name} is {text!r}; write a number of seconds.") from None
    if not math.isfinite(seconds) or not least <= seconds <= most:
        raise ImproperlyConfigured(f"{name} is {text}; choose {least:g} to {most:g} seconds.")
    return seconds


def envchoice(name: str, default: str, choices: Iterable[str]) -> str:
    text = env(name, default)
    if text not in (allowed := tuple(choices)):
        raise ImproperlyConfigured(f"{name} is {text!r}; choose one of {', '.join(allowed)}.")
    return text


def envlist(name: str) -> list[str]:
    """The parts of a comma-separated text, without blanks and empty parts."""
    return [part.strip() for part in env(name).split(",") if part.strip()]


def envsecret(name: str, default: str = "") -> str:
    """The variable NAME, or the content of the file that NAME_FILE names, without surrounding blanks."""
    file = env(f"{name}_FILE")
    if not file:
        return env(name, default)
    if env(name):
        raise ImproperlyConfigured(f"{name} and {name}_FILE are both set; keep one of them.")
    try:
        content = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as fault:
        raise ImproperlyConfigured(f"{name}_FILE names {file}, which cannot be read: {reason(fault)}.") from None
    if not content:
        raise ImproperlyConfigured(f"{name}_FILE names {file}, which is empty.")
    return content


def envzone(name: str, default: str) -> str:
    """The name of a time zone of the IANA database, such as Europe/Berlin."""
    text = env(name, default)
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ImproperlyConfigured(f"{name} is {text!r}; write an IANA zone such as Europe/Berlin or UTC.") from None
    return text


def envcurrency(name: str, default: str) -> str:
    """A currency's code of three capital letters (ISO 4217), such as EUR."""
    text = env(name, default)
    if not (len(text) == 3 and text.isascii() and text.isalpha() and text.isupper()):
        raise ImproperlyConfigured(f"{name} is {text!r}; write a code of three capital letters such as EUR.")
    return text


def envurl(name: str, default: str = "", *, schemes: Iterable[str]) -> SplitResult:
    """The parts of an address, from NAME or NAME_FILE. The sentence of a refusal shows no password."""
    allowed = tuple(schemes)
    text = envsecret(name, default)
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as fault:
        raise ImproperlyConfigured(f"{name} is no address: {fault}.") from None
    if parts.scheme not in allowed:
        raise ImproperlyConfigured(
            f"{name} begins with {parts.scheme + '://' if parts.scheme else 'no scheme'!r}; "
            f"begin it with {' or '.join(scheme + '://' for scheme in allowed)}."
        )
    return parts


def envdatabase(name: str, folder: Path, *, pool: int) -> dict[str, Any]:
    """Django's entry for one database: PostgreSQL or SQLite by the address in `name`, else SQLite in `folder`."""
    if not envsecret(name):
        return sqlite(folder / "berth.sqlite3")
    parts = envurl(name, schemes=("postgres", "postgresql", "sqlite"))
    if not parts.path.strip("/"):
        raise ImproperlyConfigured(f"{name} names no database; end it with /berth, say.")
    return sqlite(Path(unquote(parts.path))) if parts.scheme == "sqlite" else postgresql(parts, pool)


def sqlite(path: Path) -> dict[str, Any]:
    """SQLite for several processes: readers do not wait, and a writer takes its lock at the start.

    Without IMMEDIATE two transactions that read and then write fail at once, whatever the timeout is.
    """
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA busy_timeout=20000;",
        },
    }


def postgresql(parts: SplitResult, pool: int) -> dict[str, Any]:
    """PostgreSQL, with a pool of up to `pool` connections in each process; 0 means one connection a thread."""
    options: dict[str, Any] = dict(parse_qsl(parts.query))
    host = options.pop("host", parts.hostname or "")
    if pool:
        options["pool"] = {"min_size": 1, "max_size": pool, "timeout": 20}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(host),
        "PORT": str(parts.port or ""),
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": options,
    }


def envorigin(name: str, default: str, *, insecure: bool) -> SplitResult:
    """The portal's own address, as people type it. Plain http is for this machine alone, or where `insecure`."""
    parts = envurl(name, default, schemes=("http", "https"))
    if not parts.hostname or parts.path.strip("/") or parts.query or parts.fragment:
        raise ImproperlyConfigured(
            f"{name} is {parts.geturl()!r}; write scheme and host only: https://berth.example.org."
        )
    if parts.scheme == "http" and parts.hostname not in LOOPBACK and not insecure:
        raise ImproperlyConfigured(f"{name} is {parts.geturl()!r}, which sends sessions in the clear; write https://.")
    return parts


def kept_secret(path: Path) -> str:
    """A random secret that is made once and kept in `path`, readable by its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.touch(mode=stat.S_IRUSR | stat.S_IWUSR)
    draft.write_text(get_random_secret_key(), encoding="ascii")
    try:
        os.link(draft, path)  # fails where another process was first; then its secret is ours
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text(encoding="ascii")


def reason(fault: Exception) -> str:
    return fault.strerror or str(fault) if isinstance(fault, OSError) else "it is not UTF-8 text"
