"""Nodes of real shapes: how many cards they have, how these are shared, and which of them are sick."""

import json
from datetime import UTC, datetime
from fractions import Fraction as F
from typing import Any

import pytest

from scheduling.cluster.reading import decode_nodes, read_node
from scheduling.planning.facts import Capacity, DeviceFact, Isolation, Sharing, Taint
from tests.scheduling.cluster.builders import Document, file, h100, node

HARD, PROCESS, NONE = Isolation.HARDWARE, Isolation.PROCESS, Isolation.NONE

# The eight fixtures, each read as its README says

FIXTURES = {  #                      pool, model, cards, sharing, replicas, devices (name, profile, share, units)
    "01-gke-a100-40-full": ("a100-40-pool", "a100-40gb", 2, "whole", 1, [("gpu", "", F(1), 2)]),
    "02-gke-h100x8-mig-mixed": (
        "h100-mig-pool",
        "h100-80gb",
        8,
        "mig",
        1,
        [
            ("mig-1g.10gb", "1g.10gb", F(1, 8), 16),
            ("mig-2g.20gb", "2g.20gb", F(1, 4), 8),
            ("mig-3g.40gb", "3g.40gb", F(1, 2), 8),
        ],
    ),
    "03-eks-g5-a10g-timesliced": ("gpu-a10g-shared", "a10g-24gb", 4, "time-slice", 4, [("gpu", "", F(1, 4), 16)]),
    "04-aks-h100-nvl": ("h100nvl", "h100-94gb", 1, "whole", 1, [("gpu", "", F(1), 1)]),
    "05-dgx-h100-mig-single-1g10gb": ("", "h100-80gb", 8, "mig", 1, [("gpu", "1g.10gb", F(1, 8), 56)]),
    "06-dgx-b200": ("", "b200-180gb", 8, "whole", 1, [("gpu", "", F(1), 8)]),
}


@pytest.mark.parametrize(("name", "expected"), FIXTURES.items(), ids=FIXTURES)
def test_the_usual_shapes(name: str, expected: tuple[Any, ...]) -> None:
    pool, model, cards, sharing, replicas, devices = expected

    fact = read_node(file(f"nodes/{name}.yaml"))

    assert (fact.pool, fact.model, fact.cards, fact.sharing, fact.replicas) == (pool, model, cards, sharing, replicas)
    assert [(d.resource, d.profile, d.share, d.capacity) for d in fact.devices] == [
        (f"nvidia.com/{short}", profile, share, number) for short, profile, share, number in devices
    ]
    assert all(device.allocatable == device.capacity for device in fact.devices)
    assert (fact.known, fact.sick_cards, fact.ready, fact.schedulable, fact.problems) == (True, 0, True, True, ())


def test_everything_else_that_a_node_says() -> None:
    fact = read_node(file("nodes/03-eks-g5-a10g-timesliced.yaml"))

    assert fact.name == "ip-10-42-17-203.eu-central-1.compute.internal"
    assert fact.uid == "b6b1b2a4-0d3f-4a55-9f4e-0a8a2b7d1c03"
    assert fact.capacity is Capacity.SPOT
    assert (fact.cpu_milli, fact.host_memory_mib, fact.memory_mib) == (47810, 185742, 23028)
    assert (fact.zone, fact.driver, fact.mig_capable, fact.mig_strategy) == ("eu-central-1b", "580.95.05", False, "")
    assert fact.created_at == datetime(2026, 11, 2, 9, 31, 7, tzinfo=UTC)
    assert fact.taints == (Taint("nvidia.com/gpu", "true", "NoSchedule"),)
    assert fact.devices[0].isolation is NONE
    assert fact.devices[0].memory_mib == 23028 // 4
    assert fact.usable_since is None


def test_a_cut_card_says_its_layout_and_its_slices_memory() -> None:
    fact = read_node(file("nodes/02-gke-h100x8-mig-mixed.yaml"))

    assert (fact.mig_capable, fact.mig_strategy, fact.mig_config, fact.mig_state) == (
        True,
        "mixed",
        "all-balanced",
        "success",
    )
    assert [device.memory_mib for device in fact.devices] == [9984, 20096, 40320]
    assert {device.isolation for device in fact.devices} == {HARD}
    assert fact.memory_mib == 81559


