"""Removing a pod by force: whatever holds it, and nobody else's."""

from dataclasses import replace

import pytest

from scheduling.cluster.api import MERGE, path_of
from scheduling.cluster.port import Ref
from scheduling.planning.facts import PodFact
from tests.contract.conftest import Rig, gone, refusal_of
from tests.contract.launches import NAME, NOTEBOOK, ROW, put_all

HELD = {"metadata": {"finalizers": ["example.org/hold"]}}
POD = path_of("Pod", NOTEBOOK.namespace, f"{NAME}-0")


def running(cluster: Rig) -> PodFact:
    put_all(cluster.port, replace(NOTEBOOK, node=cluster.nodes_of("h100-train")[0].name, storage_gib=0))
    seen = cluster.until(lambda look: any(pod.workload == ROW and pod.ready for pod in look.pods))
    return next(pod for pod in seen.pods if pod.workload == ROW)


def ref_of(pod: PodFact) -> Ref:
    return Ref("Pod", pod.namespace, pod.name, pod.uid)


def stopped(cluster: Rig, pod: PodFact) -> None:
    """Scaled to zero, and told to go."""
    cluster.port.scale(Ref("StatefulSet", pod.namespace, NAME), 0)
    cluster.until(lambda look: any(one.uid == pod.uid and one.deleting_since for one in look.pods))


def test_w6_a_pod_that_a_finalizer_holds_goes(cluster: Rig) -> None:
    pod = running(cluster)
    cluster.door.ask("PATCH", POD, body=HELD, content=MERGE)
    stopped(cluster, pod)

    assert cluster.port.remove_by_force(ref_of(pod)) is True

    assert gone(cluster, "Pod", pod.namespace, pod.name)
    assert cluster.port.remove_by_force(ref_of(pod)) is False


def test_w6_a_pod_of_a_node_that_is_silent_goes(cluster: Rig) -> None:
    pod = running(cluster)
    cluster.faults.node_not_ready(pod.node)
    stopped(cluster, pod)

    assert cluster.port.remove_by_force(ref_of(pod)) is True

    assert gone(cluster, "Pod", pod.namespace, pod.name)


def test_a_namesake_made_since_stays(cluster: Rig) -> None:
    pod = running(cluster)

    assert cluster.port.remove_by_force(replace(ref_of(pod), uid="an-earlier-one")) is False

    assert not gone(cluster, "Pod", pod.namespace, pod.name)


def test_a_pod_of_somebody_else_stays(cluster: Rig) -> None:
    exporter = next(pod for pod in cluster.look().pods if pod.workload is None)

    assert cluster.port.remove_by_force(ref_of(exporter)) is False

    assert not gone(cluster, "Pod", exporter.namespace, exporter.name)


@pytest.mark.parametrize("ref", [Ref("Pod", "default", "x"), Ref("Job", "default", "x", "a-uid")], ids=str)
def test_only_a_pod_that_is_named_by_its_uid(cluster: Rig, ref: Ref) -> None:
    assert refusal_of(lambda: cluster.port.remove_by_force(ref)).retry is False
