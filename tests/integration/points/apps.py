"""Wraps the points when Django starts, and shortens what would make tests wait."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from datetime import timedelta as td
from fnmatch import fnmatch
from functools import wraps
from pathlib import Path
from typing import Any

from django.apps import AppConfig

HOLDS = td(seconds=3)  # of a lease; a busy machine may keep its heartbeat waiting for a second
ROOM = 64 * 2**20  # bytes that a process may still take before its memory is over


class Points(AppConfig):
    name = "tests.integration.points"
    label = "points"

    def ready(self) -> None:
        from scheduling import tasks
        from scheduling.reconcile import cycle, launch, lease

        lease.HOLDS, lease.BEAT = HOLDS, HOLDS / 4
        wrap(cycle, "run_cycle", at("look"))
        wrap(launch, "put_launch", at("put"))
        wrap(tasks, "our_turn", noted("turns"))


def wrap(module: Any, name: str, before: Callable[..., Any]) -> None:
    real = getattr(module, name)
    setattr(module, name, wraps(real)(before(real)))


def at(point: str) -> Callable[..., Any]:
    """Suffer what is asked for at this point, by whoever the first argument names."""

    def before(real: Callable[..., Any]) -> Callable[..., Any]:
        def meet(first: Any, *others: Any, **facts: Any) -> Any:
            wish = wished(point)
            if wish and fnmatch(first.name, wish["name"]):
                DEEDS[wish["deed"]](point)
            return real(first, *others, **facts)

        return meet

    return before


def noted(file: str) -> Callable[..., Any]:
    """Write down each period that was served, one line each."""
    from scheduling.turns import period_of

    def before(real: Callable[..., Any]) -> Callable[..., Any]:
        def meet(task: str, seconds: float) -> Any:
            at = datetime.now(UTC)
            if answer := real(task, seconds, at):
                with (folder() / file).open("a") as notes:
                    notes.write(f"{task} {period_of(at, seconds).isoformat()}\n")
            return answer

        return meet

    return before


def wished(point: str) -> dict[str, str]:
    try:
        return dict(json.loads((folder() / point).read_text()))
    except (OSError, ValueError):
        return {}


def folder() -> Path:
    return Path(os.environ["POINTS_FOLDER"])


def raise_what_nobody_foresaw(_point: str) -> None:
    raise KeyError("what nobody foresaw")


def run_out_of_memory(_point: str) -> None:
    """As in a container whose limit is an address space: Python gets no more, and says so."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, hard))
    try:
        bytearray(64 * ROOM)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def die(_point: str) -> None:
    """As the kernel does it when memory is short: no last words."""
    os.kill(os.getpid(), signal.SIGKILL)


def wait(point: str) -> None:
    """Until the wish is taken back."""
    while wished(point):
        time.sleep(0.05)


DEEDS: dict[str, Callable[[str], None]] = {
    "raise": raise_what_nobody_foresaw,
    "eat": run_out_of_memory,
    "die": die,
    "wait": wait,
}
