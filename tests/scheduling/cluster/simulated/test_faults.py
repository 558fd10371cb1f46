"""Trouble on request: what a client sees of it."""

from __future__ import annotations

import json
import time
from http.client import HTTPException
from typing import Any

import pytest

from tests.scheduling.cluster.simulated.stories import TRAIN, Story, config_map, fleet_story, pod
from tests.scheduling.cluster.simulated.test_http import ask

MAPS = "/api/v1/namespaces/lab/configmaps"
STATUSES = {
    409: "Conflict",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    401: "Unauthorized",
}


@pytest.mark.parametrize(("code", "reason"), STATUSES.items())
def test_a_matching_request_is_answered_with_trouble_and_not_done(
    story: Story, url: str, code: int, reason: str
) -> None:
    story.faults.answer(code, method="POST", path="/configmaps")

    got, _, body = ask(url, "POST", MAPS, config_map())

    assert (got, json.loads(body)["reason"]) == (code, reason)
    assert story.names("configmaps") == []


def test_only_so_many_times(story: Story, url: str) -> None:
    story.faults.answer(500, path="/configmaps$", times=2)

    assert [ask(url, "GET", MAPS)[0] for _ in range(3)] == [500, 500, 200]


def test_for_ever_until_it_is_cleared(story: Story, url: str) -> None:
    story.faults.answer(503, times=None)
    assert [ask(url, "GET", MAPS)[0] for _ in range(3)] == [503] * 3

    story.faults.clear()

    assert ask(url, "GET", MAPS)[0] == 200


def test_other_requests_are_not_touched(story: Story, url: str) -> None:
    story.faults.answer(500, method="DELETE", path="/pods/")

    assert ask(url, "GET", "/api/v1/namespaces/lab/pods")[0] == 200


def test_how_long_to_wait_is_said(story: Story, url: str) -> None:
    story.faults.answer(429, retry_after=7)

    code, headers, _ = ask(url, "GET", MAPS)

    assert (code, headers["retry-after"]) == (429, "7")


def test_a_slow_answer(story: Story, url: str) -> None:
    story.faults.delay(0.3, path="/configmaps")
    began = time.monotonic()

    assert ask(url, "GET", MAPS)[0] == 200
    slow, again = time.monotonic() - began, time.monotonic()
    ask(url, "GET", MAPS)

    assert slow >= 0.3
    assert time.monotonic() - again < 0.3


def test_while_one_answer_is_slow_others_are_not(story: Story, url: str) -> None:
    from threading import Thread

    story.faults.delay(1, path="/configmaps")
    slow = Thread(target=ask, args=(url, "GET", MAPS))
    slow.start()
    time.sleep(0.05)
    began = time.monotonic()

    assert ask(url, "GET", "/api/v1/namespaces/lab/pods")[0] == 200
    assert time.monotonic() - began < 0.5
    slow.join()


def test_a_lost_reply_leaves_the_work_done(story: Story, url: str) -> None:
    story.faults.lose_reply(method="POST", path="/configmaps")

    with pytest.raises((ConnectionError, HTTPException)):
        ask(url, "POST", MAPS, config_map())

    assert story.names("configmaps") == ["settings"]
    assert ask(url, "POST", MAPS, config_map())[0] == 409


# Over HTTP


def trouble(url: str, **words: Any) -> tuple[int, Any]:
    code, _, body = ask(url, "POST", "/simulation/faults", words)
    return code, json.loads(body)


def test_trouble_is_asked_for_over_http(story: Story, url: str) -> None:
    assert trouble(url, fault="answer", status=429, method="GET", path="/pods", retry_after=3)[0] == 200

    assert ask(url, "GET", "/api/v1/namespaces/lab/pods")[0] == 429


def test_a_node_is_made_to_fall_silent_over_http(story: Story, url: str) -> None:
    trouble(url, fault="node_not_ready", node="n1")

    ready = [one for one in story.node("n1")["status"]["conditions"] if one["type"] == "Ready"]
    assert ready[0]["status"] == "Unknown"


WRONG: dict[str, dict[str, Any]] = {
    "an unknown fault": {"fault": "earthquake"},
    "no fault": {},
    "a private method": {"fault": "part", "name": "devices"},
    "an unknown word": {"fault": "delay", "seconds": 1, "minutes": 2},
    "a missing word": {"fault": "node_vanish"},
}


@pytest.mark.parametrize("words", WRONG.values(), ids=WRONG)
def test_wrong_orders_are_bad_requests(url: str, words: dict[str, Any]) -> None:
    code, answer = trouble(url, **words)

    assert (code, answer["reason"]) == (400, "BadRequest")


def test_a_card_that_is_not_there_is_a_bad_request() -> None:
    story = fleet_story()
    with story.serve() as url:
        code, answer = trouble(url, fault="card_sick", node=TRAIN, card=99)

    assert code == 400
    assert "has no card 99" in answer["message"]


def test_the_state_can_be_seen_over_http() -> None:
    story = fleet_story()
    story.create(pod("p", {"nvidia.com/gpu": "1"}, nodeSelector={"node.cluster.x-k8s.io/pool": "h100-train"}))
    with story.serve() as url:
        state = json.loads(ask(url, "GET", "/simulation/state")[2])

    assert state["now"] == "2026-12-01T08:01:00+00:00"
    assert [one["pod"] for one in state["nodes"][TRAIN]["assignments"]] == ["p"]


def test_time_is_advanced_over_http(story: Story, url: str) -> None:
    story.create(pod())

    _, _, body = ask(url, "POST", "/simulation/advance", {"seconds": 60})

    assert json.loads(body) == {"now": "2026-12-01T08:01:00+00:00"}
    assert story.phase("p") == "Running"


def test_faults_do_not_shut_their_own_door(story: Story, url: str) -> None:
    story.faults.answer(500, times=None)

    assert trouble(url, fault="clear")[0] == 200
    assert ask(url, "GET", MAPS)[0] == 200
