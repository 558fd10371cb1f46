"""What GPU Feature Discovery and the device plugin say of a machine, held against real-shaped Node documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduling.cluster.simulated import fleet_documents, gfd, machines
from scheduling.cluster.simulated.hardware import BOARDS, SharingPlan
from scheduling.cluster.simulated.kinds import Document
from scheduling.cluster.simulated.machines import Machine
from tests.scheduling.cluster.simulated.stories import DATA

FILES = sorted((DATA / "nodes").glob("0*.yaml"))
STAMP = 1764540000
H100 = BOARDS["NVIDIA-H100-80GB-HBM3"]


def load(path: Path) -> Document:
    document: Document = yaml.safe_load(path.read_text())
    return document


def known_nodes() -> dict[str, Document]:
    fleet = {node["metadata"]["name"]: node for node in fleet_documents() if node["kind"] == "Node"}
    return fleet | {file.stem: load(file) for file in FILES}


NODES = {name: node for name, node in known_nodes().items() if machines.read(node)}


def the_machine(node: Document) -> Machine:
    machine = machines.read(node)
    assert machine is not None
    return machine


@pytest.mark.parametrize("node", NODES.values(), ids=NODES)
def test_the_labels_of_a_real_shaped_node_follow_from_its_machine(node: Document) -> None:
    machine = the_machine(node)
    have = {key: value for key, value in node["metadata"]["labels"].items() if gfd.OWNED.match(key)}

    assert gfd.labels(machine, STAMP) == have


@pytest.mark.parametrize("node", NODES.values(), ids=NODES)
def test_its_capacity_follows_too(node: Document) -> None:
    capacity, _ = gfd.resources(the_machine(node))
    have = {name: int(n) for name, n in node["status"]["capacity"].items() if name.startswith("nvidia.com/")}

    assert capacity == {name: count for name, count in have.items() if name != "nvidia.com/hostdev"}


def test_there_are_nodes_of_every_sort_among_them() -> None:
    sorts = {
        (the_machine(node).strategy, the_machine(node).is_cut, the_machine(node).sharing.method)
        for node in NODES.values()
    }

    assert {("mixed", True, "none"), ("single", True, "none"), ("mixed", False, "none")} <= sorts
    assert ("", False, "time-slicing") in sorts


def test_a_node_without_gpus_that_we_know_has_no_machine() -> None:
    amd = load(DATA / "nodes" / "07-amd-mi300x.yaml")

    assert machines.read(amd) is None


def test_a_native_node_has_cards_and_no_labels() -> None:
    machine = the_machine(load(DATA / "nodes" / "01-gke-a100-40-full.yaml"))

    assert (machine.board.product, len(machine.cards)) == ("NVIDIA-A100-SXM4-40GB", 2)
    assert gfd.labels(machine, STAMP) == {}


def machine(count: int = 2, strategy: str = "mixed", method: str = "none", replicas: int = 1) -> Machine:
    return machines.build("n", H100, count, sharing=SharingPlan(method, replicas), strategy=strategy)


def cut(one: Machine, *layouts: list[str] | None) -> Machine:
    planned = [None if names is None else [H100.by_name[name] for name in names] for names in layouts]
    assert machines.cut(one, planned)
    return one


SORTS: dict[str, tuple[Machine, dict[str, str], dict[str, int]]] = {
    "whole": (machine(), {"product": "NVIDIA-H100-80GB-HBM3", "count": "2", "replicas": "1"}, {"gpu": 2}),
    "time-sliced": (
        machine(method="time-slicing", replicas=4),
        {"product": "NVIDIA-H100-80GB-HBM3-SHARED", "count": "2", "replicas": "4", "sharing-strategy": "time-slicing"},
        {"gpu": 8},
    ),
    "shared by MPS": (
        machine(method="mps", replicas=10),
        {"product": "NVIDIA-H100-80GB-HBM3-SHARED", "replicas": "10", "sharing-strategy": "mps"},
        {"gpu": 20},
    ),
    "one card cut, the other whole": (
        cut(machine(), ["3g.40gb"], None),
        {"product": "NVIDIA-H100-80GB-HBM3", "count": "2", "replicas": "1"},
        {"gpu": 1, "mig-3g.40gb": 1},
    ),
    "all cut, mixed": (
        cut(machine(), ["3g.40gb"], ["1g.10gb"] * 7),
        {"product": "NVIDIA-H100-80GB-HBM3", "count": "2", "replicas": "0"},
        {"gpu": 0, "mig-3g.40gb": 1, "mig-1g.10gb": 7},
    ),
    "all cut alike, single": (
        cut(machine(strategy="single"), ["2g.20gb"] * 3, ["2g.20gb"] * 3),
        {"product": "NVIDIA-H100-80GB-HBM3-MIG-2g.20gb", "count": "6", "memory": "20096", "slices.gi": "2"},
        {"gpu": 6},
    ),
    "cut unlike, single": (
        cut(machine(strategy="single"), ["2g.20gb"] * 3, ["3g.40gb"]),
        {"product": "NVIDIA-H100-80GB-HBM3-MIG-INVALID", "count": "0", "replicas": "0", "memory": "0"},
        {"gpu": 0},
    ),
    "MIG on without instances, mixed": (
        cut(machine(), [], []),
        {"product": "NVIDIA-H100-80GB-HBM3", "replicas": "0"},
        {"gpu": 0},
    ),
    "time-sliced slices": (
        cut(machine(1, method="time-slicing", replicas=2), ["3g.40gb", "3g.40gb"]),
        {"replicas": "0"},
        {"gpu": 0, "mig-3g.40gb": 4},
    ),
}


@pytest.mark.parametrize(("one", "labels", "counts"), SORTS.values(), ids=SORTS)
def test_the_sorts_of_machines(one: Machine, labels: dict[str, str], counts: dict[str, int]) -> None:
    written = gfd.labels(one, STAMP)
    capacity, allocatable = gfd.resources(one)

    assert {name: written[f"nvidia.com/gpu.{name}"] for name in labels} == labels
    assert {name.removeprefix("nvidia.com/"): count for name, count in capacity.items()} == counts
    assert allocatable == capacity


def test_mps_is_said_to_be_capable_only_while_it_is_configured() -> None:
    assert gfd.labels(machine(method="mps", replicas=2), STAMP)["nvidia.com/mps.capable"] == "true"
    assert gfd.labels(machine(), STAMP)["nvidia.com/mps.capable"] == "false"


XIDS: dict[str, tuple[int, int]] = {"none": (0, 2), "a user's fault": (31, 2), "off the bus": (79, 1), "GSP": (119, 1)}


@pytest.mark.parametrize(("xid", "left"), XIDS.values(), ids=XIDS)
def test_a_sick_card_leaves_allocatable_and_stays_in_capacity(xid: int, left: int) -> None:
    one = machine()
    one.cards[0].xid = xid

    assert gfd.resources(one) == ({"nvidia.com/gpu": 2}, {"nvidia.com/gpu": left})


def test_old_labels_of_slices_go_and_foreign_ones_stay() -> None:
    node: dict[str, Any] = {
        "metadata": {
            "labels": {
                "nvidia.com/mig-1g.10gb.count": "7",
                "nvidia.com/mig.config": "all-1g.10gb",
                "nvidia.com/gpu.deploy.dcgm": "true",
                "zone": "a",
            }
        }
    }

    gfd.write_labels(node, {"nvidia.com/gpu.count": "2"})

    assert node["metadata"]["labels"] == {
        "nvidia.com/gpu.count": "2",
        "nvidia.com/mig.config": "all-1g.10gb",
        "nvidia.com/gpu.deploy.dcgm": "true",
        "zone": "a",
    }


def test_an_illegal_cut_changes_nothing() -> None:
    one = cut(machine(), ["3g.40gb"], None)

    assert not machines.cut(one, [[H100.by_name["4g.40gb"]] * 2, None])
    assert [instance.profile.name for instance in one.cards[0].instances] == ["3g.40gb"]


def test_labels_that_count_more_slices_than_fit_are_no_machine() -> None:
    node = load(DATA / "nodes" / "02-gke-h100x8-mig-mixed.yaml")
    node["metadata"]["labels"]["nvidia.com/mig-3g.40gb.count"] = "24"

    with pytest.raises(ValueError, match="do not fit on its cards"):
        machines.read(node)
