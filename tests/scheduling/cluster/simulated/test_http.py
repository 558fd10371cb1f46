"""The HTTP door, through the official DynamicClient and, where that hides something, through plain requests."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest
from kubernetes.dynamic import exceptions

from tests.scheduling.cluster.simulated.stories import Story, config_map, job, pod, stateful_set


def resource(client: Any, kind: str, api_version: str = "v1") -> Any:
    return client.resources.get(api_version=api_version, kind=kind)


def ask(url: str, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """One plain request: status, headers, body."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=10)
    data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
    connection.request(method, path, data, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, content


def status_of(error: exceptions.DynamicApiError) -> Any:
    return json.loads(error.body or "{}")


# Discovery


def test_it_says_its_version(client: Any) -> None:
    assert client.version["kubernetes"]["gitVersion"].startswith("v1.36")


KINDS = {
    "Node": ("v1", False),
    "Namespace": ("v1", False),
    "Pod": ("v1", True),
    "Service": ("v1", True),
    "ConfigMap": ("v1", True),
    "Secret": ("v1", True),
    "PersistentVolumeClaim": ("v1", True),
    "ResourceQuota": ("v1", True),
    "Event": ("v1", True),
    "StatefulSet": ("apps/v1", True),
    "Job": ("batch/v1", True),
    "MachineDeployment": ("cluster.x-k8s.io/v1beta2", True),
    "Machine": ("cluster.x-k8s.io/v1beta2", True),
}


def test_every_kind_is_found(client: Any) -> None:
    found = {kind: resource(client, kind, version) for kind, (version, _) in KINDS.items()}

    assert {kind: one.namespaced for kind, one in found.items()} == {kind: flag for kind, (_, flag) in KINDS.items()}


def test_a_kind_that_is_not_served_is_not_found(client: Any) -> None:
    with pytest.raises(exceptions.ResourceNotFoundError):
        resource(client, "Deployment", "apps/v1")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez", "/readyz?verbose"])
def test_it_is_well(url: str, path: str) -> None:
    assert ask(url, "GET", path)[::2] == (200, b"ok")


NOWHERE = [
    "/nothing",
    "/api/v2/pods",
    "/apis/apps/v1/pods",
    "/apis/none/v1",
    "/api/v1/pods/a",
    "/api/v1/namespaces/lab/nodes",
]


@pytest.mark.parametrize("path", NOWHERE)
def test_a_path_that_is_not_served_answers_a_status(url: str, path: str) -> None:
    code, _, body = ask(url, "GET", path)

    assert (code, json.loads(body)["reason"]) == (404, "NotFound")


def test_a_method_that_is_not_served(url: str) -> None:
    assert ask(url, "PUT", "/api/v1/namespaces/lab/pods", {})[0] == 405


# Objects


def test_create_answers_201_and_get_answers_the_same(client: Any, url: str) -> None:
    code, _, body = ask(url, "POST", "/api/v1/namespaces/lab/configmaps", config_map(), content_type="application/json")

    assert code == 201
    got = resource(client, "ConfigMap").get(name="settings", namespace="lab").to_dict()
    assert got == json.loads(body)


def test_a_list_names_its_kind_and_version_and_its_items_do_not(url: str, story: Story) -> None:
    story.create(config_map())

    listed = json.loads(ask(url, "GET", "/api/v1/namespaces/lab/configmaps")[2])

    assert (listed["kind"], listed["apiVersion"]) == ("ConfigMapList", "v1")
    assert listed["metadata"]["resourceVersion"] == str(story.world.store.version)
    assert [sorted(item) for item in listed["items"]] == [["data", "metadata"]]


def test_a_list_over_all_namespaces(client: Any, story: Story) -> None:
    story.create(config_map())
    story.create(config_map(namespace="default"))

    found = resource(client, "ConfigMap").get().items

    assert [(one.metadata.namespace, one.metadata.name) for one in found] == [
        ("default", "settings"),
        ("lab", "settings"),
    ]


def test_a_list_is_chosen_by_labels_and_fields(client: Any, story: Story) -> None:
    story.create(pod("a", metadata={"labels": {"team": "x"}}))
    story.create(pod("b", metadata={"labels": {"team": "y"}}))
    pods = resource(client, "Pod")

    assert [one.metadata.name for one in pods.get(label_selector="team in (y)").items] == ["b"]
    assert [one.metadata.name for one in pods.get(field_selector="metadata.name=a").items] == ["a"]
    assert pods.get(field_selector="spec.nodeName=nowhere").items == []


def test_a_list_comes_in_pages_of_one_version(client: Any, story: Story) -> None:
    for name in "abcde":
        story.create(config_map(name))
    maps, names, token, versions = resource(client, "ConfigMap"), [], None, set()
    while token != "":
        page = maps.get(namespace="lab", limit=2, _continue=token)
        names += [one.metadata.name for one in page.items]
        versions.add(page.metadata.resourceVersion)
        story.create(config_map(f"later-{len(names)}"))
        token = getattr(page.metadata, "continue", None) or ""

    assert names[:5] == ["a", "b", "c", "d", "e"]
    assert len(versions) == 1


def test_a_page_of_a_forgotten_version_is_expired(client: Any, story: Story) -> None:
    story.create(config_map("a"))
    story.create(config_map("b"))
    maps = resource(client, "ConfigMap")
    token = getattr(maps.get(namespace="lab", limit=1).metadata, "continue")
    story.faults.expire_watches("configmaps")

    with pytest.raises(exceptions.DynamicApiError) as refused:
        maps.get(namespace="lab", limit=1, _continue=token)

    assert refused.value.status == 410


def test_what_is_not_there_is_not_found_by_name(client: Any) -> None:
    with pytest.raises(exceptions.NotFoundError) as refused:
        resource(client, "Pod").get(name="nobody", namespace="lab")

    status = status_of(refused.value)
    assert status["message"] == 'pods "nobody" not found'
    assert status["details"] == {"name": "nobody", "kind": "pods"}


def test_two_creates_conflict(client: Any) -> None:
    maps = resource(client, "ConfigMap")
    maps.create(body=config_map(), namespace="lab")

    with pytest.raises(exceptions.ConflictError) as refused:
        maps.create(body=config_map(), namespace="lab")

    assert status_of(refused.value)["reason"] == "AlreadyExists"


def test_replace_with_an_old_version_conflicts(client: Any) -> None:
    maps = resource(client, "ConfigMap")
    old = maps.create(body=config_map(), namespace="lab").to_dict()
    maps.patch(name="settings", namespace="lab", body={"data": {"a": "1"}}, content_type="application/merge-patch+json")

    with pytest.raises(exceptions.ConflictError) as refused:
        maps.replace(body=old, namespace="lab")

    assert status_of(refused.value)["reason"] == "Conflict"


def test_server_side_apply_creates_then_conflicts_then_forces(client: Any) -> None:
    maps = resource(client, "ConfigMap")
    maps.server_side_apply(body=config_map(), namespace="lab", field_manager="berth")
    red = config_map(data={"colour": "red"})

    with pytest.raises(exceptions.ConflictError) as refused:
        maps.server_side_apply(body=red, namespace="lab", field_manager="other")
    assert status_of(refused.value)["details"]["causes"][0]["reason"] == "FieldManagerConflict"

    forced = maps.server_side_apply(body=red, namespace="lab", field_manager="other", force_conflicts=True)
    assert forced.data.to_dict() == {"colour": "red"}


def test_apply_answers_201_for_a_new_object_and_200_after(url: str) -> None:
    path = "/api/v1/namespaces/lab/configmaps/settings?fieldManager=berth"
    headers = {"content_type": "application/apply-patch+yaml"}

    assert ask(url, "PATCH", path, config_map(), **headers)[0] == 201
    assert ask(url, "PATCH", path, config_map(), **headers)[0] == 200


def test_apply_may_be_yaml(url: str) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\ndata: {a: '1'}\n"
    path = "/api/v1/namespaces/lab/configmaps/y?fieldManager=berth"

    assert ask(url, "PATCH", path, text, content_type="application/apply-patch+yaml")[0] == 201


def test_a_strategic_merge_is_what_the_client_sends_by_itself(client: Any, story: Story) -> None:
    story.create(stateful_set())
    sets = resource(client, "StatefulSet", "apps/v1")
    change = {"spec": {"template": {"spec": {"containers": [{"name": "main", "tty": True}]}}}}

    patched = sets.patch(name="ws", namespace="lab", body=change)

    assert patched.spec.template.spec.containers[0].image == "notebook:1"
    assert patched.spec.template.spec.containers[0].tty is True


def test_status_is_patched_by_its_own_path(client: Any, story: Story) -> None:
    story.create(job(suspend=True))
    jobs = resource(client, "Job", "batch/v1")

    jobs.status.patch(
        name="j", namespace="lab", body={"status": {"succeeded": 1}}, content_type="application/merge-patch+json"
    )

    assert jobs.status.get(name="j", namespace="lab").kind == "Job"


def test_a_stateful_set_is_scaled(client: Any, story: Story) -> None:
    story.create(stateful_set())
    sets = resource(client, "StatefulSet", "apps/v1")

    scale = sets.scale.patch(
        name="ws", namespace="lab", body={"spec": {"replicas": 0}}, content_type="application/merge-patch+json"
    )

    assert (scale.kind, scale.apiVersion, scale.spec.replicas) == ("Scale", "autoscaling/v1", 0)
    assert sets.scale.get(name="ws", namespace="lab").status.selector == "app=ws"
    assert story.get("statefulsets", "ws")["spec"]["replicas"] == 0


def test_a_scale_of_an_old_version_conflicts(client: Any, story: Story) -> None:
    story.create(stateful_set())
    sets = resource(client, "StatefulSet", "apps/v1")
    scale = sets.scale.get(name="ws", namespace="lab").to_dict()
    story.merge("statefulsets", "ws", {"metadata": {"labels": {"a": "b"}}})

    with pytest.raises(exceptions.ConflictError):
        sets.scale.replace(name="ws", namespace="lab", body=scale | {"spec": {"replicas": 0}})


@pytest.mark.parametrize("replicas", [-1, "many"])
def test_a_scale_that_is_no_number_is_unprocessable(client: Any, story: Story, replicas: Any) -> None:
    story.create(stateful_set())

    with pytest.raises(exceptions.UnprocessibleEntityError):
        resource(client, "StatefulSet", "apps/v1").scale.patch(
            name="ws",
            namespace="lab",
            body={"spec": {"replicas": replicas}},
            content_type="application/merge-patch+json",
        )


def test_delete_answers_success_with_the_uid(client: Any, story: Story) -> None:
    created = story.create(config_map())

    answer = resource(client, "ConfigMap").delete(name="settings", namespace="lab")

    assert (answer.status, answer.details.uid) == ("Success", created["metadata"]["uid"])


def test_a_pod_on_a_node_is_deleted_with_its_grace(client: Any, story: Story) -> None:
    story.create(pod())
    story.advance(minutes=1)

    answer = resource(client, "Pod").delete(name="p", namespace="lab", body={"gracePeriodSeconds": 20})

    assert (answer.kind, answer.metadata.deletionGracePeriodSeconds) == ("Pod", 20)
    assert answer.metadata.deletionTimestamp == "2026-12-01T08:01:20Z"


def test_a_delete_with_another_uid_conflicts(client: Any, story: Story) -> None:
    story.create(config_map())

    with pytest.raises(exceptions.ConflictError):
        resource(client, "ConfigMap").delete(
            name="settings", namespace="lab", body={"preconditions": {"uid": "00000000-0000-4000-a000-000000000000"}}
        )


def test_a_collection_is_deleted_by_labels(client: Any, story: Story) -> None:
    story.create(config_map("a", labels={"x": "1"}))
    story.create(config_map("b", labels={"x": "2"}))

    resource(client, "ConfigMap").delete(namespace="lab", label_selector="x=1")

    assert story.names("configmaps") == ["b"]


def test_a_pod_is_evicted(url: str, story: Story) -> None:
    story.create(pod())
    story.advance(minutes=1)
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": "lab"}}

    code, _, answer = ask(url, "POST", "/api/v1/namespaces/lab/pods/p/eviction", body)

    assert (code, json.loads(answer)["status"]) == (201, "Success")
    assert story.get("pods", "p")["metadata"]["deletionTimestamp"]


def test_a_dry_run_answers_and_stores_nothing(client: Any, story: Story) -> None:
    answer = resource(client, "ConfigMap").create(body=config_map(), namespace="lab", dry_run="All")

    assert answer.metadata.name == "settings"
    assert story.find("configmaps", "settings") is None


# Bodies that are none

BAD_BODIES = {
    "no JSON": (b"{", "application/json", 400),
    "no object": (b"[1]", "application/json", 400),
    "protobuf": (b"k8s\x00", "application/vnd.kubernetes.protobuf", 415),
    "too large": (b" " * (3 * 1024 * 1024 + 1), "application/json", 413),
}


@pytest.mark.parametrize(("body", "style", "code"), BAD_BODIES.values(), ids=BAD_BODIES)
def test_a_bad_body(url: str, body: bytes, style: str, code: int) -> None:
    assert ask(url, "POST", "/api/v1/namespaces/lab/configmaps", body, content_type=style)[0] == code


def test_an_unknown_kind_of_patch_is_unsupported(url: str, story: Story) -> None:
    story.create(config_map())

    assert ask(url, "PATCH", "/api/v1/namespaces/lab/configmaps/settings", {}, content_type="text/plain")[0] == 415


def test_a_wrong_number_in_the_query_is_a_bad_request(url: str) -> None:
    assert ask(url, "GET", "/api/v1/pods?limit=many")[0] == 400
    assert ask(url, "GET", "/api/v1/pods?continue=nonsense")[0] == 400
    assert ask(url, "DELETE", "/api/v1/namespaces/lab/configmaps/x?propagationPolicy=Sideways")[0] == 400


# Logs


@pytest.fixture
def talker(story: Story) -> Story:
    story.create(stateful_set())
    story.advance(minutes=10)
    return story


def log(client: Any, **query: Any) -> list[str]:
    return str(
        resource(client, "Pod").log.get(name="ws-0", namespace="lab", query_params=list(query.items()))
    ).splitlines()


def test_a_running_pod_has_a_log(client: Any, talker: Story) -> None:
    lines = log(client)

    assert lines[0] == "[I 2026-12-01 08:00:30.000 ServerApp] Package jupyterlab took 0.0180s to import"
    assert len(lines) > 5


def test_the_log_is_the_same_each_time_and_grows(client: Any, talker: Story) -> None:
    before = log(client)
    assert log(client) == before

    talker.advance(minutes=30)

    assert log(client)[: len(before)] == before
    assert len(log(client)) > len(before)


def test_the_end_of_a_log(client: Any, talker: Story) -> None:
    assert log(client, tailLines="2") == log(client)[-2:]
    assert log(client, tailLines="0") == []
    assert log(client, sinceSeconds="60") == []


def test_log_lines_with_their_times(client: Any, talker: Story) -> None:
    assert log(client, timestamps="true")[0].startswith("2026-12-01T08:00:30.000000000Z [I ")


def test_a_pod_that_has_not_started_has_no_log_yet(client: Any, story: Story) -> None:
    story.create(pod())

    with pytest.raises(exceptions.BadRequestError) as refused:
        resource(client, "Pod").log.get(name="p", namespace="lab")

    assert status_of(refused.value)["message"] == ('container "main" in pod "p" is waiting to start: ContainerCreating')


def test_an_unknown_container_has_no_log(url: str, talker: Story) -> None:
    assert ask(url, "GET", "/api/v1/namespaces/lab/pods/ws-0/log?container=other")[0] == 400


def test_a_followed_log_ends_with_the_container(url: str, story: Story) -> None:
    story.create(pod(command=["sh", "-c", "sleep 60"], restartPolicy="Never"))
    story.advance(minutes=5)

    code, _, body = ask(url, "GET", "/api/v1/namespaces/lab/pods/p/log?follow=true")

    assert code == 200
    assert b"loading data set" in body
