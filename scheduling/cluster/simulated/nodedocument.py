"""The Node document of a fresh machine, as its pool's MachineDeployment foretells it. Pure."""

from __future__ import annotations

import json
from datetime import datetime

from . import gfd
from .kinds import Document
from .machines import Machine
from .nodes import healthy_conditions
from .podstatus import address, digest

CAPACITY = "capacity.cluster-autoscaler.kubernetes.io"
HARDWARE = "simulation.berth/hardware"
POOL = "node.cluster.x-k8s.io/pool"
NODE_PREFIX = "node.cluster.x-k8s.io/"
VERSION = "v1.34.2"


def fresh(deployment: Document, machine: Document, gpus: Machine | None, now: datetime) -> Document:
    """The node as it registers: Ready, labelled by its pool, the GPU operator at work, no GPU advertised yet."""
    name = machine["metadata"]["name"]
    annotations = deployment["metadata"].get("annotations") or {}
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/hostname": name,
    }
    labels |= {key: value for key, value in foretold(annotations).items() if not gfd.OWNED.match(key)}
    labels |= {key: value for key, value in machine["metadata"]["labels"].items() if key.startswith(NODE_PREFIX)}
    if gpus:
        config = json.loads(annotations[HARDWARE]).get("migConfig") or "all-disabled"
        labels |= gfd.operator_labels(gpus, config)
    node: Document = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": belonging(deployment, name)},
        "spec": {"providerID": f"simulated://{name}", "taints": taints(annotations)},
        "status": status(name, annotations),
    }
    healthy_conditions(node, now)
    return node


def belonging(deployment: Document, machine: str) -> dict[str, str]:
    """The annotations by which Cluster API says whose node this is."""
    return {
        "cluster.x-k8s.io/cluster-name": deployment["spec"]["clusterName"],
        "cluster.x-k8s.io/cluster-namespace": deployment["metadata"]["namespace"],
        "cluster.x-k8s.io/machine": machine,
        "cluster.x-k8s.io/owner-kind": "MachineDeployment",
        "cluster.x-k8s.io/owner-name": deployment["metadata"]["name"],
    }


def foretold(annotations: dict[str, str]) -> dict[str, str]:
    """The labels that the pool says a fresh node will have: `a=b,c=d`."""
    pairs = [pair.partition("=") for pair in annotations.get(f"{CAPACITY}/labels", "").split(",") if pair.strip()]
    return {key.strip(): value.strip() for key, _, value in pairs}


def taints(annotations: dict[str, str]) -> list[Document]:
    """`key=value:Effect`, separated by commas."""
    found = []
    for text in annotations.get(f"{CAPACITY}/taints", "").split(","):
        pair, _, effect = text.strip().rpartition(":")
        key, _, value = pair.partition("=")
        if key:
            found.append({"key": key, "effect": effect} | ({"value": value} if value else {}))
    return found


def status(name: str, annotations: dict[str, str]) -> Document:
    """Capacity and allocatable as announced: what the kubelet keeps for itself is not in the announcement."""
    cpu, memory = annotations.get(f"{CAPACITY}/cpu", "8"), annotations.get(f"{CAPACITY}/memory", "32Gi")
    plain = {
        "cpu": cpu,
        "memory": memory,
        "pods": annotations.get(f"{CAPACITY}/maxPods", "110"),
        "ephemeral-storage": annotations.get(f"{CAPACITY}/ephemeral-disk", "200Gi"),
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
    }
    ident = digest(name)
    return {
        "capacity": dict(plain),
        "allocatable": dict(plain),
        "addresses": [{"type": "InternalIP", "address": address(name, 10)}, {"type": "Hostname", "address": name}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "architecture": "amd64",
            "operatingSystem": "linux",
            "kubeletVersion": VERSION,
            "kubeProxyVersion": "",
            "containerRuntimeVersion": "containerd://2.1.4",
            "kernelVersion": "6.8.0",
            "osImage": "Ubuntu 24.04.3 LTS",
            "machineID": ident[:32],
            "systemUUID": ident[:32],
            "bootID": ident[32:],
        },
    }
