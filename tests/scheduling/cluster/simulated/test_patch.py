"""Patches as values: JSON patch, merge, strategic merge, apply."""

from typing import Any

import pytest

from scheduling.cluster.simulated.errors import ApiError
from scheduling.cluster.simulated.patch import apply_merge, json_patch, merge_patch, strategic_merge

MERGE: dict[str, tuple[Any, Any, Any]] = {
    "a new field": ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
    "null removes": ({"a": 1, "b": 2}, {"b": None}, {"a": 1}),
    "maps merge": ({"a": {"x": 1}}, {"a": {"y": 2}}, {"a": {"x": 1, "y": 2}}),
    "lists replace": ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
    "a map over a text": ({"a": "x"}, {"a": {"y": 2}}, {"a": {"y": 2}}),
    "null of what is absent": ({}, {"b": None}, {}),
}


@pytest.mark.parametrize(("before", "patch", "after"), MERGE.values(), ids=MERGE)
def test_merge_patch(before: Any, patch: Any, after: Any) -> None:
    assert merge_patch(before, patch) == after


MAIN, SIDE = {"name": "main", "image": "a:1"}, {"name": "side", "image": "b:1"}
STRATEGIC: dict[str, tuple[Any, Any, Any]] = {
    "a container by its name": (
        {"containers": [MAIN, SIDE]},
        {"containers": [{"name": "side", "image": "b:2"}]},
        {"containers": [MAIN, {"name": "side", "image": "b:2"}]},
    ),
    "a new container": ({"containers": [MAIN]}, {"containers": [SIDE]}, {"containers": [MAIN, SIDE]}),
    "a container to be deleted": (
        {"containers": [MAIN, SIDE]},
        {"containers": [{"name": "side", "$patch": "delete"}]},
        {"containers": [MAIN]},
    ),
    "a list to be replaced": (
        {"containers": [MAIN]},
        {"containers": [{"$patch": "replace"}, SIDE]},
        {"containers": [SIDE]},
    ),
    "env by name": (
        {"env": [{"name": "A", "value": "1"}]},
        {"env": [{"name": "B", "value": "2"}]},
        {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
    ),
    "taints by key": (
        {"taints": [{"key": "a", "effect": "NoSchedule"}]},
        {"taints": [{"key": "b", "effect": "NoExecute"}]},
        {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute"}]},
    ),
    "conditions by type": (
        {"conditions": [{"type": "Ready", "status": "True"}]},
        {"conditions": [{"type": "Ready", "status": "False"}]},
        {"conditions": [{"type": "Ready", "status": "False"}]},
    ),
    "tolerations are one value": (
        {"tolerations": [{"key": "a"}]},
        {"tolerations": [{"key": "b"}]},
        {"tolerations": [{"key": "b"}]},
    ),
    "finalizers add up": ({"finalizers": ["a"]}, {"finalizers": ["b"]}, {"finalizers": ["a", "b"]}),
    "finalizers to be deleted": (
        {"finalizers": ["a", "b"]},
        {"$deleteFromPrimitiveList/finalizers": ["a"]},
        {"finalizers": ["b"]},
    ),
    "ports by number and protocol": (
        {"ports": [{"containerPort": 80, "protocol": "TCP"}]},
        {"ports": [{"containerPort": 80, "name": "web"}]},
        {"ports": [{"containerPort": 80, "protocol": "TCP", "name": "web"}]},
    ),
}


@pytest.mark.parametrize(("before", "patch", "after"), STRATEGIC.values(), ids=STRATEGIC)
def test_strategic_merge(before: Any, patch: Any, after: Any) -> None:
    assert strategic_merge(before, patch) == after


def test_apply_takes_taints_as_one_value() -> None:
    live = {"taints": [{"key": "a", "effect": "NoSchedule"}]}

    assert apply_merge(live, {"taints": [{"key": "b", "effect": "NoSchedule"}]}) == {
        "taints": [{"key": "b", "effect": "NoSchedule"}]
    }


def test_apply_leaves_alone_what_it_does_not_name() -> None:
    live = {"spec": {"replicas": 3, "containers": [MAIN, SIDE]}}
    wish = {"spec": {"containers": [{"name": "main", "image": "a:2"}]}}

    assert apply_merge(live, wish) == {"spec": {"replicas": 3, "containers": [{"name": "main", "image": "a:2"}, SIDE]}}


JSON: dict[str, tuple[Any, list[Any], Any]] = {
    "add": ({"a": {}}, [{"op": "add", "path": "/a/b", "value": 1}], {"a": {"b": 1}}),
    "add to the end": ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
    "add in between": ({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
    "remove": ({"a": 1, "b": 2}, [{"op": "remove", "path": "/b"}], {"a": 1}),
    "replace": ({"a": 1}, [{"op": "replace", "path": "/a", "value": 2}], {"a": 2}),
    "move": ({"a": 1}, [{"op": "move", "from": "/a", "path": "/b"}], {"b": 1}),
    "copy": ({"a": [1]}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": [1], "b": [1]}),
    "test that holds": ({"a": 1}, [{"op": "test", "path": "/a", "value": 1}], {"a": 1}),
    "a slash in a name": (
        {"labels": {"x/y": "1"}},
        [{"op": "replace", "path": "/labels/x~1y", "value": "2"}],
        {"labels": {"x/y": "2"}},
    ),
}


@pytest.mark.parametrize(("before", "operations", "after"), JSON.values(), ids=JSON)
def test_json_patch(before: Any, operations: list[Any], after: Any) -> None:
    assert json_patch(before, operations) == after


UNFIT: dict[str, Any] = {
    "a test that fails": [{"op": "test", "path": "/a", "value": 2}],
    "a field that is not there": [{"op": "remove", "path": "/nope"}],
    "to replace what is not there": [{"op": "replace", "path": "/nope", "value": 1}],
    "an unknown operation": [{"op": "shake", "path": "/a"}],
    "a path without a slash": [{"op": "remove", "path": "a"}],
    "no list": {"op": "remove"},
    "an index beyond the list": [{"op": "add", "path": "/l/9", "value": 1}],
}


@pytest.mark.parametrize("operations", UNFIT.values(), ids=UNFIT)
def test_a_json_patch_that_does_not_fit_is_unprocessable(operations: Any) -> None:
    with pytest.raises(ApiError) as refused:
        json_patch({"a": 1, "l": []}, operations)

    assert refused.value.code == 422


def test_a_failed_json_patch_changes_nothing() -> None:
    before = {"a": {"b": 1}}

    with pytest.raises(ApiError):
        json_patch(before, [{"op": "remove", "path": "/a/b"}, {"op": "remove", "path": "/nope"}])

    assert before == {"a": {"b": 1}}
