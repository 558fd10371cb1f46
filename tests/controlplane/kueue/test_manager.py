"""Kueue itself, as the tests start it: it serves both versions, admits, and its pace can be measured."""

from __future__ import annotations

import json

import pytest

from scheduling.cluster.client import Session
from scheduling.cluster.port import ClusterError
from tests.controlplane import fleet
from tests.controlplane.kueue.yardstick import NAMESPACE, admission

V1BETA1 = "/apis/kueue.x-k8s.io/v1beta1/clusterqueues"

pytestmark = pytest.mark.controlplane


def test_its_yardstick_measures_and_leaves_nothing(kueue: Session, kueue_manager: fleet.Site) -> None:
    found = admission(kueue_manager.plane.admin, jobs=9, queues=3)

    assert found.jobs == 9
    assert 0 < found.created < found.admitted
    assert json.loads(kueue.ask("GET", f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"))["items"] == []
    assert json.loads(kueue.ask("GET", V1BETA1))["items"] == []


def test_the_older_version_is_converted_by_its_webhook(kueue: Session) -> None:
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "old"}}
    kueue.ask("POST", V1BETA1, body={**queue, "spec": {"cohort": "some"}})

    found = json.loads(kueue.ask("GET", "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/old"))

    assert found["spec"]["cohortName"] == "some"


def test_its_own_webhook_refuses_what_makes_no_sense(kueue: Session) -> None:
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "spec": {"clusterQueue": "Not A Name"}}
    path = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/localqueues"

    with pytest.raises(ClusterError) as refusal:
        kueue.ask("POST", path, body={**queue, "metadata": {"name": "odd"}})

    assert refusal.value.status == 422 or "denied" in str(refusal.value)
