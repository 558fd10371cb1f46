"""The message server is emptied, full, a replica, hung or gone; messages are lost, foreign or doubled. Messages are
hints: rows are the truth, and each tick looks at the rows. Berth has no outbox, and needs none.

The numbers are those of docs/reliability.md.
"""

from __future__ import annotations

import json
import re
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import redis

from portal.demo.launcher import ROOT
from portal.demo.visitor import DidNotHappen, Visitor, listening, until
from tests.faults.deeds import Answer
from tests.integration.site import PATIENCE, QUEUE, Site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
PAGES = ("/", "/workloads/", "/workloads/new/", "/fleet/", "/health", "/ready", "/api/v1/workloads/")
PROMPT = 10.0  # seconds that a submit may take while messages hang; a few are spent in time-outs
PERIOD = 1.0  # seconds between two ticks
BUSY = 4.0  # seconds that a machine with little time to spare may add


def test_03_a_request_whose_wake_up_is_lost_is_found_by_the_next_tick(site: Site) -> None:
    """The portal is killed between its commit and its message; this worker does not watch the cluster either."""
    site.kill("worker")
    site.start_worker(BERTH_WATCH="False")
    site.kill("portal")
    with deaf_server() as address:
        site.start_portal(REDIS_URL=address)
        site.enter()
        until(lambda: "ready." in site.log("worker"), "The worker", patience=PATIENCE)
        threading.Thread(target=submitted_in_vain, args=(site, "unheard"), daemon=True).start()
        row = "SELECT id FROM scheduling_workload WHERE name = 'unheard'"
        key = str(until(lambda: site.table(row), "Its row")[0][0])
        site.kill("portal")
    began = time.monotonic()
    until(lambda: site.phase(key) != "waiting", "Its turn", patience=PATIENCE)

    assert time.monotonic() - began < PERIOD + BUSY
    site.start_portal()
    site.enter()
    site.reaches("running", key)
    assert site.placements(key) == 1
    site.end(key)


