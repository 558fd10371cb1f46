"""What others do to our objects in the cluster, with `kubectl` and with every right: it is noticed, and comes right."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import datetime
from datetime import timedelta as td
from pathlib import Path
from typing import Any

import pytest

from scheduling.models import Node, Placement, Workload
from scheduling.planning.facts import PodFact
from scheduling.snapshot import held
from tests.controlplane.fleet import Site
from tests.controlplane.harbour import Harbour
from tests.controlplane.plane import kubeconfig

A_SECOND = td(seconds=1)  # Kubernetes' own times are whole seconds


def ended_at(harbour: Harbour, row: Workload) -> datetime:
    found = harbour.placement(row).ended_at
    assert found is not None
    return found


def ends_as_removed(harbour: Harbour, row: Workload) -> None:
    harbour.until(lambda: harbour.phase(row) == "ended", "ended")
    assert harbour.read(row).phase_reason == "RemovedOutside"
    assert held() == {}
    harbour.until(lambda: harbour.pods_of(row) == [], "its pods gone")
    assert harbour.failures() == []


# Q1


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
@pytest.mark.parametrize("kind", ["workspace", "job"])
def test_q1_an_object_that_is_deleted_ends_its_workload_at_that_time(harbour: Harbour, kind: str, policy: str) -> None:
    row = harbour.run(kind=kind, command="sleep 3600" if kind == "job" else "")
    harbour.ages()
    harbour.dies_slowly(1.0)
    asked_at = harbour.cluster_now()

    harbour.delete(harbour.object_path(row), propagationPolicy=policy)
    harbour.until(lambda: not held(), "its quota freed")
    freed_at = harbour.cluster_now()

    ends_as_removed(harbour, row)
    if policy != "Orphan":  # then nobody has told the pod to go: it is paid for until it is seen alone
        assert asked_at - A_SECOND <= ended_at(harbour, row) <= freed_at
    assert row.phase_since <= ended_at(harbour, row)


def test_q1_a_pod_that_is_deleted_is_made_again_and_stays_one_stay(harbour: Harbour) -> None:
    row = harbour.run()
    (before,) = harbour.pods_of(row)

    harbour.delete(harbour.pod_path(row))
    after = harbour.until(lambda: another(harbour, row, before), "another pod")

    assert (after.name, after.node) == (before.name, before.node)
    placement = Placement.objects.get(workload=row)
    assert (placement.ended_at, placement.attempt, placement.pod_uid) == (None, 1, after.uid)


def test_q1_a_job_whose_pod_is_deleted_ends_and_says_why(harbour: Harbour) -> None:
    """One try each: Kubernetes counts the deletion as a failure, and nobody runs a half-done job again unasked."""
    row = harbour.run(kind="job", command="sleep 3600")

    harbour.delete(harbour.pod_path(row))
    harbour.until(lambda: harbour.phase(row) == "ended", "ended")

    assert harbour.read(row).phase_reason == "Failed"
    assert held() == {}


# Pods without an owner


def test_a_pod_that_lost_its_owner_is_removed_with_berths_own_rights(harbour: Harbour) -> None:
    row = harbour.run()

    harbour.delete(harbour.object_path(row), propagationPolicy="Orphan")
    harbour.ages()

    ends_as_removed(harbour, row)


def test_a_pod_of_nobody_we_know_is_capacity_taken_and_left_alone(harbour: Harbour) -> None:
    """Made by hand on a node of ours, with cards and without an owner."""
    node = harbour.node_names("h100-train")[0]
    path = "/api/v1/namespaces/default/pods"
    harbour.door.ask("POST", path, body=bare_pod("theirs", node, cards=3))
    harbour.seen(lambda: harbour.document(f"{path}/theirs")["status"]["phase"] == "Running", "their pod running")

    row = harbour.run("six", count=6)

    assert harbour.node_of(row) != node, "five cards are left there"
    assert harbour.document(f"{path}/theirs")["status"]["phase"] == "Running"
    assert held() == {(harbour.vision.pk, "h100-80gb", harbour.robin.pk): 6}


# Edited by hand


def test_replicas_that_somebody_raised_are_lowered_again(harbour: Harbour) -> None:
    row = harbour.run()

    harbour.patch(harbour.object_path(row), {"spec": {"replicas": 3}})
    harbour.until(lambda: harbour.document(harbour.object_path(row))["spec"]["replicas"] == 1, "one replica")
    harbour.until(lambda: len(harbour.pods_of(row)) == 1, "one pod")

    assert "from outside of this portal" in " ".join(row.transitions.values_list("text", flat=True))
    assert Placement.objects.filter(workload=row).count() == 1


def test_a_stateful_set_that_somebody_scaled_to_zero_runs_again(harbour: Harbour) -> None:
    row = harbour.run()

    harbour.patch(harbour.object_path(row), {"spec": {"replicas": 0}})
    harbour.until(lambda: harbour.document(harbour.object_path(row))["spec"]["replicas"] == 1, "one replica")
    harbour.until(lambda: harbour.phase(row) == "running" and len(harbour.pods_of(row)) == 1, "running again")

    assert len(harbour.pods_of(row)) == 1


# Evicted and drained: the simulation has no such door


def test_an_evicted_workspace_comes_back(real_harbour: Harbour) -> None:
    row = real_harbour.run(storage_gib=5)
    (before,) = real_harbour.pods_of(row)

    evict(real_harbour, before)
    real_harbour.until(lambda: another(real_harbour, row, before), "another pod")

    assert Placement.objects.filter(workload=row, ended_at=None).count() == 1


def test_an_evicted_job_runs_once_more(real_harbour: Harbour) -> None:
    """A disruption is no failure of the program."""
    row = real_harbour.run(kind="job", command="sleep 3600")
    (before,) = real_harbour.pods_of(row)

    evict(real_harbour, before)
    real_harbour.until(lambda: another(real_harbour, row, before), "another pod")

    assert real_harbour.read(row).phase == "running"


@pytest.mark.parametrize("kind", ["workspace", "job"])
def test_work_of_a_drained_node_goes_on_elsewhere(real_harbour: Harbour, control_plane: Site, kind: str) -> None:
    row = real_harbour.run(kind=kind, command="sleep 3600" if kind == "job" else "")
    node = real_harbour.node_of(row)

    drain(real_harbour, control_plane, node)
    real_harbour.ages()
    real_harbour.until(lambda: real_harbour.placement_node(row) not in ("", node), "a place elsewhere")
    real_harbour.until(lambda: real_harbour.phase(row) == "running", "running elsewhere")

    first, second = Placement.objects.filter(workload=row).order_by("placed_at")
    assert first.ended_at <= second.placed_at
    assert [pod.node for pod in real_harbour.pods_of(row)] == [second.node]
    assert Node.objects.get(name=node).schedulable is False, "the drained node is left to who drained it"
    assert "drained" in " ".join(row.transitions.values_list("text", flat=True))


# Helpers


def another(harbour: Harbour, row: Workload, before: PodFact) -> PodFact | None:
    """The pod that has come in place of an earlier one, once it runs and its workload does."""
    pods = [pod for pod in harbour.pods_of(row) if pod.uid != before.uid and pod.ready]
    return pods[0] if pods and harbour.phase(row) == "running" else None


def evict(harbour: Harbour, pod: PodFact) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod.name, "namespace": pod.namespace}}
    harbour.door.ask("POST", f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/eviction", body=body)


def drain(harbour: Harbour, site: Site, node: str) -> None:
    """By kubectl where it is installed, else by what it does: a cordon, and an eviction of every pod."""
    if program := shutil.which("kubectl"):
        access = Path(site.plane.folder) / "kubectl.kubeconfig"
        access.write_text(json.dumps(kubeconfig(site.plane, "admin")), encoding="utf-8")
        words = ["drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=20s"]
        subprocess.run([program, f"--kubeconfig={access}", *words], check=True, capture_output=True, timeout=30)
        return
    harbour.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
    for pod in harbour.port.observe(harbour.now).pods:
        if pod.node == node:
            evict(harbour, pod)


def bare_pod(name: str, node: str, *, cards: int) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": str(cards), "cpu": "1", "memory": "1Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [{"name": "main", "image": "example.org/theirs:1", "resources": {"limits": limits}}],
            "nodeSelector": {"kubernetes.io/hostname": node},
            "tolerations": [{"operator": "Exists"}],
        },
    }
