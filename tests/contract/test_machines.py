"""Nodes: marked, cut, bought, given back, and what their exporters print."""

from dataclasses import replace
from fractions import Fraction as F

import pytest

from scheduling.cluster.api import MERGE, path_of
from scheduling.planning.facts import NodeFact
from scheduling.telemetry.dcgm import read
from tests.contract.conftest import Rig, refusal_of
from tests.contract.launches import NAME, NOTEBOOK, ROW, put_all

CUTTING, LEAVING = "berth.portal/cutting-to", "berth.portal/leaving"


def devices(node: NodeFact) -> list[tuple[str, F, int]]:
    return [(device.resource, device.share, device.allocatable) for device in node.devices]


# Looking


def test_a_look_shows_the_fleet(cluster: Rig) -> None:
    seen = cluster.look()

    assert (seen.complete, seen.problems) == (True, ())
    assert {node.pool for node in seen.nodes} == {"h100-train", "h100-mig", "a10g-shared"}
    assert all(node.known and node.ready and node.schedulable and not node.problems for node in seen.nodes)
    assert [(size.pool, size.wished, size.ready) for size in seen.sizes] == [
        ("a100-burst", 0, 0),
        ("a10g-shared", 1, 1),
        ("h100-mig", 2, 2),
        ("h100-train", 1, 1),
    ]
    assert all(node.machine for node in seen.nodes)


def test_s10_a_sick_card_is_seen(cluster: Rig) -> None:
    name = cluster.nodes_of("h100-train")[0].name

    cluster.faults.card_sick(name, card=2)

    node = cluster.node(name)
    assert (node.cards, node.sick_cards, node.devices[0].allocatable) == (8, 1, 7)


def test_a_silent_kubelet_is_seen(cluster: Rig) -> None:
    name = cluster.nodes_of("h100-train")[0].name

    cluster.faults.node_not_ready(name)

    seen = cluster.until(lambda look: not all(node.ready for node in look.nodes))
    (node,) = (node for node in seen.nodes if not node.ready)
    assert (node.name, node.schedulable, node.cards) == (name, False, 8)
    assert node.not_ready_since is not None


# Marking


def test_a_cordoned_node_is_marked_and_opened_again(cluster: Rig) -> None:
    name = cluster.nodes_of("h100-mig")[0].name

    for _ in range(2):
        cluster.port.cordon(name, on=True, marks={LEAVING: "yes"})
    node = cluster.node(name)
    assert (node.schedulable, node.leaving, node.problems) == (False, True, ())

    for _ in range(2):
        cluster.port.cordon(name, on=False, marks={LEAVING: None, CUTTING: None})
    cluster.until(lambda _: cluster.node(name).schedulable)
    node = cluster.node(name)
    assert (node.schedulable, node.leaving, node.cutting_to) == (True, False, "")


def test_somebody_elses_cordon_stays(cluster: Rig) -> None:
    name = cluster.nodes_of("h100-mig")[0].name
    cluster.door.ask("PATCH", path_of("Node", "", name), body={"spec": {"unschedulable": True}}, content=MERGE)

    cluster.port.cordon(name, on=False, marks={LEAVING: None})

    node = cluster.node(name)
    assert node.schedulable is False
    assert [problem.field for problem in node.problems] == ["spec.unschedulable"]


def test_only_our_own_marks_are_written(cluster: Rig) -> None:
    with pytest.raises(ValueError, match=r"nvidia.com/mig.config is not one of our own marks"):
        cluster.port.cordon("any", on=True, marks={"nvidia.com/mig.config": "all-disabled"})


def test_a_node_that_is_gone_cannot_be_marked(cluster: Rig) -> None:
    assert refusal_of(lambda: cluster.port.cordon("nobody", on=True, marks={})).status == 404


# Cutting


def test_a_cut_changes_what_the_node_offers(cluster: Rig) -> None:
    name = next(node.name for node in cluster.nodes_of("h100-mig") if node.sharing == "whole")
    cluster.port.cordon(name, on=True, marks={CUTTING: "all-1g.10gb"})

    for _ in range(2):
        cluster.port.cut(name, "all-1g.10gb")

    asked = cluster.node(name)
    assert (asked.mig_config, asked.cutting_to, asked.schedulable) == ("all-1g.10gb", "all-1g.10gb", False)
    cluster.until(lambda _: cluster.node(name).mig_state == "pending")
    changing = cluster.node(name)
    assert (changing.cards, changing.sick_cards, changing.problems) == (2, 0, ())
    cluster.until(lambda _: cluster.node(name).mig_state == "success")
    done = cluster.node(name)
    assert devices(done) == [("nvidia.com/mig-1g.10gb", F(1, 8), 14)]
    assert (done.cards, done.cutting_to) == (2, "all-1g.10gb")
    cluster.port.cordon(name, on=False, marks={CUTTING: None})
    cluster.until(lambda _: cluster.node(name).schedulable)  # the taint goes a moment after the cordon


