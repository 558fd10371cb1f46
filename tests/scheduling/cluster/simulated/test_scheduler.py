"""Where pods go, and the sentence when they cannot."""

from typing import Any

import pytest

from tests.scheduling.cluster.simulated.stories import Story, on_node, plain_node, pod

GPU = "example.com/accelerator"  # a resource of no device plugin that the simulation plays
PREEMPTION = "preemption: 0/{n} nodes are available: {n} Preemption is not helpful for scheduling."


def gpu_node(name: str, count: int = 2, **more: Any) -> dict[str, Any]:
    return plain_node(name, resources={GPU: str(count)}, **more)


def bound(story: Story, name: str = "p") -> str:
    return str(story.get("pods", name)["spec"].get("nodeName", ""))


def test_a_pod_is_bound_at_once(story: Story) -> None:
    story.create(pod())

    assert bound(story) == "n1"
    assert story.events("p")[0] == "Scheduled"


def test_pods_spread_over_equal_nodes(story: Story) -> None:
    for name in ("a", "b", "c", "d"):
        story.create(pod(name))

    assert [bound(story, name) for name in "abcd"] == ["n1", "n2", "n1", "n2"]


def test_the_scarce_resource_decides() -> None:
    story = Story([gpu_node("small", 1), gpu_node("large", 8, cpu="4")])

    story.create(pod(resources={GPU: "1"}))

    assert bound(story) == "large"


def test_a_node_that_is_full_takes_no_more() -> None:
    story = Story([gpu_node("n1", 2)])
    for name in ("a", "b", "c"):
        story.create(pod(name, {GPU: "1"}))

    assert bound(story, "c") == ""
    assert story.refusal("c") == f"0/1 nodes are available: 1 Insufficient {GPU}. {PREEMPTION.format(n=1)}"
    assert story.events("c") == ["FailedScheduling"]


def test_when_there_is_room_again_it_is_bound() -> None:
    story = Story([gpu_node("n1", 1)])
    story.create(pod("a", {GPU: "1"}))
    story.create(pod("b", {GPU: "1"}))
    story.advance(minutes=1)

    story.delete("pods", "a")
    assert bound(story, "b") == ""  # the dying pod holds its GPU until it is gone

    story.advance(seconds=10)
    assert bound(story, "b") == "n1"


def test_a_pod_that_has_ended_holds_nothing() -> None:
    story = Story([gpu_node("n1", 1)])
    story.create(pod("a", {GPU: "1"}, command=["sh", "-c", "exit 0"], restartPolicy="Never"))
    story.create(pod("b", {GPU: "1"}))

    story.advance(minutes=1)

    assert bound(story, "b") == "n1"


def test_the_more_important_pod_goes_first() -> None:
    story = Story([gpu_node("n1", 1, unschedulable=True)])
    story.create(pod("early", {GPU: "1"}))
    story.create(pod("important", {GPU: "1"}, priority=100))

    story.merge("nodes", "n1", {"spec": {"unschedulable": None}})

    assert [bound(story, name) for name in ("early", "important")] == ["", "n1"]


def test_the_same_sentence_is_said_once() -> None:
    story = Story([gpu_node("n1", 0)])
    story.create(pod("a", {GPU: "1"}))
    version = story.get("pods", "a")["metadata"]["resourceVersion"]

    story.merge("nodes", "n1", {"metadata": {"labels": {"x": "y"}}})
    story.advance(hours=0.5)

    assert story.get("pods", "a")["metadata"]["resourceVersion"] == version
    assert story.events("a") == ["FailedScheduling"]


