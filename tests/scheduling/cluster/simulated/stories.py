"""What the stories of the simulated cluster are told with: documents, and a cluster with its time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scheduling.cluster.simulated import Delays, ManualClock, SimulatedCluster, fleet_documents
from scheduling.cluster.simulated.kinds import BY_PLURAL, Document, Key

START = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)
DATA = Path(__file__).parents[3] / "data"
TRAIN = "gke-berth-h100-train-3f7a91c2-qk7d"
BALANCED = "gke-berth-h100-mig-19ab33f4-m2zd"
UNCUT = "gke-berth-h100-mig-19ab33f4-t8xw"
SHARED = "ip-10-42-17-203.eu-central-1.compute.internal"
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}


class Story(SimulatedCluster):
    """A cluster with short words for what a story does to it. All in the namespace `lab`."""

    def __init__(self, documents: Iterable[Document] = (), delays: Delays | None = None) -> None:
        super().__init__(documents, ManualClock(START), delays)
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}})

    def create(self, document: Document) -> Document:
        created = self.world.create(document)
        self.world.settle()
        return created

    def get(self, plural: str, name: str, namespace: str = "lab") -> Document:
        found = self.find(plural, name, namespace)
        assert found is not None, f"no {plural} {name}"
        return found

    def find(self, plural: str, name: str, namespace: str = "lab") -> Document | None:
        return self.world.get(plural, namespace if BY_PLURAL[plural].namespaced else "", name)

    def all(self, plural: str, namespace: str = "lab") -> list[Document]:
        return self.world.store.all(plural, namespace if BY_PLURAL[plural].namespaced else "")

    def names(self, plural: str, namespace: str = "lab") -> list[str]:
        return [document["metadata"]["name"] for document in self.all(plural, namespace)]

    def delete(self, plural: str, name: str, namespace: str = "lab", **options: Any) -> None:
        from scheduling.cluster.simulated.api import DeleteOptions

        kind = BY_PLURAL[plural]
        self.world.api.delete(kind, namespace if kind.namespaced else "", name, DeleteOptions(**options))
        self.world.settle()

    def merge(self, plural: str, name: str, patch: Document, namespace: str = "lab", **options: Any) -> Document:
        kind = BY_PLURAL[plural]
        style = "application/merge-patch+json"
        where = (namespace if kind.namespaced else "", name)
        patched = self.world.api.patch(kind, *where, patch, style=style, manager="story", **options)
        self.world.settle()
        return patched

    def scale(self, plural: str, name: str, replicas: int, namespace: str = "lab") -> None:
        self.world.api.scale(BY_PLURAL[plural], namespace, name, {"spec": {"replicas": replicas}}, "story")
        self.world.settle()

    def events(self, about: str) -> list[str]:
        """The reasons of the events about an object, in the order in which they came."""
        found = [event for event in self.world.store.all("events") if event["involvedObject"]["name"] == about]
        return [event["reason"] for event in sorted(found, key=lambda event: event["metadata"]["name"])]

    def phase(self, pod: str, namespace: str = "lab") -> str:
        return str(self.get("pods", pod, namespace)["status"]["phase"])

    def waiting(self, pod: str) -> str:
        """Why the first container waits; empty when it does not."""
        state = self.get("pods", pod)["status"]["containerStatuses"][0]["state"]
        return str(state.get("waiting", {}).get("reason", ""))

    def refusal(self, pod: str) -> str:
        """The scheduler's sentence."""
        found = [one for one in self.get("pods", pod)["status"]["conditions"] if one["type"] == "PodScheduled"]
        return str(found[0].get("message", ""))

    def node(self, name: str) -> Document:
        return self.get("nodes", name)

    def labels(self, node: str) -> dict[str, str]:
        return dict(self.node(node)["metadata"]["labels"])

    def allocatable(self, node: str) -> dict[str, int]:
        """GPU resources that the node would give out."""
        found = self.node(node)["status"]["allocatable"]
        return {name.removeprefix("nvidia.com/"): int(n) for name, n in found.items() if name.startswith("nvidia.com/")}

    def cut(self, node: str, config: str) -> None:
        self.merge("nodes", node, {"metadata": {"labels": {"nvidia.com/mig.config": config}}})


def fleet_story(delays: Delays | None = None) -> Story:
    """The demo's fleet, a minute after it came up."""
    story = Story(fleet_documents(), delays)
    story.advance(minutes=1)
    return story


def plain_node(name: str = "n1", cpu: str = "8", memory: str = "32Gi", pods: str = "110", **more: Any) -> Document:
    """A machine without GPUs."""
    sizes = {"cpu": cpu, "memory": memory, "pods": pods} | more.pop("resources", {})
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name} | more.pop("labels", {})},
        "spec": more,
        "status": {"capacity": dict(sizes), "allocatable": dict(sizes), "conditions": [ready]},
    }


def container(resources: dict[str, str] | None = None, **more: Any) -> Document:
    limits = {"cpu": "1", "memory": "1Gi"} | (resources or {})
    return {"name": "main", "image": "notebook:1", "resources": {"limits": limits}} | more


def pod_spec(resources: dict[str, str] | None = None, **more: Any) -> Document:
    inside = {word: more.pop(word) for word in ("command", "args", "env", "image") if word in more}
    return {"containers": [container(resources, **inside)], "tolerations": [TOLERATION]} | more


def pod(name: str = "p", resources: dict[str, str] | None = None, **more: Any) -> Document:
    metadata = {"name": name, "namespace": "lab"} | more.pop("metadata", {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(resources, **more)}


def stateful_set(name: str = "ws", resources: dict[str, str] | None = None, replicas: int = 1, **more: Any) -> Document:
    """A workspace: one pod, and a claim for its home that stays."""
    claims = more.pop("claims", ["home"])
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": "lab"},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod_spec(resources, **more)},
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": claim},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}},
                }
                for claim in claims
            ],
        },
    }


def job(
    name: str = "j", script: str = "sleep 600; exit 0", resources: dict[str, str] | None = None, **spec: Any
) -> Document:
    inside = {"restartPolicy": "Never", "command": ["sh", "-c", script]} | spec.pop("pod", {})
    template = pod_spec(resources, **inside)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "lab"},
        "spec": {"template": {"spec": template}} | spec,
    }


def config_map(name: str = "settings", data: dict[str, str] | None = None, **metadata: Any) -> Document:
    metadata = {"name": name, "namespace": "lab"} | metadata
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {"colour": "blue"}}


def on_node(name: str) -> Document:
    """The node affinity by which a pod goes to one node and no other."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def pod_key(name: str, namespace: str = "lab") -> Key:
    return Key("pods", namespace, name)
