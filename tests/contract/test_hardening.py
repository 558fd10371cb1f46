"""What Pod Security *restricted* says to what we write, on a real server: our pods are admitted, others are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scheduling.cluster.port import ClusterError
from scheduling.cluster.writing import LaunchFact
from tests.contract.conftest import Rig, refusal_of
from tests.contract.launches import NAME, NOTEBOOK, TRAINING, put_all

PODS = f"/api/v1/namespaces/{NOTEBOOK.namespace}/pods"
OURS = {
    "a workspace": NOTEBOOK,
    "a job": TRAINING,
    "a job without cards": replace(TRAINING, resource="", count=0),
}
BARE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "intruder"},
    "spec": {"containers": [{"name": "main", "image": "example.org/x:1"}]},
}
PRIVILEGED = {"name": "main", "image": "example.org/x:1", "securityContext": {"privileged": True}}


@pytest.mark.parametrize("launch", OURS.values(), ids=OURS)
def test_pods_of_ours_are_admitted_as_restricted(real: Rig, launch: LaunchFact) -> None:
    put_all(real.port, launch)

    real.until(lambda _: pods(real))

    (pod,) = pods(real)
    (main,) = pod["spec"]["containers"]
    variables = {one["name"]: one.get("value") for one in main["env"]}
    assert (variables.get("NVIDIA_VISIBLE_DEVICES") == "void") is (launch.count == 0)  # T1: no request, no card
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert main["securityContext"]["allowPrivilegeEscalation"] is False
    assert not [volume for volume in pod["spec"].get("volumes") or [] if "hostPath" in volume]


@pytest.mark.parametrize(
    "spec", [BARE["spec"], {"containers": [PRIVILEGED]}, {**BARE["spec"], "hostNetwork": True}],
    ids=["a careless pod", "a privileged pod", "the host's network"],
)  # fmt: skip
def test_a_teams_namespace_admits_nothing_less(real: Rig, spec: dict[str, Any]) -> None:
    put_all(real.port, NOTEBOOK)

    refusal: ClusterError = refusal_of(lambda: real.door.ask("POST", PODS, body={**BARE, "spec": spec}))

    assert refusal.status == 403
    assert "violates PodSecurity" in str(refusal)
    assert (refusal.retry, refusal.for_operator) == (False, False)  # no right of ours that is missing


def pods(rig: Rig) -> list[dict[str, Any]]:
    found = rig.document(PODS)["items"]
    return [pod for pod in found if pod["metadata"]["name"].startswith(NAME)]