SELECTED: dict[str, tuple[dict[str, Any], str]] = {
    "a node selector": ({"nodeSelector": {"zone": "b"}}, "n2"),
    "a node selector that none fulfils": ({"nodeSelector": {"zone": "c"}}, ""),
    "an affinity to a node by its name": ({"affinity": on_node("n2")}, "n2"),
    "another schedulers pod": ({"schedulerName": "kai-scheduler"}, ""),
    "a gated pod": ({"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}, ""),
}
EXPRESSIONS = {
    "In": ({"key": "zone", "operator": "In", "values": ["b", "c"]}, "n2"),
    "NotIn": ({"key": "zone", "operator": "NotIn", "values": ["a"]}, "n2"),
    "Exists": ({"key": "fast", "operator": "Exists"}, "n2"),
    "DoesNotExist": ({"key": "fast", "operator": "DoesNotExist"}, "n1"),
}


@pytest.fixture
def zones() -> Story:
    return Story([plain_node("n1", labels={"zone": "a"}), plain_node("n2", labels={"zone": "b", "fast": "1"})])


@pytest.mark.parametrize(("spec", "node"), SELECTED.values(), ids=SELECTED)
def test_nodes_are_chosen(zones: Story, spec: dict[str, Any], node: str) -> None:
    zones.create(pod(**spec))

    assert bound(zones) == node


@pytest.mark.parametrize(("expression", "node"), EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_affinity_expressions(zones: Story, expression: dict[str, Any], node: str) -> None:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["nowhere"]}]}]
    terms.append({"matchExpressions": [expression]})
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}

    zones.create(pod(affinity={"nodeAffinity": required}))

    assert bound(zones) == node


def test_a_gated_pod_says_so(zones: Story) -> None:
    zones.create(pod(schedulingGates=[{"name": "x"}]))

    conditions = zones.get("pods", "p")["status"]["conditions"]
    assert [(one["type"], one["reason"]) for one in conditions] == [("PodScheduled", "SchedulingGated")]

    zones.merge("pods", "p", {"spec": {"schedulingGates": None}})
    assert bound(zones)


TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TOLERATED: dict[str, tuple[list[dict[str, str]], bool]] = {
    "nothing": ([], False),
    "the key whatever its value": ([{"key": "nvidia.com/gpu", "operator": "Exists"}], True),
    "everything": ([{"operator": "Exists"}], True),
    "the same value": ([{"key": "nvidia.com/gpu", "operator": "Equal", "value": "present"}], True),
    "another value": ([{"key": "nvidia.com/gpu", "value": "true"}], False),
    "another effect": ([{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute"}], False),
}


@pytest.mark.parametrize(("tolerations", "fits"), TOLERATED.values(), ids=TOLERATED)
def test_taints_are_tolerated(tolerations: list[dict[str, str]], fits: bool) -> None:
    story = Story([plain_node("n1", taints=[TAINT])])

    story.create(pod(tolerations=tolerations))

    assert bool(bound(story)) is fits
    if not fits:
        assert "1 node(s) had untolerated taint {nvidia.com/gpu: present}" in story.refusal("p")


def test_a_taint_that_only_prefers_keeps_nobody_away() -> None:
    story = Story([plain_node("n1", taints=[TAINT | {"effect": "PreferNoSchedule"}])])

    story.create(pod(tolerations=[]))

    assert bound(story) == "n1"


def test_every_reason_is_counted_in_order() -> None:
    story = Story(
        [
            gpu_node("cordoned", unschedulable=True),
            gpu_node("full", 0, labels={"pool": "x"}),
            gpu_node("other-pool"),
            gpu_node("tainted", taints=[{"key": "a", "effect": "NoSchedule"}]),
        ]
    )

    story.create(pod(resources={GPU: "1", "cpu": "64"}, nodeSelector={"pool": "x"}))

    assert story.refusal("p") == (
        "0/4 nodes are available: 1 Insufficient cpu, 1 Insufficient example.com/accelerator, "
        "1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint {a: }, "
        f"1 node(s) were unschedulable. {PREEMPTION.format(n=4)}"
    )


def test_without_any_node() -> None:
    story = Story([])
    story.create(pod())

    assert story.refusal("p") == "no nodes available to schedule pods"


def test_a_node_takes_so_many_pods() -> None:
    story = Story([plain_node("n1", pods="1")])
    story.create(pod("a"))
    story.create(pod("b"))

    assert "1 Too many pods" in story.refusal("b")


def test_a_pod_waits_for_its_claim(story: Story) -> None:
    volume = {"name": "home", "persistentVolumeClaim": {"claimName": "mine"}}
    story.create(pod(volumes=[volume]))
    assert story.refusal("p") == '0/2 nodes are available: persistentvolumeclaim "mine" not found.'

    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "mine", "namespace": "lab"}}
    story.create(claim | {"spec": {"accessModes": ["ReadWriteOnce"]}})

    assert bound(story)
    assert story.get("persistentvolumeclaims", "mine")["status"]["phase"] == "Bound"
