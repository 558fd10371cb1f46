"""What providers, operators and autoscalers say about a node in labels and taints, as tables.

A label is a hint: the numbers that count are the node's resources (see cards.py).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from scheduling.cluster import names
from scheduling.cluster.documents import Strings, text
from scheduling.planning.cuda import Version, of_driver, version_in_parts, version_of
from scheduling.planning.facts import Capacity, Taint

POOL_KEYS = (
    names.POOL,
    names.CLUSTER_API_POOL,
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "nebius.com/node-group",
    "nebius.com/node-group-id",
    names.CLUSTER_API_DEPLOYMENT,
)
SPOT_VALUES = {
    "cloud.google.com/gke-spot": {"true"},
    "cloud.google.com/gke-preemptible": {"true"},
    "cloud.google.com/gke-provisioning": {"spot", "preemptible"},
    "eks.amazonaws.com/capacityType": {"spot"},
    "karpenter.sh/capacity-type": {"spot"},
    "kubernetes.azure.com/scalesetpriority": {"spot"},
    "oci.oraclecloud.com/oke-is-preemptible": {"true"},
    "nebius.com/preemptible": {"true"},
}
PRODUCT_KEYS = (  # best first
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "beta.amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
    "gpu.nvidia.com/model",
    "gpu.nvidia.com/class",
    "nebius.com/gpu-name",
    "k8s.amazonaws.com/accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "cluster-api/accelerator",
)
COUNT_KEYS = (  # physical cards, where nvidia.com/gpu.count is missing
    "cloud.google.com/gke-accelerator-count",
    "karpenter.k8s.aws/instance-gpu-count",
)
INSTANCE_KEYS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
INSTANCE_PRODUCTS = (  # the last resort: machine types that come with one kind of card
    (r"p4d\.", "NVIDIA-A100-SXM4-40GB"),
    (r"p4de\.", "NVIDIA-A100-SXM4-80GB"),
    (r"p5\.", "NVIDIA-H100-80GB-HBM3"),
    (r"p5en?\.", "NVIDIA-H200"),
    (r"p6-b200\.", "NVIDIA-B200"),
    (r"g4dn\.", "Tesla-T4"),
    (r"g5\.", "NVIDIA-A10G"),
    (r"g6\.", "NVIDIA-L4"),
    (r"g6e\.", "NVIDIA-L40S"),
    (r"Standard_NC\d+ads_A100_v4", "NVIDIA-A100-80GB-PCIe"),
    (r"Standard_ND\d+asr_v4", "NVIDIA-A100-SXM4-40GB"),
    (r"Standard_ND\d+amsr_A100_v4", "NVIDIA-A100-SXM4-80GB"),
    (r"Standard_NC\d+adi?s_H100_v5", "NVIDIA-H100-NVL"),
    (r"Standard_ND\d+isr_H100_v5", "NVIDIA-H100-80GB-HBM3"),
    (r"Standard_ND\d+isr_H200_v5", "NVIDIA-H200"),
    (r"Standard_NC\d+as_T4_v3", "Tesla-T4"),
)
ZONE_KEYS = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")

USUAL_TAINTS = {  # they keep pods without GPUs away; our pods tolerate them
    "nvidia.com/gpu",
    "amd.com/gpu",
    "sku",
    "gpu",
    "accelerator",
    "kubernetes.azure.com/scalesetpriority",
    "cloud.google.com/gke-spot",
    "cloud.google.com/gke-provisioning",
    "oci.oraclecloud.com/oke-is-preemptible",
}
FAULT_TAINTS = (
    (r"node\.kubernetes\.io/not-ready", "the node is not ready"),
    (r"node\.kubernetes\.io/unreachable", "the node does not answer"),
    (r"node\.kubernetes\.io/unschedulable", "the node is cordoned"),
    (r"node\.kubernetes\.io/out-of-service", "somebody took the node out of service"),
    (r"node\.kubernetes\.io/(?:memory|disk|pid)-pressure", "the node runs short of memory, disk or processes"),
    (r"node\.kubernetes\.io/network-unavailable", "the node's network is not set up"),
    (r"node\.cloudprovider\.kubernetes\.io/.*", "the provider is still starting the node or has shut it down"),
    (r"nvidia\.com/(?:gpu-.*|syslog-.*|.*-)?error", "a GPU fault was found"),
    (r"cloud\.google\.com/impending-node-termination", "the provider takes the node back within seconds"),
    (r"aws-node-termination-handler/.*", "the provider takes the node back within minutes"),
    (r"karpenter\.sh/disrupt(?:ed|ion)", "Karpenter is taking the node away"),
    (r"karpenter\.sh/unregistered", "Karpenter has not registered the node yet"),
    (r"ToBeDeletedByClusterAutoscaler", "the autoscaler is taking the node away"),
    (r"node\.cluster\.x-k8s\.io/uninitialized", "Cluster API has not finished setting the node up"),
)
HARD = {"NoSchedule", "NoExecute"}

UPGRADING = {"", "upgrade-done", "upgrade-required"}
"""Driver upgrade states in which the node still works as before."""

SENTINEL_STATE = "dgxc.nvidia.com/nvsentinel-state"
SENTINEL_WELL = {"", "remediation-succeeded"}
FAULT_CONDITIONS = re.compile(
    r"Gpu(?:Mem|Thermal|Pcie|Power|Inforom|Sm|Nvlink|Mcu|Pmu|Driver|Cpuset)Watch"
    r"|SysLogs(?:XIDError|SXIDError|GPUFallenOff)|NVSwitchFatalError|NVSwitchDown|DCGMError"
    r"|KernelDeadlock|ReadonlyFilesystem|CperHardwareErrorFatal"
)
"""Node conditions that are a fault while their status is True (NVSentinel, node-problem-detector)."""


@dataclass(frozen=True, slots=True)
class Product:
    """A product label, taken apart."""

    name: str  # "NVIDIA-H100-80GB-HBM3"; "" when no label tells
    key: str  # the label it stood in
    profile: str = ""  # "1g.10gb" when all cards are cut alike
    invalid: bool = False  # GFD could not make sense of the layout
    shared: bool = False  # the label ends in -SHARED


def pool_of(labels: Strings | None) -> str:
    return first(labels, POOL_KEYS)[1]


def capacity_of(labels: Strings | None) -> Capacity:
    spot = any(text(labels, key).lower() in values for key, values in SPOT_VALUES.items())
    return Capacity.SPOT if spot else Capacity.ON_DEMAND


def product_of(labels: Strings | None) -> Product:
    """The card's model in the provider's words, without what GFD appends for sharing and MIG."""
    key, name = first(labels, PRODUCT_KEYS)
    if not name:
        return instance_product(labels)
    plain = name.removesuffix("-SHARED")
    shared = plain != name
    if plain.endswith("-MIG-INVALID"):
        return Product(plain.removesuffix("-MIG-INVALID"), key, invalid=True, shared=shared)
    model, cut, profile = plain.rpartition("-MIG-")
    return Product(model, key, profile=profile, shared=shared) if cut else Product(plain, key, shared=shared)


def instance_product(labels: Strings | None) -> Product:
    key, machine = first(labels, INSTANCE_KEYS)
    for pattern, name in INSTANCE_PRODUCTS:
        if re.match(pattern, machine, re.ASCII):
            return Product(name, key)
    return Product("", "")


def driver_of(labels: Strings | None) -> str:
    full = text(labels, "nvidia.com/cuda.driver-version.full") or text(labels, "amd.com/gpu.driver-version")
    parts = [text(labels, f"nvidia.com/cuda.driver.{part}") for part in ("major", "minor", "rev")]
    return full or ".".join(part for part in parts if part)


def cuda_of(labels: Strings | None) -> Version | None:
    """The newest CUDA that the node's driver offers, by GPU Feature Discovery's labels or their deprecated twins."""
    for key in ("nvidia.com/cuda.runtime-version", "nvidia.com/cuda.runtime"):
        if said := version_in_parts(text(labels, f"{key}.major"), text(labels, f"{key}.minor")):
            return said
    if said := version_of(text(labels, "nvidia.com/cuda.runtime-version.full")):
        return said
    major = (text(labels, f"nvidia.com/cuda.{word}.major") for word in ("driver-version", "driver"))
    full = text(labels, "nvidia.com/cuda.driver-version.full")
    return of_driver(full or next((one for one in major if one), ""))


def first(labels: Strings | None, keys: Iterable[str]) -> tuple[str, str]:
    """The first of these labels that says something: its key and value, or two empty texts."""
    return next(((key, text(labels, key)) for key in keys if text(labels, key)), ("", ""))


@lru_cache(maxsize=1024)
def why_kept_away(taint: Taint) -> str:
    """Why this taint keeps our pods from the node; "" when it does not."""
    if taint.effect not in HARD:
        return ""
    for pattern, words in FAULT_TAINTS:
        if re.fullmatch(pattern, taint.key):
            return words
    return "" if usual(taint) else "it keeps pods away that do not tolerate it, and Berth's do not"


def is_strange(taint: Taint) -> bool:
    """Does it keep our pods away without telling of a fault that passes? Somebody wants it so, or forgot it."""
    known = any(re.fullmatch(pattern, taint.key) for pattern, _ in FAULT_TAINTS)
    return taint.effect in HARD and not known and not usual(taint)


def usual(taint: Taint) -> bool:
    """Does the taint merely say that this is a GPU node, or a node of spot capacity?"""
    if taint.key in USUAL_TAINTS:
        return True
    return "gpu" in taint.value.lower().split("-") or taint.key.lower().endswith(("/gpu", "/accelerator"))
