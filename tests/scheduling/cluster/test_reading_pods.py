"""Pods, our objects and pools of machines, as facts."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from datetime import timedelta as td
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.cluster.documents import Unreadable
from scheduling.cluster.port import PoolSize
from scheduling.cluster.reading import (
    decode_objects,
    decode_pods,
    decode_pool_sizes,
    read_object,
    read_pod,
    read_pool_size,
)
from tests.scheduling.cluster.builders import Document, asking, file, pod

ROW = UUID("0d6e6b52-7c1e-4f0e-9a53-8f1c2b7ad001")
OURS = {"app.kubernetes.io/managed-by": "berth", "berth.portal/workload": str(ROW)}
NOON = "2026-12-01T12:00:00Z"


def at(hour: int, minute: int = 0, second: int = 0) -> datetime:
    return datetime(2026, 12, 1, hour, minute, second, tzinfo=UTC)


# Whose, where, how far


def test_a_real_pod_of_somebody_else() -> None:
    fact = read_pod(file("pods/mig-1g5gb.pod.yaml"))

    assert (fact.namespace, fact.name, fact.node, fact.phase) == (
        "runai-team-a",
        "job-2-0-0",
        "qa-mig-worker-gpu-a100",
        "Running",
    )
    assert (fact.ready, fact.workload, fact.requests, fact.cpu_milli) == (True, None, {}, 500)
    assert fact.created_at == datetime(2023, 1, 19, 7, 56, 47, tzinfo=UTC)
    assert fact.running_since == datetime(2023, 1, 19, 7, 56, 55, tzinfo=UTC)
    assert (fact.finished_at, fact.exit_code, fact.reason, fact.waiting_reason) == (None, None, "", "")


def test_a_real_pod_with_a_fraction_of_its_own_making_asks_for_nothing() -> None:
    assert read_pod(file("pods/fractional.pod.yaml")).requests == {}


WHOSE: dict[str, tuple[dict[str, Any], UUID | None]] = {
    "ours": (OURS, ROW),
    "one that only wears our label": ({"berth.portal/workload": str(ROW)}, None),
    "one with a label that is no row": (OURS | {"berth.portal/workload": "x"}, None),
    "one with a label that is a number": (OURS | {"berth.portal/workload": 7}, None),
    "somebody else's": ({}, None),
}


@pytest.mark.parametrize(("labels", "row"), WHOSE.values(), ids=WHOSE)
def test_whose_it_is(labels: dict[str, Any], row: UUID | None) -> None:
    assert read_pod(pod(metadata={"labels": labels})).workload == row


def status(**state: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "main", "state": state}]}


STATES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "waits for a node": (
        {
            "phase": "Pending",
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
            ],
        },
        {"phase": "Pending", "reason": "Unschedulable", "message": "0/3 nodes", "running_since": None},
    ),
    "pulls its image": (
        {"phase": "Pending"} | status(waiting={"reason": "ImagePullBackOff", "message": "no such image"}),
        {"waiting_reason": "ImagePullBackOff", "message": "no such image", "running_since": None},
    ),
    "waits in an init container": (
        {
            "phase": "Pending",
            "initContainerStatuses": [{"name": "i", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
        }
        | status(waiting={"reason": "PodInitializing"}),
        {"waiting_reason": "CrashLoopBackOff"},
    ),
    "runs": (
        {"conditions": [{"type": "Ready", "status": "True"}]} | status(running={"startedAt": NOON}),
        {"ready": True, "running_since": at(12), "exit_code": None},
    ),
    "ended well": (
        {"phase": "Succeeded"}
        | status(
            terminated={"exitCode": 0, "reason": "Completed", "startedAt": NOON, "finishedAt": "2026-12-01T13:00:00Z"}
        ),
        {"phase": "Succeeded", "exit_code": 0, "reason": "Completed", "running_since": at(12), "finished_at": at(13)},
    ),
    "ran out of memory": (
        {"phase": "Failed"} | status(terminated={"exitCode": 137, "reason": "OOMKilled"}),
        {"exit_code": 137, "reason": "OOMKilled"},
    ),
    "was refused by the kubelet": (
        {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "maximum request size is 1"},
        {"reason": "UnexpectedAdmissionError", "message": "maximum request size is 1"},
    ),
    "was evicted by somebody": (
        {
            "phase": "Failed",
            "conditions": [
                {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "drained"}
            ],
        }
        | status(terminated={"exitCode": 143, "reason": "Error"}),
        {"reason": "EvictionByEvictionAPI", "message": "drained", "exit_code": 143},
    ),
    "has a main container beside another": (
        {
            "containerStatuses": [
                {"name": "aside", "state": {"terminated": {"exitCode": 9}}},
                {"name": "main", "state": {"running": {"startedAt": NOON}}},
            ]
        },
        {"running_since": at(12), "exit_code": None},
    ),
    "says nothing": ({"phase": None}, {"phase": "Unknown", "ready": False}),
}


@pytest.mark.parametrize(("said", "expected"), STATES.values(), ids=STATES)
def test_how_far_it_is(said: dict[str, Any], expected: dict[str, Any]) -> None:
    fact = read_pod(pod(status=said))

    assert {name: getattr(fact, name) for name in expected} == expected


def test_a_deletion_is_counted_from_when_it_was_asked_for() -> None:
    fact = read_pod(pod(metadata={"deletionTimestamp": NOON, "deletionGracePeriodSeconds": 30}))

    assert (fact.deleting_since, fact.grace) == (at(11, 59, 30), td(seconds=30))


def test_an_unbound_pod_has_no_node() -> None:
    assert read_pod(pod(spec={"nodeName": None})).node == ""


# What it asks for

REQUESTS: dict[str, tuple[dict[str, Any], dict[str, int], int, int]] = {  # spec -> extended, milli-CPU, MiB
    "one container": ({"containers": [asking(cpu="1500m", memory="2Gi", gpu=1)]}, {"nvidia.com/gpu": 1}, 1500, 2048),
    "two containers": ({"containers": [asking(gpu=1), asking(gpu=2, cpu="1")]}, {"nvidia.com/gpu": 3}, 1000, 0),
    "limits without requests": (
        {"containers": [{"resources": {"limits": {"nvidia.com/mig-1g.10gb": "1"}}}]},
        {"nvidia.com/mig-1g.10gb": 1},
        0,
        0,
    ),
    "an init container that asks for more": (
        {"containers": [asking(gpu=1, cpu="1")], "initContainers": [asking(gpu=2), asking(cpu="500m")]},
        {"nvidia.com/gpu": 2},
        1000,
        0,
    ),
    "a sidecar counts with the others": (
        {"containers": [asking(gpu=1)], "initContainers": [asking(gpu=1) | {"restartPolicy": "Always"}]},
        {"nvidia.com/gpu": 2},
        0,
        0,
    ),
    "an init container beside a sidecar": (
        {"containers": [asking(gpu=1)], "initContainers": [asking(gpu=1) | {"restartPolicy": "Always"}, asking(gpu=3)]},
        {"nvidia.com/gpu": 4},
        0,
        0,
    ),
    "an overhead": ({"containers": [asking(cpu="1")], "overhead": {"cpu": "250m", "memory": "1Mi"}}, {}, 1250, 1),
    "a request that is no number": ({"containers": [asking(gpu="abc", cpu="1")]}, {}, 1000, 0),
    "zero cards": ({"containers": [asking(gpu=0)]}, {}, 0, 0),
    "storage is not our matter": (
        {"containers": [{"resources": {"requests": {"ephemeral-storage": "1Gi"}}}]},
        {},
        0,
        0,
    ),
    "nothing": ({"containers": []}, {}, 0, 0),
}


@pytest.mark.parametrize(("spec", "extended", "cpu", "memory"), REQUESTS.values(), ids=REQUESTS)
def test_what_it_asks_for(spec: dict[str, Any], extended: dict[str, int], cpu: int, memory: int) -> None:
    fact = read_pod(pod(spec=spec))

    assert (fact.requests, fact.cpu_milli, fact.memory_mib) == (extended, cpu, memory)


# Our objects


def ours(kind: str, **parts: Any) -> Document:
    meta = {"name": "nb-0d6e6b52", "namespace": "team-a", "uid": "u", "labels": OURS} | parts.pop("metadata", {})
    return {"kind": kind, "metadata": meta} | parts


OBJECTS: dict[str, tuple[Document, dict[str, Any]]] = {
    "a workspace": (
        ours("StatefulSet", spec={"replicas": 1}, metadata={"annotations": {"berth.portal/attempt": "3"}}),
        {"kind": "StatefulSet", "workload": ROW, "replicas": 1, "generation": 3, "complete": False, "failed": False},
    ),
    "a workspace asleep": (ours("StatefulSet", spec={"replicas": 0}), {"replicas": 0, "generation": 0}),
    "a workspace that does not say": (ours("StatefulSet", spec={}), {"replicas": 1}),
    "a workspace that goes": (
        ours("StatefulSet", metadata={"deletionTimestamp": NOON}),
        {"deleting_since": at(12)},
    ),
    "a job": (ours("Job", spec={"parallelism": 1}), {"kind": "Job", "replicas": 1, "finished_at": None}),
    "a suspended job": (ours("Job", spec={"parallelism": 1, "suspend": True}), {"replicas": 0}),
    "a job that ended well": (
        ours("Job", status={"completionTime": NOON, "conditions": [{"type": "Complete", "status": "True"}]}),
        {"complete": True, "failed": False, "finished_at": at(12)},
    ),
    "a job that failed": (
        ours(
            "Job",
            status={
                "conditions": [
                    {"type": "FailureTarget", "status": "True"},
                    {
                        "type": "Failed",
                        "status": "True",
                        "reason": "BackoffLimitExceeded",
                        "message": "too often",
                        "lastTransitionTime": NOON,
                    },
                ]
            },
        ),
        {
            "complete": False,
            "failed": True,
            "reason": "BackoffLimitExceeded",
            "message": "too often",
            "finished_at": at(12),
        },
    ),
    "an attempt that is no number": (
        ours("Job", metadata={"annotations": {"berth.portal/attempt": "three"}}),
        {"generation": 0},
    ),
    "an attempt beyond reason": (
        ours("Job", metadata={"annotations": {"berth.portal/attempt": "9" * 5000}}),
        {"generation": 0},
    ),
}


@pytest.mark.parametrize(("document", "expected"), OBJECTS.values(), ids=OBJECTS)
def test_our_objects(document: Document, expected: dict[str, Any]) -> None:
    fact = read_object(document)

    assert fact is not None
    assert (fact.namespace, fact.name, fact.uid) == ("team-a", "nb-0d6e6b52", "u")
    assert {name: getattr(fact, name) for name in expected} == expected


def test_objects_of_others_are_not_ours() -> None:
    assert read_object({"kind": "Job", "metadata": {"name": "x"}}) is None


def test_the_items_of_a_list_do_not_say_their_kind() -> None:
    item = ours("") | {"kind": ""}
    raw = json.dumps({"kind": "StatefulSetList", "items": [item, {"metadata": {"name": "x"}}, 5]}).encode()

    found = decode_objects(raw, "StatefulSet")

    assert [fact.kind for fact in found.facts] == ["StatefulSet"]
    assert [problem.field for problem in found.problems] == ["items[2]"]


def test_a_list_of_pods_survives_an_odd_one() -> None:
    raw = json.dumps({"items": [pod("a"), {"metadata": {"name": 7}}, pod("b", spec={"containers": "x"})]}).encode()

    found = decode_pods(raw)

    assert [fact.name for fact in found.facts] == ["a", "b"]
    assert [problem.text for problem in found.problems] == ["this pod has no name; it is left out"]


# Pools of machines

POOLS: dict[str, tuple[Document, PoolSize]] = {
    "a pool": (
        {"metadata": {"name": "a"}, "spec": {"replicas": 3}, "status": {"readyReplicas": 2}},
        PoolSize("a", 3, 2),
    ),
    "a pool at zero": ({"metadata": {"name": "a"}, "spec": {"replicas": 0}}, PoolSize("a", 0, 0)),
    "a pool whose nodes carry another name": (
        {
            "metadata": {"name": "md-0"},
            "spec": {"replicas": 1, "template": {"metadata": {"labels": {"node.cluster.x-k8s.io/pool": "h100"}}}},
        },
        PoolSize("h100", 1, 0),
    ),
    "a pool in trouble": (
        {
            "metadata": {"name": "a"},
            "spec": {"replicas": 1},
            "status": {"conditions": [{"type": "MachinesReady", "status": "False", "message": "no capacity in zone"}]},
        },
        PoolSize("a", 1, 0, "no capacity in zone"),
    ),
}


@pytest.mark.parametrize(("document", "size"), POOLS.values(), ids=POOLS)
def test_what_the_provider_says(document: Document, size: PoolSize) -> None:
    assert read_pool_size(document) == size
    assert decode_pool_sizes(json.dumps({"items": [document]}).encode()).facts == (size,)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
PLACES = [
    "containers",
    "initContainers",
    "containerStatuses",
    "conditions",
    "labels",
    "phase",
    "deletionTimestamp",
    "resources",
]


@given(st.dictionaries(st.sampled_from(PLACES), JUNK), JUNK)
def test_whatever_a_pod_says_it_is_a_fact_or_a_refusal(parts: dict[str, Any], container: Any) -> None:
    document = pod(metadata=parts, spec=parts | {"containers": [container, {"resources": parts}]}, status=parts)

    with suppress(Unreadable):
        fact = read_pod(document)
        assert all(number > 0 for number in fact.requests.values())
        assert fact.cpu_milli >= 0
    with suppress(Unreadable):
        read_object(document)
    with suppress(Unreadable):
        read_pool_size(document)
