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


def test_a_look_shows_the_fleet(simulation: Rig) -> None:
    seen = simulation.look()

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


def test_s10_a_sick_card_is_seen(simulation: Rig) -> None:
    name = simulation.nodes_of("h100-train")[0].name
    assert simulation.simulated is not None

    simulation.simulated.faults.card_sick(name, card=2)

    node = simulation.node(name)
    assert (node.cards, node.sick_cards, node.devices[0].allocatable) == (8, 1, 7)


def test_a_silent_kubelet_is_seen(simulation: Rig) -> None:
    name = simulation.nodes_of("h100-train")[0].name
    assert simulation.simulated is not None

    simulation.simulated.faults.node_not_ready(name)

    seen = simulation.until(lambda look: not all(node.ready for node in look.nodes))
    (node,) = (node for node in seen.nodes if not node.ready)
    assert (node.name, node.schedulable, node.cards) == (name, False, 8)
    assert node.not_ready_since is not None


# Marking


def test_a_cordoned_node_is_marked_and_opened_again(simulation: Rig) -> None:
    name = simulation.nodes_of("h100-mig")[0].name

    for _ in range(2):
        simulation.port.cordon(name, on=True, marks={LEAVING: "yes"})
    node = simulation.node(name)
    assert (node.schedulable, node.leaving, node.problems) == (False, True, ())

    for _ in range(2):
        simulation.port.cordon(name, on=False, marks={LEAVING: None, CUTTING: None})
    node = simulation.node(name)
    assert (node.schedulable, node.leaving, node.cutting_to) == (True, False, "")


def test_somebody_elses_cordon_stays(simulation: Rig) -> None:
    name = simulation.nodes_of("h100-mig")[0].name
    simulation.door.ask("PATCH", path_of("Node", "", name), body={"spec": {"unschedulable": True}}, content=MERGE)

    simulation.port.cordon(name, on=False, marks={LEAVING: None})

    node = simulation.node(name)
    assert node.schedulable is False
    assert [problem.field for problem in node.problems] == ["spec.unschedulable"]


def test_only_our_own_marks_are_written(simulation: Rig) -> None:
    with pytest.raises(ValueError, match=r"nvidia.com/mig.config is not one of our own marks"):
        simulation.port.cordon("any", on=True, marks={"nvidia.com/mig.config": "all-disabled"})


def test_a_node_that_is_gone_cannot_be_marked(simulation: Rig) -> None:
    assert refusal_of(lambda: simulation.port.cordon("nobody", on=True, marks={})).status == 404


# Cutting


def test_a_cut_changes_what_the_node_offers(simulation: Rig) -> None:
    name = next(node.name for node in simulation.nodes_of("h100-mig") if node.sharing == "whole")
    simulation.port.cordon(name, on=True, marks={CUTTING: "all-1g.10gb"})

    for _ in range(2):
        simulation.port.cut(name, "all-1g.10gb")

    asked = simulation.node(name)
    assert (asked.mig_config, asked.cutting_to, asked.schedulable) == ("all-1g.10gb", "all-1g.10gb", False)
    simulation.until(lambda _: simulation.node(name).mig_state == "pending")
    changing = simulation.node(name)
    assert (changing.cards, changing.sick_cards, changing.problems) == (2, 0, ())
    simulation.until(lambda _: simulation.node(name).mig_state == "success")
    done = simulation.node(name)
    assert devices(done) == [("nvidia.com/mig-1g.10gb", F(1, 8), 14)]
    assert (done.cards, done.cutting_to) == (2, "all-1g.10gb")
    simulation.port.cordon(name, on=False, marks={CUTTING: None})
    assert simulation.node(name).schedulable


def test_a_cut_that_fails_is_said_and_the_node_is_not_used(simulation: Rig) -> None:
    name = next(node.name for node in simulation.nodes_of("h100-mig") if node.sharing == "whole")

    simulation.port.cut(name, "all-9g.99gb")

    simulation.until(lambda _: simulation.node(name).mig_state == "failed")
    node = simulation.node(name)
    assert node.schedulable is False
    assert "its last cut failed" in node.problems[-1].text


