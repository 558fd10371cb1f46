"""Real processes are killed, doubled and cut off in the middle of people's work; nothing is lost or done twice."""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest
import redis

from tests.integration.site import Site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
PAGES = ("/", "/workloads/", "/workloads/new/", "/fleet/", "/health", "/api/v1/workloads/")
PROMPT = 8.0  # seconds that a submit may take while messages hang; a few are spent in time-outs


@pytest.mark.parametrize(
    "fault",
    [{"fault": "delay", "seconds": 2.0}, {"fault": "lose_reply"}],
    ids=["while its call hangs", "when the object is there and the reply is lost"],
)
def test_r3_a_worker_that_is_killed_in_its_put_loses_nothing(site: Site, fault: dict[str, Any]) -> None:
    site.trouble(**fault, method="PATCH", path="statefulsets")
    key = site.open("killed")
    site.wait_placed(key)
    site.kill("worker")
    site.start_worker()

    site.reaches("running", key)
    assert site.placements(key) == 1
    assert site.gaps(key) == []
    site.end(key)


def test_r1_a_worker_that_was_paused_past_its_lease_does_no_harm(site: Site) -> None:
    """Another one has finished its work by the time that it goes on."""
    site.trouble(fault="delay", method="PATCH", path="statefulsets", seconds=1.0)
    key = site.open("paused")
    site.wait_placed(key)
    site.signal("worker", signal.SIGSTOP)
    site.start_worker("stand-in")
    site.reaches("running", key)
    site.signal("worker", signal.SIGCONT)
    site.end(key)

    site.kill("stand-in")
    assert site.placements(key) == 1
    assert site.gaps(key) == []


def test_r10_two_workers_with_two_beats_do_everything_once(site: Site) -> None:
    site.start_worker("second")
    keys = [site.open(f"twice-{number}") for number in range(4)]
    site.reaches("running", *keys)
    site.kill("second")

    assert [site.placements(key) for key in keys] == [1] * 4
    site.end(*keys)


def test_a_flushed_message_server_loses_no_request(site: Site) -> None:
    messages = redis.Redis.from_url(site.demo.environment["REDIS_URL"])
    keys = []
    for number in range(3):
        keys.append(site.open(f"flushed-{number}"))
        messages.flushall()
    messages.close()

    site.reaches("running", *keys)
    site.end(*keys)


def test_while_messages_hang_or_are_gone_pages_work_and_requests_are_taken(site: Site) -> None:
    keys = []
    site.signal("messages", signal.SIGSTOP)
    keys.append(submitted_soon(site, "hanging"))
    site.kill("messages")
    keys.append(submitted_soon(site, "gone"))
    for page in PAGES:
        site.robin.get(page)
    assert "does not answer" in site.robin.get("/ready").data["messages"]
    site.start_messages()

    site.reaches("running", *keys)
    site.end(*keys)


def submitted_soon(site: Site, name: str) -> str:
    started = time.monotonic()
    key = site.open(name)
    assert time.monotonic() - started < PROMPT
    return key
