"""Pods on their nodes: starting, running, ending, failing."""

from typing import Any

import pytest

from scheduling.cluster.simulated.errors import ApiError
from tests.scheduling.cluster.simulated.stories import Story, container, on_node, plain_node, pod, pod_key


def state(story: Story, name: str = "p") -> dict[str, Any]:
    return dict(story.get("pods", name)["status"]["containerStatuses"][0]["state"])


def script(text: str, **more: Any) -> dict[str, Any]:
    return pod(command=["sh", "-c", text], **({"restartPolicy": "Never"} | more))


def test_a_pod_is_created_pulled_and_started_in_its_time(story: Story) -> None:
    story.create(pod())
    assert (story.phase("p"), story.waiting("p")) == ("Pending", "ContainerCreating")

    story.advance(seconds=29)
    assert (story.phase("p"), story.waiting("p")) == ("Pending", "ContainerCreating")

    story.advance(seconds=1)
    assert story.phase("p") == "Running"
    assert state(story) == {"running": {"startedAt": "2026-12-01T08:00:30Z"}}
    assert story.events("p") == ["Scheduled", "Pulling", "Pulled", "Created", "Started"]


def test_an_image_that_is_there_is_not_pulled_again(story: Story) -> None:
    story.create(pod("a", affinity=on_node("n1")))
    story.advance(minutes=1)

    story.create(pod("b", affinity=on_node("n1")))
    story.advance(seconds=8)

    assert story.phase("b") == "Running"
    assert "Pulling" not in story.events("b")


def test_two_pods_wait_for_the_same_pull(story: Story) -> None:
    story.create(pod("a", affinity=on_node("n1")))
    story.advance(seconds=20)
    story.create(pod("b", affinity=on_node("n1")))

    story.advance(seconds=10)

    assert [story.phase(name) for name in "ab"] == ["Running", "Running"]


def test_a_running_pod_says_where_it_is(story: Story) -> None:
    story.create(pod())
    story.advance(minutes=1)
    status = story.get("pods", "p")["status"]

    assert status["startTime"] == "2026-12-01T08:00:00Z"
    assert status["podIP"].startswith("10.")
    assert status["hostIP"].startswith("10.")
    assert {one["type"]: one["status"] for one in status["conditions"]} == {
        "PodScheduled": "True",
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
    }
    container_status = status["containerStatuses"][0]
    assert (container_status["ready"], container_status["started"], container_status["restartCount"]) == (True, True, 0)


ENDS = {
    "a script that ends": ("sleep 60", "Succeeded", 0),
    "a script that exits well": ("python train.py; sleep 60; exit 0", "Succeeded", 0),
    "a script that fails": ("sleep 60 && exit 3", "Failed", 3),
    "several sleeps": ("sleep 20; echo half; sleep 40; exit 0", "Succeeded", 0),
}


@pytest.mark.parametrize(("text", "phase", "code"), ENDS.values(), ids=ENDS)
def test_programs_end(story: Story, text: str, phase: str, code: int) -> None:
    story.create(script(text))
    story.advance(seconds=89)
    assert story.phase("p") == "Running"

    story.advance(seconds=1)

    assert story.phase("p") == phase
    ended = state(story)["terminated"]
    assert (ended["exitCode"], ended["startedAt"], ended["finishedAt"]) == (
        code,
        "2026-12-01T08:00:30Z",
        "2026-12-01T08:01:30Z",
    )


ENDLESS = {
    "an image's own program": {},
    "a program that says nothing of its length": {"command": ["python", "train.py"]},
    "a sleep for ever": {"command": ["sleep", "infinity"]},
    "a script without sleep or exit": {"command": ["sh", "-c", "jupyter lab"]},
}


@pytest.mark.parametrize("command", ENDLESS.values(), ids=ENDLESS)
def test_other_programs_run_until_they_are_stopped(story: Story, command: dict[str, Any]) -> None:
    story.create(pod(**command))
    story.advance(hours=30)

    assert story.phase("p") == "Running"


def test_a_container_that_fails_is_restarted_later_and_later(story: Story) -> None:
    story.create(script("sleep 5; exit 1", restartPolicy="Always"))

    story.advance(seconds=36)
    assert (story.phase("p"), story.waiting("p")) == ("Running", "CrashLoopBackOff")

    story.advance(seconds=10)
    status = story.get("pods", "p")["status"]["containerStatuses"][0]
    assert status["restartCount"] == 1
    assert status["state"] == {"running": {"startedAt": "2026-12-01T08:00:45Z"}}
    assert status["lastState"]["terminated"]["exitCode"] == 1

    story.advance(seconds=9)  # ends at :50, and now rests for 20 seconds
    assert story.waiting("p") == "CrashLoopBackOff"
    story.advance(seconds=15)
    assert story.get("pods", "p")["status"]["containerStatuses"][0]["restartCount"] == 2


def test_on_failure_only_failures_are_restarted(story: Story) -> None:
    story.create(script("sleep 5; exit 0", restartPolicy="OnFailure"))
    story.advance(minutes=1)

    assert story.phase("p") == "Succeeded"


def test_a_pod_of_two_containers_ends_with_the_last(story: Story) -> None:
    document = script("sleep 10")
    document["spec"]["containers"].append(container(name="side", command=["sleep", "60"]))
    story.create(document)

    story.advance(seconds=45)
    assert story.phase("p") == "Running"

    story.advance(minutes=1)
    assert story.phase("p") == "Succeeded"


