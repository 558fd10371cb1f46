"""Time: the outcome does not depend on how it is cut into steps, and standing still costs nothing."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduling.cluster.simulated import ManualClock, SharedClock, SimulatedCluster
from tests.scheduling.cluster.simulated.stories import START, UNCUT, Story, fleet_story, job, pod, stateful_set
from tests.scheduling.cluster.simulated.test_http import ask


def busy_fleet() -> Story:
    story = fleet_story()
    pool = {"node.cluster.x-k8s.io/pool": "a100-burst"}
    story.create(stateful_set("ws", {"nvidia.com/mig-1g.10gb": "1"}))
    story.create(job("good", "sleep 700; exit 0", {"nvidia.com/gpu": "1"}, pod={"nodeSelector": pool}))
    story.create(job("bad", "sleep 45; exit 1", backoffLimit=3))
    story.create(pod("missing", image="does-not-exist"))
    story.scale("machinedeployments", "a100-burst", 1, "fleet")
    story.cut(UNCUT, "all-1g.10gb")
    return story


def picture(story: Story) -> dict[str, Any]:
    """Everything that there is, without the order in which it was written."""
    found = {}
    for plural, documents in story.world.store.documents.items():
        for key, document in documents.items():
            metadata = {name: text for name, text in document["metadata"].items() if name != "resourceVersion"}
            found[plural, key.namespace, key.name] = document | {"metadata": metadata, "involvedObject": None}
    return {str(key): value for key, value in found.items()}


STEPS = {"one leap": 3600, "minutes": 60, "odd steps": 37, "fractions of a second": 0.75}


@pytest.mark.parametrize("seconds", STEPS.values(), ids=STEPS)
def test_the_size_of_the_steps_does_not_matter(seconds: float) -> None:
    leap, steps = busy_fleet(), busy_fleet()
    leap.advance(hours=1)

    gone = 0.0
    while gone < 3600:
        step = min(seconds, 3600 - gone)
        steps.advance(seconds=step)
        gone += step

    assert picture(steps) == picture(leap)


def test_two_clusters_of_one_identity_are_alike() -> None:
    first, second = busy_fleet(), busy_fleet()
    first.advance(minutes=30)
    second.advance(minutes=30)

    assert picture(first) == picture(second)


def test_two_clusters_of_two_identities_have_other_uids() -> None:
    first, second = SimulatedCluster(identity="a"), SimulatedCluster(identity="b")

    uids = [one.world.get("namespaces", "", "default") for one in (first, second)]
    assert uids[0]
    assert uids[1]
    assert uids[0]["metadata"]["uid"] != uids[1]["metadata"]["uid"]


def test_things_happen_at_the_moment_when_they_are_due(story: Story) -> None:
    story.create(pod())
    story.advance(hours=10)

    ready = [one for one in story.get("pods", "p")["status"]["conditions"] if one["type"] == "Ready"]
    assert ready[0]["lastTransitionTime"] == "2026-12-01T08:00:30Z"


def test_a_step_with_nothing_due_is_free() -> None:
    story = busy_fleet()
    story.advance(hours=2)
    began = time.perf_counter()

    for _ in range(10_000):
        story.step()

    assert time.perf_counter() - began < 0.5


def test_a_clock_needs_a_zone_and_runs_forward_only() -> None:
    with pytest.raises(ValueError, match="without a zone"):
        ManualClock(datetime(2026, 12, 1))  # noqa: DTZ001
    with pytest.raises(ValueError, match="forward only"):
        ManualClock(START).advance(timedelta(seconds=-1))


def test_a_clock_that_runs_by_itself_cannot_be_advanced() -> None:
    cluster = SimulatedCluster(clock=SharedClock())

    with pytest.raises(TypeError, match="runs by itself"):
        cluster.advance(seconds=1)


def test_by_itself_it_moves_with_the_shared_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Served with a fast clock: a pod runs within a fraction of a second of the wall clock."""
    began = time.monotonic()
    monkeypatch.setattr("tenants.clock.now", lambda: START + timedelta(seconds=(time.monotonic() - began) * 600))
    from tests.scheduling.cluster.simulated.stories import plain_node

    cluster = SimulatedCluster([plain_node("n1")], clock=SharedClock())
    with cluster.serve() as url:
        ask(url, "POST", "/api/v1/namespaces/default/pods", pod() | {"metadata": {"name": "p"}})
        until = time.monotonic() + 10
        while b'"phase":"Running"' not in ask(url, "GET", "/api/v1/namespaces/default/pods/p")[2]:
            assert time.monotonic() < until, "the pod does not start"
            time.sleep(0.02)


def test_a_thousand_nodes_are_listed_quickly() -> None:
    import yaml

    from tests.scheduling.cluster.simulated.stories import DATA, plain_node

    shaped = yaml.safe_load((DATA / "nodes" / "02-gke-h100x8-mig-mixed.yaml").read_text())
    documents = [plain_node(f"n{number:04}") for number in range(500)]
    for number in range(500):
        metadata = shaped["metadata"] | {"name": f"g{number:04}"}
        documents.append(shaped | {"metadata": metadata})
    story = Story(documents)
    with story.serve() as url:
        durations = []
        for _ in range(3):
            began = time.monotonic()
            code, _, body = ask(url, "GET", "/api/v1/nodes")
            durations.append(time.monotonic() - began)

    assert (code, body.count(b'"hugepages-1Gi"') // 2) == (200, 500)
    assert min(durations) < 0.8