def test_amd_cards_are_whole() -> None:
    fact = read_node(file("nodes/07-amd-mi300x.yaml"))

    assert (fact.model, fact.cards, fact.memory_mib, fact.driver) == ("mi300x-192gb", 8, 196608, "6.12.12")
    assert fact.devices == (DeviceFact("amd.com/gpu", "", F(1), HARD, 8, 8, 196608),)
    assert fact.schedulable


def test_a_node_that_lost_a_card_and_its_kubelet_says_why_it_cannot_be_used() -> None:
    fact = read_node(file("nodes/08-gpu-notready-xid.yaml"))

    assert (fact.cards, fact.sick_cards, fact.devices[0].allocatable) == (8, 1, 7)
    assert (fact.ready, fact.schedulable) == (False, False)
    assert fact.not_ready_since is not None
    assert [problem.field for problem in fact.problems] == [
        "status.allocatable[nvidia.com/gpu]",
        "status.conditions[Ready]",
        "spec.taints[nvidia.com/gpu-xid-error]",
        "spec.taints[node.kubernetes.io/unreachable]",
        "spec.unschedulable",
        "status.conditions[SysLogsXIDError]",
        "status.conditions[SysLogsGPUFallenOff]",
        "metadata.labels[dgxc.nvidia.com/nvsentinel-state]",
    ]
    assert {problem.where for problem in fact.problems} == {"hgx-h100-19"}


DUMPS = {
    "fraction-1-workload": ("t4-16gb", 2, [("nvidia.com/gpu", F(1), 2)], "525.60.13"),
    "gcp-a100-40gb-mig-7g": ("a100-40gb", 1, [("nvidia.com/mig-7g.40gb", F(1), 1)], "520.56.06"),
    "gcp-a100-40gb-mig-mixed-3inst": (
        "a100-40gb",
        1,
        [("nvidia.com/mig-1g.5gb", F(1, 8), 2), ("nvidia.com/mig-2g.10gb", F(1, 4), 1)],
        "520.56.06",
    ),
}


@pytest.mark.parametrize(("name", "expected"), DUMPS.items(), ids=DUMPS)
def test_real_nodes(name: str, expected: tuple[Any, ...]) -> None:
    fact = read_node(file(f"node_dumps/{name}.node.yaml"))

    devices = [(device.resource, device.share, device.allocatable) for device in fact.devices]
    assert (fact.model, fact.cards, devices, fact.driver) == expected
    assert fact.problems == ()


def test_the_list_reads_like_the_single_files() -> None:
    raw = json.dumps(file("nodes/nodelist.json")).encode()

    found = decode_nodes(raw)

    assert sum(fact.cards for fact in found.facts) == 47
    assert found.facts == tuple(read_node(item) for item in file("nodes/nodelist.json")["items"])
    assert (found.problems, found.next) == ((), "")


# Sharing, told by the numbers

