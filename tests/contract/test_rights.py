"""What the service account of deploy/rbac.yaml may do, and what not. Only a real server knows rights.

That it may do what it has to is shown by all the other tests of this folder.
"""

from typing import Any

import pytest

from scheduling.cluster.api import MERGE
from scheduling.cluster.client import KubernetesPort
from tests.contract.conftest import NOON, Rig, refusal_of
from tests.contract.launches import NOTEBOOK, put_all
from tests.controlplane.fleet import Site

POOLS = "/apis/cluster.x-k8s.io/v1beta2/namespaces/fleet"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
FORBIDDEN = {
    "read a secret": ("GET", "/api/v1/secrets"),
    "make a token": ("POST", "/api/v1/namespaces/berth-system/serviceaccounts/berth/token"),
    "start a bare pod": ("POST", "/api/v1/namespaces/default/pods"),
    "run a command in a pod": ("GET", "/api/v1/namespaces/default/pods/x/exec"),
    "evict a pod": ("POST", "/api/v1/namespaces/default/pods/x/eviction"),
    "delete all pods at once": ("DELETE", "/api/v1/namespaces/default/pods"),
    "delete a namespace": ("DELETE", "/api/v1/namespaces/default"),
    "delete a node": ("DELETE", "/api/v1/nodes/x"),
    "write a node's status": ("PATCH", "/api/v1/nodes/x/status"),
    "reach a pod that is no exporter": ("GET", "/api/v1/namespaces/default/pods/x:80/proxy/"),
    "delete a machine": ("DELETE", f"{POOLS}/machines/x"),
    "change a pool but for its size": ("PATCH", f"{POOLS}/machinedeployments/x"),
    "give itself rights": ("POST", BINDINGS),
    "read definitions": ("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
}


@pytest.mark.parametrize(("method", "path"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_berth_may_not(real: Rig, method: str, path: str) -> None:
    options: dict[str, Any] = {"GET": {}, "DELETE": {}, "POST": {"body": {}}, "PATCH": {"body": {}, "content": MERGE}}

    refusal = refusal_of(lambda: real.port._api.ask(method, path, **options[method]))

    assert (refusal.status, refusal.for_operator) == (403, True)
    assert "deploy/rbac.yaml" in str(refusal)


def test_a_right_in_one_namespace_says_in_which(real: Rig) -> None:
    """The exporters' metrics: a Role of the operator's namespace, which somebody may have taken away."""
    role = "/apis/rbac.authorization.k8s.io/v1/namespaces/gpu-operator/roles/berth-metrics"
    node, rules = real.look().nodes[0].name, real.document(role)["rules"]
    real.door.ask("PATCH", role, body={"rules": []}, content=MERGE)
    try:
        real.until(lambda _: real.port.metrics([node])[0].problem)
        problem = real.port.metrics([node])[0].problem
    finally:
        real.door.ask("PATCH", role, body={"rules": rules}, content=MERGE)

    assert "get pods/proxy in namespace gpu-operator (403); deploy/rbac.yaml has this right" in problem


def test_a_token_that_nobody_knows_is_one_sentence(real: Rig, control_plane: Site) -> None:
    with KubernetesPort(control_plane.plane.connection("stolen")) as port:
        refusal = refusal_of(lambda: port.observe(NOON))

    assert (refusal.status, refusal.for_operator) == (401, True)
    assert str(refusal) == (
        f"The cluster at {control_plane.plane.server} does not take our token (401); its row needs a token file."
    )


def test_an_authority_that_did_not_sign_the_server_is_one_sentence(real: Rig, control_plane: Site) -> None:
    stranger = control_plane.plane.connection("any")
    stranger = type(stranger)(stranger.server, token="any")  # the system's authorities

    with KubernetesPort(stranger) as port:
        refusal = refusal_of(lambda: port.observe(NOON))

    assert refusal.status is None
    assert "certificate" in str(refusal)
    assert "\n" not in str(refusal)


def test_a_right_that_is_missing_makes_the_look_incomplete_and_says_which(real: Rig) -> None:
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/berth"
    put_all(real.port, NOTEBOOK)
    rules = real.document(role)["rules"]
    real.door.ask("PATCH", role, body={"rules": [r for r in rules if "jobs" not in r["resources"]]}, content=MERGE)
    try:
        seen = real.until(lambda look: not look.complete)
    finally:
        real.door.ask("PATCH", role, body={"rules": rules}, content=MERGE)

    (problem,) = seen.problems
    assert problem.where == "Job"
    assert problem.text == (
        "The cluster does not let system:serviceaccount:berth-system:berth list jobs.batch in the whole cluster (403); "
        "deploy/rbac.yaml has this right: apply it there."
    )
    assert [found.kind for found in seen.objects] == ["StatefulSet"]
    real.until(lambda look: look.complete)
