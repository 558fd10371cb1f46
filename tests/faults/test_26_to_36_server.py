"""Faults of the API server, on the whole of Berth: cycle, adapter and tables; numbered as in docs/reliability.md.

Time is turned by hand; the circuit of each connection runs on the same clock.
"""

from __future__ import annotations

from datetime import timedelta as td
from typing import Any

import pytest

from scheduling.cluster.simulated import ManualClock, SimulatedCluster, fleet_documents
from scheduling.handover import complete_until, hand_over
from scheduling.models import Cluster, Placement, Transition
from scheduling.reconcile.cycle import look_after
from tenants.billing.models import Charge
from tests.faults.deeds import Answer, Hang, Lose, Reset
from tests.faults.proxy import Proxy
from tests.faults.stand import sentences

SLICE, WHOLE = "h100-80gb/mig-1g.10gb", "h100-80gb/whole"


def look(harbour: Any) -> None:
    """As the worker does it."""
    look_after(harbour.world.cluster.pk)


def looks(harbour: Any, *, seconds: int, every: int = 5) -> None:
    for _ in range(seconds // every):
        harbour.turn(seconds=every)
        look(harbour)


def trouble(harbour: Any) -> str:
    harbour.world.cluster.refresh_from_db()
    return harbour.world.cluster.trouble


def running(harbour: Any, name: str = "notebook", flavor: str = WHOLE, **facts: Any) -> Any:
    row = harbour.open(name, flavor, **facts)
    looks(harbour, seconds=120)
    assert harbour.read(row).phase == "running", harbour.read(row).phase_text
    return row


# 26


def test_26_retry_after_is_kept_and_other_clusters_go_on(harbour, road):
    other = SimulatedCluster(fleet_documents(), clock=ManualClock(harbour.now))
    with other.serve() as url:
        second = Cluster.objects.create(name="harbour-2", server=url, created_at=harbour.now)
        road.on(Answer(429, retry_after=7), path="/nodes$")
        look(harbour)
        asked = len(road.history)
        for _ in range(6):
            harbour.turn(seconds=1)
            look(harbour)
            look_after(second.pk)
        second.refresh_from_db()

        assert len(road.history) == asked, "nobody calls before the seven seconds are over"
        assert second.seen_at == harbour.now
        assert "It asked not to be called before" in trouble(harbour)

        harbour.turn(seconds=1.5)
        look(harbour)
        assert trouble(harbour) == ""


def test_26_in_the_middle_of_a_plan_the_rest_waits_and_nothing_is_lost(harbour, road):
    rows = [harbour.open(f"w{number}", SLICE) for number in range(3)]
    road.on(Answer(503, retry_after=3), "PATCH", "statefulsets", spared=1)
    look(harbour)
    asked = len(road.history)
    look(harbour)
    assert len(road.history) == asked

    looks(harbour, seconds=180)
    assert [harbour.read(row).phase for row in rows] == ["running"] * 3
    assert [harbour.read(row).failures for row in rows] == [0] * 3


# 27


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3], ids="seed {}".format)
def test_27_bursts_of_500_and_503_converge_with_at_most_three_times_the_calls(harbour, road):
    def minutes(name: str, *, faults: bool) -> int:
        rows = [harbour.open(f"{name}{number}", SLICE) for number in range(3)]
        begun = len(road.history)
        if faults:
            road.on(Answer(500), times=None, chance=0.15)
            road.on(Answer(503), times=None, chance=0.18)  # of what is left: 30 % in all
        looks(harbour, seconds=60)
        road.calm()
        looks(harbour, seconds=120)
        assert [harbour.read(row).phase for row in rows] == ["running"] * 3
        return len(road.history) - begun

    quiet = minutes("quiet", faults=False)
    stormy = minutes("stormy", faults=True)

    assert road.met()["answer"] > 5
    assert stormy <= 3 * quiet


# 28


@pytest.mark.parametrize("deed", [Lose(), Reset(after=1)], ids=["lost", "broken off"])
@pytest.mark.parametrize("kind", ["workspace", "job"])
def test_28_a_reply_that_never_came_makes_one_object(harbour, road, deed, kind):
    road.on(deed, "POST" if kind == "job" else "PATCH", "statefulsets|jobs", times=2)  # a job is created
    row = harbour.open("notebook", WHOLE, kind=kind, command="sleep 100000")
    looks(harbour, seconds=180)

    assert road.met()[type(deed).__name__.lower()] >= 1
    assert harbour.read(row).phase == "running"
    assert Placement.objects.filter(workload=row).count() == 1
    assert len(harbour.cluster.world.store.all({"workspace": "statefulsets", "job": "jobs"}[kind])) == 1


# 30


@pytest.mark.parametrize("verb", ["PATCH", "DELETE"])
def test_30_a_conflict_is_looked_at_again_and_done_again(harbour, road, verb):
    road.on(Answer(409, message="the object has been modified"), verb, times=3)
    row = running(harbour)
    from scheduling import services

    services.end_workload(harbour.read(row), by=harbour.robin, now=harbour.now)
    looks(harbour, seconds=180)

    assert harbour.read(row).phase == "ended"
    assert road.met()["answer"] == 3


# 34


def test_34_a_token_that_nobody_takes_makes_the_cluster_unreachable_without_a_hot_loop(harbour, road):
    row = running(harbour)
    road.on(Answer(401, message="Unauthorized", reason="Unauthorized"), times=None)
    asked = len(road.history)
    looks(harbour, seconds=600)

    assert "401" in trouble(harbour)
    assert len(road.history) - asked <= 30, "120 looks in ten minutes, and hardly any of them calls"
    assert harbour.read(row).phase == "running"
    road.calm()
    looks(harbour, seconds=90)
    assert trouble(harbour) == ""


