"""What requests do to objects: identity, conflicts, status, deletion, owners, namespaces, quota."""

from typing import Any

import pytest

from scheduling.cluster.simulated.api import APPLY_PATCH, JSON_PATCH, STRATEGIC_PATCH
from scheduling.cluster.simulated.errors import ApiError
from scheduling.cluster.simulated.kinds import BY_PLURAL, Document, copy
from tests.scheduling.cluster.simulated.stories import Story, config_map, job, pod, stateful_set

MAPS, PODS = BY_PLURAL["configmaps"], BY_PLURAL["pods"]


def refusal(call: Any, *arguments: Any, **options: Any) -> tuple[int, str]:
    with pytest.raises(ApiError) as refused:
        call(*arguments, **options)
    return refused.value.code, refused.value.reason


# Creating


def test_a_created_object_has_uid_version_and_time(story: Story) -> None:
    metadata = story.create(config_map())["metadata"]

    assert len(metadata["uid"]) == 36
    assert int(metadata["resourceVersion"]) > 0
    assert metadata["creationTimestamp"] == "2026-12-01T08:00:00Z"


def test_nobody_chooses_his_own_uid(story: Story) -> None:
    created = story.create(config_map(uid="mine", creationTimestamp="1999-01-01T00:00:00Z", resourceVersion=""))

    assert created["metadata"]["uid"] != "mine"
    assert created["metadata"]["creationTimestamp"] == "2026-12-01T08:00:00Z"


def test_a_name_can_be_generated(story: Story) -> None:
    document = config_map()
    del document["metadata"]["name"]
    document["metadata"]["generateName"] = "run-"

    first, second = (story.world.api.create(MAPS, "lab", document) for _ in range(2))

    assert first["metadata"]["name"].startswith("run-")
    assert first["metadata"]["name"] != second["metadata"]["name"]


def test_without_a_name_it_is_refused(story: Story) -> None:
    document = config_map()
    del document["metadata"]["name"]

    assert refusal(story.world.api.create, MAPS, "lab", document) == (422, "Invalid")


def test_a_second_one_of_the_same_name_already_exists(story: Story) -> None:
    story.create(config_map())

    assert refusal(story.create, config_map()) == (409, "AlreadyExists")


def test_in_a_namespace_that_is_not_there_it_is_not_found(story: Story) -> None:
    with pytest.raises(ApiError, match='namespaces "nowhere" not found'):
        story.create(config_map(namespace="nowhere"))


def test_the_body_must_fit_the_path(story: Story) -> None:
    create = story.world.api.create

    assert refusal(create, MAPS, "lab", pod()) == (400, "BadRequest")
    assert refusal(create, MAPS, "lab", config_map(namespace="default")) == (400, "BadRequest")
    assert refusal(create, MAPS, "lab", ["a list"]) == (400, "BadRequest")


def test_a_pods_status_cannot_be_brought_along(story: Story) -> None:
    document = pod() | {"status": {"phase": "Succeeded"}}

    assert story.create(document)["status"] == {"phase": "Pending", "qosClass": "Guaranteed"}


def test_string_data_of_a_secret_is_stored_coded(story: Story) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "lab"},
        "stringData": {"key": "open"},
    }

    created = story.create(secret)

    assert created["data"] == {"key": "b3Blbg=="}
    assert "stringData" not in created


# Changing


def test_an_update_of_an_older_version_is_a_conflict(story: Story) -> None:
    old = story.create(config_map())
    story.merge("configmaps", "settings", {"data": {"colour": "red"}})

    assert refusal(story.world.api.replace, MAPS, "lab", "settings", copy(old)) == (409, "Conflict")


def test_an_update_without_version_overwrites(story: Story) -> None:
    story.create(config_map())

    story.world.api.replace(MAPS, "lab", "settings", config_map(data={"colour": "red"}))

    assert story.get("configmaps", "settings")["data"] == {"colour": "red"}


def test_a_patch_that_names_an_older_version_is_a_conflict(story: Story) -> None:
    old = story.create(config_map())["metadata"]["resourceVersion"]
    story.merge("configmaps", "settings", {"data": {"a": "1"}})

    patch = {"metadata": {"resourceVersion": old}, "data": {"a": "2"}}
    assert refusal(story.merge, "configmaps", "settings", patch) == (409, "Conflict")


def test_an_update_of_a_namesake_is_a_conflict(story: Story) -> None:
    story.create(config_map())

    other = config_map(uid="00000000-0000-4000-a000-000000000000")
    assert refusal(story.world.api.replace, MAPS, "lab", "settings", other) == (409, "Conflict")


def test_a_change_that_changes_nothing_makes_no_new_version(story: Story) -> None:
    before = story.create(config_map())

    after = story.merge("configmaps", "settings", {"data": {"colour": "blue"}})

    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_generation_counts_changes_of_the_spec_only(story: Story) -> None:
    story.create(stateful_set())
    story.merge("statefulsets", "ws", {"metadata": {"labels": {"a": "b"}}})
    story.merge("statefulsets", "ws", {"spec": {"replicas": 0}})

    assert story.get("statefulsets", "ws")["metadata"]["generation"] == 2


