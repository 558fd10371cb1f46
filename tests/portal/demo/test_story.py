"""The story tells the truth: a step that did not happen is told as such, and then the whole is not ok."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from portal.demo.launcher import ROOT
from portal.demo.money import check_table
from portal.demo.place import Place
from portal.demo.story import Teller, scenes
from portal.demo.tell import Step, outcome, step_line
from portal.demo.visitor import DidNotHappen, Visitor, expect, until
from portal.demo.witness import Witness, is_ready
from portal.demo.working import in_order


def failing() -> str:
    raise DidNotHappen("The month does not sum.")


def broken() -> str:
    raise KeyError("results")


def test_a_step_says_what_it_saw() -> None:
    teller = Teller(None)
    teller.run("Omar reads the fleet", lambda: "4 nodes")
    assert [(step.name, step.ok, step.detail) for step in teller.steps] == [("Omar reads the fleet", True, "4 nodes")]


@pytest.mark.parametrize("scene", [failing, broken], ids=["did not happen", "an answer of another shape"])
def test_after_a_failed_step_nothing_is_claimed(scene: Any) -> None:
    told: list[Step] = []
    teller = Teller(told.append)
    for run in (lambda: "seen", scene, lambda: "never run"):
        teller.run("A step", run)
    assert [step.ok for step in told] == [True, False, False]
    assert told[2].detail == "Not reached: an earlier step failed."
    assert told == teller.steps


@pytest.mark.parametrize(
    ("oks", "ok"),
    [([True, True], True), ([True, False], False), ([], False)],
    ids=["all happened", "one did not", "there was none"],
)
def test_the_whole_is_ok_only_if_every_step_happened(oks: list[bool], ok: bool) -> None:
    steps = [Step("A step", one, 0.1234, "seen") for one in oks]
    found = outcome(steps, 31.4159)
    assert found["ok"] is ok
    assert found["seconds"] == 31.4
    assert all(set(step) == {"name", "ok", "seconds", "detail"} for step in found["steps"])


def test_a_line_for_people_says_at_once_whether_it_happened() -> None:
    assert step_line(Step("The meter moves", True, 1.25, "30 %")).startswith("ok ")
    assert step_line(Step("The meter moves", False, 1.25, "It stands")).startswith("FAILED ")


def test_every_scene_has_a_name_of_its_own() -> None:
    names = [name for name, _ in scenes()]
    assert len(set(names)) == len(names) > 12


def test_phases_in_order_may_have_others_between_them() -> None:
    assert in_order(["waiting", "placed", "starting", "starting", "running"], ["placed", "starting", "running"])
    assert not in_order(["placed", "running", "starting"], ["placed", "starting", "running"])
    assert not in_order([], ["running"])


def test_expecting_what_is_so_says_nothing() -> None:
    expect([1], "There is nothing.")
    with pytest.raises(DidNotHappen, match="There is nothing"):
        expect([], "There is nothing.")


def test_waiting_ends_with_what_was_awaited() -> None:
    seen = iter([None, None, "running"])
    assert until(lambda: next(seen), "It") == "running"
    with pytest.raises(DidNotHappen, match="The cut did not happen within 0 s"):
        until(lambda: None, "The cut", patience=0)


TOTAL = {"amount": "3.000000", "card_hours": "2.00", "mean_cards": "0.10", "shown": "3.00", "card_seconds": "7200"}


def test_a_table_that_sums_is_accepted() -> None:
    half = {"amount": "1.500000", "card_hours": "1.00", "mean_cards": "0.05", "shown": "1.50", "card_seconds": "3600"}
    check_table("by_team", [half, half], TOTAL)


@pytest.mark.parametrize("column", TOTAL)
def test_a_table_that_is_off_by_the_last_digit_is_not(column: str) -> None:
    off = {"amount": "2.999999", "card_hours": "1.99", "mean_cards": "0.09", "shown": "2.99", "card_seconds": "21599/3"}
    with pytest.raises(DidNotHappen, match=r"sums? to"):
        check_table("by_team", [{**TOTAL, column: off[column]}], TOTAL)


READY: dict[str, Any] = {
    "metadata": {"name": "depth-maps-0"},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}


def test_a_pod_is_ready_when_it_says_so_and_is_not_going() -> None:
    assert is_ready(READY)
    assert not is_ready({**READY, "metadata": {"deletionTimestamp": "2026-12-01T08:00:00Z"}})
    assert not is_ready({**READY, "status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    assert not is_ready({"metadata": {}, "status": {}})


def test_the_witness_sees_the_pod_that_runs(door: str) -> None:
    witness = Witness(Place(door), "some-workload")
    until(lambda: witness.ran_at, "The pod's running")
    witness.stop()


def test_a_visitor_is_told_of_an_unexpected_answer_with_its_text(door: str) -> None:
    visitor = Visitor(door, "robin")
    assert visitor.get("/found").text == json.dumps({"items": [READY]})
    with pytest.raises(DidNotHappen, match=r"GET /found answered 200, not 404: \{"):
        visitor.get("/found", 404)
    assert visitor.post("/nowhere", status=404).refusal == "There is nothing here."


@pytest.fixture
def door() -> Iterator[str]:
    """A server that answers every GET with one ready pod, and every POST with 404."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(200, {"items": [READY]})

        def do_POST(self) -> None:
            self.answer(404, {"error": {"text": "There is nothing here."}})

        def answer(self, status: int, body: Any) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *words: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def manage(*words: str, timeout: float = 110) -> subprocess.CompletedProcess[str]:
    """A command as people run it."""
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "demo", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        env=ours,
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--port", "70000"), "--port is 70000; choose 1 to 65535."),
        (("--rate", "0"), "--rate is 0; choose more than 0 and at most 3600 simulated seconds a second."),
        (("--rate", "nan"), "--rate is nan; choose more than 0"),
        (("--once", "--folder", "/proc/nothing"), "/proc/nothing cannot be the demo's folder"),
    ],
    ids=["a port that is none", "time that stands still", "time that is no number", "a folder that cannot be"],
)
def test_nonsense_is_refused_in_a_sentence(words: tuple[str, ...], sentence: str) -> None:
    done = manage(*words)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.timeout(260)
def test_the_whole_story_happens() -> None:
    """How long it takes is measured by `manage.py bench story`, where nothing else runs beside it."""
    done = manage("--once", "--json", timeout=240)
    told = json.loads(done.stdout)
    assert [(step["name"], step["detail"]) for step in told["steps"] if not step["ok"]] == []
    assert len(told["steps"]) == len(scenes()) + 1
    assert told["ok"] is True
    assert set(told["figures"]) == {"first_page", "running_late"}
    assert told["seconds"] > 0
    assert done.returncode == 0
    assert done.stderr == ""
