"""`bench`: figures beside a yardstick of the same run, and an exit code that says whether the bars hold."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from portal.management.commands import bench
from tests.portal.commands.running import run

TOLD = {
    "steps": [{"name": "Omar reads the fleet", "ok": True, "seconds": 0.1, "detail": "4 nodes"}],
    "figures": {"first_page": 5.0, "running_late": 0.08},
    "ok": True,
    "seconds": 40.0,
}


def told(monkeypatch: pytest.MonkeyPatch, stdout: str, *, yardstick: float = 0.5) -> None:
    monkeypatch.setattr(bench.subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=stdout, stderr="It broke."))
    monkeypatch.setattr(bench, "timed_yardstick", lambda: yardstick)


def test_bars_that_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, json.dumps(TOLD))
    outcome = run("bench", "story", "--json")

    assert outcome.code == 0
    assert [(bar["value"], bar["bar"], bar["ratio"], bar["holds"]) for bar in outcome.json["bars"]] == [
        (5.0, 60, 10.0, True),
        (40.0, 60, 80.0, True),
        (0.08, 1, 0.16, True),
    ]
    assert {tuple(bar) for bar in outcome.json["bars"]} == {("name", "value", "yardstick", "ratio", "bar", "holds")}


SLOW: dict[str, dict[str, Any]] = {
    "a slow start": {"figures": {"first_page": 60.1, "running_late": 0.1}},
    "a slow story": {"seconds": 61.0},
    "a page that hears late": {"figures": {"first_page": 5.0, "running_late": 1.01}},
}


@pytest.mark.parametrize("case", SLOW)
def test_a_bar_that_does_not_hold_is_a_finding(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    told(monkeypatch, json.dumps({**TOLD, **SLOW[case]}))

    assert run("bench", "story").code == 1


def test_a_story_that_did_not_happen_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    step = {"name": "The meter moves", "ok": False, "seconds": 1, "detail": "It stands."}
    told(monkeypatch, json.dumps({**TOLD, "ok": False, "steps": [step]}))
    outcome = run("bench", "story", "--json")

    assert (outcome.code, outcome.sentences) == (2, ["The story did not happen: The meter moves: It stands."])


def test_silence_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, "")
    outcome = run("bench", "story")

    assert outcome.code == 2
    assert "It broke." in outcome.sentences[0]


def test_the_yardstick_is_measured() -> None:
    assert 0 < bench.timed_yardstick() < 60
