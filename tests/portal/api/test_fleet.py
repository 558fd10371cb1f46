"""The fleet as everybody sees it, and the operator's rules."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta as td
from typing import Any

import pytest

from scheduling.cluster.port import NOT_NOW
from scheduling.models import Cluster, CycleReport, Removal
from scheduling.planning.facts import Problem
from tests.portal.api.asking import Caller
from tests.scheduling.lingering import linger

Ask = Callable[[str], Caller]


def test_pools_and_nodes(world: Any, ask: Ask) -> None:
    world.workload("notebook", phase="running")

    body = ask("robin").get("/fleet/").body

    assert [pool["name"] for pool in body["pools"]] == ["a10g-burst", "h100-shared", "h100-train"]
    assert (body["pools"][0]["max_nodes"], body["pools"][0]["wished_nodes"]) == (5, 0)
    nodes = {node["name"]: node for node in body["nodes"]["results"]}
    assert set(nodes) == {"train-1", "shared-1"}
    (device,) = nodes["shared-1"]["devices"]
    assert (device["resource"], device["share"], device["isolation"]) == ("nvidia.com/mig-1g.10gb", "1/8", "hardware")
    assert (device["capacity"], device["allocatable"], device["held"]) == (14, 14, 1)
    assert nodes["train-1"]["devices"][0]["memory_mib"] is None, "nobody said"
    assert body["clusters"][0]["name"] == "harbour-1"


def test_what_others_hold_counts_as_held(world: Any, ask: Ask) -> None:
    node = world.node("shared-2", "h100-shared")
    node.foreign = {"theirs": {"nvidia.com/mig-1g.10gb": 3}, "others": {"nvidia.com/mig-1g.10gb": 2}}
    node.save()

    found = {node["name"]: node for node in ask("robin").get("/fleet/").body["nodes"]["results"]}

    assert found["shared-2"]["devices"][0]["held"] == 5


def test_problems_of_a_node(world: Any, ask: Ask) -> None:
    text = "<script>: allocatable is “abc”, which is no number."
    problem = Problem("shared-9", "status.allocatable", text)
    world.node("shared-9", "h100-shared", problems=(problem,), schedulable=False, sick_cards=1)

    (node,) = ask("robin").get("/fleet/", troubled="true").body["nodes"]["results"]

    assert (node["name"], node["sick_cards"], node["schedulable"]) == ("shared-9", 1, False)
    assert node["problems"] == [{"where": "shared-9", "field": "status.allocatable", "text": text}]


FOUND = {
    "pool=h100-train": 1,
    "pool=none": 0,
    "cluster=harbour-1": 2,
    "cluster=x": 0,
    "troubled=false": 2,
    "page_size=1": 2,
}


@pytest.mark.parametrize("query", FOUND)
def test_nodes_are_found(world: Any, ask: Ask, query: str) -> None:
    assert ask("robin").get(f"/fleet/?{query}").body["nodes"]["count"] == FOUND[query]


def test_the_operator_sees_what_the_cycle_did(world: Any, ask: Ask) -> None:
    for number in range(25):
        CycleReport.objects.create(cluster=world.cluster, at=world.now, actions=[f"did {number}"])

    reports = ask("omar").get("/fleet/").body["reports"]

    assert (len(reports), reports[0]["actions"], reports[0]["cluster"]) == (20, ["did 24"], "harbour-1")
    for who in ("robin", "dana", "farah"):
        assert ask(who).get("/fleet/").body["reports"] is None


def test_the_operator_changes_a_pool(world: Any, ask: Ask) -> None:
    pool = world.pools["h100-shared"]

    rules = {"min_nodes": 1, "max_nodes": 9, "idle_minutes": None, "empty_minutes": 30, "spread": True}
    answer = ask("omar").patch(f"/pools/{pool.pk}/", {**rules, "layouts": ["all-1g.10gb"]})

    pool.refresh_from_db()
    assert answer.status == 200
    assert {name: answer.body[name] for name in rules} == rules
    assert {name: getattr(pool, name) for name in rules} == rules
    assert pool.layouts == ["all-1g.10gb"]


@pytest.mark.parametrize(("who", "status"), [("", 401), ("robin", 403), ("dana", 403), ("farah", 403), ("omar", 200)])
def test_who_changes_a_pool(world: Any, ask: Ask, who: str, status: int) -> None:
    pool = world.pools["h100-shared"]

    assert ask(who).patch(f"/pools/{pool.pk}/", {"max_nodes": 7}).status == status

    pool.refresh_from_db()
    assert pool.max_nodes == (7 if status == 200 else 3)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "less than nothing": ({"min_nodes": -1}, "min_nodes"),
    "a number without end": ({"max_nodes": 10**30}, "max_nodes"),
    "more than anybody runs": ({"max_nodes": 1001}, "max_nodes"),
    "text": ({"max_nodes": "5"}, "max_nodes"),
    "nothing": ({"max_nodes": None}, "max_nodes"),
    "the least above the most": ({"min_nodes": 4}, "min_nodes"),
    "the most below the least": ({"min_nodes": 2, "max_nodes": 1}, "min_nodes"),
    "asleep at once": ({"idle_minutes": 0}, "idle_minutes"),
    "a word for true": ({"spread": "yes"}, "spread"),
    "a layout that is no list": ({"layouts": 7}, "layouts"),
    "a layout of a number": ({"layouts": [7]}, "layouts"),
    "a layout that no card can be cut to": ({"layouts": ["all-9g.90gb"]}, "layouts"),
    "a hostile layout": ({"layout": "../../x"}, "layout"),
    "a first layout that no card can be cut to": ({"layout": "all-4g.20gb"}, "layout"),
    "too many layouts": ({"layouts": ["all-1g.10gb"] * 33}, "layouts"),
    "a column of the cycle": ({"wished_nodes": 3}, "wished_nodes"),
    "a column of the set-up": ({"model": "x"}, "model"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule(world: Any, ask: Ask, name: str) -> None:
    body, field = WRONG[name]
    pool = world.pools["h100-shared"]

    answer = ask("omar").patch(f"/pools/{pool.pk}/", body)

    before = (pool.min_nodes, pool.max_nodes, pool.layouts, pool.layout, pool.idle_minutes)
    pool.refresh_from_db()
    assert (answer.status, answer.field) == (400, field)
    assert (pool.min_nodes, pool.max_nodes, pool.layouts, pool.layout, pool.idle_minutes) == before


@pytest.mark.parametrize("pk", [0, 99_999, 2**31, 2**63, 10**30])
def test_a_pool_that_is_not_there(ask: Ask, pk: int) -> None:
    answer = ask("omar").patch(f"/pools/{pk}/", {"max_nodes": 1})

    assert (answer.status, answer.text) == (404, "There is no such pool.")


def test_no_change_is_no_change(world: Any, ask: Ask) -> None:
    assert ask("omar").patch(f"/pools/{world.pools['h100-shared'].pk}/", {}).status == 200


def test_a_pod_that_does_not_go_is_told_with_what_can_be_done(world: Any, ask: Ask) -> None:
    row = world.workload("stuck", flavor="whole", phase="ended")
    linger(row, world.now - td(minutes=5))

    def of(name: str) -> Any:
        nodes = ask(name).get("/fleet/").body["nodes"]["results"]
        return next(node for node in nodes if node["name"] == "train-1")

    (told,) = of("robin")["lingering"]
    assert (told["workload"], told["pod"], told["units"]) == (str(row.pk), "stuck-0", {"nvidia.com/gpu": 1})
    assert told["words"].startswith("held by pod stuck-0, told to go at")
    assert of("robin")["devices"][0]["held"] == 1
    (hidden,) = of("sasha")["lingering"]
    assert (hidden["workload"], hidden["pod"], "stuck" in str(hidden)) == (None, "", False)


def test_the_operator_removes_it_by_force(world: Any, ask: Ask) -> None:
    row = world.workload("stuck", flavor="whole", phase="stopping")
    linger(row, world.now - td(minutes=5))
    address = f"/workloads/{row.pk}/force/"

    unsure = ask("omar").post(address, {})
    assert (unsure.status, unsure.field) == (400, "sure")
    assert ask("dana").post(address, {"sure": True}).status == 403
    answer = ask("omar").post(address, {"sure": True})

    assert answer.status == 200
    assert "Omar has had pod stuck-0 removed by force" in answer.body["phase_text"]
    assert Removal.objects.get().asked_by == world.omar


@pytest.mark.parametrize(
    ("who", "said"),
    [("omar", "The token file /run/secrets/berth holds no token."), ("robin", NOT_NOW), ("dana", NOT_NOW)],
)
def test_why_a_look_failed_is_told_to_the_operator_alone(world: Any, ask: Ask, who: str, said: str) -> None:
    Cluster.objects.update(trouble="The token file /run/secrets/berth holds no token.")

    answer = ask(who).get("/fleet/").body

    assert [cluster["trouble"] for cluster in answer["clusters"]] == [said]
    Cluster.objects.update(trouble="")
    assert [cluster["trouble"] for cluster in ask(who).get("/fleet/").body["clusters"]] == [""]


def test_what_others_hold_is_told_by_namespace_to_who_may_know(world: Any, ask: Ask) -> None:
    node = world.node("shared-3", "h100-shared", cuda=(13, 0))
    node.foreign = {"kube-system": {"nvidia.com/mig-1g.10gb": 2}, "team-vision": {"nvidia.com/mig-1g.10gb": 1}}
    node.save()

    def told(who: str) -> list[tuple[str, dict[str, int], str]]:
        nodes = {one["name"]: one for one in ask(who).get("/fleet/").body["nodes"]["results"]}
        assert nodes["shared-3"]["cuda"] == "13.0"
        return [(one["namespace"], one["units"], one["cards"]) for one in nodes["shared-3"]["foreign"]]

    two, one = {"nvidia.com/mig-1g.10gb": 2}, {"nvidia.com/mig-1g.10gb": 1}
    assert told("omar") == [("kube-system", two, "1/4"), ("team-vision", one, "1/8")]
    assert told("robin") == [("", two, "1/4"), ("team-vision", one, "1/8")]
