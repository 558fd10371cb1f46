"""What others do in the cluster, and machines that are not as they should be; numbered as in docs/reliability.md.

What a real control plane can show too is in tests/controlplane/test_faults.py.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduling import services
from scheduling.cluster import names
from scheduling.cluster.api import MERGE
from scheduling.fleet import condition_of
from scheduling.models import CycleReport, Node, Placement, Transition
from scheduling.snapshot import node_fact
from tests.faults.deeds import Answer
from tests.faults.stand import sentences
from tests.faults.test_26_to_36_server import SLICE, WHOLE, looks, running, straight

BURST = "a100-40gb/whole"
CLUSTER_API = "/apis/cluster.x-k8s.io/v1beta2/namespaces/fleet/machinedeployments"
TAINTS = "capacity.cluster-autoscaler.kubernetes.io/taints"


def patch(road: Any, path: str, body: dict[str, Any]) -> None:
    straight(road, lambda door: door.ask("PATCH", path, body=body, content=MERGE))


def wished(harbour: Any, pool: str) -> int:
    harbour.pools[pool].refresh_from_db()
    return harbour.pools[pool].wished_nodes or 0


def fact_of(name: str) -> Any:
    return node_fact(Node.objects.get(name=name))


# 40


def test_40_a_refusal_that_may_pass_is_waited_out_with_a_reason_and_never_ends_the_workload(harbour, road):
    """For hours: few calls, few words, and the place is given to others meanwhile."""
    refusal = Answer(403, message="namespace team-vision is being terminated", causes=("NamespaceTerminating",))
    road.on(refusal, "PATCH", "statefulsets", times=None)
    row = harbour.open("notebook", WHOLE)
    looks(harbour, seconds=3_600, every=15)

    row = harbour.read(row)
    assert (row.phase, row.phase_reason) == ("waiting", "BackingOff") or row.phase == "placed"
    assert "is being terminated" in row.phase_text
    assert road.calls("PATCH", "statefulsets") <= 60, (
        "a minute of looks for each place, and pauses of eight minutes between"
    )
    assert Transition.objects.filter(workload=row).count() <= 50
    road.calm()
    looks(harbour, seconds=900, every=15)
    assert harbour.read(row).phase == "running"


# 41


def test_41_without_a_device_plugin_the_request_says_what_it_waits_for(harbour, road):
    harbour.cluster.faults.never_advertise("a100-burst")
    row = harbour.open("burst", BURST)
    looks(harbour, seconds=600, every=15)

    assert harbour.read(row).phase_reason == "WaitingForNode"
    assert "does not show its cards yet" in harbour.read(row).phase_text
    assert wished(harbour, "a100-burst") == 1


def test_41_without_cluster_api_the_request_says_why_no_node_comes(harbour, road):
    road.on(Answer(404, message="the server could not find the requested resource"), "GET", "cluster.x-k8s", times=None)
    row = harbour.open("burst", BURST)
    looks(harbour, seconds=60)

    row = harbour.read(row)
    assert row.phase_reason == "WaitingForCapacity"
    assert "how many nodes it has been asked for is not known, so it does not grow" in row.phase_text
    harbour.pools["a100-burst"].refresh_from_db()
    assert "does not define machinedeployments.cluster.x-k8s.io" in harbour.pools["a100-burst"].trouble


def test_41_a_layout_that_the_mig_manager_rejects_makes_the_node_unusable_and_is_told(harbour, road):
    """The cut is asked for by the plan; the node's own table does not know the layout."""
    spoil = {"nvidia.com/mig.config": "all-nonsense"}
    broken, *_ = [row.name for row in Node.objects.filter(pool__name="h100-mig")]
    patch(
        road,
        f"/api/v1/nodes/{broken}",
        {"metadata": {"labels": spoil, "annotations": {names.CUTTING_TO: "all-nonsense"}}},
    )
    looks(harbour, seconds=180)
    late = [harbour.open(f"late{number}", SLICE) for number in range(16)]
    looks(harbour, seconds=300)

    assert fact_of(broken).mig_state == "failed"
    assert not Placement.objects.filter(node=broken).exists()
    said = {text for report in CycleReport.objects.all() for text in report.problems}
    assert any("The MIG manager could not cut it to all-nonsense" in text for text in said)
    stand = {(row.phase, row.phase_reason) for row in map(harbour.read, late)}
    assert stand == {("running", "Running"), ("waiting", "WaitingForCapacity")}, "elsewhere there is room for some"