A10G = {"nvidia.com/gpu.product": "NVIDIA-A10G-SHARED", "nvidia.com/gpu.count": "4", "nvidia.com/gpu.memory": "23028"}
SLICED = A10G | {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
GKE = {"cloud.google.com/gke-accelerator": "nvidia-tesla-a100", "cloud.google.com/gke-accelerator-count": "2"}

SHARING: dict[
    str, tuple[Document, tuple[Any, ...]]
] = {  # node -> cards, sharing, replicas, resource, share, isolation, units
    "time-slices": (node(labels=SLICED, gpu=16), (4, "time-slice", 4, "nvidia.com/gpu", F(1, 4), NONE, 16)),
    "MPS": (
        node(labels=SLICED | {"nvidia.com/gpu.sharing-strategy": "mps"}, gpu=16),
        (4, "mps", 4, "nvidia.com/gpu", F(1, 4), PROCESS, 16),
    ),
    "time-slices under a name of their own": (
        node(labels=SLICED | {"nvidia.com/gpu.product": "NVIDIA-A10G"}, gpu=0, gpu_shared=16),
        (4, "time-slice", 4, "nvidia.com/gpu.shared", F(1, 4), NONE, 16),
    ),
    "no labels of sharing at all": (
        node(labels={"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.count": "2"}, gpu=20),
        (2, "time-slice", 10, "nvidia.com/gpu", F(1, 10), NONE, 20),
    ),
    "no count, but replicas": (
        node(labels={"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "5"}, gpu=10),
        (2, "time-slice", 5, "nvidia.com/gpu", F(1, 5), NONE, 10),
    ),
    "GKE shares by time": (
        node(labels=GKE | {"cloud.google.com/gke-max-shared-clients-per-gpu": "3"}, gpu=6),
        (2, "time-slice", 3, "nvidia.com/gpu", F(1, 3), NONE, 6),
    ),
    "GKE shares by MPS": (
        node(
            labels=GKE
            | {
                "cloud.google.com/gke-max-shared-clients-per-gpu": "3",
                "cloud.google.com/gke-gpu-sharing-strategy": "mps",
            },
            gpu=6,
        ),
        (2, "mps", 3, "nvidia.com/gpu", F(1, 3), PROCESS, 6),
    ),
    "GKE cuts": (
        node(labels=GKE | {"cloud.google.com/gke-gpu-partition-size": "1g.5gb"}, gpu=14),
        (2, "mig", 1, "nvidia.com/gpu", F(1, 8), HARD, 14),
    ),
    "GKE cuts and shares the slices": (
        node(
            labels=GKE
            | {
                "cloud.google.com/gke-gpu-partition-size": "1g.5gb",
                "cloud.google.com/gke-max-shared-clients-per-gpu": "2",
            },
            gpu=28,
        ),
        (2, "mig", 1, "nvidia.com/gpu", F(1, 16), NONE, 28),
    ),
    "slices shared by time, in the strategy single": (
        node(
            labels=h100(gpu__product="NVIDIA-H100-80GB-HBM3-MIG-1g.10gb-SHARED", gpu__count="56", gpu__replicas="2"),
            gpu=112,
        ),
        (8, "mig", 1, "nvidia.com/gpu", F(1, 16), NONE, 112),
    ),
    "slices shared by time, in the strategy mixed": (
        node(labels=h100(**{"mig-1g.10gb__count": "16", "gpu__count": "4"}), gpu=0, mig_1g_10gb=32),
        (4, "mig", 1, "nvidia.com/mig-1g.10gb", F(1, 16), NONE, 32),
    ),
    "slices with the media engines": (
        node(labels=h100(), gpu=0, also={"nvidia.com/mig-1g.10gb.me": "8"}),
        (8, "mig", 1, "nvidia.com/mig-1g.10gb.me", F(1, 8), HARD, 8),
    ),
    "two slices of a half each": (
        node(labels=h100(gpu__product="NVIDIA-H100-80GB-HBM3-MIG-3g.40gb", gpu__count="16"), gpu=16),
        (8, "mig", 1, "nvidia.com/gpu", F(1, 2), HARD, 16),
    ),
}


@pytest.mark.parametrize(("document", "expected"), SHARING.values(), ids=SHARING)
def test_sharing(document: Document, expected: tuple[Any, ...]) -> None:
    fact = read_node(document)

    (device,) = fact.devices
    assert (fact.cards, fact.sharing, fact.replicas) == expected[:3]
    assert (device.resource, device.share, device.isolation, device.capacity) == expected[3:]
    assert fact.problems == ()


def test_s2_fifty_units_on_one_card_are_fiftieths_whatever_the_label_says() -> None:
    fact = read_node(file("traps/nodes_traps.json")["items"][0])

    assert (fact.cards, fact.sharing, fact.replicas) == (1, Sharing.TIME_SLICE, 50)
    assert fact.devices[0].share == F(1, 50)
    assert [(problem.field, problem.text) for problem in fact.problems] == [
        (
            "metadata.labels[nvidia.com/gpu.replicas]",
            "the label says 1 per card, but 50 units on one card are 50 each; that counts",
        )
    ]


def test_replicas_of_zero_divide_nothing() -> None:
    fact = read_node(node(labels=h100(gpu__replicas="0"), gpu=8))

    assert (fact.sharing, fact.replicas, fact.devices[0].share, fact.problems) == (Sharing.WHOLE, 1, F(1), ())


def test_units_that_do_not_divide_are_said_and_the_smaller_share_counts() -> None:
    fact = read_node(node(labels=A10G, gpu=15))

    assert (fact.replicas, fact.devices[0].share) == (4, F(1, 4))
    assert [problem.field for problem in fact.problems] == ["metadata.labels[nvidia.com/gpu.count]"]


def test_whole_cards_beside_slices() -> None:
    fact = read_node(node(labels=h100(gpu__replicas="1"), gpu=4, mig_3g_40gb=8))

    assert [(device.resource, device.share) for device in fact.devices] == [
        ("nvidia.com/gpu", F(1)),
        ("nvidia.com/mig-3g.40gb", F(1, 2)),
    ]
    assert (fact.cards, fact.sharing) == (8, Sharing.MIG)


def test_more_slices_than_the_cards_can_hold_are_said() -> None:
    fact = read_node(node(labels=h100(gpu__count="1"), gpu=0, mig_3g_40gb=8))

    assert fact.cards == 4
    assert [(problem.field, problem.text) for problem in fact.problems] == [
        ("metadata.labels[nvidia.com/gpu.count]", "the slices need at least 4 cards; the labels tell of 1")
    ]


def test_a_profile_that_another_driver_names_otherwise_is_the_same_profile() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-GB200", "nvidia.com/gpu.count": "1"}

    fact = read_node(node(labels=labels, gpu=0, mig_1g_24gb=7))

    assert [(device.resource, device.share) for device in fact.devices] == [("nvidia.com/mig-1g.24gb", F(1, 8))]


# Sick cards


def test_s10_seven_of_eight_are_one_sick_card_and_seven_free() -> None:
    fact = read_node(file("traps/nodes_traps.json")["items"][2])

    assert (fact.cards, fact.sick_cards, fact.devices[0].capacity, fact.devices[0].allocatable) == (8, 1, 8, 7)
    assert fact.schedulable


SICK: dict[str, tuple[Document, int]] = {
    "one unit of a card shared four ways": (node(labels=SLICED, gpu=15, capacity={"nvidia.com/gpu": "16"}), 1),
    "five units of cards shared four ways": (node(labels=SLICED, gpu=11, capacity={"nvidia.com/gpu": "16"}), 2),
    "eight slices of seven each": (
        node(
            labels=h100(gpu__product="NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", gpu__count="56"),
            gpu=48,
            capacity={"nvidia.com/gpu": "56"},
        ),
        2,
    ),
    "a slice of a half": (node(labels=h100(), gpu=0, mig_3g_40gb=15, capacity={"nvidia.com/mig-3g.40gb": "16"}), 1),
    "three slices of a half": (
        node(labels=h100(), gpu=0, mig_3g_40gb=13, capacity={"nvidia.com/mig-3g.40gb": "16"}),
        2,
    ),
    "four cards that are not advertised at all": (node(labels=h100(), gpu=4), 4),
}


@pytest.mark.parametrize(("document", "sick"), SICK.values(), ids=SICK)
def test_sick_cards_are_counted_and_said(document: Document, sick: int) -> None:
    fact = read_node(document)

    assert fact.sick_cards == sick
    assert len(fact.problems) == 1


def test_while_a_node_is_cut_what_it_withholds_is_not_sick() -> None:
    labels = h100(**{"mig.config": "all-1g.10gb", "mig.config.state": "pending"})

    fact = read_node(node(labels=labels, gpu=0, capacity={"nvidia.com/gpu": "8"}))

    assert (fact.cards, fact.sick_cards, fact.schedulable, fact.mig_state, fact.problems) == (
        8,
        0,
        False,
        "pending",
        (),
    )