def test_status_comes_by_its_own_door_only(story: Story) -> None:
    story.create(job(suspend=True))

    story.merge("jobs", "j", {"status": {"succeeded": 7}})
    assert "succeeded" not in story.get("jobs", "j")["status"]

    story.merge("jobs", "j", {"status": {"note": "x"}, "spec": {"backoffLimit": 99}}, subresource="status")
    assert story.get("jobs", "j")["spec"]["backoffLimit"] == 6


def test_nobody_can_touch_uid_or_creation(story: Story) -> None:
    created = story.create(config_map())

    story.merge("configmaps", "settings", {"metadata": {"creationTimestamp": "1999-01-01T00:00:00Z"}})

    assert (
        story.get("configmaps", "settings")["metadata"]["creationTimestamp"]
        == (created["metadata"]["creationTimestamp"])
    )


def test_custom_kinds_know_no_strategic_merge(fleet: Story) -> None:
    pools = BY_PLURAL["machinedeployments"]

    with pytest.raises(ApiError) as refused:
        fleet.world.api.patch(pools, "fleet", "a100-burst", {"spec": {"replicas": 1}}, style=STRATEGIC_PATCH)

    assert refused.value.code == 415


def test_a_json_patch(story: Story) -> None:
    story.create(config_map())
    operations = [{"op": "replace", "path": "/data/colour", "value": "red"}]

    story.world.api.patch(MAPS, "lab", "settings", operations, style=JSON_PATCH)

    assert story.get("configmaps", "settings")["data"] == {"colour": "red"}


# Server-side apply


def apply(story: Story, document: Document, manager: str = "berth", *, force: bool = False) -> Document:
    kind = BY_PLURAL[{"ConfigMap": "configmaps", "StatefulSet": "statefulsets", "Pod": "pods"}[document["kind"]]]
    where = (kind, "lab", document["metadata"]["name"])
    applied = story.world.api.patch(*where, document, style=APPLY_PATCH, manager=manager, force=force)
    story.world.settle()
    return applied


def test_apply_creates_and_applies_again_to_no_effect(story: Story) -> None:
    first = apply(story, config_map())
    again = apply(story, config_map())

    assert again == first
    assert [entry["manager"] for entry in first["metadata"]["managedFields"]] == ["berth"]


def test_apply_twice_of_a_whole_workspace_is_once(story: Story) -> None:
    first = apply(story, stateful_set(resources={"nvidia.com/gpu": "1"}))
    again = apply(story, stateful_set(resources={"nvidia.com/gpu": "1"}))

    assert again["metadata"]["generation"] == 1
    assert again["metadata"]["uid"] == first["metadata"]["uid"]


