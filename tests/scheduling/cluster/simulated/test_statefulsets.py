"""Workspaces: StatefulSets of one pod whose home stays."""

import pytest

from tests.scheduling.cluster.simulated.stories import Story, pod_key, stateful_set


@pytest.fixture
def running(story: Story) -> Story:
    story.create(stateful_set())
    story.advance(minutes=1)
    return story


def test_it_makes_its_pod_and_its_claim(running: Story) -> None:
    assert running.names("pods") == ["ws-0"]
    assert running.names("persistentvolumeclaims") == ["home-ws-0"]
    metadata = running.get("pods", "ws-0")["metadata"]
    assert metadata["labels"]["statefulset.kubernetes.io/pod-name"] == "ws-0"
    assert metadata["ownerReferences"][0]["kind"] == "StatefulSet"
    assert running.events("ws") == ["SuccessfulCreate"]


def test_its_status_counts(running: Story) -> None:
    status = running.get("statefulsets", "ws")["status"]

    assert {name: status[name] for name in ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas")} == {
        "replicas": 1,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "updatedReplicas": 1,
    }
    assert status["observedGeneration"] == 1
    assert status["currentRevision"] == status["updateRevision"]


def test_scaled_to_zero_the_pod_goes_and_the_home_stays(running: Story) -> None:
    running.scale("statefulsets", "ws", 0)
    running.advance(minutes=1)

    assert running.names("pods") == []
    assert running.names("persistentvolumeclaims") == ["home-ws-0"]
    assert running.get("statefulsets", "ws")["status"]["replicas"] == 0


def test_scaled_up_again_the_pod_finds_its_home(running: Story) -> None:
    volume = running.get("persistentvolumeclaims", "home-ws-0")["spec"]["volumeName"]
    running.scale("statefulsets", "ws", 0)
    running.advance(minutes=1)

    running.scale("statefulsets", "ws", 1)
    running.advance(minutes=1)

    assert running.phase("ws-0") == "Running"
    assert running.get("persistentvolumeclaims", "home-ws-0")["spec"]["volumeName"] == volume


def test_a_deleted_pod_comes_back_under_its_name(running: Story) -> None:
    before = running.get("pods", "ws-0")["metadata"]["uid"]

    running.delete("pods", "ws-0")
    running.advance(minutes=1)

    assert running.get("pods", "ws-0")["metadata"]["uid"] != before
    assert running.phase("ws-0") == "Running"


def test_not_before_the_old_one_is_gone(running: Story) -> None:
    running.delete("pods", "ws-0")
    running.advance(seconds=1)

    assert running.get("pods", "ws-0")["metadata"]["deletionTimestamp"]


def test_pods_come_one_after_the_other_and_go_backwards(story: Story) -> None:
    story.create(stateful_set(replicas=3))
    assert story.names("pods") == ["ws-0"]

    story.advance(minutes=2)
    assert story.names("pods") == ["ws-0", "ws-1", "ws-2"]

    story.scale("statefulsets", "ws", 1)
    assert [one for one in story.names("pods") if story.get("pods", one)["metadata"].get("deletionTimestamp")] == [
        "ws-2"
    ]
    story.advance(minutes=1)
    assert story.names("pods") == ["ws-0"]


def test_in_parallel_they_come_together(story: Story) -> None:
    document = stateful_set(replicas=3)
    document["spec"]["podManagementPolicy"] = "Parallel"

    story.create(document)

    assert story.names("pods") == ["ws-0", "ws-1", "ws-2"]


def test_a_new_template_replaces_the_pod(running: Story) -> None:
    before = running.get("statefulsets", "ws")["status"]["updateRevision"]
    template = {"spec": {"template": {"metadata": {"annotations": {"attempt": "2"}}}}}

    running.merge("statefulsets", "ws", template)
    running.advance(minutes=1)

    assert running.get("pods", "ws-0")["metadata"]["annotations"] == {"attempt": "2"}
    status = running.get("statefulsets", "ws")["status"]
    assert status["updateRevision"] != before
    assert status["currentRevision"] == status["updateRevision"]


def test_a_pod_that_its_node_refused_is_replaced_after_a_pause(story: Story) -> None:
    story.faults.refuse_admission("n1")
    story.create(stateful_set())
    assert story.phase("ws-0") == "Failed"

    story.advance(minutes=1)

    assert story.phase("ws-0") == "Running"


def test_a_pod_that_is_refused_for_ever_does_not_spin(story: Story) -> None:
    for node in ("n1", "n2"):
        story.faults.refuse_admission(node, times=1000)
    story.create(stateful_set())

    story.advance(minutes=10)

    assert 30 < story.events("ws").count("SuccessfulCreate") < 70


def test_a_name_that_is_too_long_for_its_pods_shows_as_an_event(story: Story) -> None:
    name = "w" * 58
    story.create(stateful_set(name))

    assert story.names("pods") == []
    assert story.events(name) == ["FailedCreate"]


def test_the_pod_goes_with_the_set_and_the_home_stays(running: Story) -> None:
    running.delete("statefulsets", "ws")
    running.advance(minutes=1)

    assert running.names("pods") == []
    assert running.names("persistentvolumeclaims") == ["home-ws-0"]


def test_a_pod_on_a_dead_node_is_not_replaced_until_it_is_gone(running: Story) -> None:
    """Two pods of one name would both write to the home."""
    node = running.get("pods", "ws-0")["spec"]["nodeName"]
    running.faults.node_not_ready(node)

    running.advance(hours=1)
    stuck = running.world.store.get(pod_key("ws-0"))

    assert stuck
    assert stuck["metadata"]["deletionTimestamp"]
    assert stuck["spec"]["nodeName"] == node