def test_a_cut_that_fails_is_said_and_the_node_is_not_used(cluster: Rig) -> None:
    name = next(node.name for node in cluster.nodes_of("h100-mig") if node.sharing == "whole")

    cluster.port.cut(name, "all-9g.99gb")

    cluster.until(lambda _: cluster.node(name).mig_state == "failed")
    node = cluster.node(name)
    assert node.schedulable is False
    assert "its last cut failed" in node.problems[-1].text


# Buying and giving back


def test_a_pool_wakes_from_zero(cluster: Rig) -> None:
    for _ in range(2):
        cluster.port.resize("a100-burst", 1, ())

    assert [size.wished for size in cluster.look().sizes if size.pool == "a100-burst"] == [1]
    cluster.until(lambda _: cluster.nodes_of("a100-burst"))
    fresh = cluster.nodes_of("a100-burst")[0]
    assert (fresh.ready, fresh.devices) == (True, ())  # ready before its cards are advertised
    cluster.until(lambda _: cluster.nodes_of("a100-burst")[0].devices)
    assert cluster.nodes_of("a100-burst")[0].model.startswith("a100")
    assert len(cluster.nodes_of("a100-burst")) == 1


def test_the_named_node_goes_first(cluster: Rig) -> None:
    keep, drop = (node.name for node in cluster.nodes_of("h100-mig"))

    for _ in range(2):
        cluster.port.resize("h100-mig", 1, [drop])

    assert cluster.node(drop).dropped
    cluster.until(lambda _: len(cluster.nodes_of("h100-mig")) == 1)
    assert [node.name for node in cluster.nodes_of("h100-mig")] == [keep]
    cluster.port.resize("h100-mig", 1, [drop])  # it is long gone: nothing more happens
    assert [size.wished for size in cluster.look().sizes if size.pool == "h100-mig"] == [1]


def test_a_provider_without_stock_is_heard(cluster: Rig) -> None:
    cluster.faults.stockout("a100-burst", "no capacity in zone")
    cluster.port.resize("a100-burst", 1, ())

    seen = cluster.until(lambda look: any(size.message for size in look.sizes))

    assert [(size.pool, size.wished, size.ready) for size in seen.sizes if size.message] == [("a100-burst", 1, 0)]
    assert "no capacity in zone" in next(size.message for size in seen.sizes if size.message)


def test_a_pool_that_no_provider_knows_cannot_be_resized(cluster: Rig) -> None:
    refusal = refusal_of(lambda: cluster.port.resize("by-hand", 3, ()))

    assert refusal.retry is False
    assert str(refusal) == "Pool by-hand has no MachineDeployment of Cluster API; it needs one to be resized."


# Metrics


def test_exporters_name_the_pods_of_their_nodes(cluster: Rig) -> None:
    name = cluster.nodes_of("h100-train")[0].name
    put_all(cluster.port, replace(NOTEBOOK, node=name))
    cluster.until(lambda look: any(pod.workload == ROW and pod.ready for pod in look.pods))

    (exposition,) = cluster.port.metrics([name])

    reading = read(exposition.text or "")
    (sample,) = (sample for sample in reading.samples if sample.pod)
    assert (exposition.node, exposition.problem) == (name, "")
    assert (sample.namespace, sample.pod, sample.host) == (NOTEBOOK.namespace, f"{NAME}-0", name.lower())
    assert sample.busy is not None
    assert sample.memory_total_mib is not None
    assert (len(reading.cards), reading.dropped) == (8, ())


def test_a_node_that_fails_is_a_problem_and_not_an_exception(cluster: Rig) -> None:
    name = next(node.name for node in cluster.nodes_of("h100-mig") if node.sharing == "whole")
    fine = cluster.nodes_of("h100-train")[0].name
    cluster.port.cut(name, "all-1g.10gb")
    cluster.until(lambda _: cluster.port.metrics([name])[0].text is None)
    assert cluster.node(name).mig_state == "pending"

    found = cluster.port.metrics([name, "nobody", fine, fine])

    assert [(exposition.node, exposition.text is None, bool(exposition.problem)) for exposition in found] == [
        (name, True, True),
        ("nobody", True, True),
        (fine, False, False),
    ]


def test_no_nodes_are_no_calls(cluster: Rig) -> None:
    assert cluster.port.metrics([]) == []
