"""Which nodes may be used, and what providers' labels say about them."""

from typing import Any

import pytest

from scheduling.cluster.reading import read_node
from scheduling.planning.facts import Capacity
from tests.scheduling.cluster.builders import h100, node

# What a node may be used for

WITH_CARDS: dict[str, Any] = {"labels": h100(), "gpu": 8}
OURS = "berth.portal/"
CLOSED: dict[str, dict[str, Any]] = {
    "not ready": {"conditions": [{"type": "Ready", "status": "False", "message": "disk"}]},
    "silent": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
    "without conditions": {"conditions": []},
    "cordoned": {"cordoned": True},
    "tainted by NVSentinel": {"taints": [{"key": "nvidia.com/gpu-error", "effect": "NoSchedule"}]},
    "tainted by its syslog": {"taints": [{"key": "nvidia.com/syslog-xid-error", "effect": "NoSchedule"}]},
    "taken back by GKE": {"taints": [{"key": "cloud.google.com/impending-node-termination", "effect": "NoSchedule"}]},
    "taken back by AWS": {"taints": [{"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}]},
    "disrupted by Karpenter": {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]},
    "scaled in": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]},
    "fenced by an operator": {"taints": [{"key": "dedicated", "value": "team-x", "effect": "NoExecute"}]},
    "with a faulty condition": {
        "conditions": [
            {"type": "Ready", "status": "True"},
            {"type": "GpuMemWatch", "status": "True", "message": "[48]"},
        ]
    },
    "quarantined": {"labels": h100() | {"dgxc.nvidia.com/nvsentinel-state": "quarantined"}},
    "failed in its cut": {"labels": h100(**{"mig.config.state": "failed"})},
}


@pytest.mark.parametrize("parts", CLOSED.values(), ids=CLOSED)
def test_a_node_that_cannot_be_used_says_why_and_keeps_its_cards(parts: dict[str, Any]) -> None:
    fact = read_node(node(**(WITH_CARDS | parts)))

    assert not fact.schedulable
    assert (fact.cards, fact.devices[0].allocatable) == (8, 8)
    assert [problem.text.startswith("the node cannot be used: ") for problem in fact.problems] == [True]


QUIETLY_CLOSED: dict[str, dict[str, Any]] = {
    "being cut": {"labels": h100(**{"mig.config.state": "rebooting"})},
    "paused for a cut": {"labels": h100(**{"gpu.deploy.device-plugin": "paused-for-mig-change"})},
    "getting a driver": {"labels": h100(**{"gpu-driver-upgrade-state": "drain-required"})},
    "to be cut by us": {"annotations": {OURS + "cutting-to": "all-1g.10gb"}, "cordoned": True},
    "about to leave": {"annotations": {OURS + "leaving": "true"}},
    "given back": {"annotations": {OURS + "dropped": "true"}},
}


@pytest.mark.parametrize("parts", QUIETLY_CLOSED.values(), ids=QUIETLY_CLOSED)
def test_what_is_meant_to_be_is_no_problem(parts: dict[str, Any]) -> None:
    fact = read_node(node(**(WITH_CARDS | parts)))

    assert (fact.ready, fact.schedulable, fact.problems) == (True, False, ())


OPEN: dict[str, list[dict[str, str]]] = {
    "of GPU nodes": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
    "of AMD nodes": [{"key": "amd.com/gpu", "effect": "NoSchedule"}],
    "of AKS": [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}],
    "of spot capacity": [{"key": "kubernetes.azure.com/scalesetpriority", "value": "spot", "effect": "NoSchedule"}],
    "by an operator for GPUs": [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}],
    "that only asks": [{"key": "DeletionCandidateOfClusterAutoscaler", "effect": "PreferNoSchedule"}],
}


@pytest.mark.parametrize("taints", OPEN.values(), ids=OPEN)
def test_usual_taints_do_not_matter(taints: list[dict[str, str]]) -> None:
    fact = read_node(node(labels=h100(), taints=taints, gpu=8))

    assert (fact.schedulable, fact.problems, len(fact.taints)) == (True, (), 1)


def test_our_own_marks_are_read_back() -> None:
    marks = {OURS + "cutting-to": "all-balanced", OURS + "leaving": "true", OURS + "dropped": "true"}

    fact = read_node(node(annotations=marks | {"cluster.x-k8s.io/machine": "m-1"}, labels=h100(), gpu=8))

    assert (fact.cutting_to, fact.leaving, fact.dropped, fact.machine) == ("all-balanced", True, True, "m-1")


# Labels of providers

POOLS = {
    "karpenter.sh/nodepool": "a",
    "cloud.google.com/gke-nodepool": "a",
    "eks.amazonaws.com/nodegroup": "a",
    "kubernetes.azure.com/agentpool": "a",
    "agentpool": "a",
    "nebius.com/node-group-id": "a",
    "node.cluster.x-k8s.io/pool": "a",
    "cluster.x-k8s.io/deployment-name": "a",
    "berth.portal/pool": "a",
}


@pytest.mark.parametrize("key", POOLS)
def test_each_provider_names_its_pool(key: str) -> None:
    assert read_node(node(labels={key: "a"})).pool == "a"


def test_an_operators_own_word_for_the_pool_wins() -> None:
    assert read_node(node(labels={"agentpool": "b", "berth.portal/pool": "a"})).pool == "a"


SPOT = {
    "cloud.google.com/gke-spot": "true",
    "cloud.google.com/gke-provisioning": "spot",
    "eks.amazonaws.com/capacityType": "SPOT",
    "karpenter.sh/capacity-type": "spot",
    "kubernetes.azure.com/scalesetpriority": "spot",
    "oci.oraclecloud.com/oke-is-preemptible": "true",
}


@pytest.mark.parametrize(("key", "value"), SPOT.items(), ids=SPOT)
def test_each_provider_names_spot_capacity(key: str, value: str) -> None:
    assert read_node(node(labels={key: value})).capacity is Capacity.SPOT


def test_standard_capacity_is_on_demand() -> None:
    labels = {"cloud.google.com/gke-provisioning": "standard", "karpenter.sh/capacity-type": "on-demand"}

    assert read_node(node(labels=labels)).capacity is Capacity.ON_DEMAND


MODELS = {
    "GKE": ({"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}, "h100-80gb"),
    "AMD's older label": ({"beta.amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}, "mi300x-192gb"),
    "the machine type of AWS": ({"node.kubernetes.io/instance-type": "p4d.24xlarge"}, "a100-40gb"),
    "the machine type of Azure": ({"node.kubernetes.io/instance-type": "Standard_NC40ads_H100_v5"}, "h100-94gb"),
}


@pytest.mark.parametrize(("labels", "model"), MODELS.values(), ids=MODELS)
def test_the_model_is_found_without_feature_discovery(labels: dict[str, str], model: str) -> None:
    assert read_node(node(labels=labels, gpu=8)).model == model
