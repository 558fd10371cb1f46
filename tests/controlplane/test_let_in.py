"""What happens where the real API server does not let Berth do what it has to: told in a sentence, and nobody's work
ends by it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from scheduling.cluster.port import NOT_NOW, ClusterError
from scheduling.models import Cluster, NodePool, Placement
from tests.controlplane.harbour import Harbour

ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/berth"
METERS = "/apis/rbac.authorization.k8s.io/v1/namespaces/gpu-operator/roles/berth-metrics"
ACCOUNT = "system:serviceaccount:berth-system:berth"
DEPLOYMENTS = "/apis/cluster.x-k8s.io/v1beta2/machinedeployments"
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/machinedeployments.cluster.x-k8s.io"


@contextmanager
def without(harbour: Harbour, resource: str, *verbs: str) -> Iterator[None]:
    """Berth's role without some verbs of a resource."""
    rules = harbour.document(ROLE)["rules"]
    fewer = [
        {**rule, "verbs": [verb for verb in rule["verbs"] if resource not in rule["resources"] or verb not in verbs]}
        for rule in rules
    ]
    harbour.patch(ROLE, {"rules": [rule for rule in fewer if rule["verbs"]]})
    try:
        yield
    finally:
        harbour.patch(ROLE, {"rules": rules})


@contextmanager
def undefined(harbour: Harbour) -> Iterator[None]:
    """The API server does not serve the pools' kind any more, in no version."""
    versions = harbour.document(DEFINITION)["spec"]["versions"]
    harbour.patch(DEFINITION, {"spec": {"versions": [{**version, "served": False} for version in versions]}})
    try:
        yield
    finally:
        harbour.patch(DEFINITION, {"spec": {"versions": versions}})
        harbour.seen(lambda: is_served(harbour), "the definition served again")


def is_served(harbour: Harbour) -> bool:
    try:
        return bool(harbour.document(DEPLOYMENTS))
    except ClusterError:  # 404, then 429 while the server prepares it
        return False


def trouble() -> str:
    return Cluster.objects.get().trouble


def test_a_right_to_write_that_is_missing_is_told_and_ends_nobodys_work(real_harbour: Harbour) -> None:
    harbour = real_harbour
    with without(harbour, "statefulsets", "create", "patch"):
        row = harbour.open("notebook", "h100-80gb/whole")
        harbour.until(lambda: "does not let" in trouble(), "the trouble told")
        told, waits = trouble(), harbour.read(row)
        harbour.settle()
        assert harbour.phase(row) in {"placed", "waiting"}
        assert Placement.objects.filter(workload=row).count() == 1

    assert f"does not let {ACCOUNT} patch statefulsets.apps in namespace team-vision (403)" in told
    assert "deploy/rbac.yaml has this right: apply it there." in told
    assert "rbac" not in waits.phase_text
    assert NOT_NOW in waits.phase_text
    harbour.until(lambda: harbour.phase(row) == "running", "running, once the right is there")
    assert trouble() == ""
    assert harbour.read(row).failures == 0


def test_a_right_to_look_that_is_missing_changes_nothing_of_what_runs(real_harbour: Harbour) -> None:
    harbour = real_harbour
    row = harbour.run()
    with without(harbour, "pods", "list", "watch"):
        harbour.until(lambda: "does not let" in trouble(), "the trouble told")
        told, seen_at = trouble(), Cluster.objects.get().seen_at
        harbour.turn(minutes=30)
        harbour.settle()
        assert harbour.phase(row) == "running"
        assert Cluster.objects.get().seen_at == seen_at  # and nothing is charged that nobody saw

    assert f"does not let {ACCOUNT} list pods in the whole cluster (403)" in told
    harbour.until(lambda: not trouble(), "seen whole again")
    assert harbour.phase(row) == "running"


def test_a_right_to_the_meters_that_is_missing_is_told_and_nothing_counts_as_quiet(real_harbour: Harbour) -> None:
    harbour = real_harbour
    row = harbour.run()
    rules = harbour.document(METERS)["rules"]
    harbour.patch(METERS, {"rules": []})
    try:
        told = harbour.seen(lambda: sampled(harbour), "the trouble told")
    finally:
        harbour.patch(METERS, {"rules": rules})

    assert f"does not let {ACCOUNT} get pods/proxy in namespace gpu-operator (403); deploy/rbac.yaml has" in told
    assert harbour.read(row).idle_since is None
    harbour.seen(lambda: not sampled(harbour), "the meters back")


def sampled(harbour: Harbour) -> str:
    """What is said of the meters after a sampling."""
    harbour.world.cluster.refresh_from_db()
    harbour.sample()
    return Cluster.objects.get().meters_trouble


def test_a_definition_that_is_absent_is_told_on_its_pools_and_the_rest_goes_on(
    real_harbour: Harbour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduling.cluster.kept.ABSENT", 1.0)  # a quarter of an hour until it is asked for again
    harbour = real_harbour
    with undefined(harbour):
        harbour.until(lambda: "cannot be resized" in troubles()["a100-burst"], "the pools told")
        told = troubles()
        row = harbour.run()
        waiting = harbour.open("depth-maps", "a100-40gb/whole")
        harbour.settle()
        assert harbour.phase(waiting) == "waiting"

    assert set(told.values()) == {told["a100-burst"]}
    assert "machinedeployments.cluster.x-k8s.io" in told["a100-burst"]
    assert harbour.failures() == []
    assert harbour.phase(row) == "running"
    harbour.until(lambda: not any(troubles().values()), "the pools known again")


def troubles() -> dict[str, str]:
    """What is said of each pool that somebody resizes."""
    return dict(NodePool.objects.exclude(provider="static").values_list("name", "trouble"))
