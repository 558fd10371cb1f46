"""Whatever is sent: it is stored or refused with a reason, and the cluster goes on living."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduling.cluster.simulated.errors import ApiError
from scheduling.cluster.simulated.kinds import BY_PLURAL, BY_TYPE, Document, copy
from tests.scheduling.cluster.simulated.stories import (
    TRAIN,
    Story,
    config_map,
    job,
    plain_node,
    pod,
    stateful_set,
)
from tests.scheduling.cluster.simulated.test_http import ask

DOCUMENTS: list[Document] = [
    pod(resources={"nvidia.com/gpu": "1"}, volumes=[{"name": "v", "emptyDir": {}}], nodeSelector={"a": "b"}),
    stateful_set(resources={"nvidia.com/gpu": "1"}),
    job(podFailurePolicy={"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}),
    config_map(labels={"a": "b"}, finalizers=["example.com/x"]),
    plain_node("n9", taints=[{"key": "a", "effect": "NoSchedule"}]),
    {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "lab"},
        "spec": {"hard": {"pods": "9"}},
    },
]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 2**40)
    | st.text(max_size=8)
    | st.sampled_from(["", "1", "abc", "Always"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "key", "*", ""]), inner, max_size=3)
    ),
    max_leaves=4,
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else []
    for step, inner in items:
        found += paths(inner, (*path, step))
    return found


def put(document: Document, path: tuple[Any, ...], value: Any) -> Document:
    result = copy(document)
    inside = result
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = value
    return dict(result)


def code_of(call: Callable[[], Any]) -> int:
    """The code of the refusal; 0 when there is none."""
    try:
        call()
    except ApiError as refused:
        return refused.code
    return 0


@st.composite
def spoiled(draw: st.DrawFn) -> tuple[Document, str]:
    """A good document with one or two of its fields replaced by anything, and where it is sent."""
    document = draw(st.sampled_from(DOCUMENTS))
    plural = BY_TYPE[document["apiVersion"], document["kind"]].plural
    for _ in range(draw(st.integers(1, 2))):
        fields = paths(document)
        document = put(document, draw(st.sampled_from(fields)), draw(VALUES)) if fields else document
    return document, plural


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(spoiled())
def test_a_spoiled_document_harms_nobody(sent: tuple[Document, str]) -> None:
    document, plural = sent
    story = Story([plain_node("n1")])
    kind = BY_PLURAL[plural]
    code = code_of(lambda: story.world.api.create(kind, "lab" if kind.namespaced else "", document))

    assert code in (0, 400, 403, 404, 409, 422)
    story.advance(minutes=10)

    json.dumps(story.all(plural))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(spoiled(), st.sampled_from(["", "status"]))
def test_a_spoiled_patch_harms_nobody(sent: tuple[Document, str], subresource: str) -> None:
    document, plural = sent
    story = Story([plain_node("n1")])
    good = next(one for one in DOCUMENTS if BY_TYPE[one["apiVersion"], one["kind"]].plural == plural)
    story.create(good)
    story.advance(minutes=1)
    name, kind = good["metadata"]["name"], BY_PLURAL[plural]
    if story.find(plural, name) is None or (subresource and not kind.has_status):
        return
    patch = {part: document.get(part) for part in ("metadata", "spec", "data", "status") if part in document}
    patch.setdefault("status", patch.get("spec"))
    code = code_of(lambda: story.merge(plural, name, patch, subresource=subresource))

    assert code in (0, 400, 404, 409, 422)
    story.advance(minutes=10)

    json.dumps(story.all(plural))


LABELS = st.dictionaries(
    st.sampled_from(
        [
            "nvidia.com/mig.config",
            "nvidia.com/mig.config.state",
            "nvidia.com/gpu.product",
            "nvidia.com/gpu.count",
            "node.cluster.x-k8s.io/pool",
            "nvidia.com/gpu.deploy.dcgm-exporter",
        ]
    ),
    st.sampled_from(["", "all-1g.10gb", "all-balanced", "x", "-1", "true", "pending"]).filter(
        lambda text: text != "-1"
    ),
    max_size=4,
)


@settings(max_examples=15, deadline=None)
@given(st.lists(LABELS, min_size=1, max_size=4))
def test_labels_written_by_anybody_do_not_break_a_gpu_node(writes: list[dict[str, str]]) -> None:
    from tests.scheduling.cluster.simulated.stories import fleet_story

    story = fleet_story()
    for labels in writes:
        story.merge("nodes", TRAIN, {"metadata": {"labels": labels}})
        story.advance(seconds=25)
    story.advance(minutes=2)

    assert sum(story.allocatable(TRAIN).values()) in (0, 8, 32, 56)


TYPES: dict[str, tuple[str, Document, str]] = {
    "a number as label": ("configmaps", config_map(labels={"a": 1}), "metadata.labels.a"),
    "a text as list": ("pods", pod() | {"spec": {"containers": "x"}}, "spec.containers"),
    "a null in a list": ("pods", pod() | {"spec": {"containers": [None]}}, "spec.containers"),
    "a list as map": ("pods", pod(nodeSelector=["a"]), "spec.nodeSelector"),
    "a text as number": ("jobs", job(backoffLimit="3"), "spec.backoffLimit"),
    "a number as truth": ("jobs", job(suspend=1), "spec.suspend"),
    "a truth as number": ("jobs", job(parallelism=True), "spec.parallelism"),
    "a truth as quantity": ("pods", pod(resources={"cpu": True}), "spec.containers.resources.limits.cpu"),  # type: ignore[dict-item]
}


@pytest.mark.parametrize(("plural", "document", "field"), TYPES.values(), ids=TYPES)
def test_a_wrong_type_is_said_with_its_field(story: Story, plural: str, document: Document, field: str) -> None:
    with pytest.raises(ApiError) as refused:
        story.world.api.create(BY_PLURAL[plural], "lab", document)

    assert (refused.value.code, refused.value.reason) == (400, "BadRequest")
    assert refused.value.message.startswith("json: cannot unmarshal ")
    assert refused.value.message.endswith(f" into field {field}")


PATHS = [
    "/api/v1/namespaces/lab/pods/%2e%2e%2f%2e%2e/log",
    "/api/v1/namespaces/%00/pods",
    "/api/v1/namespaces/lab/pods/" + "x" * 4000,
    "/api/v1/pods?labelSelector=" + "a," * 2000,
    "/api/v1/pods?fieldSelector=%F0%9F%92%A5",
    "/api/v1/pods?watch=true&resourceVersion=-1",
    "//api//v1//pods",
]


@pytest.mark.parametrize("path", PATHS)
def test_hostile_paths_are_answered(url: str, path: str) -> None:
    code, _, body = ask(url, "GET", path)

    assert code in (200, 400, 404)
    assert json.loads(body)["kind"] in ("Status", "PodList")
