"""Machines that exist on paper: node documents with whole H100 cards, for servers that play no machines themselves."""

from typing import Any

POOL = "bench"
MODEL = "h100-80gb"
MEMORY_MIB = 81_559


def node_document(name: str, cards: int) -> dict[str, Any]:
    """A ready node as its kubelet and GPU Feature Discovery tell of it."""
    labels = {
        "kubernetes.io/hostname": name,
        "node.cluster.x-k8s.io/pool": POOL,
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.count": str(cards),
        "nvidia.com/gpu.memory": str(MEMORY_MIB),
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/mig.capable": "true",
        "nvidia.com/mig.strategy": "mixed",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": node_status(cards),
    }


def node_status(cards: int) -> dict[str, Any]:
    room = {"cpu": f"{cards * 12}", "memory": f"{cards * 64}Gi", "pods": f"{cards * 2}", "nvidia.com/gpu": str(cards)}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "",
        "lastHeartbeatTime": "2026-12-01T08:00:00Z",
        "lastTransitionTime": "2026-12-01T08:00:00Z",
    }
    return {"capacity": room, "allocatable": room, "conditions": [ready]}
