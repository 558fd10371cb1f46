"""Small Kubernetes documents for tests, in as few words as the case needs."""

from pathlib import Path
from typing import Any

import yaml

DATA = Path(__file__).parents[2] / "data"

Document = dict[str, Any]


def file(name: str) -> Document:
    document: Document = yaml.load((DATA / name).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return document


def node(
    name: str = "n1",
    *,
    labels: dict[str, Any] | None = None,
    annotations: dict[str, Any] | None = None,
    taints: list[Any] | None = None,
    conditions: list[Any] | None = None,
    cordoned: bool = False,
    capacity: dict[str, Any] | None = None,
    also: dict[str, Any] | None = None,
    **allocatable: Any,
) -> Document:
    """A ready node; `gpu=8` and `mig_1g_10gb=4` are resources, as `also` is; capacity is the same but where given."""
    offered = (
        {"cpu": "32", "memory": "256Gi"} | {resource(key): value for key, value in allocatable.items()} | (also or {})
    )
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}, "annotations": annotations or {}},
        "spec": {"taints": taints or [], **({"unschedulable": True} if cordoned else {})},
        "status": {
            "capacity": offered if capacity is None else offered | capacity,
            "allocatable": offered,
            "conditions": ready if conditions is None else conditions,
        },
    }


def resource(key: str) -> str:
    if "/" in key or key in {"cpu", "memory"}:
        return key
    return "nvidia.com/" + key.replace("mig_", "mig-").replace("g_", "g.").replace("gpu_", "gpu.")


def h100(**labels: Any) -> dict[str, Any]:
    """Labels of a node with eight whole H100 cards; more with `gpu__replicas=4` for nvidia.com/gpu.replicas."""
    said = {
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.memory": "81559",
    }
    return said | {"nvidia.com/" + key.replace("__", "."): value for key, value in labels.items()}


def pod(name: str = "p1", **parts: Any) -> Document:
    """A pod with one container; `spec`, `status` and `metadata` are merged over it."""
    spec = {"nodeName": "n1", "containers": [{"name": "main", "resources": {}}]} | parts.get("spec", {})
    metadata = {"name": name, "namespace": "team-a", "uid": "u1"} | parts.get("metadata", {})
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"} | parts.get("status", {})}


def asking(**requests: Any) -> Document:
    return {"resources": {"requests": {resource(key): value for key, value in requests.items()}}}
