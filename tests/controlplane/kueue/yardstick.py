"""Kueue's own pace, to measure Berth's beside it: Jobs over the ClusterQueues of one Cohort, from the first that is
created until the last is admitted, on a control plane that runs already and has Kueue.

    python -m tests.controlplane.serve FOLDER --fleet none --kueue
    admission(Connection(server, certificate_file=…, key_file=…, authority_file=…))
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from scheduling.cluster.client import Connection, Session
from tests.controlplane.kueue.manager import GROUP, put, release
from tests.controlplane.paths import collection_of, path_of

NAMESPACE = "kueue-yardstick"
VERSION = "kueue.x-k8s.io/v1beta2"
NAME = "yardstick"
RESOURCE = "nvidia.com/gpu"
WRITERS = 4  # threads that create Jobs; more only wait for the API server
LOOK = 0.1  # seconds between two looks at the queues
PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Admission:
    """Seconds from the first creation on."""

    jobs: int
    created: float
    admitted: float

    @property
    def per_second(self) -> float:
        """Jobs admitted in a second, their creation included."""
        return self.jobs / self.admitted

    @property
    def created_per_second(self) -> float:
        return self.jobs / self.created


def admission(connection: Connection, jobs: int = 600, queues: int = 20, *, tidy: bool = True) -> Admission:
    """Measure once; `connection` may do everything. Raises ClusterError, TimeoutError.

    All that it made but the namespace is removed again, which takes as long as the measuring; without `tidy` it stays,
    for a control plane that ends next.
    """
    with closing(Session(connection)) as door:
        try:
            for document in furniture(queues, jobs):
                put(door, document)
            return measured(door, jobs, queues)
        finally:
            if tidy:
                clean(door, queues)


def measured(door: Session, jobs: int, queues: int) -> Admission:
    started = time.monotonic()
    documents = [job(number, number % queues) for number in range(jobs)]
    path = collection_of(documents[0])
    with ThreadPoolExecutor(WRITERS) as writers:
        list(writers.map(lambda document: door.ask("POST", path, body=document), documents))
    created = time.monotonic() - started
    while admitted(door) < jobs:
        if time.monotonic() - started > PATIENCE:
            raise TimeoutError(f"Kueue admitted {admitted(door)} of {jobs} Jobs within {PATIENCE:g} s.")
        time.sleep(LOOK)
    return Admission(jobs, created, time.monotonic() - started)


def admitted(door: Session) -> int:
    found = json.loads(door.ask("GET", f"{GROUP}/clusterqueues"))["items"]
    return sum(one.get("status", {}).get("admittedWorkloads", 0) for one in found if one["spec"]["cohortName"] == NAME)


def clean(door: Session, queues: int) -> None:
    """The Jobs and their pods first, then the queues that they hold."""
    body = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}
    for path in (f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs", f"/api/v1/namespaces/{NAMESPACE}/pods"):
        door.ask("DELETE", path, body=body, timeout=PATIENCE)
    workloads = f"{GROUP}/namespaces/{NAMESPACE}/workloads"
    for item in json.loads(door.ask("GET", workloads))["items"]:  # Kubernetes' own sweeper knows a new kind after 30 s
        release(door, f"{workloads}/{item['metadata']['name']}")
    for document in reversed(list(furniture(queues, queues))[1:]):
        release(door, path_of(document))


# Documents


def furniture(queues: int, jobs: int) -> Iterator[dict[str, Any]]:
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    yield {"apiVersion": VERSION, "kind": "ResourceFlavor", "metadata": {"name": NAME}, "spec": {}}
    yield {"apiVersion": VERSION, "kind": "Cohort", "metadata": {"name": NAME}, "spec": {}}
    for number in range(queues):
        yield cluster_queue(number, -(-jobs // queues))
        meta = {"name": queue_name(number), "namespace": NAMESPACE}
        yield {
            "apiVersion": VERSION,
            "kind": "LocalQueue",
            "metadata": meta,
            "spec": {"clusterQueue": queue_name(number)},
        }


def cluster_queue(number: int, nominal: int) -> dict[str, Any]:
    flavor = {"name": NAME, "resources": [{"name": RESOURCE, "nominalQuota": str(nominal)}]}
    return {
        "apiVersion": VERSION,
        "kind": "ClusterQueue",
        "metadata": {"name": queue_name(number)},
        "spec": {
            "cohortName": NAME,
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": [RESOURCE], "flavors": [flavor]}],
        },
    }


def job(number: int, queue: int) -> dict[str, Any]:
    container = {"name": "main", "image": "example.org/none", "resources": {"limits": {RESOURCE: "1"}}}
    meta = {
        "name": f"{NAME}-{number}",
        "namespace": NAMESPACE,
        "labels": {"kueue.x-k8s.io/queue-name": queue_name(queue)},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": meta,
        "spec": {"suspend": True, "backoffLimit": 0, "template": template},
    }


def queue_name(number: int) -> str:
    return f"{NAME}-{number}"
