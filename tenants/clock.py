"""What time it is: the wall clock, or, in the demo, a clock that may run faster.

Every rule takes `now` as an argument; only doors (views, tasks, commands) call `now()`. The demo's processes share
one small JSON file, named by the environment variable `BERTH_CLOCK`:

    {"wall": "2026-12-01T08:00:00+00:00", "simulated": "2026-12-01T08:00:00+00:00", "rate": 60.0}

At the wall time `wall` it was `simulated`; since then `rate` simulated seconds pass per second. Without the variable
the time is the wall clock's. This module knows no Django: the simulated cluster reads the same file.
"""

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from datetime import timedelta as td
from functools import lru_cache
from pathlib import Path

MAX_RATE = 3600.0


@dataclass(frozen=True, slots=True)
class Pace:
    """One anchor and a rate: enough to tell the simulated time at any wall time."""

    wall: datetime
    simulated: datetime
    rate: float

    def at(self, wall: datetime) -> datetime:
        return self.simulated + td(seconds=(wall - self.wall).total_seconds() * self.rate)


def now() -> datetime:
    """The current time in UTC, in whole microseconds; simulated where `BERTH_CLOCK` names a clock file."""
    wall = datetime.now(UTC)
    pace = current_pace()
    return pace.at(wall) if pace else wall


def rate() -> float:
    """How many seconds pass per second of the wall clock: 1.0 without a clock file."""
    pace = current_pace()
    return pace.rate if pace else 1.0


def is_simulated() -> bool:
    return clock_file() is not None


def clock_file() -> Path | None:
    name = os.environ.get("BERTH_CLOCK", "")
    return Path(name) if name else None


def current_pace() -> Pace | None:
    path = clock_file()
    return read_pace(path) if path else None


def read_pace(path: Path) -> Pace:
    """The pace in a clock file; read again only when the file was replaced."""
    return _read_pace(path, path.stat().st_mtime_ns)


def write_pace(path: Path, pace: Pace) -> None:
    """Replace the clock file in one step, so that no reader sees half of it."""
    content = {"wall": pace.wall.isoformat(), "simulated": pace.simulated.isoformat(), "rate": pace.rate}
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(content))
    draft.replace(path)


def set_rate(path: Path, new_rate: float) -> Pace:
    """From now on `new_rate` seconds pass per second; the simulated time does not jump.

    Raises ValueError outside 0 < rate <= 3600.
    """
    if not 0 < new_rate <= MAX_RATE:
        raise ValueError(f"The clock's rate is {new_rate:g}; choose more than 0 and at most {MAX_RATE:g}.")
    wall = datetime.now(UTC)
    pace = Pace(wall=wall, simulated=read_pace(path).at(wall), rate=new_rate)
    write_pace(path, pace)
    return pace


@lru_cache(maxsize=4)
def _read_pace(path: Path, _stamp: int) -> Pace:
    content = json.loads(path.read_text())
    return Pace(
        wall=datetime.fromisoformat(content["wall"]),
        simulated=datetime.fromisoformat(content["simulated"]),
        rate=float(content["rate"]),
    )
