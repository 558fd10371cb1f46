"""What the scenes of the story share: the running demo, its visitors, and what earlier scenes have left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from portal.demo.launcher import Demo
from portal.demo.visitor import Listener, Visitor, expect, until
from tenants.clock import set_rate


@dataclass(slots=True)
class Stage:
    """The running demo and the people who visit it; `ear` is Robin's open socket."""

    demo: Demo
    people: Mapping[str, Visitor]
    ear: Listener = field(init=False)
    ids: dict[str, str] = field(default_factory=dict)  # what was made, by a short name
    figures: dict[str, float] = field(default_factory=dict)  # what was measured, in seconds

    @property
    def robin(self) -> Visitor:
        return self.people["robin"]

    @property
    def dana(self) -> Visitor:
        return self.people["dana"]

    @property
    def lena(self) -> Visitor:
        return self.people["lena"]

    @property
    def farah(self) -> Visitor:
        return self.people["farah"]

    @property
    def omar(self) -> Visitor:
        return self.people["omar"]

    def measured(self, name: str, seconds: float) -> None:
        """Keep the worst of several measurements of one thing."""
        self.figures[name] = max(seconds, self.figures.get(name, 0.0))

    def hurry(self, rate: float) -> None:
        """So many simulated seconds pass per second from now on. The time of a real control plane cannot be hurried."""
        if not self.demo.is_real:
            set_rate(self.demo.clock, rate)

    def now(self) -> datetime:
        return datetime.fromisoformat(self.robin.get("/api/v1/me/").data["now"])

    def vision(self) -> Mapping[str, Any]:
        """Robin's team, with what it holds."""
        teams = self.robin.get("/api/v1/me/").data["teams"]
        return next(team for team in teams if team["slug"] == "vision")

    def quota(self, model: str) -> Mapping[str, Any]:
        """What Robin's team holds of a model; a team without any has no such line."""
        return next((line for line in self.vision()["quotas"] if line["model"] == model), {"left": "0", "held": "0"})

    def workload(self, name: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.robin.get(f"/api/v1/workloads/{self.ids[name]}/").data
        return found

    def phase(self, name: str, wanted: str, *, patience: float = 20.0) -> Mapping[str, Any]:
        """The workload once it has that phase. Raises DidNotHappen with the phase that it stays in."""
        seen: dict[str, Any] = {}

        def look() -> bool:
            seen.update(self.workload(name))
            expect(seen["phase"] != "ended" or wanted == "ended", f"{name} has ended: {seen['phase_text']}")
            return bool(seen["phase"] == wanted)

        self.wait(look, lambda: f"{name} is {seen['phase']} ({seen['phase_text']}), not {wanted}", patience)
        return seen

    def pool(self, name: str) -> Mapping[str, Any]:
        return next(pool for pool in self.fleet()["pools"] if pool["name"] == name)

    def nodes(self, pool: str) -> list[Mapping[str, Any]]:
        return [node for node in self.fleet()["nodes"]["results"] if node["pool"] == pool]

    def fleet(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.omar.get("/api/v1/fleet/?page_size=200").data
        return found

    @staticmethod
    def wait(look: Callable[[], bool], otherwise: Callable[[], str], patience: float) -> None:
        """Like `until`, with a sentence that says what was seen last."""
        try:
            until(look, "It", patience=patience)
        except Exception as fault:
            raise type(fault)(f"{otherwise()}, after {patience:g} s.") from fault