# Buying and giving back


def test_a_pool_wakes_from_zero(simulation: Rig) -> None:
    for _ in range(2):
        simulation.port.resize("a100-burst", 1, ())

    assert [size.wished for size in simulation.look().sizes if size.pool == "a100-burst"] == [1]
    simulation.until(lambda _: simulation.nodes_of("a100-burst"))
    fresh = simulation.nodes_of("a100-burst")[0]
    assert (fresh.ready, fresh.devices) == (True, ())  # ready before its cards are advertised
    simulation.until(lambda _: simulation.nodes_of("a100-burst")[0].devices)
    assert simulation.nodes_of("a100-burst")[0].model.startswith("a100")
    assert len(simulation.nodes_of("a100-burst")) == 1


def test_the_named_node_goes_first(simulation: Rig) -> None:
    keep, drop = (node.name for node in simulation.nodes_of("h100-mig"))

    for _ in range(2):
        simulation.port.resize("h100-mig", 1, [drop])

    assert simulation.node(drop).dropped
    simulation.until(lambda _: len(simulation.nodes_of("h100-mig")) == 1)
    assert [node.name for node in simulation.nodes_of("h100-mig")] == [keep]
    simulation.port.resize("h100-mig", 1, [drop])  # it is long gone: nothing more happens
    assert [size.wished for size in simulation.look().sizes if size.pool == "h100-mig"] == [1]


def test_a_provider_without_stock_is_heard(simulation: Rig) -> None:
    assert simulation.simulated is not None
    simulation.simulated.faults.stockout("a100-burst", "no capacity in zone")
    simulation.port.resize("a100-burst", 1, ())

    seen = simulation.until(lambda look: any(size.message for size in look.sizes))

    assert [(size.pool, size.wished, size.ready) for size in seen.sizes if size.message] == [("a100-burst", 1, 0)]
    assert "no capacity in zone" in next(size.message for size in seen.sizes if size.message)


def test_a_pool_that_no_provider_knows_cannot_be_resized(simulation: Rig) -> None:
    refusal = refusal_of(lambda: simulation.port.resize("by-hand", 3, ()))

    assert refusal.retry is False
    assert str(refusal) == "Pool by-hand has no MachineDeployment of Cluster API; it needs one to be resized."


# Metrics


def test_exporters_name_the_pods_of_their_nodes(simulation: Rig) -> None:
    name = simulation.nodes_of("h100-train")[0].name
    put_all(simulation.port, replace(NOTEBOOK, node=name))
    simulation.until(lambda look: any(pod.workload == ROW and pod.ready for pod in look.pods))

    (exposition,) = simulation.port.metrics([name])

    reading = read(exposition.text or "")
    (sample,) = (sample for sample in reading.samples if sample.pod)
    assert (exposition.node, exposition.problem) == (name, "")
    assert (sample.namespace, sample.pod, sample.host) == (NOTEBOOK.namespace, f"{NAME}-0", name.lower())
    assert sample.busy is not None
    assert sample.memory_total_mib is not None
    assert (len(reading.cards), reading.dropped) == (8, ())


def test_a_node_that_fails_is_a_problem_and_not_an_exception(simulation: Rig) -> None:
    name = next(node.name for node in simulation.nodes_of("h100-mig") if node.sharing == "whole")
    fine = simulation.nodes_of("h100-train")[0].name
    simulation.port.cut(name, "all-1g.10gb")
    simulation.until(lambda _: simulation.port.metrics([name])[0].text is None)
    assert simulation.node(name).mig_state == "pending"

    found = simulation.port.metrics([name, "nobody", fine, fine])

    assert [(exposition.node, exposition.text is None, bool(exposition.problem)) for exposition in found] == [
        (name, True, True),
        ("nobody", True, True),
        (fine, False, False),
    ]


def test_no_nodes_are_no_calls(simulation: Rig) -> None:
    assert simulation.port.metrics([]) == []
