"""How the outcome of the story is told: a line for people, and JSON with keys that stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the story: whether it happened, how long it took, and what was seen."""

    name: str
    ok: bool
    seconds: float
    detail: str


def step_line(step: Step) -> str:
    return f"{'ok    ' if step.ok else 'FAILED'} {step.seconds:5.1f} s  {step.name}: {step.detail}"


def outcome(steps: Sequence[Step], seconds: float, figures: Mapping[str, float] | None = None) -> dict[str, Any]:
    """`{"steps": [{"name", "ok", "seconds", "detail"}], "figures", "ok", "seconds"}`; no step is no success."""
    return {
        "steps": [
            {"name": step.name, "ok": step.ok, "seconds": round(step.seconds, 2), "detail": step.detail}
            for step in steps
        ],
        "figures": {name: round(value, 3) for name, value in (figures or {}).items()},
        "ok": bool(steps) and all(step.ok for step in steps),
        "seconds": round(seconds, 1),
    }
