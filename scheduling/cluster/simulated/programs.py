"""What runs in a container: how long, with which exit code, and what it prints. All a function of the pod and the time.

Understood are `sleep N` and `exit N`, alone or in a script after `sh -c`. Everything else runs until it is stopped.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from datetime import timedelta as td

from .kinds import Document

STEP = re.compile(r"\b(sleep|exit)\s+(infinity|\d+(?:\.\d+)?)")
SHELLS = frozenset({"sh", "bash", "ash", "dash"})
LONGEST_LOG = 2000  # lines


@dataclass(frozen=True, slots=True)
class Program:
    seconds: float | None  # None: until it is stopped
    code: int = 0


def program_of(container: Document) -> Program:
    """The program of a container by its command and arguments."""
    words = [str(word) for word in [*(container.get("command") or []), *(container.get("args") or [])]]
    if not words:
        return Program(None)
    first = words[0].rpartition("/")[2]
    if first == "sleep" and len(words) > 1:
        return script(f"sleep {words[1]}")
    if first in SHELLS and len(words) > 2 and words[1].startswith("-") and "c" in words[1]:
        return script(words[2])
    return Program(None)


def script(text: str) -> Program:
    """The steps of a shell script in order; it ends at `exit`, or after its last step when it has any."""
    total, seen = 0.0, False
    for word, value in STEP.findall(text):
        seen = True
        if word == "exit":
            return Program(total, int(float(value)) if value != "infinity" else 0)
        if value == "infinity":
            return Program(None)
        total += float(value)
    return Program(total) if seen else Program(None)


def option(container: Document, name: str) -> str:
    """The value of `--name V`, `--name=V` or the environment variable NAME; empty when there is none."""
    words = " ".join(str(word) for word in [*(container.get("command") or []), *(container.get("args") or [])])
    match = re.search(rf"--{name}[= ](\S+)", words)
    if match:
        return match[1]
    variable = name.upper().replace("-", "_")
    return next((str(e.get("value") or "") for e in container.get("env") or [] if e.get("name") == variable), "")


def log_lines(pod: Document, started: datetime, until: datetime) -> Iterator[tuple[datetime, str]]:
    """The lines printed from the start until a moment, with their times; the last few thousand at most."""
    owners = pod["metadata"].get("ownerReferences") or []
    notebook = any(owner["kind"] == "StatefulSet" for owner in owners)
    lines = notebook_lines(pod, started, until) if notebook else training_lines(pod, started, until)
    yield from lines


def notebook_lines(pod: Document, started: datetime, until: datetime) -> Iterator[tuple[datetime, str]]:
    name = pod["metadata"]["name"]
    opening = (
        "ServerApp] Package jupyterlab took 0.0180s to import",
        "LabApp] JupyterLab application directory is /opt/conda/share/jupyter/lab",
        f"ServerApp] Serving notebooks from local directory: /home/berth/{name}",
        "ServerApp] Jupyter Server is running at: http://0.0.0.0:8888/lab",
        "ServerApp] Use Control-C to stop this server and shut down all kernels",
    )
    for index, text in enumerate(opening):
        at = started + td(seconds=index)
        if at <= until:
            yield at, f"[I {at:%Y-%m-%d %H:%M:%S.000} {text}"
    beat, first = 120, int((until - started).total_seconds()) // 120 - LONGEST_LOG
    for count in range(max(1, first), int((until - started).total_seconds()) // beat + 1):
        at = started + td(seconds=beat * count)
        yield (
            at,
            f"[I {at:%Y-%m-%d %H:%M:%S.000} ServerApp] Saving file at /{chance(pod, count) % 7 + 1:02d}-notes.ipynb",
        )


def training_lines(pod: Document, started: datetime, until: datetime) -> Iterator[tuple[datetime, str]]:
    yield started, f"{started:%H:%M:%S} loading data set, {chance(pod, 0) % 900 + 100} shards"
    beat = 10
    last = int((until - started).total_seconds()) // beat
    for count in range(max(1, last - LONGEST_LOG), last + 1):
        at = started + td(seconds=beat * count)
        step = count * 50
        loss = 0.9 + 6.0 / (1 + step / 400) + (chance(pod, count) % 100) / 2500
        rate = 180 + chance(pod, count) % 25
        yield at, f"{at:%H:%M:%S} step {step:>7} | loss {loss:.4f} | {rate} samples/s"


def chance(pod: Document, count: int) -> int:
    """A number that looks random and is the same every time."""
    text = f"{pod['metadata']['uid']}/{count}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])


def fraction(uid: str, count: int) -> float:
    """The like, from 0 up to 1."""
    return int.from_bytes(hashlib.sha256(f"{uid}/{count}".encode()).digest()[:4]) / 2**32
