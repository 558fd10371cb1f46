"""Kubernetes' points in time."""

import re
from datetime import UTC, datetime

FORM = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d{1,12})?(?:[Zz]|[+-]\d{2}:\d{2})", re.ASCII)


def when(text: str | None) -> datetime | None:
    """An RFC 3339 time as aware UTC; None when it is missing or is none."""
    if not text or not FORM.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
