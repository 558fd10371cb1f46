"""The whole story as the four people live it, over HTTP and one socket. Each step says what it saw, or why it failed.

Nothing here looks into tables: what these people cannot see at the portal's doors has not happened.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from portal.demo import money, people, working
from portal.demo.launcher import ROOT, Demo
from portal.demo.stage import Stage
from portal.demo.tell import Step
from portal.demo.visitor import DidNotHappen, Visitor, expect, listening

Scene = Callable[[Stage], str]
SECOND_LEAD = "lena"


@dataclass(slots=True)
class Teller:
    """Runs scenes in order; once one has failed, those that follow from it are told as not reached."""

    on_step: Callable[[Step], None] | None
    steps: list[Step] = field(default_factory=list)

    def run(self, name: str, scene: Callable[[], str]) -> None:
        if self.failed:
            self._tell(Step(name, ok=False, seconds=0.0, detail="Not reached: an earlier step failed."))
            return
        started = time.monotonic()
        try:
            detail, happened = scene(), True
        except (DidNotHappen, OSError, LookupError, ValueError, TypeError) as fault:
            detail, happened = f"{type(fault).__name__}: {fault}", False
        self._tell(Step(name, happened, time.monotonic() - started, detail))

    @property
    def failed(self) -> bool:
        return any(not step.ok for step in self.steps)

    def _tell(self, step: Step) -> None:
        self.steps.append(step)
        if self.on_step:
            self.on_step(step)


def tell(
    demo: Demo, begun: float, on_step: Callable[[Step], None] | None = None
) -> tuple[list[Step], dict[str, float]]:
    """The story in a running demo, which took `begun` seconds to start; its steps, and what was measured in seconds."""
    teller = Teller(on_step)
    with ExitStack() as opened:
        stage = Stage(demo, {name: Visitor(demo.url, name) for name in cast()}, figures={"first_page": begun})
        teller.run("The portal starts and offers four people", lambda: arrive(stage, begun))
        if not teller.failed:
            stage.ear = opened.enter_context(listening(stage.robin))
        for name, scene in scenes(real=demo.is_real):
            teller.run(name, lambda scene=scene: scene(stage))  # type: ignore[misc]
    return teller.steps, stage.figures


def cast() -> list[str]:
    return [*(guise.username for guise in people.FOUR), SECOND_LEAD]


def scenes(*, real: bool = False) -> Sequence[tuple[str, Scene]]:
    """In their order. On a real control plane a minute lasts a minute, and the money is read while it passes."""
    end = ("Tables, cluster and ledger agree", agree)
    if real:
        first = (*working.BEGINNING, working.METER, working.CUT, working.WALLS, *money.SCENES)
        return (*first, ("A quiet minute", working.the_quiet), working.WAKING, end)
    first = (*working.BEGINNING, working.CUT, working.METER)
    return (*first, ("Ninety quiet minutes", working.the_quiet), working.WAKING, working.WALLS, *money.SCENES, end)


def arrive(stage: Stage, begun: float) -> str:
    """Everybody logs in by the demo's log-in page."""
    page = stage.robin.get("/login/").text
    missing = [fact.name for fact, _ in people.four() if fact.name not in page]
    expect(not missing, f"The log-in page does not offer {missing}.")
    for visitor in stage.people.values():
        visitor.log_in()
    return f"The first page after {begun:.1f} s; {len(people.FOUR)} people and a second lead are logged in."


def agree(stage: Stage) -> str:
    """The command `consistency`, as the operator would run it."""
    words = [sys.executable, str(ROOT / "manage.py"), "consistency", "--json"]
    done = subprocess.run(words, env=stage.demo.environment, capture_output=True, text=True, check=False, timeout=60)
    expect(done.returncode == 0, f"consistency ended with {done.returncode}: {(done.stdout + done.stderr)[:1500]}")
    return "consistency finds nothing to explain."
