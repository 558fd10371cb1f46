"""Workers are killed, paused, doubled and stopped in the middle of people's work; nothing is lost or done twice.

The numbers are those of docs/reliability.md.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from portal.demo.visitor import until
from tests.faults.deeds import Hang, Hold
from tests.integration.site import PATIENCE, QUEUE, Site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
TOO_MANY = "this bell was one too many"


def test_01_a_worker_killed_before_its_create_call_loses_nothing(site: Site) -> None:
    """R3. The call never reached the cluster."""
    lost = Hang()
    site.proxy.on(lost, "PATCH", "statefulsets/first-")
    key = site.open("first")
    until(lambda: site.proxy.met()["hang"], "The call", patience=PATIENCE)
    site.kill("worker")
    lost.over.set()
    assert site.uids(key) == set()
    site.start_worker()

    site.reaches("running", key)
    assert len(site.uids(key)) == site.placements(key) == 1
    assert site.gaps(key) == []
    site.end(key)


def test_02_a_worker_killed_after_the_create_finds_its_object_again(site: Site) -> None:
    """R3. The object is there, and nobody has written down that it is: the next one adopts it."""
    lost = Hang(after_all=True)
    site.proxy.on(lost, "PATCH", "statefulsets/second-")
    key = site.open("second")
    until(lambda: site.uids(key), "The object", patience=PATIENCE)
    before = site.uids(key)
    site.kill("worker")
    lost.over.set()
    site.start_worker()

    site.reaches("running", key)
    assert site.uids(key) == before
    assert site.placements(key) == 1
    assert site.gaps(key) == []
    site.end(key)


def test_04_one_message_five_times_at_once_to_four_workers_has_one_effect(site: Site) -> None:
    site.kill("worker")
    held = Hold()
    site.proxy.on(held, "PATCH", "statefulsets/five-")
    key = site.open("five")
    workers = [f"w{number}" for number in range(4)]
    for name in workers:
        site.start_worker(name, beat=False, threads=2)
    until(lambda: asked(site, held), "The first look", patience=PATIENCE)  # no beat: the killed one's lease runs out
    until(lambda: waiting(site) == 0, "An empty queue")
    before = too_many(site, workers)
    for _ in range(5):
        site.send("scheduling.cycle", cluster_of(site))

    until(lambda: too_many(site, workers) - before >= 4, "Four no-ops", patience=PATIENCE)
    held.over.set()
    site.reaches("running", key)
    assert site.proxy.calls("PATCH", "statefulsets/five-") == 1
    assert (site.placements(key), len(site.uids(key)), site.gaps(key)) == (1, 1, [])
    site.start_worker()
    site.end(key)


def asked(site: Site, held: Hold) -> bool:
    site.send("scheduling.cycle", cluster_of(site))
    return held.met.wait(1)


def waiting(site: Site) -> int:
    with site.messages() as server:
        return int(server.llen(QUEUE))


def too_many(site: Site, workers: list[str]) -> int:
    return sum(site.log(name).count(TOO_MANY) for name in workers)


def test_05_a_create_that_arrives_after_the_release_changes_nothing(site: Site) -> None:
    """Messages carry no state, so they cannot be old. The call of a dead worker can: what it makes is removed."""
    late = Hold()
    site.proxy.on(late, "PATCH", "statefulsets/late-")
    key = site.open("late")
    assert late.met.wait(PATIENCE)
    site.kill("worker")
    site.robin.post(f"/api/v1/workloads/{key}/end/")
    site.start_worker()
    site.reaches("ended", key)
    assert site.uids(key) == set()
    late.over.set()
    until(lambda: site.proxy.calls("DELETE", "statefulsets/late-"), "Its removal", patience=PATIENCE)

    until(lambda: not site.uids(key) and not site.pods().count(key), "Nothing left", patience=PATIENCE)
    assert (site.phase(key), site.gaps(key)) == ("ended", [])


def test_06_a_task_longer_than_the_visibility_timeout_is_not_done_twice(site: Site) -> None:
    """R1. The timeout is two seconds here. A message is acknowledged before its work begins, so none comes back; one
    that is sent again all the same finds the lease taken."""
    held = Hold()
    site.proxy.on(held, "PATCH", "statefulsets/long-")
    key = site.open("long")
    assert held.met.wait(PATIENCE)
    before = site.log("worker").count(TOO_MANY)
    site.start_worker("another", beat=False)
    site.send("scheduling.cycle", cluster_of(site))
    until(lambda: site.log("worker").count(TOO_MANY) + site.log("another").count(TOO_MANY) > before, "A no-op")
    with_patience = time.monotonic() + 5
    while time.monotonic() < with_patience:
        assert site.proxy.calls("PATCH", "statefulsets/long-") == 1
        time.sleep(0.2)
    with site.messages() as server:
        assert server.hlen("berth:unacked") == 0
    held.over.set()

    site.reaches("running", key)
    assert site.proxy.calls("PATCH", "statefulsets/long-") == site.placements(key) == 1
    site.end(key)


def test_08_a_worker_paused_past_its_lease_makes_no_call_after_it_wakes(site: Site) -> None:
    """R1. It sleeps between two calls of one action; meanwhile another one finishes the work."""
    answered = Hold()
    site.proxy.on(answered, "PATCH", "statefulsets/paused-")
    key = site.open("paused")
    assert answered.met.wait(PATIENCE)
    site.signal("worker", signal.SIGSTOP)
    answered.over.set()
    site.start_worker("stand-in")
    site.reaches("running", key)
    since, versions = len(site.proxy.history), site.value(VERSION, key)
    site.signal("worker", signal.SIGCONT)
    until(lambda: "another worker took over" in site.log("worker"), "Its insight", patience=PATIENCE)

    assert site.writes(since) == []
    assert site.value(VERSION, key) == versions
    assert (site.placements(key), len(site.uids(key)), site.gaps(key)) == (1, 1, [])
    site.kill("stand-in")
    site.end(key)


GOING = "Warm shutdown"
VERSION = "SELECT version FROM scheduling_workload WHERE id = %s"


def test_13_a_worker_told_to_end_with_twenty_tasks_running_finishes_them(site: Site) -> None:
    """Twenty looks, held in their middle; not by hanging servers, of which a worker asks but a few at once."""
    site.kill("worker")
    with clusters(site, 20) as added:
        site.break_at("look", "many-*", "wait")
        site.start_worker(threads=24, BERTH_DATABASE_POOL="60", BERTH_WATCH="False")
        for number in added:
            site.send("scheduling.cycle", number)
        until(lambda: running(site, added) == 20, "Twenty at once", patience=PATIENCE)
        site.signal_only("worker", signal.SIGTERM)
        until(lambda: GOING in site.log("worker"), "Its word", patience=PATIENCE)
        assert (site.lives("worker"), running(site, added)) == (True, 20)
        site.mend()
        site.child("worker").process.wait(20)

        assert site.child("worker").process.returncode == 0
        assert running(site, added) == 0
        assert len(re.findall(r"Task scheduling\.cycle\[[^]]*\] succeeded", site.log("worker"))) >= 20
        site.forget("worker")
        site.start_worker(BERTH_WATCH="False")  # for looks that came too late to count, on a busy machine
        until(lambda: all(row[0] for row in site.table(SEEN)), "A look at each", patience=PATIENCE)


def test_13_one_that_does_not_finish_in_its_grace_loses_nothing_either(site: Site) -> None:
    lost = Hang()
    site.proxy.on(lost, "PATCH", "statefulsets/graceless-")
    key = site.open("graceless")
    until(lambda: site.proxy.met()["hang"], "The call", patience=PATIENCE)
    site.signal_only("worker", signal.SIGTERM)
    until(lambda: GOING in site.log("worker"), "Its word", patience=PATIENCE)
    site.kill("worker")
    lost.over.set()
    site.start_worker()

    site.reaches("running", key)
    assert (site.placements(key), len(site.uids(key)), site.gaps(key)) == (1, 1, [])
    site.end(key)


SEEN = "SELECT seen_at FROM scheduling_cluster WHERE name LIKE 'many-%%'"


@contextmanager
def clusters(site: Site, many: int) -> Iterator[list[int]]:
    """So many rows of clusters that the same server answers for; they are taken out again at the end."""
    made = [site.add_cluster(f"many-{number}") for number in range(many)]
    try:
        yield made
    finally:
        site.kill("worker") if site.has("worker") else None
        site.drop_clusters("many-%")


def running(site: Site, added: list[int]) -> int:
    query = "SELECT count(*) FROM scheduling_cluster WHERE id = ANY(%s) AND lease_until IS NOT NULL"
    return int(site.value(query, added))


def cluster_of(site: Site) -> int:
    return int(site.value("SELECT min(id) FROM scheduling_cluster"))


def test_16_a_workload_that_kills_its_workers_is_parked_and_the_next_worker_lives(site: Site) -> None:
    """Our pool is threads, so a process that the kernel kills takes all its tasks along; the next one goes on."""
    site.break_at("put", "poison", "die")
    poison = site.open("poison")
    sound = [site.open(f"sound-{number}") for number in range(2)]
    deaths = 0
    site.pace(600)
    began = time.monotonic()
    while site.phase(poison) != "ended":
        assert time.monotonic() - began < 2 * PATIENCE
        if not site.lives("worker"):
            deaths += 1
            site.forget("worker")
            site.start_worker()
        time.sleep(0.1)

    site.reaches("running", *sound)
    assert 2 <= deaths <= 6
    assert "workers in a row died while they put it" in str(site.value(WORDS, poison))
    assert site.lives("worker")
    site.end(*sound)


def test_16_a_worker_that_gets_no_more_memory_says_so_and_goes_on(site: Site) -> None:
    site.break_at("put", "greedy", "eat")
    greedy, sound = site.open("greedy"), site.open("modest")
    site.reaches("running", sound)
    until(lambda: site.phase(greedy) == "waiting" and "MemoryError" in str(site.value(WORDS, greedy)), "Its words")
    site.mend()

    site.pace(600)
    site.reaches("running", greedy)
    assert site.lives("worker")
    site.end(greedy, sound)


WORDS = "SELECT phase_text FROM scheduling_workload WHERE id = %s"
