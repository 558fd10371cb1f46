"""Pools that grow and shrink: MachineDeployments, their Machines, and the Nodes that these become."""

import pytest

from scheduling.cluster.simulated import Delays
from scheduling.cluster.simulated.kinds import Document
from tests.scheduling.cluster.simulated.stories import SHARED, TRAIN, UNCUT, Story, fleet_story, pod

BURST = "a100-burst"
GPU = "nvidia.com/gpu"


def pool(story: Story, name: str = BURST) -> Document:
    return story.get("machinedeployments", name, "fleet")


def machines(story: Story, name: str = BURST) -> list[Document]:
    label = "cluster.x-k8s.io/deployment-name"
    return [one for one in story.all("machines", "fleet") if one["metadata"]["labels"][label] == name]


def nodes(story: Story, name: str = BURST) -> list[str]:
    return [
        node["metadata"]["name"]
        for node in story.all("nodes")
        if node["metadata"]["labels"].get("node.cluster.x-k8s.io/pool") == name
    ]


def resize(story: Story, count: int, name: str = BURST) -> None:
    story.scale("machinedeployments", name, count, "fleet")


def conditions(document: Document) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one.get("reason", "")) for one in document["status"]["conditions"]}


def test_the_fleets_pools(fleet: Story) -> None:
    sizes = {
        one["metadata"]["name"]: one["status"]["readyReplicas"] for one in fleet.all("machinedeployments", "fleet")
    }

    assert sizes == {"a100-burst": 0, "a10g-shared": 1, "h100-mig": 2, "h100-train": 1}
    assert {name: pool(fleet, name)["status"]["phase"] for name in sizes} == dict.fromkeys(sizes, "Running")


def test_a_node_that_was_up_belongs_to_its_machine(fleet: Story) -> None:
    machine = machines(fleet, "h100-train")[0]

    assert machine["status"]["nodeRef"] == {"name": TRAIN}
    annotations = fleet.node(TRAIN)["metadata"]["annotations"]
    assert annotations["cluster.x-k8s.io/machine"] == machine["metadata"]["name"]
    assert annotations["cluster.x-k8s.io/owner-name"] == "h100-train"


def test_a_pool_grows_from_zero(fleet: Story) -> None:
    resize(fleet, 1)
    assert pool(fleet)["status"]["phase"] == "ScalingUp"
    assert [one["status"]["phase"] for one in machines(fleet)] == ["Provisioning"]
    assert nodes(fleet) == []

    fleet.advance(seconds=179)
    assert nodes(fleet) == []
    fleet.advance(seconds=1)

    assert nodes(fleet) == [machines(fleet)[0]["metadata"]["name"]]
    assert machines(fleet)[0]["status"]["phase"] == "Running"
    assert (pool(fleet)["status"]["readyReplicas"], pool(fleet)["status"]["phase"]) == (1, "Running")


def test_the_node_is_ready_before_it_shows_its_gpus(fleet: Story) -> None:
    resize(fleet, 1)
    fleet.advance(seconds=180)
    name = nodes(fleet)[0]

    assert conditions(fleet.node(name))["Ready"] == ("True", "KubeletReady")
    assert fleet.allocatable(name) == {}
    assert "nvidia.com/gpu.product" not in fleet.labels(name)

    fleet.advance(seconds=29)
    assert fleet.allocatable(name) == {}
    fleet.advance(seconds=1)
    assert fleet.allocatable(name) == {"gpu": 2}
    assert fleet.labels(name)["nvidia.com/gpu.product"] == "NVIDIA-A100-SXM4-40GB"


def test_the_node_is_what_the_pool_foretold(fleet: Story) -> None:
    resize(fleet, 1)
    fleet.advance(minutes=4)
    node = fleet.node(nodes(fleet)[0])
    prefix = "capacity.cluster-autoscaler.kubernetes.io"
    told = pool(fleet)["metadata"]["annotations"]

    assert node["status"]["allocatable"]["cpu"] == told[f"{prefix}/cpu"]
    assert node["status"]["allocatable"]["memory"] == told[f"{prefix}/memory"]
    assert node["status"]["allocatable"]["pods"] == told[f"{prefix}/maxPods"]
    assert node["status"]["allocatable"][GPU] == told[f"{prefix}/gpu-count"]
    labels = dict(pair.split("=") for pair in told[f"{prefix}/labels"].split(","))
    assert labels.items() <= node["metadata"]["labels"].items()
    assert node["spec"]["taints"] == [{"key": GPU, "value": "present", "effect": "NoSchedule"}]


