"""What we put into a cluster: once however often, never over somebody else's, and gone when removed."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from scheduling.cluster import names
from scheduling.cluster.api import MERGE, path_of
from scheduling.cluster.client import Session
from scheduling.cluster.port import Ref
from scheduling.cluster.writing import job_documents, namespace_document, workspace_documents
from tests.contract.conftest import Rig, gone, refusal_of
from tests.contract.launches import JOB_REF, NAME, NOTEBOOK, ROW, TRAINING, WORKSPACE_REF, put_all

FOREIGN: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "theirs", "namespace": NOTEBOOK.namespace},
    "spec": {"clusterIP": "None", "selector": {"app": "theirs"}},
}
NAMESPACE = namespace_document(NOTEBOOK.namespace, NOTEBOOK.team)


# Put


@pytest.mark.parametrize("launch", [NOTEBOOK, TRAINING], ids=["a workspace", "a job"])
def test_putting_twice_is_putting_once(cluster: Rig, launch: Any) -> None:
    first = put_all(cluster.port, launch)

    assert put_all(cluster.port, launch) == first
    assert [(found.workload, found.uid, found.replicas, found.generation) for found in cluster.look().objects] == [
        (ROW, first, 1, 1)
    ]


def test_a_new_attempt_is_told_by_the_same_object(cluster: Rig) -> None:
    first = put_all(cluster.port, NOTEBOOK)

    assert put_all(cluster.port, replace(NOTEBOOK, attempt=2)) == first
    assert [found.generation for found in cluster.look().objects] == [2]


def test_an_object_of_somebody_else_is_never_written_over(cluster: Rig) -> None:
    cluster.port.put(NAMESPACE)
    cluster.plant(FOREIGN)

    refusal = refusal_of(
        lambda: cluster.port.put(FOREIGN | {"spec": {"clusterIP": "None", "selector": {"app": "ours"}}})
    )

    assert (refusal.status, refusal.retry) == (409, False)
    assert str(refusal).startswith("Service theirs is there already and is not Berth's")
    there = cluster.find("Service", NOTEBOOK.namespace, "theirs")
    assert there is not None
    assert there["spec"]["selector"] == {"app": "theirs"}


@pytest.mark.parametrize("launch", [NOTEBOOK, TRAINING], ids=["a workspace", "a job"])
def test_what_stands_under_our_name_and_is_not_ours_is_left_as_it_is(cluster: Rig, launch: Any) -> None:
    """Whether we would apply the object or create it."""
    space, ours = (job_documents if launch is TRAINING else workspace_documents)(launch)
    cluster.port.put(space)
    meta = {"name": NAME, "namespace": NOTEBOOK.namespace, "labels": {"app": "theirs"}}
    cluster.plant({**ours, "metadata": meta})
    before = cluster.find(ours["kind"], NOTEBOOK.namespace, NAME)

    refusal = refusal_of(lambda: put_all(cluster.port, launch))

    after = cluster.find(ours["kind"], NOTEBOOK.namespace, NAME)
    assert (refusal.status, refusal.retry) == (409, False)
    assert str(refusal).startswith(f"{ours['kind']} {NAME} is there already and is not Berth's")
    assert before is not None
    assert after is not None
    assert (after["spec"], after["metadata"]["uid"]) == (before["spec"], before["metadata"]["uid"])
    assert names.WORKLOAD not in after["metadata"]["labels"]


def test_a_namespace_of_somebody_else_is_not_taken_over_either(cluster: Rig) -> None:
    theirs = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NOTEBOOK.namespace}}
    cluster.plant(theirs)

    refusal = refusal_of(lambda: cluster.port.put(NAMESPACE))

    assert refusal.retry is False
    there = cluster.find("Namespace", "", NOTEBOOK.namespace)
    assert there is not None
    assert "app.kubernetes.io/managed-by" not in (there["metadata"].get("labels") or {})


def test_an_object_of_another_workload_is_not_written_over(cluster: Rig) -> None:
    put_all(cluster.port, NOTEBOOK)
    namesake = replace(NOTEBOOK, workload=UUID(ROW.hex[:8] + "0" * 24))

    refusal = refusal_of(lambda: put_all(cluster.port, namesake))

    assert (refusal.status, refusal.retry) == (409, False)
    assert [found.workload for found in cluster.look().objects] == [ROW]


def test_an_object_that_is_going_is_waited_for(cluster: Rig) -> None:
    put_all(cluster.port, NOTEBOOK)
    service = path_of("Service", NOTEBOOK.namespace, NAME)
    cluster.door.ask("PATCH", service, body={"metadata": {"finalizers": ["example.org/hold"]}}, content=MERGE)
    cluster.port.remove(Ref("Service", NOTEBOOK.namespace, NAME))

    refusal = refusal_of(lambda: put_all(cluster.port, NOTEBOOK))

    assert refusal.retry is True
    assert str(refusal) == f"Service {NAME} is still being deleted."
    cluster.door.ask("PATCH", service, body={"metadata": {"finalizers": None}}, content=MERGE)
    assert put_all(cluster.port, NOTEBOOK)


def test_a_document_that_the_server_cannot_take_is_refused_for_good(cluster: Rig) -> None:
    cluster.port.put(NAMESPACE)

    refusal = refusal_of(lambda: put_all(cluster.port, replace(TRAINING, name="x", image="")))

    assert refusal.retry is False
    assert refusal.status in {400, 422}


def test_we_have_no_business_with_other_kinds(cluster: Rig) -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "x"}}

    assert refusal_of(lambda: cluster.port.put(role)).retry is False


@pytest.mark.parametrize("name", ["..", "../nodes/x", "a/b", "a?b", "%2e%2e", ""])
def test_no_name_leads_out_of_its_kind(cluster: Rig, name: str) -> None:
    before = [(node.name, node.schedulable) for node in cluster.look().nodes]

    refusal = refusal_of(lambda: cluster.port.put(FOREIGN | {"metadata": {"name": name, "namespace": "default"}}))

    assert refusal.status in {None, 400, 404, 405, 422}
    assert [(node.name, node.schedulable) for node in cluster.look().nodes] == before


# Remove


def test_what_is_removed_was_there_once(cluster: Rig) -> None:
    put_all(cluster.port, NOTEBOOK)

    assert cluster.port.remove(WORKSPACE_REF) is True
    cluster.until(lambda _: gone(cluster, "StatefulSet", NOTEBOOK.namespace, NAME))
    assert cluster.port.remove(WORKSPACE_REF) is False


def test_what_is_going_is_still_there(cluster: Rig) -> None:
    put_all(cluster.port, NOTEBOOK)
    path = path_of("Service", NOTEBOOK.namespace, NAME)
    cluster.door.ask("PATCH", path, body={"metadata": {"finalizers": ["example.org/hold"]}}, content=MERGE)
    ref = Ref("Service", NOTEBOOK.namespace, NAME)

    assert [cluster.port.remove(ref), cluster.port.remove(ref)] == [True, True]


def test_an_object_of_somebody_else_is_never_removed(cluster: Rig) -> None:
    cluster.port.put(NAMESPACE)
    cluster.plant(FOREIGN)

    assert cluster.port.remove(Ref("Service", NOTEBOOK.namespace, "theirs")) is False
    assert not gone(cluster, "Service", NOTEBOOK.namespace, "theirs")


def test_a_namesake_made_since_is_not_removed(cluster: Rig) -> None:
    put_all(cluster.port, NOTEBOOK)

    assert cluster.port.remove(replace(WORKSPACE_REF, uid="another")) is False
    assert not gone(cluster, "StatefulSet", NOTEBOOK.namespace, NAME)


# Scale


def test_scaling_to_zero_and_back_keeps_the_object(cluster: Rig) -> None:
    uid = put_all(cluster.port, NOTEBOOK)

    cluster.port.scale(WORKSPACE_REF, 0)
    assert [(found.uid, found.replicas) for found in cluster.look().objects] == [(uid, 0)]
    assert put_all(cluster.port, NOTEBOOK) == uid
    assert [found.replicas for found in cluster.look().objects] == [1]


def test_scaling_to_what_it_is_writes_nothing(cluster: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    put_all(cluster.port, NOTEBOOK)
    cluster.port.scale(WORKSPACE_REF, 0)
    methods: list[str] = []
    ask = Session.ask

    def noted(session: Session, method: str, path: str, **options: Any) -> bytes:
        if session is cluster.port._api:
            methods.append(method)
        return ask(session, method, path, **options)

    monkeypatch.setattr(Session, "ask", noted)
    cluster.port.scale(WORKSPACE_REF, 0)

    assert methods == []


def test_what_is_not_there_is_at_zero_but_cannot_be_woken(cluster: Rig) -> None:
    cluster.port.scale(WORKSPACE_REF, 0)

    assert refusal_of(lambda: cluster.port.scale(WORKSPACE_REF, 1)).status == 404


def test_a_stateful_set_of_somebody_else_is_not_scaled(cluster: Rig) -> None:
    put_all(cluster.port, NOTEBOOK)
    path = path_of("StatefulSet", NOTEBOOK.namespace, NAME)
    theirs = {"metadata": {"labels": {"app.kubernetes.io/managed-by": "somebody-else"}}}
    cluster.door.ask("PATCH", path, body=theirs, content=MERGE)

    refusal = refusal_of(lambda: cluster.port.scale(WORKSPACE_REF, 0))

    assert refusal.retry is False
    there = cluster.find("StatefulSet", NOTEBOOK.namespace, NAME)
    assert there is not None
    assert there["spec"]["replicas"] == 1


# On machines


def test_a_workspace_runs_on_the_node_of_the_plan_and_sleeps(cluster: Rig) -> None:
    node = cluster.nodes_of("h100-train")[0].name
    put_all(cluster.port, replace(NOTEBOOK, node=node))

    seen = cluster.until(lambda look: any(pod.workload == ROW and pod.ready for pod in look.pods))

    (pod,) = (pod for pod in seen.pods if pod.workload == ROW)
    assert (pod.namespace, pod.name, pod.node, pod.phase) == (NOTEBOOK.namespace, f"{NAME}-0", node, "Running")
    assert (pod.requests, pod.cpu_milli, pod.memory_mib) == ({"nvidia.com/gpu": 1}, 4000, 16384)
    assert pod.running_since is not None
    cluster.port.scale(WORKSPACE_REF, 0)
    cluster.until(lambda look: not any(pod.workload == ROW for pod in look.pods))
    assert not gone(cluster, "PersistentVolumeClaim", NOTEBOOK.namespace, f"home-{NAME}-0")


def test_a_removed_workspace_takes_its_home_along(cluster: Rig) -> None:
    node = cluster.nodes_of("h100-train")[0].name
    put_all(cluster.port, replace(NOTEBOOK, node=node))
    cluster.until(lambda look: any(pod.workload == ROW and pod.ready for pod in look.pods))

    cluster.port.remove(WORKSPACE_REF)
    cluster.port.remove(Ref("PersistentVolumeClaim", NOTEBOOK.namespace, f"home-{NAME}-0"))

    cluster.until(lambda look: not any(pod.workload == ROW for pod in look.pods))
    cluster.until(lambda _: gone(cluster, "PersistentVolumeClaim", NOTEBOOK.namespace, f"home-{NAME}-0"))


def test_a_job_ends_and_says_so(cluster: Rig) -> None:
    node = cluster.nodes_of("h100-train")[0].name
    put_all(cluster.port, replace(TRAINING, node=node))

    seen = cluster.until(lambda look: any(found.complete for found in look.objects))

    (found,) = seen.objects
    assert (found.kind, found.failed, found.finished_at is not None) == ("Job", False, True)
    assert [pod.exit_code for pod in seen.pods if pod.workload == ROW] == [0]


def test_a_job_that_fails_is_tried_once(cluster: Rig) -> None:
    node = cluster.nodes_of("h100-train")[0].name
    put_all(cluster.port, replace(TRAINING, node=node, command=("sh", "-c", "sleep 1; exit 3")))

    seen = cluster.until(lambda look: any(found.failed for found in look.objects))

    assert seen.objects[0].reason == "BackoffLimitExceeded"
    assert [pod.exit_code for pod in seen.pods if pod.workload == ROW] == [3]


def test_a_removed_job_takes_its_pods_along(cluster: Rig) -> None:
    node = cluster.nodes_of("h100-train")[0].name
    put_all(cluster.port, replace(TRAINING, node=node, command=()))
    cluster.until(lambda look: any(pod.workload == ROW and pod.ready for pod in look.pods))

    assert cluster.port.remove(JOB_REF) is True

    cluster.until(lambda look: not any(pod.workload == ROW for pod in look.pods) and not look.objects)


def test_s10_a_pod_that_the_kubelet_refuses_is_shown_as_such(cluster: Rig) -> None:
    node = cluster.nodes_of("h100-train")[0].name
    cluster.faults.refuse_admission(node)
    put_all(cluster.port, replace(TRAINING, node=node))

    seen = cluster.until(lambda look: any(pod.phase == "Failed" for pod in look.pods))

    assert [pod.reason for pod in seen.pods if pod.phase == "Failed"] == ["UnexpectedAdmissionError"]


def test_an_image_that_is_not_there_is_the_reason_for_waiting(cluster: Rig) -> None:
    node = cluster.nodes_of("h100-train")[0].name
    put_all(cluster.port, replace(TRAINING, node=node, image="example.org/does-not-exist:1"))

    seen = cluster.until(lambda look: any("Image" in pod.waiting_reason for pod in look.pods))

    (pod,) = (pod for pod in seen.pods if pod.workload == ROW)
    assert pod.waiting_reason in {"ErrImagePull", "ImagePullBackOff"}
    assert pod.message


# Logs


def test_logs_are_the_last_lines_of_the_main_container(cluster: Rig) -> None:
    node = cluster.nodes_of("h100-train")[0].name
    put_all(cluster.port, replace(NOTEBOOK, node=node))
    cluster.until(lambda look: any(pod.workload == ROW and pod.ready for pod in look.pods))

    everything = cluster.port.logs(NOTEBOOK.namespace, f"{NAME}-0", lines=100)

    assert everything.strip()
    assert cluster.port.logs(NOTEBOOK.namespace, f"{NAME}-0", lines=1) == everything.splitlines(keepends=True)[-1]


def test_logs_of_a_pod_that_is_not_there_are_a_refusal(cluster: Rig) -> None:
    refusal = refusal_of(lambda: cluster.port.logs("default", "nobody", lines=10))

    assert (refusal.status, refusal.retry) == (404, False)