def test_apply_does_not_own_the_defaults(story: Story) -> None:
    applied = apply(story, stateful_set())

    assert applied["spec"]["podManagementPolicy"] == "OrderedReady"
    assert "f:podManagementPolicy" not in applied["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]


def test_apply_over_somebody_elses_replicas_is_a_conflict_until_forced(story: Story) -> None:
    apply(story, stateful_set(replicas=1))
    story.scale("statefulsets", "ws", 0)

    assert refusal(apply, story, stateful_set(replicas=1)) == (409, "Conflict")
    assert apply(story, stateful_set(replicas=1), force=True)["spec"]["replicas"] == 1


def test_apply_without_a_manager_is_a_bad_request(story: Story) -> None:
    assert refusal(apply, story, config_map(), "") == (400, "BadRequest")


def test_apply_of_a_pod_with_tolerations_twice_is_once(story: Story) -> None:
    first = apply(story, pod())

    assert apply(story, pod())["metadata"]["uid"] == first["metadata"]["uid"]
    assert len(first["spec"]["tolerations"]) == 3  # ours, and the two that admission adds


# Deleting


def test_a_deleted_object_is_gone(story: Story) -> None:
    story.create(config_map())
    story.delete("configmaps", "settings")

    assert refusal(story.world.api.get, MAPS, "lab", "settings") == (404, "NotFound")
    assert refusal(story.delete, "configmaps", "settings") == (404, "NotFound")


def test_a_precondition_guards_against_a_namesake(story: Story) -> None:
    story.create(config_map())

    assert refusal(story.delete, "configmaps", "settings", uid="another") == (409, "Conflict")
    assert story.find("configmaps", "settings")


def test_a_finalizer_holds_the_object_until_it_is_taken_off(story: Story) -> None:
    story.create(config_map(finalizers=["example.com/keep"]))

    story.delete("configmaps", "settings")
    assert story.get("configmaps", "settings")["metadata"]["deletionTimestamp"]

    story.merge("configmaps", "settings", {"metadata": {"finalizers": None}})
    assert story.find("configmaps", "settings") is None


def owned(by: Document, name: str) -> Document:
    owner = {"apiVersion": by["apiVersion"], "kind": by["kind"], "name": by["metadata"]["name"]}
    return config_map(name, ownerReferences=[owner | {"uid": by["metadata"]["uid"], "blockOwnerDeletion": True}])


def test_what_it_owned_goes_too(story: Story) -> None:
    owner = story.create(config_map("owner"))
    child = story.create(owned(owner, "child"))
    story.create(owned(child, "grandchild"))

    story.delete("configmaps", "owner")

    assert story.names("configmaps") == []


def test_orphans_stay_without_their_owner(story: Story) -> None:
    owner = story.create(config_map("owner"))
    story.create(owned(owner, "child"))

    story.delete("configmaps", "owner", propagation="Orphan")

    assert story.names("configmaps") == ["child"]
    assert "ownerReferences" not in story.get("configmaps", "child")["metadata"]


def test_in_the_foreground_the_owner_waits_for_what_it_owned(story: Story) -> None:
    owner = story.create(config_map("owner"))
    child = owned(owner, "child")
    child["metadata"]["finalizers"] = ["example.com/keep"]
    story.create(child)

    story.delete("configmaps", "owner", propagation="Foreground")
    assert story.names("configmaps") == ["child", "owner"]

    story.merge("configmaps", "child", {"metadata": {"finalizers": None}})
    assert story.names("configmaps") == []


def test_something_whose_owner_never_was_goes_at_once(story: Story) -> None:
    owner = story.create(config_map("owner"))
    story.delete("configmaps", "owner")
    story.create(owned(owner, "late"))

    assert story.names("configmaps") == []


def test_a_job_deleted_without_a_policy_leaves_its_pods(story: Story) -> None:
    story.create(job())
    story.advance(minutes=1)

    story.delete("jobs", "j")

    assert len(story.all("pods")) == 1
    assert "ownerReferences" not in story.all("pods")[0]["metadata"]


def test_a_job_deleted_in_the_background_takes_its_pods_along(story: Story) -> None:
    story.create(job())
    story.advance(minutes=1)

    story.delete("jobs", "j", propagation="Background")
    story.advance(minutes=1)

    assert story.names("pods") == []


# Namespaces


def test_a_namespace_empties_itself_before_it_goes(story: Story) -> None:
    story.create(stateful_set())
    story.advance(minutes=1)

    story.delete("namespaces", "lab")
    assert story.get("namespaces", "lab")["status"] == {"phase": "Terminating"}
    assert refusal(story.create, config_map()) == (403, "Forbidden")

    story.advance(minutes=1)
    assert story.find("namespaces", "lab") is None
    assert story.names("pods") == story.names("persistentvolumeclaims") == story.names("events") == []


def test_a_finalizer_inside_holds_the_namespace(story: Story) -> None:
    story.create(config_map(finalizers=["example.com/keep"]))
    story.delete("namespaces", "lab")
    story.advance(minutes=10)
    assert story.find("namespaces", "lab")

    story.merge("configmaps", "settings", {"metadata": {"finalizers": None}})

    assert story.find("namespaces", "lab") is None


# Quota


@pytest.fixture
def limited(story: Story) -> Story:
    story.create(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "team", "namespace": "lab"},
            "spec": {"hard": {"requests.nvidia.com/gpu": "2", "pods": "3"}},
        }
    )
    return story


def gpus(name: str, count: int) -> Document:
    return pod(name, {"nvidia.com/gpu": str(count)})


def test_a_pod_beyond_the_quota_is_forbidden_with_the_figures(limited: Story) -> None:
    limited.create(gpus("a", 1))

    with pytest.raises(ApiError) as refused:
        limited.create(gpus("b", 2))

    assert (refused.value.code, refused.value.reason) == (403, "Forbidden")
    assert refused.value.message == (
        'pods "b" is forbidden: exceeded quota: team, requested: requests.nvidia.com/gpu=2, '
        "used: requests.nvidia.com/gpu=1, limited: requests.nvidia.com/gpu=2"
    )


def test_the_quotas_status_counts_what_is_used(limited: Story) -> None:
    limited.create(gpus("a", 1))

    assert limited.get("resourcequotas", "team")["status"]["used"] == {"requests.nvidia.com/gpu": "1", "pods": "1"}


def test_a_pod_that_has_ended_does_not_count(limited: Story) -> None:
    limited.create(pod("done", command=["sh", "-c", "exit 0"], restartPolicy="Never"))
    assert limited.get("resourcequotas", "team")["status"]["used"]["pods"] == "1"

    limited.advance(minutes=1)

    assert limited.phase("done") == "Succeeded"
    assert limited.get("resourcequotas", "team")["status"]["used"]["pods"] == "0"


def test_for_a_job_the_refusal_shows_as_an_event_of_the_job(limited: Story) -> None:
    limited.create(job(resources={"nvidia.com/gpu": "3"}))

    assert limited.names("pods") == []
    assert limited.events("j") == ["FailedCreate"]


# Dry run


def test_a_rehearsal_answers_and_stores_nothing(story: Story) -> None:
    story.world.api.rehearsing = True
    created = story.world.api.create(MAPS, "lab", config_map())
    story.world.api.rehearsing = False

    assert created["metadata"]["name"] == "settings"
    assert story.find("configmaps", "settings") is None