@contextmanager
def deaf_server() -> Iterator[str]:
    """The address of a message server that takes everything and answers nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        yield f"redis://127.0.0.1:{server.getsockname()[1]}/0"


def submitted_in_vain(site: Site, name: str) -> None:
    with suppress(DidNotHappen, OSError):
        site.open(name)


def test_07_nothing_that_is_due_later_is_ever_given_to_the_message_server(site: Site) -> None:
    """Due times are rows (`not_before`, `due_at`, `rest_until`). A whole story goes by, failures and all."""
    with overheard(site) as heard:
        site.proxy.on(Answer(422), "PATCH", "statefulsets/later-", times=2)
        key = site.open("later")
        site.pace(600)
        site.reaches("running", key)
        site.robin.post(f"/api/v1/workloads/{key}/sleep/")
        site.reaches("asleep", key)
        site.robin.post(f"/api/v1/workloads/{key}/wake/")
        site.reaches("running", key)
        site.end(key)
        until(
            lambda: "scheduling.tick" in kinds_of(heard), "A tick", patience=PATIENCE
        )  # the story is over in a second

    assert site.value("SELECT failures + attempt FROM scheduling_workload WHERE id = %s", key) >= 3
    assert kinds_of(heard)["scheduling.cycle"] >= 3
    assert {(message["headers"]["eta"], message["headers"]["retries"]) for message in heard} == {(None, 0)}
    assert [str(file) for file in product_files() if LATER.search(file.read_text())] == []


def kinds_of(heard: Sequence[dict[str, Any]]) -> Counter[str]:
    return Counter(message["headers"]["task"] for message in list(heard))


LATER = re.compile(r"countdown\s*=|\beta\s*=|\.retry\(|apply_async\(")


def product_files() -> Iterator[Path]:
    return (file for room in ("portal", "scheduling", "tenants") for file in (ROOT / room).rglob("*.py"))


@contextmanager
def overheard(site: Site) -> Iterator[list[dict[str, Any]]]:
    """Every message that is put on the queue meanwhile."""
    heard: list[dict[str, Any]] = []
    with site.messages() as server, server.monitor() as monitor:

        def listen() -> None:
            with suppress(redis.RedisError, OSError, ValueError, AttributeError):
                for said in monitor.listen():
                    verb, _, rest = said["command"].partition(" ")
                    if verb.upper() == "LPUSH" and rest.startswith(QUEUE + " "):
                        heard.append(json.loads(rest.partition(" ")[2]))

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        yield heard
        monitor.connection.disconnect()
        thread.join(5)


def test_09_a_flushed_message_server_loses_no_request(site: Site) -> None:
    """R10 of messages: what was on the queue is gone, the rows are not."""
    keys = []
    with site.messages() as server:
        for number in range(3):
            keys.append(site.open(f"flushed-{number}"))
            server.flushall()

    site.reaches("running", *keys)
    assert [site.placements(key) for key in keys] == [1] * 3
    site.end(*keys)


def test_10_without_a_message_server_requests_are_taken_pages_work_and_afterwards_all_is_worked_off(
    site: Site,
) -> None:
    with listening(site.robin) as page:
        page.watch("fleet")
        site.signal("messages", signal.SIGSTOP)
        keys = [submitted_soon(site, "hanging")]
        site.kill("messages")
        keys += [submitted_soon(site, f"gone-{number}") for number in range(2)]
        for path in PAGES:
            site.robin.get(path)
        assert "does not answer" in site.robin.get("/ready").data["messages"]
        stale = page.next(lambda event: event["what"] == "stale", patience=PATIENCE)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+\d\d:\d\d", stale.event["since"])
        with listening(site.robin) as late:
            late.watch("fleet")
            late.next(lambda event: event["what"] == "stale")
        looks = site.log("worker").count("Task scheduling.cycle")
        site.start_messages()
        page.next(lambda event: event["what"] == "missed", patience=PATIENCE)

    site.reaches("running", *keys)
    with site.messages() as server:
        assert server.llen(QUEUE) < 10
    assert site.log("worker").count("Task scheduling.cycle") - looks < 60, "All of it came at once."
    assert [site.placements(key) for key in keys] == [1] * 3
    site.end(*keys)


@pytest.mark.parametrize(
    ("breaks", "mends", "says"),
    [
        (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0"), "maxmemory"),
        (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE"), "read only replica"),
    ],
    ids=["full", "a replica"],
)
def test_11_a_message_server_that_takes_nothing_is_told_and_holds_up_nobody(
    site: Site, breaks: tuple[str, ...], mends: tuple[str, ...], says: str
) -> None:
    operator = operator_of(site)
    until(lambda: "ready." in site.log("worker"), "The worker", patience=PATIENCE)
    with site.messages() as server:
        server.execute_command(*breaks)
        key = submitted_soon(site, f"refused-{breaks[0].lower()}")
        for path in PAGES:
            site.robin.get(path)
        assert says in site.robin.get("/ready").data["messages"]
        until(lambda: says in operator.get("/fleet/").text, "The alert on the operator's page")
        assert "messages_do_not_work" in site.log("portal")
        assert site.lives("worker")
        server.execute_command(*mends)

    site.reaches("running", key)
    assert site.lives("worker")
    assert site.robin.get("/ready").data["messages"] == "ok"
    site.end(key)


def operator_of(site: Site) -> Visitor:
    operator = Visitor(site.demo.url, "omar")
    operator.log_in()
    return operator


def submitted_soon(site: Site, name: str) -> str:
    started = time.monotonic()
    key = site.open(name)
    assert time.monotonic() - started < PROMPT
    return key


def test_12_a_cluster_that_always_breaks_is_asked_less_and_less_and_told_and_the_other_goes_on(site: Site) -> None:
    """A workload that always breaks: tests/scheduling/reconcile/test_poison.py."""
    site.break_at("look", "poison", "raise")
    number = site.add_cluster("poison")
    try:
        rests = []
        while len(rests) < 3:
            rest, broken = site.table("SELECT rest_until, broken_looks FROM scheduling_cluster WHERE id = %s", number)[
                0
            ]
            if rest and rest not in rests:
                rests.append(rest)
                assert broken == len(rests) + 1
            time.sleep(0.05)
        key = site.open("beside-poison")
        site.reaches("running", key, patience=20)
        told = operator_of(site).get("/fleet/").text

        assert "poison" in told
        assert "KeyError" in told
        pauses = [(after - before).total_seconds() for before, after in pairwise(rests)]
        assert pauses == sorted(pauses)
        assert pauses[-1] > 1.5 * pauses[0]
        site.end(key)
        site.mend()
        site.table("UPDATE scheduling_cluster SET rest_until = NULL WHERE id = %s", number)
        until(lambda: healthy(site, number), "Its recovery", patience=PATIENCE)
    finally:
        site.table("UPDATE scheduling_cluster SET rest_until = now() + interval '1 hour' WHERE id = %s", number)
        site.drop_clusters("poison")


def healthy(site: Site, number: int) -> bool:
    row = site.table("SELECT trouble, broken_looks FROM scheduling_cluster WHERE id = %s", number)[0]
    return row == ("", 0)


def test_14_two_beats_ring_and_each_of_a_hundred_periods_is_served_once(site: Site) -> None:
    """R10. Two workers with a beat each, ten ticks a second."""
    site.kill("worker")
    quick = {"BERTH_TICK_SECONDS": "0.1", "BERTH_SAMPLE_SECONDS": "0.1"}
    for name in ("worker", "second"):
        site.start_worker(name, **quick)
    until(lambda: all("ready." in site.log(name) for name in ("worker", "second")), "Two", patience=PATIENCE)
    with overheard(site) as heard:
        before, began = len(ticks(site)), time.time()
        keys = [site.open(f"twice-{number}") for number in range(2)]
        site.reaches("running", *keys)
        until(lambda: len(ticks(site)) >= before + 100, "A hundred periods", patience=PATIENCE)
        served, passed = ticks(site)[before:], (time.time() - began) / 0.1
    rings = Counter(message["headers"]["task"] for message in heard)["scheduling.tick"]

    assert len(set(served)) == len(served) <= passed + 2
    assert rings > 1.3 * len(served), "Only one beat rang."
    assert [site.placements(key) for key in keys] == [1] * 2
    site.kill("worker")
    site.kill("second")
    site.start_worker()
    site.end(*keys)


def ticks(site: Site) -> list[str]:
    return [line for line in site.notes("turns") if line.startswith("scheduling.tick ")]


def test_15_what_a_newer_version_sends_is_understood_and_what_nobody_knows_loses_nothing(site: Site) -> None:
    """A rolling upgrade: messages with more in them, of tasks that do not exist yet, and no messages at all."""
    site.kill("worker")
    site.start_worker(BERTH_WATCH="False")
    until(lambda: "ready." in site.log("worker"), "The worker", patience=PATIENCE)
    number = int(site.value("SELECT min(id) FROM scheduling_cluster"))
    site.send("scheduling.cycle.v2", number, generation=7)
    site.send("scheduling.cycle", number, "urgent", reason="a newer portal says why", trace={"id": "x"})
    site.send("scheduling.tick", every=1.0)
    key = site.open("newer")

    site.reaches("running", key)
    log = site.log("worker")
    assert log.count("TypeError") == 0
    assert "scheduling.cycle.v2" in log, "What was dropped is told."
    assert site.lives("worker")
    site.end(key)
