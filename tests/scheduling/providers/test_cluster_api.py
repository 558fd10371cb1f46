"""Pools as MachineDeployments: found by their nodes' label, resized once, and only when there is one of them."""

from typing import Any

import pytest

from scheduling.cluster.mirror import Mirror
from scheduling.cluster.port import ClusterError, PoolSize
from scheduling.providers.cluster_api import DEPLOYMENTS, ClusterApi
from tests.conftest import MORNING
from tests.scheduling.cluster.scripted import ScriptedApi

GROUP = "/apis/cluster.x-k8s.io"
LIST = f"{GROUP}/v1beta2/machinedeployments"
MACHINES = f"{GROUP}/v1beta2/namespaces/fleet/machines"
SCALE = f"{GROUP}/v1beta2/namespaces/fleet/machinedeployments/md-0/scale"


EMPTY = {
    path: {"kind": "List", "items": []}
    for path in ("/api/v1/nodes", "/api/v1/pods", "/apis/apps/v1/statefulsets", "/apis/batch/v1/jobs")
}


def deployment(name: str = "md-0", pool: str = "h100", replicas: int = 2) -> dict[str, Any]:
    labels = {"node.cluster.x-k8s.io/pool": pool}
    return {
        "metadata": {"name": name, "namespace": "fleet"},
        "spec": {"replicas": replicas, "template": {"metadata": {"labels": labels}}},
        "status": {"readyReplicas": replicas},
    }


def machine(name: str, node: str | None) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"nodeRef": {"name": node}} if node else {}}


def served(*deployments: dict[str, Any], **more: Any) -> ScriptedApi:
    machines = [machine("m-1", "n-1"), machine("m-2", "n-2"), machine("m-3", None)]
    answers = EMPTY | {
        LIST: {"kind": "MachineDeploymentList", "items": list(deployments)},
        MACHINES: {"kind": "MachineList", "items": machines},
        SCALE: {},
    }
    return ScriptedApi(answers | {f"{MACHINES}/m-{number}": {} for number in (1, 2, 3)} | more)


def sizes(api: ScriptedApi, mirror: Mirror | None = None) -> tuple[PoolSize, ...]:
    return (mirror or Mirror(api, ClusterApi().source)).observe(MORNING).sizes


def test_sizes_are_named_by_the_pool_of_the_nodes() -> None:
    assert sizes(served(deployment())) == (PoolSize("h100", 2, 2),)


def test_a_resize_says_what_it_wrote() -> None:
    api = served(deployment(), **{SCALE: {"metadata": {"resourceVersion": "17"}}})

    assert ClusterApi().resize(api, "h100", 5, ()) == ("MachineDeployment", ("fleet", "md-0"), "17")
    assert ClusterApi().resize(api, "h100", 2, ()) is None


def test_a_pool_is_resized_where_its_deployment_is() -> None:
    api = served(deployment())

    ClusterApi().resize(api, "h100", 5, ())

    assert api.written == [("PATCH", SCALE, {"spec": {"replicas": 5}})]


def test_a_pool_that_has_its_size_is_left_alone() -> None:
    api = served(deployment())

    ClusterApi().resize(api, "h100", 2, ())

    assert api.written == []


def test_machines_of_the_nodes_to_go_are_marked_before_the_pool_shrinks() -> None:
    api = served(deployment())

    ClusterApi().resize(api, "h100", 1, ["n-2", "long-gone"])

    mark = {"metadata": {"annotations": {"cluster.x-k8s.io/delete-machine": "true"}}}
    assert api.written == [("PATCH", f"{MACHINES}/m-2", mark), ("PATCH", SCALE, {"spec": {"replicas": 1}})]


def test_a_mark_that_fails_keeps_the_pool_as_it_is() -> None:
    api = served(deployment(), **{f"{MACHINES}/m-2": ClusterError("no", status=500)})

    with pytest.raises(ClusterError):
        ClusterApi().resize(api, "h100", 1, ["n-2"])

    assert ("PATCH", SCALE, {"spec": {"replicas": 1}}) not in api.written


REFUSED = {
    "no deployment": ([], "Pool h100 has no MachineDeployment of Cluster API; it needs one to be resized."),
    "two deployments": (
        [deployment("a"), deployment("b")],
        "Pool h100 has 2 MachineDeployments of Cluster API; it needs one to be resized.",
    ),
}


@pytest.mark.parametrize(("deployments", "sentence"), REFUSED.values(), ids=REFUSED)
def test_only_a_pool_of_one_deployment_is_resized(deployments: list[dict[str, Any]], sentence: str) -> None:
    api = served(*deployments)

    with pytest.raises(ClusterError) as refusal:
        ClusterApi().resize(api, "h100", 1, ())

    assert (str(refusal.value), refusal.value.retry, api.written) == (sentence, False, [])


def test_without_cluster_api_there_are_no_pools_and_nothing_is_resized() -> None:
    api = ScriptedApi(EMPTY)

    seen = Mirror(api, ClusterApi().source).observe(MORNING)
    assert (seen.sizes, seen.complete) == ((), True)
    assert [(problem.where, problem.text) for problem in seen.problems] == [("MachineDeployment", DEPLOYMENTS.missing)]
    with pytest.raises(ClusterError, match="has no MachineDeployment") as refusal:
        ClusterApi().resize(api, "h100", 1, ())
    assert refusal.value.retry is False


def test_the_older_version_is_asked_for_once_and_remembered() -> None:
    older = LIST.replace("v1beta2", "v1beta1")
    api = ScriptedApi({older: {"kind": "MachineDeploymentList", "items": [deployment()]}} | EMPTY)
    mirror = Mirror(api, ClusterApi().source)

    assert sizes(api, mirror) == sizes(api, mirror) == (PoolSize("h100", 2, 2),)
    assert [path for _, path, _ in api.asked if "machinedeployments" in path] == [LIST, older, older]


def test_another_trouble_than_not_found_is_not_taken_for_an_absence() -> None:
    api = ScriptedApi({LIST: ClusterError("no", status=403, retry=False)} | EMPTY)

    seen = Mirror(api, ClusterApi().source).observe(MORNING)

    assert (seen.sizes, seen.complete, [problem.text for problem in seen.problems]) == ((), False, ["no"])
