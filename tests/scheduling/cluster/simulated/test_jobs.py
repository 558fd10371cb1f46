"""Jobs: until enough pods have succeeded, too many have failed, or the time is up."""

from typing import Any

import pytest

from tests.scheduling.cluster.simulated.stories import Story, job


def conditions(story: Story, name: str = "j") -> dict[str, str]:
    """Type to reason of the conditions that are true."""
    found = story.get("jobs", name)["status"].get("conditions") or []
    return {one["type"]: one["reason"] for one in found if one["status"] == "True"}


def figures(story: Story, name: str = "j") -> dict[str, int]:
    status = story.get("jobs", name)["status"]
    return {word: status[word] for word in ("active", "ready", "succeeded", "failed") if status.get(word)}


def test_it_runs_one_pod(story: Story) -> None:
    story.create(job())
    assert figures(story) == {"active": 1}

    story.advance(minutes=1)
    assert figures(story) == {"active": 1, "ready": 1}
    labels = story.all("pods")[0]["metadata"]["labels"]
    assert labels["batch.kubernetes.io/job-name"] == "j"
    assert labels["batch.kubernetes.io/controller-uid"] == story.get("jobs", "j")["metadata"]["uid"]


def test_it_is_complete_when_its_pod_has_succeeded(story: Story) -> None:
    story.create(job())
    story.advance(minutes=11)

    assert conditions(story) == {"SuccessCriteriaMet": "CompletionsReached", "Complete": "CompletionsReached"}
    status = story.get("jobs", "j")["status"]
    assert (status["startTime"], status["completionTime"]) == ("2026-12-01T08:00:00Z", "2026-12-01T08:10:30Z")
    assert figures(story) == {"succeeded": 1}
    assert story.events("j") == ["SuccessfulCreate", "Completed"]


def test_it_tries_again_later_and_later_then_fails(story: Story) -> None:
    story.create(job(script="sleep 1; exit 1", backoffLimit=2))

    story.advance(seconds=32)
    assert figures(story) == {"failed": 1}  # and now it rests for ten seconds
    story.advance(seconds=10)
    assert figures(story)["active"] == 1

    story.advance(minutes=10)
    assert conditions(story) == {"FailureTarget": "BackoffLimitExceeded", "Failed": "BackoffLimitExceeded"}
    assert figures(story) == {"failed": 3}
    assert len(story.all("pods")) == 3


def test_its_time_may_be_up(story: Story) -> None:
    story.create(job(activeDeadlineSeconds=120))

    story.advance(seconds=119)
    assert conditions(story) == {}
    story.advance(seconds=30)

    assert conditions(story)["Failed"] == "DeadlineExceeded"
    assert story.names("pods") == []


def test_a_suspended_job_has_no_pods_until_it_is_resumed(story: Story) -> None:
    story.create(job(suspend=True))
    story.advance(minutes=5)
    assert story.names("pods") == []
    assert conditions(story) == {"Suspended": "JobSuspended"}

    story.merge("jobs", "j", {"spec": {"suspend": False}})
    story.advance(minutes=1)

    assert figures(story) == {"active": 1, "ready": 1}
    assert story.get("jobs", "j")["status"]["startTime"] == "2026-12-01T08:05:00Z"


def test_suspending_takes_the_pods_away_and_counts_no_failure(story: Story) -> None:
    story.create(job(backoffLimit=0))
    story.advance(minutes=1)

    story.merge("jobs", "j", {"spec": {"suspend": True}})
    story.advance(minutes=1)

    assert story.names("pods") == []
    assert figures(story) == {}
    story.merge("jobs", "j", {"spec": {"suspend": False}})
    story.advance(minutes=12)
    assert "Complete" in conditions(story)


def test_several_completions_side_by_side(story: Story) -> None:
    story.create(job(script="sleep 60", parallelism=2, completions=3))
    assert figures(story) == {"active": 2}

    story.advance(minutes=2)
    assert figures(story) == {"active": 1, "ready": 1, "succeeded": 2}

    story.advance(minutes=2)
    assert "Complete" in conditions(story)


def test_an_indexed_job_numbers_its_pods(story: Story) -> None:
    story.create(job(script="sleep 60", parallelism=3, completions=3, completionMode="Indexed"))

    pods = story.all("pods")
    assert [one["metadata"]["name"].rpartition("-")[0] for one in pods] == ["j-0", "j-1", "j-2"]
    assert pods[1]["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] == "1"
    assert {"name": "JOB_COMPLETION_INDEX", "value": "1"} in pods[1]["spec"]["containers"][0]["env"]

    story.advance(minutes=3)
    assert "Complete" in conditions(story)


def test_a_pod_that_somebody_deletes_is_a_failure(story: Story) -> None:
    story.create(job(backoffLimit=0))
    story.advance(minutes=1)

    story.delete("pods", story.names("pods")[0])
    story.advance(minutes=1)

    assert conditions(story)["Failed"] == "BackoffLimitExceeded"


IGNORE = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}


def exit_rule(action: str, *codes: int) -> dict[str, Any]:
    return {"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": list(codes)}}]}


def test_a_disruption_may_be_ignored(story: Story) -> None:
    story.create(job(backoffLimit=0, podFailurePolicy=IGNORE))
    story.advance(minutes=1)
    node = story.all("pods")[0]["spec"]["nodeName"]

    story.merge("nodes", node, {"spec": {"taints": [{"key": "spot", "effect": "NoExecute"}]}})
    story.advance(minutes=1)

    assert conditions(story) == {}
    assert figures(story)["active"] == 1
    assert story.all("pods")[0]["spec"]["nodeName"] != node


POLICIES = {
    "one code fails the job at once": (exit_rule("FailJob", 42), 42, "PodFailurePolicy"),
    "another code is counted": (exit_rule("FailJob", 42), 1, "BackoffLimitExceeded"),
    "an ignored code is tried for ever": (exit_rule("Ignore", 42), 42, None),
}


@pytest.mark.parametrize(("policy", "code", "reason"), POLICIES.values(), ids=POLICIES)
def test_exit_codes_decide(story: Story, policy: dict[str, Any], code: int, reason: str | None) -> None:
    story.create(job(script=f"sleep 1; exit {code}", backoffLimit=1, podFailurePolicy=policy))
    story.advance(minutes=5)

    assert conditions(story).get("Failed") == reason


def test_it_goes_when_its_time_to_live_is_over(story: Story) -> None:
    story.create(job(script="sleep 1", ttlSecondsAfterFinished=300))
    story.advance(minutes=1)
    assert "Complete" in conditions(story)

    story.advance(minutes=5)

    assert story.names("jobs") == story.names("pods") == []


def test_without_a_time_to_live_it_stays(story: Story) -> None:
    story.create(job(script="sleep 1"))
    story.advance(hours=48)

    assert story.names("jobs") == ["j"]
    assert len(story.all("pods")) == 1


def test_a_namesake_counts_anew(story: Story) -> None:
    story.create(job(script="sleep 1; exit 1", backoffLimit=0))
    story.advance(minutes=1)
    story.delete("jobs", "j", propagation="Background")
    story.advance(minutes=1)

    story.create(job())

    assert conditions(story) == {}
    assert figures(story) == {"active": 1}
