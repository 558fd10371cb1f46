"""How busy a pod keeps its GPU, and how much of its memory it uses: a function of the pod and the time. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .kinds import Document
from .programs import fraction, option

BUSY_MINUTES = 20.0


@dataclass(frozen=True, slots=True)
class Load:
    busy: float  # 0..1 of the device that the pod holds
    memory: float  # 0..1 of its memory


IDLE = Load(0.0, 0.0)


def load_of(pod: Document, container: Document, started: datetime | None, now: datetime) -> Load:
    """The load that one container puts on its device now; nothing before it has started."""
    if started is None or started > now:
        return IDLE
    uid, seconds = pod["metadata"]["uid"], (now - started).total_seconds()
    fixed = option(container, "load")
    if fixed:
        return Load(number(fixed, 0.0), 0.3 + 0.5 * number(fixed, 0.0))
    if any(owner["kind"] == "StatefulSet" for owner in pod["metadata"].get("ownerReferences") or []):
        return notebook(uid, seconds, number(option(container, "busy-minutes"), BUSY_MINUTES))
    return Load(0.85 + 0.13 * fraction(uid, int(seconds // 15)), 0.72 + 0.2 * fraction(uid, -1))


def notebook(uid: str, seconds: float, busy_minutes: float) -> Load:
    """Somebody works for a while, then goes to lunch and leaves the kernel open: the memory stays taken."""
    memory = 0.25 + 0.4 * fraction(uid, -1)
    slot = int(seconds // 30)
    if seconds < busy_minutes * 60:
        return Load(0.3 + 0.6 * fraction(uid, slot), memory * min(1.0, 0.3 + seconds / 120))
    return Load(0.004 * fraction(uid, slot), memory)


def number(text: str, default: float) -> float:
    try:
        return max(0.0, float(text))
    except ValueError:
        return default
