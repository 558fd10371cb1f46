"""What happens where the real API server does not let Berth do what it has to: told in a sentence, and nobody's work
ends by it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from scheduling.cluster.port import NOT_NOW
from scheduling.models import Cluster, Placement
from tests.controlplane.harbour import Harbour

ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/berth"
ACCOUNT = "system:serviceaccount:berth-system:berth"
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
