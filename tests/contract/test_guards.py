"""What keeps a write from landing on another object than the one that it was meant for."""

from collections.abc import Callable
from typing import Any

import pytest

from scheduling.cluster.api import APPLY, MERGE, path_of
from scheduling.cluster.writes import NEVER
from tests.contract.conftest import Rig, refusal_of

NAME, SPACE = "guarded", "default"
PATH = path_of("ConfigMap", SPACE, NAME)
ANOTHER = "0d6e6b52-7c1e-4f0e-9a53-8f1c2b7ad0ff"


def applied(cluster: Rig, value: str = "1", **meta: str) -> dict[str, Any]:
    body = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": SPACE, **meta},
        "data": {"key": value},
    }  # fmt: skip
    cluster.door.ask("PATCH", PATH, query={"fieldManager": "berth", "force": "true"}, body=body, content=APPLY)
    return cluster.document(PATH)


def test_a_version_that_no_object_has_makes_what_is_not_there_and_nothing_else(cluster: Rig) -> None:
    made = applied(cluster, resourceVersion=NEVER)

    refusal = refusal_of(lambda: applied(cluster, "2", resourceVersion=NEVER))

    assert refusal.status == 409
    assert cluster.document(PATH) == made


WRONG: dict[str, tuple[Callable[[dict[str, Any]], dict[str, str]], int]] = {
    "an older version": (lambda meta: {"uid": meta["uid"], "resourceVersion": "3"}, 409),
    "another uid": (lambda meta: {"uid": ANOTHER}, 422),
    "another uid of the right version": (
        lambda meta: {"uid": ANOTHER, "resourceVersion": meta["resourceVersion"]}, 422,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_an_apply_for_another_object_writes_nothing(cluster: Rig, case: str) -> None:
    guard, status = WRONG[case]
    before = applied(cluster)

    refusal = refusal_of(lambda: applied(cluster, "2", **guard(before["metadata"])))

    assert refusal.status == status
    assert cluster.document(PATH) == before


def test_an_apply_for_the_object_as_it_is_goes_through(cluster: Rig) -> None:
    meta = applied(cluster)["metadata"]

    after = applied(cluster, "2", uid=meta["uid"], resourceVersion=meta["resourceVersion"])

    assert after["data"] == {"key": "2"}
    assert after["metadata"]["uid"] == meta["uid"]


def test_what_is_gone_is_not_made_again_under_its_uid(cluster: Rig) -> None:
    meta = applied(cluster)["metadata"]
    cluster.door.ask("DELETE", PATH)

    refusal = refusal_of(lambda: applied(cluster, uid=meta["uid"], resourceVersion=meta["resourceVersion"]))

    assert refusal.status == 409
    assert refusal_of(lambda: cluster.document(PATH)).status == 404


def test_what_was_changed_since_we_looked_is_read_and_then_written(cluster: Rig) -> None:
    """A lost update is impossible, and so is one that is never made (D30)."""
    document = {
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": NAME, "namespace": SPACE, "labels": {"app.kubernetes.io/managed-by": "berth"}},
        "spec": {"clusterIP": "None", "selector": {"a": "b"}},
    }  # fmt: skip
    uid = cluster.port.put(document)
    path = path_of("Service", SPACE, NAME)
    cluster.door.ask("PATCH", path, body={"metadata": {"annotations": {"theirs": "1"}}}, content=MERGE)

    assert cluster.port.put({**document, "spec": {"clusterIP": "None", "selector": {"a": "c"}}}) == uid

    there = cluster.document(path)
    assert (there["spec"]["selector"], there["metadata"]["annotations"]) == ({"a": "c"}, {"theirs": "1"})
