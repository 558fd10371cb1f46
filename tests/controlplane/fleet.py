"""The demo's fleet on a real control plane: planted before a test, and all traces of the test removed after it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduling.cluster.api import MERGE
from scheduling.cluster.client import Session
from scheduling.cluster.port import ClusterError
from scheduling.cluster.simulated import Delays, fleet_documents, seeding
from scheduling.cluster.simulated.devices import Devices
from scheduling.cluster.simulated.exporter import Exporter
from scheduling.cluster.simulated.faults import Faults
from scheduling.cluster.simulated.kinds import BY_PLURAL, Document
from scheduling.cluster.simulated.kubelet import Kubelet
from scheduling.cluster.simulated.migmanager import MigManager
from scheduling.cluster.simulated.provider import Provider
from scheduling.cluster.simulated.watching import Hub
from scheduling.cluster.simulated.world import is_true
from tests.controlplane import plane
from tests.controlplane.plane import ControlPlane
from tests.controlplane.standins.machines import Heartbeats, Volumes
from tests.controlplane.standins.mirror import Ear
from tests.controlplane.standins.network import Network, serving
from tests.controlplane.standins.world import RealWorld

QUICK = Delays(
    node_provisioning=1.0,
    gpu_advertised=0.6,
    node_removal=0.5,
    image_pull=0.2,
    image_present=0.1,
    container_start=0.1,
    termination=0.2,
    mig_notice=0.2,
    mig_cut=1.0,
)
"""Seconds of the wall clock: nobody waits for a machine that is not there."""
FLEETING = ("machinedeployments", "machines", "nodes", "pods", "persistentvolumeclaims")
WATCHED = (*FLEETING, "configmaps")
KUBERNETES = {"kube-system", "kube-public", "kube-node-lease", "berth-system", "kueue-system"}
OWN = KUBERNETES | {"default", "gpu-operator", "fleet"}
KEPT = {"kubernetes", "kube-root-ca.crt"}  # Kubernetes makes them itself
CLUSTER_API = "/apis/cluster.x-k8s.io/v1beta2/namespaces/fleet"
LEFT_BEHIND = (  # in an order in which hardly anybody makes again what has just gone
    f"{CLUSTER_API}/machinedeployments",
    f"{CLUSTER_API}/machines",
    "/apis/apps/v1/statefulsets",
    "/apis/batch/v1/jobs",
    "/api/v1/nodes",
    "/api/v1/pods",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/persistentvolumes",
    "/api/v1/services",
    "/api/v1/configmaps",
    "/api/v1/resourcequotas",
)
PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Site:
    """A control plane, the road from it to machines, and an ear for what happens in it."""

    plane: ControlPlane
    network: Network
    ear: Ear


@contextmanager
def running(folder: Path) -> Iterator[Site]:
    """A fresh control plane without machines. Raises CouldNotStart."""
    with plane.running(folder) as here, serving(here.egress, here.papers) as network:
        ear = Ear(here.admin, [BY_PLURAL[plural] for plural in WATCHED])
        ear.start()
        yield Site(here, network, ear)
        ear.stop()


@contextmanager
def planted(site: Site, identity: str) -> Iterator[tuple[RealWorld, Faults]]:
    """A fleet for one test, on a control plane that others have used before and will use after."""
    until(lambda: not any(map(site.ear.knows_of, FLEETING)), lambda: "Nobody says that the last fleet is gone")
    try:
        with played(site, identity) as fleet:
            yield fleet
    finally:
        with closing(Session(site.plane.admin)) as door:
            sweep(door)


@contextmanager
def played(site: Site, identity: str, delays: Delays = QUICK) -> Iterator[tuple[RealWorld, Faults]]:
    """The machines are up, their exporters answer, and somebody plays them until the end."""
    world = RealWorld(site.plane.admin, site.ear, delays, identity)
    faults = furnish(world)
    world.start()
    try:
        with world.lock:
            seeding.plant(world, fleet_documents())
        site.network.world = world
        until(lambda: not waits_for(world), lambda: f"The fleet still waits for {', '.join(waits_for(world))}")
        yield world, faults
    finally:
        site.network.world = None
        world.stop()


def furnish(world: RealWorld) -> Faults:
    """The controllers that play the machines; the others are Kubernetes' own."""
    faults = Faults(world, Hub(world.store))
    devices = Devices(world, faults)
    world.add(Heartbeats(world, faults), "nodes")
    world.add(Volumes(world))
    world.add(devices, "devices")
    world.add(MigManager(world, devices), "migmanager")
    world.add(Provider(world, devices, faults), "provider")
    world.add(Kubelet(world, devices, faults), "kubelet")
    world.add(Exporter(world, devices), "exporter")
    return faults