# 42


def test_42_a_node_that_has_fewer_cards_than_yesterday_gets_nothing_new_and_is_told(harbour, road):
    full = running(harbour, "full", WHOLE, count=8)
    node = Placement.objects.get(workload=full).node
    for card in range(3):
        harbour.cluster.faults.card_sick(node, card)
    looks(harbour, seconds=60)
    late = harbour.open("late", WHOLE)
    looks(harbour, seconds=60)

    fact = fact_of(node)
    assert (fact.cards, fact.sick_cards) == (8, 3)
    assert any("3 of 8" in problem.text or "3" in problem.text for problem in fact.problems), fact.problems
    assert harbour.read(full).phase == "running"
    assert not Placement.objects.filter(workload=late, node=node).exists()
    services.end_workload(harbour.read(full), by=harbour.robin, now=harbour.now)
    looks(harbour, seconds=180)
    assert Placement.objects.filter(node=node, ended_at=None).count() <= 5


# 43


def test_43_a_pod_that_lands_between_plan_and_cut_is_not_cut_under(harbour, road):
    """The plan cordons; only a look that still sees the node empty asks for the layout."""
    for number in range(12):
        harbour.open(f"s{number}", "h100-80gb/mig-1g.10gb")
    name = ""
    for _ in range(40):
        harbour.turn(seconds=5)
        harbour.cycle()
        cut = [row for row in Node.objects.all() if node_fact(row).cutting_to or marked(road, row.name)]
        if cut:
            name = cut[0].name
            break
    assert name, "a cut was planned"
    before = fact_of(name).mig_config
    guest = foreign_pod(name, fact_of(name))
    straight(road, lambda door: door.ask("POST", "/api/v1/namespaces/default/pods", body=guest))
    looks(harbour, seconds=300)

    assert fact_of(name).mig_state != "failed", "no cut was tried under a pod"
    assert fact_of(name).mig_config == before
    straight(road, lambda door: door.ask("DELETE", "/api/v1/namespaces/default/pods/guest"))
    looks(harbour, seconds=300)
    assert fact_of(name).mig_config != before, "and now it is cut"
    assert fact_of(name).mig_state == "success"


def marked(road: Any, name: str) -> bool:
    found: dict[str, Any] = {}
    straight(road, lambda door: found.update(json.loads(door.ask("GET", f"/api/v1/nodes/{name}"))))
    return names.CUTTING_TO in (found["metadata"].get("annotations") or {})


def test_43_a_slice_in_use_outlives_a_layout_that_somebody_else_asks_for(harbour, road):
    row = running(harbour, "slice", SLICE)
    name = Placement.objects.get(workload=row).node
    patch(road, f"/api/v1/nodes/{name}", {"metadata": {"labels": {"nvidia.com/mig.config": "all-disabled"}}})
    looks(harbour, seconds=300)

    assert harbour.read(row).phase == "running"
    assert Placement.objects.filter(workload=row).count() == 1
    late = harbour.open("late", SLICE)
    looks(harbour, seconds=60)
    assert not Placement.objects.filter(workload=late, node=name).exists()
    patch(road, f"/api/v1/nodes/{name}", {"metadata": {"labels": {"nvidia.com/mig.config": "all-balanced"}}})
    looks(harbour, seconds=120)


# 44