def test_an_image_that_does_not_exist(story: Story) -> None:
    story.create(pod(image="team/does-not-exist:1"))

    story.advance(seconds=26)
    assert story.waiting("p") == "ErrImagePull"

    story.advance(minutes=5)
    assert (story.phase("p"), story.waiting("p")) == ("Pending", "ImagePullBackOff")
    assert story.events("p") == ["Scheduled", "Pulling", "Failed", "BackOff"]


# Ending


def test_a_deleted_pod_has_its_grace_and_says_how_it_ended(story: Story) -> None:
    story.create(pod())
    story.advance(minutes=1)
    heard: list[tuple[str, dict[str, Any]]] = []
    story.world.store.listeners.append(lambda change: heard.append((change.type, change.document)))

    story.delete("pods", "p")
    assert story.phase("p") == "Running"
    story.advance(seconds=4)
    assert story.find("pods", "p")

    story.advance(seconds=1)
    assert story.find("pods", "p") is None
    last = next(document for word, document in heard if word == "DELETED" and document["kind"] == "Pod")
    ended = last["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["finishedAt"]) == (143, "2026-12-01T08:01:05Z")
    assert "Killing" in story.events("p")


def test_a_short_grace_is_all_it_gets(story: Story) -> None:
    story.create(pod())
    story.advance(minutes=1)

    story.delete("pods", "p", grace=2)
    story.advance(seconds=2)

    assert story.find("pods", "p") is None


def test_without_grace_it_is_gone_at_once(story: Story) -> None:
    story.create(pod())
    story.advance(minutes=1)

    story.delete("pods", "p", grace=0)

    assert story.find("pods", "p") is None


def test_a_pod_that_no_node_took_is_gone_at_once(story: Story) -> None:
    story.create(pod(nodeSelector={"no": "where"}))

    story.delete("pods", "p")

    assert story.find("pods", "p") is None


def test_a_finalizer_keeps_a_pod_that_has_ended(story: Story) -> None:
    story.create(pod(metadata={"finalizers": ["example.com/keep"]}))
    story.advance(minutes=1)

    story.delete("pods", "p")
    story.advance(minutes=1)
    assert story.phase("p") == "Failed"

    story.merge("pods", "p", {"metadata": {"finalizers": None}})
    assert story.find("pods", "p") is None


def test_a_namesake_starts_anew(story: Story) -> None:
    story.create(pod())
    story.advance(minutes=1)
    story.delete("pods", "p", grace=0)

    story.create(pod())

    assert (story.phase("p"), story.waiting("p")) == ("Pending", "ContainerCreating")


# Refusing


def test_a_pod_that_does_not_fit_is_refused_by_the_node(story: Story) -> None:
    document = pod(resources={"cpu": "64"}, nodeName="n1")

    story.create(document)

    status = story.get("pods", "p")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "OutOfcpu")
    assert "requested: 64000, used: 0, capacity: 8000" in status["message"]


def test_too_many_pods_are_refused_by_the_node() -> None:
    story = Story([plain_node("n1", pods="1")])
    story.create(pod("a"))
    story.create(pod("b", nodeName="n1"))

    assert story.get("pods", "b")["status"]["reason"] == "OutOfpods"


def test_a_gpu_that_is_not_there_is_an_admission_error(story: Story) -> None:
    story.create(pod(resources={"nvidia.com/gpu": "1"}, nodeName="n1"))

    status = story.get("pods", "p")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "UnexpectedAdmissionError")
    assert "Requested: 1, Available: 0, which is unexpected" in status["message"]
    assert "containerStatuses" not in status


def test_a_refused_pod_is_not_tried_again(story: Story) -> None:
    story.create(pod(resources={"nvidia.com/gpu": "1"}, nodeName="n1"))
    story.advance(hours=1)

    assert story.phase("p") == "Failed"


# Logs


def test_a_job_prints_its_steps(story: Story) -> None:
    story.create(script("sleep 600"))
    story.advance(seconds=61)
    document = story.get("pods", "p")

    lines = story.world.parts["kubelet"].log_of(document, "", stamps=False)

    assert [text.split(" | ")[0] for _, text in lines[1:]] == [
        "08:00:40 step      50",
        "08:00:50 step     100",
        "08:01:00 step     150",
    ]


def test_a_pod_that_was_never_taken_on_has_no_log(story: Story) -> None:
    story.create(pod(nodeSelector={"no": "where"}))

    with pytest.raises(ApiError) as refused:
        story.world.parts["kubelet"].log_of(story.get("pods", "p"), "", stamps=False)

    assert refused.value.code == 400


def test_a_long_log_is_its_end(story: Story) -> None:
    story.create(script("sleep 9000000"))
    story.advance(hours=100)

    lines = story.world.parts["kubelet"].log_of(story.get("pods", "p"), "", stamps=False)

    assert len(lines) < 2100
    assert lines[-1][0] <= story.world.now


def test_nothing_of_a_pod_is_left_when_it_is_gone(story: Story) -> None:
    story.create(pod())
    story.advance(minutes=1)
    story.delete("pods", "p")
    story.advance(minutes=1)

    assert pod_key("p") not in story.world.parts["kubelet"].runs
