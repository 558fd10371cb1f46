"""Devices given to pods: which ones, when they come back, and when they are withheld."""

from typing import Any

import pytest

from scheduling.cluster.simulated.devices import Devices
from tests.scheduling.cluster.simulated.stories import BALANCED, SHARED, TRAIN, Story, on_node, pod

GPU = "nvidia.com/gpu"


def devices(story: Story) -> Devices:
    found: Devices = story.world.parts["devices"]
    return found


def held(story: Story, node: str) -> list[tuple[str, int, int | None, int | None]]:
    """Pod, card, GPU instance id and replica of everything that is given out on a node."""
    return [
        (one.pod, one.unit.card, one.unit.instance.gi if one.unit.instance else None, one.unit.replica)
        for one in devices(story).on_node(node)
    ]


def gpu_pod(name: str, node: str, count: int = 1, resource: str = GPU, **more: Any) -> dict[str, Any]:
    return pod(name, {resource: str(count)}, affinity=on_node(node), **more)


def test_whole_cards_are_given_in_order(fleet: Story) -> None:
    fleet.create(gpu_pod("a", TRAIN, 2))
    fleet.create(gpu_pod("b", TRAIN))

    assert held(fleet, TRAIN) == [("a", 0, None, None), ("a", 1, None, None), ("b", 2, None, None)]


def test_a_card_comes_back_when_its_pod_is_gone(fleet: Story) -> None:
    fleet.create(gpu_pod("a", TRAIN, 2))
    fleet.create(gpu_pod("b", TRAIN))
    fleet.advance(minutes=1)

    fleet.delete("pods", "a")
    fleet.advance(minutes=1)
    fleet.create(gpu_pod("c", TRAIN))

    assert held(fleet, TRAIN) == [("b", 2, None, None), ("c", 0, None, None)]


def test_a_card_comes_back_when_its_pod_has_ended(fleet: Story) -> None:
    fleet.create(gpu_pod("a", TRAIN, command=["sleep", "5"], restartPolicy="Never"))
    fleet.advance(minutes=1)

    assert held(fleet, TRAIN) == []


def test_slices_are_given_by_their_profile(fleet: Story) -> None:
    for name in ("a", "b", "c"):
        fleet.create(gpu_pod(name, BALANCED, resource="nvidia.com/mig-1g.10gb"))
    fleet.create(gpu_pod("d", BALANCED, resource="nvidia.com/mig-3g.40gb"))

    assert held(fleet, BALANCED) == [("a", 0, 9, None), ("b", 0, 10, None), ("c", 1, 9, None), ("d", 0, 2, None)]


def test_replicas_go_to_the_card_that_is_shared_least(fleet: Story) -> None:
    for name in "abcde":
        fleet.create(gpu_pod(name, SHARED))

    assert [(card, replica) for _, card, _, replica in held(fleet, SHARED)] == [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1)]


def test_the_ids_are_those_of_the_device_plugin(fleet: Story) -> None:
    fleet.create(gpu_pod("whole", TRAIN))
    fleet.create(gpu_pod("slice", BALANCED, resource="nvidia.com/mig-1g.10gb"))
    fleet.create(gpu_pod("share", SHARED))

    ids = [devices(fleet).device_id(one) for node in (TRAIN, BALANCED, SHARED) for one in devices(fleet).on_node(node)]

    assert ids[0].startswith("GPU-")
    assert ids[1].startswith("MIG-")
    assert ids[2].endswith("::0")


def test_two_replicas_for_one_pod_are_an_admission_error(fleet: Story) -> None:
    fleet.create(gpu_pod("greedy", SHARED, 2))

    status = fleet.get("pods", "greedy")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "UnexpectedAdmissionError")
    for part in (GPU, "2 requested", "maximum request size for shared resources is 1"):
        assert part in status["message"]
    assert held(fleet, SHARED) == []


def test_a_sick_card_is_withheld_and_its_pod_runs_on(fleet: Story) -> None:
    fleet.create(gpu_pod("a", TRAIN))
    fleet.advance(minutes=1)

    fleet.faults.card_sick(TRAIN, card=0, xid=79)
    fleet.create(gpu_pod("b", TRAIN, 7))

    assert fleet.allocatable(TRAIN) == {"gpu": 7}
    assert fleet.node(TRAIN)["status"]["capacity"][GPU] == "8"
    assert fleet.phase("a") == "Running"
    assert 0 not in [card for name, card, *_ in held(fleet, TRAIN) if name == "b"]


def test_a_sick_shared_card_takes_all_its_replicas_along(fleet: Story) -> None:
    fleet.faults.card_sick(SHARED, card=2)

    assert fleet.allocatable(SHARED) == {"gpu": 12}

    fleet.faults.card_healthy(SHARED, card=2)
    assert fleet.allocatable(SHARED) == {"gpu": 16}


def test_more_pods_than_the_scheduler_believed_are_refused_by_the_node(fleet: Story) -> None:
    """A card falls ill between two looks: the pod is bound, and the kubelet finds nothing to give."""
    fleet.create(gpu_pod("a", TRAIN, 8))

    fleet.create(pod("b", {GPU: "1"}, nodeName=TRAIN))

    status = fleet.get("pods", "b")["status"]
    assert status["reason"] == "UnexpectedAdmissionError"
    assert "Requested: 1, Available: 0" in status["message"]


def test_a_card_that_is_not_there_cannot_fall_ill(fleet: Story) -> None:
    with pytest.raises(ValueError, match="has no card 8"):
        fleet.faults.card_sick(TRAIN, card=8)


def test_a_node_that_comes_with_a_withheld_card_has_a_sick_one() -> None:
    import yaml

    from tests.scheduling.cluster.simulated.stories import DATA

    document = yaml.safe_load((DATA / "nodes" / "08-gpu-notready-xid.yaml").read_text())
    story = Story([document])

    assert story.allocatable("hgx-h100-19") == {"gpu": 7}
    assert [card["xid"] for card in devices(story).describe("hgx-h100-19")["cards"]] == [0] * 7 + [79]


def test_what_is_behind_the_curtain_can_be_seen(fleet: Story) -> None:
    fleet.create(gpu_pod("slice", BALANCED, resource="nvidia.com/mig-2g.20gb"))

    seen = fleet.world.describe()["nodes"][BALANCED]

    assert seen["product"] == "NVIDIA-H100-80GB-HBM3"
    assert seen["cards"][0]["instances"][0] == {"profile": "2g.20gb", "start": 0, "size": 2, "gi": 3}
    assert [(one["pod"], one["card"], one["gi"]) for one in seen["assignments"]] == [("slice", 0, 3)]
