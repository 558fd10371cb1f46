"""Who owns which field, and what server-side apply makes of it."""

from typing import Any

import pytest

from scheduling.cluster.simulated import fields
from scheduling.cluster.simulated.errors import ApiError
from scheduling.cluster.simulated.fields import Manager

US, THEM = Manager("berth", "Apply"), Manager("kubectl")
NOW = "2026-12-01T08:00:00Z"


def document(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "a"}, "spec": spec}


def labelled(**labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": labels}}


def apply(live: dict[str, Any], wish: dict[str, Any], who: Manager = US, *, force: bool = False) -> dict[str, Any]:
    return fields.apply(live, wish, who, force=force, now=NOW)


def test_what_is_applied_is_owned() -> None:
    live = apply(document(), document(replicas=1))

    assert fields.read(live) == {US: {("f:spec", "f:replicas")}}


def test_the_same_again_changes_nothing() -> None:
    live = apply(document(), document(replicas=1))

    assert fields.apply(live, document(replicas=1), US, force=False, now="later") == live


def test_somebody_elses_field_with_another_value_is_a_conflict_that_names_him() -> None:
    live = fields.update(document(), document(replicas=3), THEM, NOW)

    with pytest.raises(ApiError) as refused:
        apply(live, document(replicas=1))

    assert refused.value.code == 409
    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "kubectl": .spec.replicas'
    assert refused.value.details == {
        "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "kubectl"', "field": ".spec.replicas"}]
    }


def test_the_same_value_is_shared() -> None:
    live = fields.update(document(), document(replicas=3), THEM, NOW)

    after = apply(live, document(replicas=3))

    assert fields.read(after) == {THEM: {("f:spec", "f:replicas")}, US: {("f:spec", "f:replicas")}}


def test_force_takes_the_field_over() -> None:
    live = fields.update(document(), document(replicas=3), THEM, NOW)

    after = apply(live, document(replicas=1), force=True)

    assert after["spec"]["replicas"] == 1
    assert fields.read(after) == {US: {("f:spec", "f:replicas")}}


def test_what_is_no_longer_wished_goes() -> None:
    live = apply(labelled(), labelled(a="1", b="2"))

    after = apply(live, labelled(a="1"))

    assert after["metadata"]["labels"] == {"a": "1"}


def test_what_somebody_else_owns_too_stays() -> None:
    live = apply(labelled(), labelled(a="1", b="2"))
    live = apply(live, labelled(b="2"), Manager("other", "Apply"))

    after = apply(live, labelled(a="1"))

    assert after["metadata"]["labels"] == {"a": "1", "b": "2"}


def test_what_nobody_owns_stays() -> None:
    live = labelled(foreign="yes")

    assert apply(live, labelled(a="1"))["metadata"]["labels"] == {"foreign": "yes", "a": "1"}


MAIN, SIDE = {"name": "main", "image": "a"}, {"name": "side", "image": "b"}


def test_a_container_that_is_no_longer_wished_goes_as_a_whole() -> None:
    live = apply(document(), document(containers=[MAIN, SIDE]))

    after = apply(live, document(containers=[MAIN]))

    assert after["spec"]["containers"] == [MAIN]


def test_a_container_in_which_somebody_else_owns_a_field_stays_with_that_field() -> None:
    live = apply(document(), document(containers=[MAIN, SIDE]))
    touched = {**SIDE, "tty": True}
    live = fields.update(live, {**live, "spec": {"containers": [MAIN, touched]}}, THEM, NOW)

    after = apply(live, document(containers=[MAIN]))

    assert after["spec"]["containers"] == [MAIN, {"name": "side", "tty": True}]


def test_an_update_takes_the_field_from_its_owner() -> None:
    live = apply(document(), document(replicas=1, serviceName="x"))

    after = fields.update(live, {**live, "spec": {"replicas": 5, "serviceName": "x"}}, THEM, NOW)

    assert fields.read(after) == {THEM: {("f:spec", "f:replicas")}, US: {("f:spec", "f:serviceName")}}


def test_a_field_that_an_update_removed_belongs_to_nobody() -> None:
    live = apply(labelled(), labelled(a="1", b="2"))

    after = fields.update(live, labelled(a="1") | {}, THEM, NOW)

    assert fields.read(after)[US] == {("f:metadata", "f:labels", "f:a")}


def test_managed_fields_are_written_as_kubernetes_writes_them() -> None:
    live = apply(document(), document(replicas=1, containers=[MAIN]))

    assert live["metadata"]["managedFields"] == [
        {
            "manager": "berth",
            "operation": "Apply",
            "apiVersion": "apps/v1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:spec": {
                    "f:containers": {'k:{"name":"main"}': {".": {}, "f:image": {}, "f:name": {}}},
                    "f:replicas": {},
                }
            },
        }
    ]


def test_status_has_owners_of_its_own() -> None:
    kubelet = Manager("kubelet", "Update", "status")
    live = fields.update(document(), {**document(), "status": {"phase": "Running"}}, kubelet, NOW)

    assert live["metadata"]["managedFields"][0]["subresource"] == "status"
    assert fields.read(live) == {kubelet: {("f:status", "f:phase")}}