def waits_for(world: RealWorld) -> list[str]:
    """What is not up yet: nodes that are closed, exporters that are not ready, machines without a node."""
    with world.lock:
        nodes, machines, pods = (world.store.all(plural) for plural in ("nodes", "machines", "pods"))
    ready = {pod["spec"].get("nodeName") for pod in pods if is_true(pod, "Ready")}
    closed = [node["metadata"]["name"] for node in nodes if strange_taints(node)]
    silent = [f"the exporter of {node['metadata']['name']}" for node in nodes if node["metadata"]["name"] not in ready]
    alone = [f"the node of {one['metadata']['name']}" for one in machines if not one["status"].get("nodeRef")]
    return [*closed, *silent, *alone, *([] if nodes else ["its first node"])]


def strange_taints(node: Document) -> list[str]:
    return [taint["key"] for taint in node["spec"].get("taints") or [] if taint["key"] != "nvidia.com/gpu"]


# Sweeping


def sweep(door: Session) -> None:
    """Remove all that a test and its fleet have left, whatever holds it; again, where a controller was quicker."""
    until(
        lambda: not sum(empty(door, collection) for collection in LEFT_BEHIND),
        lambda: "What a test left is still there",
    )
    for namespace in items(door, "/api/v1/namespaces"):
        if namespace["metadata"]["name"] not in OWN:
            close_down(door, namespace["metadata"]["name"])


def empty(door: Session, collection: str) -> int:
    """Delete every object of a kind that is not part of Kubernetes itself; answers how many there were."""
    found = 0
    head, _, plural = collection.rpartition("/")
    for item in items(door, collection):
        meta = item["metadata"]
        if meta.get("namespace") in KUBERNETES or meta["name"] in KEPT:
            continue
        inside = f"/namespaces/{meta['namespace']}" if "namespace" in meta and "/namespaces/" not in collection else ""
        remove(door, f"{head}{inside}/{plural}/{meta['name']}", held=bool(meta.get("finalizers")))
        found += 1
    return found


def remove(door: Session, path: str, *, held: bool) -> None:
    if held:
        ignoring(lambda: door.ask("PATCH", path, body={"metadata": {"finalizers": None}}, content=MERGE), 404)
    ignoring(lambda: door.ask("DELETE", path, body={"gracePeriodSeconds": 0, "propagationPolicy": "Background"}), 404)


def close_down(door: Session, name: str) -> None:
    """An emptied namespace, at once: Kubernetes' own controller would take five seconds over it."""
    path = f"/api/v1/namespaces/{name}"
    bare = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}}
    ignoring(
        lambda: door.ask("DELETE", f"{path}/events"), 404
    )  # they would outlive it, and be taken for its successor's
    ignoring(lambda: door.ask("DELETE", path), 404, 409)
    ignoring(lambda: door.ask("PUT", f"{path}/finalize", body=bare), 404, 409)


def items(door: Session, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(door.ask("GET", path))["items"]
    return found


def ignoring(call: Callable[[], Any], *statuses: int) -> None:
    try:
        call()
    except ClusterError as error:
        if error.status not in statuses:
            raise


def until(holds: Callable[[], bool], trouble: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"{trouble()} after {PATIENCE:g} s.")
        time.sleep(0.02)