@pytest.mark.parametrize("name", ["h100-train", "h100-mig", "a10g-shared"])
def test_a_fresh_node_is_like_the_ones_that_were_up(fleet: Story, name: str) -> None:
    old = nodes(fleet, name)[0]
    resize(fleet, len(nodes(fleet, name)) + 1, name)
    fleet.advance(minutes=5)
    fresh = next(one for one in nodes(fleet, name) if one.startswith(f"{name}-"))

    assert fleet.allocatable(fresh) == fleet.allocatable(old)
    assert {
        key: value
        for key, value in fleet.labels(fresh).items()
        if key.startswith("nvidia.com/") and not key.endswith("timestamp") and "deploy.driver" not in key
    } == {
        key: value
        for key, value in fleet.labels(old).items()
        if key.startswith("nvidia.com/") and not key.endswith("timestamp") and "deploy.driver" not in key
    }


def test_a_pod_waits_for_the_node_and_gets_it(fleet: Story) -> None:
    selector = {"node.cluster.x-k8s.io/pool": BURST}
    fleet.create(pod("p", {GPU: "2"}, nodeSelector=selector))
    resize(fleet, 1)

    fleet.advance(seconds=180)
    assert "1 Insufficient nvidia.com/gpu" in fleet.refusal("p")

    fleet.advance(minutes=2)
    assert fleet.phase("p") == "Running"


def test_a_pool_shrinks_to_zero(fleet: Story) -> None:
    resize(fleet, 2)
    fleet.advance(minutes=5)

    resize(fleet, 0)
    assert pool(fleet)["status"]["phase"] == "ScalingDown"
    assert all(fleet.node(name)["spec"]["unschedulable"] for name in nodes(fleet))
    assert {one["status"]["phase"] for one in machines(fleet)} == {"Deleting"}

    fleet.advance(minutes=1)
    assert (nodes(fleet), machines(fleet)) == ([], [])
    assert pool(fleet)["status"]["replicas"] == 0
    assert fleet.names("pods", "gpu-operator") == [
        one for one in fleet.names("pods", "gpu-operator") if BURST not in one
    ]


def test_the_marked_machine_goes_first(fleet: Story) -> None:
    resize(fleet, 3)
    fleet.advance(minutes=5)
    marked = machines(fleet)[1]["metadata"]["name"]
    mark = {"metadata": {"annotations": {"cluster.x-k8s.io/delete-machine": "true"}}}
    fleet.merge("machines", marked, mark, "fleet")

    resize(fleet, 2)
    fleet.advance(minutes=1)

    assert marked not in nodes(fleet)
    assert len(nodes(fleet)) == 2


def test_then_the_one_that_is_not_there_yet(fleet: Story) -> None:
    resize(fleet, 1)
    fleet.advance(minutes=5)
    resize(fleet, 2)
    fleet.advance(minutes=1)
    before = nodes(fleet)

    resize(fleet, 1)
    fleet.advance(minutes=5)

    assert nodes(fleet) == before
    assert len(machines(fleet)) == 1


def test_then_the_newest(fleet: Story) -> None:
    resize(fleet, 1)
    fleet.advance(minutes=5)
    oldest = nodes(fleet)
    resize(fleet, 2)
    fleet.advance(minutes=5)

    resize(fleet, 1)
    fleet.advance(minutes=1)

    assert nodes(fleet) == oldest


def test_pods_of_a_leaving_node_are_evicted(fleet: Story) -> None:
    resize(fleet, 1)
    fleet.advance(minutes=5)
    fleet.create(pod("p", {GPU: "1"}, nodeSelector={"node.cluster.x-k8s.io/pool": BURST}))
    fleet.advance(minutes=1)

    resize(fleet, 0)
    fleet.advance(seconds=10)

    assert fleet.find("pods", "p") is None
    assert fleet.node(nodes(fleet)[0])  # the node itself takes a little longer


def test_growing_again_while_it_shrinks_orders_a_new_machine(fleet: Story) -> None:
    resize(fleet, 1)
    fleet.advance(minutes=5)
    first = nodes(fleet)
    resize(fleet, 0)
    fleet.advance(seconds=5)

    resize(fleet, 1)
    fleet.advance(minutes=5)

    assert len(nodes(fleet)) == 1
    assert nodes(fleet) != first


def test_a_deleted_machine_is_replaced(fleet: Story) -> None:
    resize(fleet, 1)
    fleet.advance(minutes=5)
    first = nodes(fleet)

    fleet.delete("machines", first[0], "fleet")
    fleet.advance(minutes=5)

    assert len(nodes(fleet)) == 1
    assert nodes(fleet) != first