def test_34_a_right_that_is_missing_is_told_to_the_operator_and_nothing_is_half_done(harbour, road):
    told = "pods is forbidden: User berth cannot list resource pods"
    row = running(harbour)
    before = Transition.objects.filter(workload=row).count()
    road.on(Answer(403, message=told), "GET", "/pods$", times=None)
    writes = len(road.history)
    looks(harbour, seconds=300)

    assert told in trouble(harbour)
    assert road.writes(writes) == []
    assert Transition.objects.filter(workload=row).count() == before


def test_34_a_forbidden_write_is_tried_five_times_with_growing_pauses_and_then_ends_in_words(harbour, road):
    road.on(Answer(403, message="statefulsets is forbidden"), "PATCH", "statefulsets", times=None)
    row = harbour.open("notebook", WHOLE)
    looks(harbour, seconds=7_200, every=30)

    assert road.calls("PATCH", "statefulsets") == 5
    assert (harbour.read(row).phase, harbour.read(row).phase_reason) == ("ended", "Failed")
    assert "statefulsets is forbidden" in harbour.read(row).phase_text


# 35: the circuit; with real processes in tests/integration/


def test_35_a_cluster_that_hangs_is_called_less_and_less(harbour, road, monkeypatch):
    monkeypatch.setattr("scheduling.cluster.client.READ_SECONDS", 0.05)
    monkeypatch.setattr("scheduling.cluster.circuit.TRIAL_PATIENCE", 0.05)
    row = running(harbour)
    road.on(Hang(), times=None)
    asked = len(road.history)
    looks(harbour, seconds=600)
    look(harbour)  # what a trial came to is told by the next look, which makes none

    assert len(road.history) - asked <= 20
    assert "does not answer" in trouble(harbour)
    assert "It is asked again at" in trouble(harbour)
    assert harbour.world.cluster.seen_at < harbour.now - td(minutes=9), "the page says when it was last seen"
    assert harbour.read(row).phase == "running"
    road.calm()
    looks(harbour, seconds=90)
    assert trouble(harbour) == ""


# 36


@pytest.mark.parametrize("minutes", [2, 60])
def test_36_what_ran_on_through_an_outage_is_not_evicted_and_is_charged_once(harbour, road, minutes):
    harbour.publish({})
    row = running(harbour)
    began = Placement.objects.get(workload=row).running_at
    seen = harbour.now
    road.on(Reset(), times=None)
    looks(harbour, seconds=minutes * 60, every=20)
    harbour.world.cluster.refresh_from_db()
    assert complete_until(harbour.world.cluster, harbour.now) <= seen, "hours that nobody saw are held back"
    hand_over(harbour.now)
    assert card_seconds(row) == 0

    road.calm()
    looks(harbour, seconds=90)
    assert Placement.objects.filter(workload=row).count() == 1
    assert [after for after in phases(row) if after == "running"] == ["running"]

    harbour.turn(hours=2)
    look(harbour)
    hand_over(harbour.now)
    hand_over(harbour.now)
    harbour.world.cluster.refresh_from_db()
    until = complete_until(harbour.world.cluster, harbour.now)
    assert card_seconds(row) == (until - began).total_seconds()


def test_36_what_ended_during_an_outage_is_charged_until_it_was_last_seen(harbour, road):
    row = running(harbour)
    seen = harbour.now
    road.on(Reset(), times=None)
    path = f"/apis/apps/v1/namespaces/team-vision/statefulsets/{name_of(harbour, row)}"
    harbour.turn(minutes=20)
    straight(road, lambda door: door.ask("DELETE", path, body={"propagationPolicy": "Foreground"}))
    looks(harbour, seconds=3_600, every=60)
    road.calm()
    looks(harbour, seconds=90)

    placement = Placement.objects.get(workload=row)
    assert harbour.read(row).phase == "ended"
    assert placement.ended_at == seen
    assert "Nobody saw when" in sentences(harbour.read(row))[-1]


def test_36_a_node_that_went_during_an_outage_is_not_paid_for(harbour, road):
    row = running(harbour, "burst", "a10g-24gb")
    seen, first = harbour.now, Placement.objects.get(workload=row)
    road.on(Reset(), times=None)
    harbour.turn(minutes=20)
    harbour.cluster.faults.node_vanish(first.node)
    looks(harbour, seconds=3_600, every=60)
    road.calm()
    looks(harbour, seconds=600)

    first.refresh_from_db()
    assert first.ended_at == seen
    assert any("Nobody saw when" in text for text in sentences(harbour.read(row)))


def card_seconds(row: Any) -> float:
    return float(sum(charge.seconds * charge.share for charge in Charge.objects.filter(workload_id=row.pk, kind="use")))


def phases(row: Any) -> list[str]:
    seen = list(Transition.objects.filter(workload=row).order_by("version").values_list("after", flat=True))
    return [after for index, after in enumerate(seen) if index == 0 or seen[index - 1] != after]


def name_of(harbour: Any, row: Any) -> str:
    from scheduling.reconcile import launch

    return launch.ref_of(harbour.read(row)).name


def straight(road: Proxy, act: Any) -> None:
    """What somebody else does in the cluster, past the proxy."""
    from scheduling.cluster.client import Connection, Session

    door = Session(Connection(road.server))
    try:
        act(door)
    finally:
        door.close()
