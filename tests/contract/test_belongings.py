"""What belongs to a workload: made with it, gone with it, and what the pods themselves carry."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta as td
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduling.cluster.api import MERGE, path_of
from scheduling.cluster.belongings import FACTS_FILE, host_name, owner_reference, route_document
from scheduling.cluster.bounds import bound_document
from scheduling.cluster.port import ClusterError, Ref
from scheduling.cluster.writing import LaunchFact, RouteFact, namespace_document, stateful_set
from scheduling.planning.facts import Kind
from tests.contract.conftest import Rig, gone, refusal_of
from tests.contract.launches import JOB_REF, NAME, NOTEBOOK, ROW, TRAINING, WORKSPACE_REF, put_all

SPACE = NOTEBOOK.namespace
FACTS = (("name", "Notebook"), ("flavor", "h100-80gb/whole/on-demand"))
NAMESPACE = namespace_document(SPACE, NOTEBOOK.team)
HTTP_ROUTES = Path(__file__).parent.parent / "data" / "crds" / "gateway-api"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def on_a_node(cluster: Rig, launch: LaunchFact) -> LaunchFact:
    return replace(launch, node=cluster.nodes_of("h100-train")[0].name)


def spec_of_pod(cluster: Rig) -> dict[str, Any]:
    """Of the only pod of our workload, as the server has it."""
    seen = cluster.until(lambda look: any(pod.workload == ROW for pod in look.pods))
    (pod,) = (pod for pod in seen.pods if pod.workload == ROW)
    spec: dict[str, Any] = cluster.document(path_of("Pod", pod.namespace, pod.name))["spec"]
    return spec


# Facts and services


@pytest.mark.parametrize("launch", [NOTEBOOK, TRAINING], ids=["a workspace", "a job"])
def test_a_workload_reads_the_facts_of_its_tenancy(cluster: Rig, launch: LaunchFact) -> None:
    put_all(cluster.port, on_a_node(cluster, replace(launch, facts=FACTS, command=())))

    cluster.until(lambda look: any(pod.workload == ROW and pod.ready for pod in look.pods))
    there = cluster.find("ConfigMap", SPACE, NAME)
    assert there is not None
    assert '"flavor": "h100-80gb/whole/on-demand"' in there["data"][FACTS_FILE]
    (volume,) = (one for one in spec_of_pod(cluster)["volumes"] if one["name"] == "tenancy")
    assert volume["configMap"]["name"] == NAME


def test_a_pod_whose_facts_are_not_there_waits_and_starts_when_they_come(cluster: Rig) -> None:
    launch = on_a_node(cluster, replace(NOTEBOOK, facts=FACTS))
    cluster.port.put(NAMESPACE)
    cluster.port.put(stateful_set(launch))

    cluster.until(lambda _: any(one.reason == "FailedMount" for one in cluster.port.events(SPACE, NAME)))
    assert not any(pod.ready for pod in cluster.look().pods if pod.workload == ROW)
    put_all(cluster.port, launch)

    cluster.until(lambda look: any(pod.workload == ROW and pod.ready for pod in look.pods))


@pytest.mark.parametrize(
    ("launch", "ref", "kinds"),
    [(NOTEBOOK, WORKSPACE_REF, ("Service", "ConfigMap")), (TRAINING, JOB_REF, ("ConfigMap",))],
    ids=["a workspace", "a job"],
)
def test_what_belongs_to_a_workload_goes_with_it(
    cluster: Rig, launch: LaunchFact, ref: Ref, kinds: tuple[str, ...]
) -> None:
    put_all(cluster.port, replace(launch, facts=FACTS))
    assert not any(gone(cluster, kind, SPACE, NAME) for kind in kinds)

    cluster.port.remove(ref)

    cluster.until(lambda _: all(gone(cluster, kind, SPACE, NAME) for kind in kinds))


def test_what_somebody_deletes_by_hand_takes_its_belongings_along(cluster: Rig) -> None:
    put_all(cluster.port, replace(NOTEBOOK, facts=FACTS))

    cluster.door.ask("DELETE", path_of("StatefulSet", SPACE, NAME))

    cluster.until(lambda _: gone(cluster, "Service", SPACE, NAME) and gone(cluster, "ConfigMap", SPACE, NAME))


def test_a_new_attempts_facts_belong_to_the_new_job(cluster: Rig) -> None:
    first = put_all(cluster.port, replace(TRAINING, facts=FACTS))
    cluster.port.remove(JOB_REF)
    cluster.until(lambda _: gone(cluster, "Job", SPACE, NAME))

    second = put_all(cluster.port, replace(TRAINING, facts=FACTS, attempt=2))

    there = cluster.find("ConfigMap", SPACE, NAME)
    assert second != first
    assert there is not None
    assert [owner["uid"] for owner in there["metadata"]["ownerReferences"]] == [second]


# What pods carry


def test_a_pod_carries_its_secrets_by_name_its_grace_and_its_last_words(cluster: Rig) -> None:
    save = "python -c 'save()' && sync"
    launch = replace(NOTEBOOK, pull_secrets=("harbor", "mirror", "harbor"), grace=td(seconds=77), checkpoint=save)
    put_all(cluster.port, on_a_node(cluster, launch))

    spec = spec_of_pod(cluster)

    assert spec["imagePullSecrets"] == [{"name": "harbor"}, {"name": "mirror"}]
    assert spec["terminationGracePeriodSeconds"] == 77
    (main,) = spec["containers"]
    assert main["lifecycle"] == {"preStop": {"exec": {"command": ["sh", "-c", save]}}}


def test_a_pod_asks_for_its_pools_runtime_class_and_no_other_does(cluster: Rig) -> None:
    with runtime_class(cluster, "nvidia"):
        put_all(cluster.port, on_a_node(cluster, replace(NOTEBOOK, runtime_class="nvidia")))
        assert spec_of_pod(cluster)["runtimeClassName"] == "nvidia"

        cluster.port.remove(WORKSPACE_REF)
        cluster.until(lambda look: not look.objects and not any(pod.workload == ROW for pod in look.pods))
        put_all(cluster.port, on_a_node(cluster, NOTEBOOK))
        assert "runtimeClassName" not in spec_of_pod(cluster)


@pytest.mark.parametrize("launch", [NOTEBOOK, TRAINING], ids=["a workspace", "a job"])
def test_a_runtime_class_that_nobody_made_is_said(cluster: Rig, launch: LaunchFact) -> None:
    put_all(cluster.port, on_a_node(cluster, replace(launch, runtime_class="kata")))

    cluster.until(lambda _: failures(cluster))

    assert 'RuntimeClass "kata" not found' in failures(cluster)[0]


@contextmanager
def runtime_class(cluster: Rig, name: str) -> Iterator[None]:
    path = "/apis/node.k8s.io/v1/runtimeclasses"
    body = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": name}
    cluster.door.ask("POST", path, body=body)
    try:
        yield
    finally:
        cluster.door.ask("DELETE", f"{path}/{name}")


def failures(cluster: Rig) -> list[str]:
    return [one.text for one in cluster.port.events(SPACE, NAME) if one.reason == "FailedCreate"]


# Ways in


def put_route(cluster: Rig, route: RouteFact) -> None:
    launch = replace(NOTEBOOK, route=route)
    uid = put_all(cluster.port, launch)
    document = route_document(launch, owner_reference("StatefulSet", NAME, uid))
    assert document is not None
    cluster.port.put(document)


def test_a_workspace_gets_its_ingress_and_loses_it_with_its_end(cluster: Rig) -> None:
    put_route(cluster, RouteFact("ingress", "lab.example.org", "nginx"))

    there = cluster.find("Ingress", SPACE, NAME)
    assert there is not None
    host = host_name(NOTEBOOK.name, ROW, "lab.example.org")
    assert [rule["host"] for rule in there["spec"]["rules"]] == [host]
    assert there["spec"]["ingressClassName"] == "nginx"
    cluster.port.remove(WORKSPACE_REF)
    cluster.until(lambda _: gone(cluster, "Ingress", SPACE, NAME))


def test_a_cluster_without_the_gateway_api_says_not_found(cluster: Rig) -> None:
    refusal = refusal_of(lambda: put_route(cluster, RouteFact("httproute", "lab.example.org", "infra/gateway")))

    assert (refusal.status, refusal.retry) == (404, False)
    assert not gone(cluster, "StatefulSet", SPACE, NAME)


def test_a_workspace_gets_its_http_route_where_there_are_any(real: Rig) -> None:
    with gateway_api(real):
        put_route(real, RouteFact("httproute", "lab.example.org", "infra/gateway"))

        there = real.find("HTTPRoute", SPACE, NAME)
        assert there is not None
        assert there["spec"]["hostnames"] == [host_name(NOTEBOOK.name, ROW, "lab.example.org")]
        assert there["spec"]["parentRefs"][0]["namespace"] == "infra"
        real.port.remove(WORKSPACE_REF)
        real.until(lambda _: gone(real, "HTTPRoute", SPACE, NAME))


@contextmanager
def gateway_api(real: Rig) -> Iterator[None]:
    """The very definition that clusters have; gone again afterwards, as most have none."""
    (file,) = HTTP_ROUTES.glob("*.yaml")
    definition = yaml.safe_load(file.read_text(encoding="utf-8"))
    path = f"{DEFINITIONS}/{definition['metadata']['name']}"
    served = "/apis/gateway.networking.k8s.io/v1/httproutes"
    real.door.ask("POST", DEFINITIONS, body=definition)
    try:
        real.until(lambda _: answers(real, served))
        yield
    finally:
        real.door.ask("DELETE", path)
        real.until(lambda _: not answers(real, served))


def answers(real: Rig, path: str) -> bool:
    try:
        real.door.ask("GET", path)
    except ClusterError:
        return False
    return True


# Quota objects


def test_a_ceiling_holds_for_every_resource_that_it_names(cluster: Rig) -> None:
    cluster.port.put(NAMESPACE)
    bound = bound_document(SPACE, NOTEBOOK.team, {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.10gb": 0})

    assert cluster.port.put(bound) == cluster.port.put(bound)
    put_all(cluster.port, on_a_node(cluster, replace(TRAINING, count=2)))

    cluster.until(lambda _: failures(cluster))
    assert "exceeded quota: berth" in failures(cluster)[0]
    assert "requests.nvidia.com/gpu=2" in failures(cluster)[0]
    assert not any(pod.workload == ROW for pod in cluster.look().pods)


def test_a_ceiling_below_what_is_held_stops_nobody(cluster: Rig) -> None:
    put_all(cluster.port, on_a_node(cluster, NOTEBOOK))
    cluster.until(lambda look: any(pod.workload == ROW and pod.ready for pod in look.pods))

    cluster.port.put(bound_document(SPACE, NOTEBOOK.team, {"nvidia.com/gpu": 0}))

    for _ in range(20):
        cluster.pass_time()
    assert [pod.ready for pod in cluster.look().pods if pod.workload == ROW] == [True]


def test_a_resource_that_a_ceiling_does_not_name_is_not_bound(cluster: Rig) -> None:
    cluster.port.put(NAMESPACE)
    cluster.port.put(bound_document(SPACE, NOTEBOOK.team, {"nvidia.com/mig-1g.10gb": 0}))

    put_all(cluster.port, on_a_node(cluster, NOTEBOOK))

    cluster.until(lambda look: any(pod.workload == ROW and pod.ready for pod in look.pods))


def test_a_raised_ceiling_lets_in_what_it_kept_out(cluster: Rig) -> None:
    cluster.port.put(NAMESPACE)
    cluster.port.put(bound_document(SPACE, NOTEBOOK.team, {"nvidia.com/gpu": 0}))
    put_all(cluster.port, on_a_node(cluster, NOTEBOOK))
    cluster.until(lambda _: failures(cluster))

    cluster.port.put(bound_document(SPACE, NOTEBOOK.team, {"nvidia.com/gpu": 1}))

    cluster.until(lambda look: any(pod.workload == ROW and pod.ready for pod in look.pods))


# Events


def test_events_tell_of_the_object_and_its_pods_newest_last(cluster: Rig) -> None:
    put_all(cluster.port, on_a_node(cluster, TRAINING))
    cluster.until(lambda look: any(found.complete for found in look.objects))

    said = cluster.port.events(SPACE, NAME)

    reasons = [one.reason for one in said]
    assert {"SuccessfulCreate", "Scheduled", "Started"} <= set(reasons)
    assert all(one.at is not None and one.text and one.times >= 1 for one in said)
    assert [one for one in said if one.warning] == []
    times = [one.at for one in said if one.at is not None]
    assert times == sorted(times)
    assert {one.about.partition(" ")[0] for one in said} == {"Job", "Pod"}


def test_events_of_others_are_not_ours(cluster: Rig) -> None:
    put_all(cluster.port, on_a_node(cluster, NOTEBOOK))
    cluster.until(lambda look: any(pod.workload == ROW and pod.ready for pod in look.pods))

    assert cluster.port.events(SPACE, NAME[:-1]) == []
    assert cluster.port.events("fleet", NAME) == []


# Conflicts


STALE = {"resourceVersion": ("1", 409), "uid": ("0d6e6b52-0000-0000-0000-000000000000", 422)}


@pytest.mark.parametrize("field", STALE)
def test_a_document_made_from_an_old_picture_is_refused_for_now(cluster: Rig, field: str) -> None:
    put_all(cluster.port, NOTEBOOK)
    value, status = STALE[field]
    document = stateful_set(replace(NOTEBOOK, attempt=2))
    document["metadata"] |= {field: value}

    refusal = refusal_of(lambda: cluster.plant(document, "berth"))

    assert (refusal.status, refusal.retry) == (status, True)
    assert [found.generation for found in cluster.look().objects] == [1]


def test_what_others_wrote_meanwhile_is_neither_lost_nor_in_the_way(cluster: Rig) -> None:
    put_all(cluster.port, NOTEBOOK)
    path = path_of("StatefulSet", SPACE, NAME)
    cluster.door.ask("PATCH", path, body={"metadata": {"annotations": {"example.org/seen": "yes"}}}, content=MERGE)

    put_all(cluster.port, replace(NOTEBOOK, attempt=2))

    there = cluster.document(path)["metadata"]["annotations"]
    assert there == {"example.org/seen": "yes", "berth.portal/attempt": "2"}


# Pod Security


HOSTILE = (
    "--privileged",
    "$(cat /var/run/secrets/token)", '"}], "hostPID": true, "x": [{"', "hostPath: /", "\n---\nkind: Pod", "\u202e",
    "NVIDIA_VISIBLE_DEVICES=all", "{{ .Values }}", "a" * 2000,
)  # fmt: skip


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("words", HOSTILE, ids=range(len(HOSTILE)))
def test_t1_whatever_a_tenant_writes_the_server_takes_it_as_a_restricted_pod(
    cluster: Rig, kind: Kind, words: str
) -> None:
    launch = replace(
        NOTEBOOK, kind=kind, name=words, command=("sh", "-c", words), checkpoint=words, facts=(("name", words),),
        env=(("PRIVILEGED", words), ("NVIDIA_VISIBLE_DEVICES", "all"), ("LD_PRELOAD", words)),
    )  # fmt: skip
    put_all(cluster.port, launch)
    template = stateful_set(launch)["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"] | {"name": "rehearsal"}}
    pod["spec"] = template["spec"] | {"volumes": [*template["spec"]["volumes"], {"name": "home", "emptyDir": {}}]}

    cluster.door.ask("POST", f"/api/v1/namespaces/{SPACE}/pods?dryRun=All", body=pod)