def test_out_of_stock_the_machine_stays_and_says_why(fleet: Story) -> None:
    fleet.faults.stockout(BURST, "europe-west4-a has no a2-highgpu-2g left")
    resize(fleet, 1)
    fleet.advance(hours=2)

    assert [one["status"]["phase"] for one in machines(fleet)] == ["Provisioning"]
    assert conditions(machines(fleet)[0])["InfrastructureReady"] == ("False", "InsufficientCapacity")
    told = next(one for one in pool(fleet)["status"]["conditions"] if one["type"] == "MachinesReady")
    assert (told["status"], told["reason"], told["message"]) == (
        "False",
        "InsufficientCapacity",
        "europe-west4-a has no a2-highgpu-2g left",
    )
    assert pool(fleet)["status"]["readyReplicas"] == 0


def test_every_condition_has_what_cluster_apis_schema_requires(fleet: Story) -> None:
    resize(fleet, 1)

    told = [entry for one in [pool(fleet), *machines(fleet)] for entry in one["status"]["conditions"]]

    assert told
    required = {"type", "status", "reason", "message", "lastTransitionTime"}
    assert [entry for entry in told if not required <= set(entry) or not entry["reason"]] == []


def test_in_stock_again_it_is_delivered(fleet: Story) -> None:
    fleet.faults.stockout(BURST)
    resize(fleet, 1)
    fleet.advance(hours=2)

    fleet.faults.in_stock(BURST)
    fleet.advance(minutes=3)

    assert len(nodes(fleet)) == 1
    assert conditions(pool(fleet))["MachinesReady"] == ("True", "Ready")


def test_a_stockout_does_not_touch_what_is_up(fleet: Story) -> None:
    fleet.faults.stockout("h100-train")
    fleet.advance(hours=2)

    assert nodes(fleet, "h100-train") == [TRAIN]
    assert pool(fleet, "h100-train")["status"]["phase"] == "Running"


def test_a_vanished_node_is_replaced_and_its_pods_are_collected(fleet: Story) -> None:
    fleet.create(pod("p", {GPU: "1"}, nodeSelector={"node.cluster.x-k8s.io/pool": "h100-train"}))
    fleet.advance(minutes=1)

    fleet.faults.node_vanish(TRAIN)
    assert fleet.find("nodes", TRAIN) is None
    assert fleet.phase("p") == "Running"  # as it was last seen

    fleet.advance(minutes=5)
    assert fleet.find("pods", "p") is None
    assert len(nodes(fleet, "h100-train")) == 1
    assert nodes(fleet, "h100-train") != [TRAIN]


def test_a_deleted_node_object_counts_as_vanished(fleet: Story) -> None:
    fleet.delete("nodes", UNCUT)
    fleet.advance(minutes=5)

    assert len(nodes(fleet, "h100-mig")) == 2
    assert UNCUT not in nodes(fleet, "h100-mig")


def test_gpus_that_never_show(fleet: Story) -> None:
    fleet.faults.never_advertise(BURST)
    resize(fleet, 1)
    fleet.advance(hours=1)

    name = nodes(fleet)[0]
    assert conditions(fleet.node(name))["Ready"][0] == "True"
    assert fleet.allocatable(name) == {}


def test_delays_can_be_chosen() -> None:
    story = fleet_story(Delays(node_provisioning=10, gpu_advertised=0))
    resize(story, 1)

    story.advance(seconds=10)

    assert story.allocatable(nodes(story)[0]) == {"gpu": 2}


def test_a_pool_without_gpus() -> None:
    document = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineDeployment",
        "metadata": {"name": "plain", "namespace": "fleet"},
        "spec": {
            "clusterName": "berth",
            "replicas": 1,
            "selector": {"matchLabels": {"pool": "plain"}},
            "template": {"metadata": {"labels": {"pool": "plain"}}, "spec": {"clusterName": "berth"}},
        },
    }
    story = Story([document])
    story.advance(minutes=5)

    assert len(story.all("nodes")) == 1
    assert story.allocatable(story.names("nodes")[0]) == {}


def test_the_scale_of_a_pool(fleet: Story) -> None:
    from scheduling.cluster.simulated.kinds import BY_PLURAL

    scale = fleet.world.api.scale_of(BY_PLURAL["machinedeployments"], "fleet", "a10g-shared")

    assert (scale["spec"], scale["status"]) == (
        {"replicas": 1},
        {"replicas": 1, "selector": "cluster.x-k8s.io/deployment-name=a10g-shared"},
    )
    assert nodes(fleet, "a10g-shared") == [SHARED]