def test_44_new_nodes_that_are_all_tainted_are_no_runaway(harbour, road):
    """The provider gives what was asked for, and no pod of ours may land on it."""
    path = f"{CLUSTER_API}/a100-burst"
    taints = "nvidia.com/gpu=present:NoSchedule,example.org/not-for-you=yes:NoSchedule"
    patch(road, path, {"metadata": {"annotations": {TAINTS: taints}}})
    row = harbour.open("burst", BURST)
    most = 0
    for _ in range(80):
        looks(harbour, seconds=60, every=30)
        most = max(most, Node.objects.filter(pool__name="a100-burst").count(), wished(harbour, "a100-burst"))
    ordered = [text for report in CycleReport.objects.all() for text in report.actions if "resize pool a100" in text]

    assert most <= 2, "one node at a time is tried, while the last one leaves"
    assert len(ordered) <= 8, "and half an hour is given to each: one comes, one goes"
    assert harbour.read(row).phase == "waiting"
    assert any("its taint example.org/not-for-you keeps Berth's pods away" in text for text in sentences(row))

    patch(road, path, {"metadata": {"annotations": {TAINTS: "nvidia.com/gpu=present:NoSchedule"}}})
    looks(harbour, seconds=3_600, every=30)
    assert harbour.read(row).phase == "running"


def test_44_a_taint_that_somebody_takes_off_lets_the_waiting_start_there(harbour, road):
    taints = "nvidia.com/gpu=present:NoSchedule,example.org/starting=yes:NoSchedule"
    patch(road, f"{CLUSTER_API}/a100-burst", {"metadata": {"annotations": {TAINTS: taints}}})
    row = harbour.open("burst", BURST)
    looks(harbour, seconds=600, every=30)
    name = Node.objects.get(pool__name="a100-burst").name
    assert condition_of(fact_of(name))[0] != "fit"

    only = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    patch(road, f"/api/v1/nodes/{name}", {"spec": {"taints": only}})
    looks(harbour, seconds=180, every=15)

    assert harbour.read(row).phase == "running"
    assert Placement.objects.get(workload=row).node == name


# 45


@pytest.mark.parametrize("seconds", [0, 15, 30, 45, 60, 90], ids="{} s after the last one ended its idling".format)
def test_45_a_request_that_races_with_scale_to_zero_never_lands_on_a_draining_node(harbour, road, seconds):
    first = harbour.open("first", BURST)
    looks(harbour, seconds=480, every=15)
    assert harbour.read(first).phase == "running"
    services.end_workload(harbour.read(first), by=harbour.robin, now=harbour.now)
    until_withdrawn(harbour)
    looks(harbour, seconds=seconds, every=15)
    late = harbour.open("late", BURST)
    on_draining = False
    for _ in range(60):
        looks(harbour, seconds=15, every=15)
        placed = Placement.objects.filter(workload=late, ended_at=None).first()
        on_draining |= placed is not None and leaving(road, placed.node)

    assert not on_draining
    assert harbour.read(late).phase == "running"
    assert Placement.objects.filter(workload=late).count() == 1


def until_withdrawn(harbour: Any) -> None:
    for _ in range(200):
        looks(harbour, seconds=15, every=15)
        if any(node_fact(row).leaving for row in Node.objects.filter(pool__name="a100-burst")):
            return
    raise AssertionError("the empty node was never withdrawn")


def leaving(road: Any, name: str) -> bool:
    """Whether the provider is taking the node away, as the cluster says."""
    found: dict[str, Any] = {}
    straight(road, lambda door: found.update(json.loads(door.ask("GET", "/api/v1/nodes"))))
    nodes = {item["metadata"]["name"]: item for item in found["items"]}
    if name not in nodes:
        return True
    return names.DROPPED in (nodes[name]["metadata"].get("annotations") or {})


def foreign_pod(node: str, fact: Any) -> dict[str, Any]:
    """A pod of somebody else that goes past the scheduler, as a DaemonSet's may."""
    resource = fact.devices[0].resource
    container = {"name": "main", "image": "example.org/guest:1", "resources": {"limits": {resource: "1"}}}
    spec = {"nodeName": node, "containers": [container], "tolerations": [{"operator": "Exists"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "guest"}, "spec": spec}
