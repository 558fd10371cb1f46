"""The bench's own API server, as our adapter meets it."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from portal.bench.apiserver import answer_to, call_of, node_of
from portal.bench.ground import Ground
from scheduling.cluster.client import Connection, KubernetesPort
from scheduling.cluster.port import Ref
from tests.contract.launches import JOB_REF, ROW, TRAINING, put_all

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    from contextlib import ExitStack
    from os import environ

    with ExitStack() as ends:
        yield Ground(tmp_path, 0, "", dict(environ), ends).api_server(nodes=3, cards=8)


def counts(server: str) -> dict[str, int]:
    with urllib.request.urlopen(f"{server}/counts", timeout=5) as answer:  # noqa: S310 (our own)
        found: dict[str, int] = json.load(answer)
    return found


def test_it_shows_machines_that_our_planner_can_use(server: str) -> None:
    with KubernetesPort(Connection(server)) as port:
        seen = port.observe(NOW)

    assert [(node.model, node.cards, node.schedulable) for node in seen.nodes] == [("h100-80gb", 8, True)] * 3
    assert seen.complete


def test_a_job_runs_at_once_and_goes_with_its_pod(server: str) -> None:
    with KubernetesPort(Connection(server)) as port:
        put_all(port, TRAINING)
        [pod] = port.observe(NOW).pods
        assert (pod.workload, pod.phase, pod.node) == (ROW, "Running", TRAINING.node)
        assert port.remove(JOB_REF)
        assert port.observe(NOW).pods == ()


def test_it_counts_what_it_is_asked(server: str) -> None:
    with KubernetesPort(Connection(server)) as port:
        put_all(port, TRAINING)
        port.remove(Ref("Job", "elsewhere", "nobody"))

    found = counts(server)
    assert (found["writes of jobs"], found["reads of jobs"]) == (1, 1)
    assert found["writes of namespaces"] == 1


def test_what_is_there_is_not_made_a_second_time(server: str) -> None:
    for _ in range(2):  # the second one knows nothing of the first
        with KubernetesPort(Connection(server)) as port:
            uid = put_all(port, TRAINING)

    with KubernetesPort(Connection(server)) as port:
        assert [item.uid for item in port.observe(NOW).objects] == [uid]


def test_who_watches_hears_of_it(server: str) -> None:
    rung = threading.Event()
    with KubernetesPort(Connection(server)) as port:
        port.watch(rung.set)
        deadline = time.monotonic() + 10
        while port.observe(NOW).heard_at is None:
            assert time.monotonic() < deadline, "It listens to nothing."
        rung.clear()
        with KubernetesPort(Connection(server)) as other:
            put_all(other, TRAINING)

        assert rung.wait(10)


def test_a_kind_that_it_does_not_know_is_not_found() -> None:
    from portal.bench.apiserver import Store

    call = call_of("GET", "/apis/cluster.x-k8s.io/v1beta2/machinedeployments?limit=500", b"")

    assert answer_to(Store(), call)[0] == 404


def test_paths_are_read_as_kubernetes_writes_them() -> None:
    said = [
        call_of("GET", "/api/v1/nodes?limit=500", b""),
        call_of("PATCH", "/api/v1/namespaces/team-a", b"{}"),
        call_of("POST", "/apis/batch/v1/namespaces/team-a/jobs?fieldManager=berth", b"{}"),
        call_of("GET", "/api/v1/pods?watch=true", b""),
    ]

    assert [(call.plural, call.namespace, call.name) for call in said] == [
        ("nodes", "", ""), ("namespaces", "", "team-a"), ("jobs", "team-a", ""), ("pods", "", "")
    ]  # fmt: skip
    assert [call.counted for call in said] == ["lists of nodes", "writes of namespaces", "writes of jobs", "watches"]


def test_a_pod_goes_where_its_affinity_says() -> None:
    wanted = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n7"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [wanted]}}

    assert node_of({"affinity": {"nodeAffinity": required}}) == "n7"
