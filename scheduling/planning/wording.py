"""Instants, lengths and lists within sentences."""

from collections.abc import Iterable
from datetime import UTC, datetime
from datetime import timedelta as td


def instant(at: datetime) -> str:
    """ "2026-12-01 14:30 UTC"."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def length(span: td) -> str:
    """Whole minutes from one minute on, else seconds: "1 h 30 min", "45 s"."""
    seconds = max(0, int(span.total_seconds()))
    if seconds < 60:
        return f"{seconds} s"
    hours, minutes = divmod(seconds // 60, 60)
    parts = [f"{hours} h" if hours else "", f"{minutes} min" if minutes else ""]
    return " ".join(part for part in parts if part)


def several(count: int, noun: str) -> str:
    """ "1 node", "2 nodes"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(words: Iterable[str], *, most: int = 3) -> str:
    """ "a, b and c"; what is beyond `most` is counted, not named."""
    names = list(words)
    if len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def sentence(text: str) -> str:
    """Somebody else's message as a sentence of ours: trimmed, on one line, with one full stop."""
    line = " ".join(text.split()).rstrip(".")
    return f"{line[:300]}." if line else ""
