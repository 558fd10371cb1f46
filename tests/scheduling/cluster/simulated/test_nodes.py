"""Nodes whose kubelet is heard from, or not, and what becomes of their pods."""

import pytest

from tests.scheduling.cluster.simulated.stories import Story, on_node, plain_node, pod


def ready(story: Story, node: str = "n1") -> str:
    return next(str(one["status"]) for one in story.node(node)["status"]["conditions"] if one["type"] == "Ready")


def taints(story: Story, node: str = "n1") -> list[tuple[str, str]]:
    return [(one["key"].partition("/")[2], one["effect"]) for one in story.node(node)["spec"].get("taints") or []]


@pytest.fixture
def busy(story: Story) -> Story:
    story.create(pod(affinity=on_node("n1")))
    story.advance(minutes=1)
    return story


def test_a_cordoned_node_is_tainted_and_keeps_its_pods(busy: Story) -> None:
    busy.merge("nodes", "n1", {"spec": {"unschedulable": True}})
    assert taints(busy) == [("unschedulable", "NoSchedule")]
    busy.advance(hours=1)
    assert busy.phase("p") == "Running"

    busy.merge("nodes", "n1", {"spec": {"unschedulable": None}})
    assert taints(busy) == []


def test_a_silent_kubelet_makes_the_node_unreachable(busy: Story) -> None:
    busy.faults.node_not_ready("n1")

    assert ready(busy) == "Unknown"
    assert taints(busy) == [("unreachable", "NoSchedule"), ("unreachable", "NoExecute")]


def test_its_pods_are_to_go_after_five_minutes_and_cannot(busy: Story) -> None:
    busy.faults.node_not_ready("n1")
    busy.advance(seconds=299)
    assert "deletionTimestamp" not in busy.get("pods", "p")["metadata"]

    busy.advance(hours=1)

    found = busy.get("pods", "p")
    assert found["metadata"]["deletionTimestamp"]
    assert {one["type"]: one.get("reason") for one in found["status"]["conditions"]}["DisruptionTarget"] == (
        "DeletionByTaintManager"
    )


def test_when_the_kubelet_is_back_they_go(busy: Story) -> None:
    busy.faults.node_not_ready("n1")
    busy.advance(hours=1)

    busy.faults.node_ready("n1")
    busy.advance(minutes=1)

    assert ready(busy) == "True"
    assert taints(busy) == []
    assert busy.find("pods", "p") is None


def test_a_short_silence_harms_nobody(busy: Story) -> None:
    busy.faults.node_not_ready("n1")
    busy.advance(minutes=2)
    busy.faults.node_ready("n1")
    busy.advance(hours=1)

    assert busy.phase("p") == "Running"


def test_nothing_starts_on_a_dead_node(story: Story) -> None:
    story.faults.node_not_ready("n1")
    story.create(pod(nodeName="n1"))
    story.advance(minutes=2)
    assert "containerStatuses" not in story.get("pods", "p")["status"]

    story.faults.node_ready("n1")
    story.advance(minutes=1)

    assert story.phase("p") == "Running"


def test_a_pod_that_tolerates_it_for_ever_stays_bound(story: Story) -> None:
    story.create(pod(affinity=on_node("n1"), tolerations=[{"operator": "Exists"}]))
    story.advance(minutes=1)

    story.faults.node_not_ready("n1")
    story.advance(hours=5)

    assert "deletionTimestamp" not in story.get("pods", "p")["metadata"]


def test_a_taint_that_drives_out(busy: Story) -> None:
    busy.merge("nodes", "n1", {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}})
    busy.advance(minutes=1)

    assert busy.find("pods", "p") is None


def test_pods_of_a_deleted_node_are_collected(busy: Story) -> None:
    busy.delete("nodes", "n1")
    busy.advance(seconds=30)
    assert busy.phase("p") == "Running"

    busy.advance(minutes=1)

    assert busy.find("pods", "p") is None


def test_a_node_that_comes_in_broken_stays_broken() -> None:
    node = plain_node("n1")
    node["status"]["conditions"] = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
    story = Story([node])

    story.advance(hours=1)

    assert ready(story) == "Unknown"
