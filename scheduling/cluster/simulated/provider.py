"""The node provider: Cluster API's MachineDeployments, the Machines behind them, and the Nodes that these become.

Two simplifications: Machines belong to their MachineDeployment directly, without a MachineSet between, and a Machine's
node has the Machine's name.
"""

from __future__ import annotations

import json
from datetime import datetime

from . import machines, nodedocument
from .api import DeleteOptions
from .devices import Devices
from .faults import Faults
from .hardware import BOARDS, SharingPlan
from .kinds import Document, Key, copy, key_of
from .layouts import built_in
from .machines import Machine
from .nodedocument import HARDWARE
from .nodes import pods_on
from .world import Controller, World, dependents, owned_by, set_condition

NAMESPACE = "fleet"
DEPLOYMENT = "cluster.x-k8s.io/deployment-name"
DELETE_FIRST = "cluster.x-k8s.io/delete-machine"
FINALIZER = "machine.cluster.x-k8s.io"


class Provider(Controller):
    kinds = frozenset({"machinedeployments", "machines", "nodes"})

    def __init__(self, world: World, devices: Devices, faults: Faults) -> None:
        super().__init__(world)
        self.devices = devices
        self.faults = faults
        self.arrives: dict[Key, datetime] = {}  # machine -> when its node will be there
        self.leaves: dict[Key, datetime] = {}  # machine -> when its node will be gone

    def reconcile(self, key: Key) -> None:
        if key.plural == "machinedeployments":
            self.deployment(key)
        elif key.plural == "machines":
            self.machine(key)
        else:
            for machine in [one for one in self.world.store.documents["machines"] if one.name == key.name]:
                self.machine(machine)

    # Pools

    def deployment(self, key: Key) -> None:
        document = self.world.store.get(key)
        if document is None or document["metadata"].get("deletionTimestamp"):
            return
        owned = dependents(self.world, document, "machines")
        staying = [machine for machine in owned if not machine["metadata"].get("deletionTimestamp")]
        wished = int(document["spec"].get("replicas", 0))
        for _ in range(wished - len(staying)):
            self.order(document)
        for machine in sorted(staying, key=leaving_order)[: max(0, len(staying) - wished)]:
            self.world.delete(key_of(machine), DeleteOptions("Background"))
        self.world.edit(key, self.describe)

    def order(self, document: Document) -> None:
        name = f"{document['metadata']['name']}-{self.world.api.letters(5)}"
        self.world.create(machine_document(document, name))

    def describe(self, document: Document) -> None:
        owned = dependents(self.world, document, "machines")
        ready = [machine for machine in owned if machine["status"].get("phase") == "Running"]
        wished, status = int(document["spec"].get("replicas", 0)), document["status"]
        moving = "ScalingUp" if len(ready) < wished else "ScalingDown" if len(owned) > wished else "Running"
        chosen = document["spec"]["selector"].get("matchLabels") or {}
        status |= {
            "observedGeneration": document["metadata"].get("generation", 1),
            "selector": ",".join(f"{label}={value}" for label, value in sorted(chosen.items())),
            "replicas": len(owned),
            "readyReplicas": len(ready),
            "availableReplicas": len(ready),
            "upToDateReplicas": len(owned),
            "phase": moving,
        }
        trouble = self.faults.stockouts.get(document["metadata"]["name"], "") if len(ready) < wished else ""
        now = self.world.now
        available = "True" if len(ready) >= wished else "False"
        report(status, "Available", available, "Available" if available == "True" else "NotAvailable", "", now)
        if trouble:
            report(status, "MachinesReady", "False", "InsufficientCapacity", trouble, now)
        else:
            ok = "True" if len(ready) == len(owned) else "False"
            report(status, "MachinesReady", ok, "Ready" if ok == "True" else "NotReady", "", now)

    def look_at_pools(self) -> None:
        """Look at everything again, as after the provider has changed its mind."""
        with self.world.lock:
            for plural in ("machines", "machinedeployments"):
                for key in self.world.store.documents[plural]:
                    self.world.wake(self.world.now, self, key)
            self.world.settle()

    # Machines

    def machine(self, key: Key) -> None:
        machine = self.world.store.get(key)
        if machine is None:
            self.arrives.pop(key, None)
            self.leaves.pop(key, None)
        elif machine["metadata"].get("deletionTimestamp"):
            self.take_away(key, machine)
        elif machine["status"].get("nodeRef"):
            self.keep(key, machine)
        else:
            self.provision(key, machine)
        for owner in (machine or {}).get("metadata", {}).get("ownerReferences") or []:
            self.world.wake(self.world.now, self, Key("machinedeployments", key.namespace, owner["name"]))

    def provision(self, key: Key, machine: Document) -> None:
        pool = machine["metadata"]["labels"].get(DEPLOYMENT, "")
        trouble = self.faults.stockouts.get(pool, "")
        if trouble:
            self.arrives.pop(key, None)
            self.world.edit(
                key, lambda live: provisioning(live, "False", "InsufficientCapacity", trouble, self.world.now)
            )
            return
        due = self.arrives.setdefault(key, self.world.after("node_provisioning"))
        self.world.edit(key, lambda live: provisioning(live, "False", "Provisioning", "", self.world.now))
        if due > self.world.now:
            self.world.wake(due, self, key)
        else:
            self.deliver(key, machine)

    def deliver(self, key: Key, machine: Document) -> None:
        """The node appears, Ready, and as yet without GPUs."""
        pool = dict(machine["metadata"]["labels"]).get(DEPLOYMENT, "")
        deployment = self.world.get("machinedeployments", key.namespace, pool)
        if deployment is None:
            return
        gpus = gpus_of(deployment, key.name)
        node = nodedocument.fresh(deployment, machine, gpus, self.world.now)
        if gpus:
            self.devices.install(key.name, gpus)
        self.world.create(node)
        self.arrives.pop(key, None)
        self.adopt(key, key.name)

    def adopt(self, key: Key, node: str) -> None:
        """The machine is this node."""
        self.world.edit(key, lambda live: running(live, node, self.world.now))

    def keep(self, key: Key, machine: Document) -> None:
        """A machine whose node is gone is replaced."""
        if self.world.get("nodes", "", machine["status"]["nodeRef"]["name"]) is None:
            self.world.delete(key, DeleteOptions("Background"))

    def take_away(self, key: Key, machine: Document) -> None:
        """Cordon the node and evict its pods at once; a while later node and machine are gone."""
        name = (machine["status"].get("nodeRef") or {}).get("name", "")
        node = Key("nodes", "", name)
        if name and self.world.store.get(node) is not None:
            due = self.leaves.setdefault(key, self.world.after("node_removal"))
            if due > self.world.now:
                self.drain(key, node)
                self.world.wake(due, self, key)
                return
            self.remove_node(name)
        self.world.forget(key)

    def drain(self, key: Key, node: Key) -> None:
        self.world.edit(key, lambda live: live["status"].update(phase="Deleting"))
        self.world.edit(node, lambda live: live["spec"].update(unschedulable=True))
        for pod in pods_on(self.world, node.name):
            if not pod["metadata"].get("deletionTimestamp"):
                self.world.delete(key_of(pod))

    def remove_node(self, name: str) -> None:
        """The machine is switched off: its node goes, and every pod that was still on it."""
        for pod in pods_on(self.world, name):
            self.world.forget(key_of(pod))
        self.world.forget(Key("nodes", "", name))

    def vanish(self, name: str) -> None:
        """A node disappears with no warning. Its machine is found without a node, and replaced."""
        with self.world.lock:
            self.world.forget(Key("nodes", "", name))
            self.world.settle()


def leaving_order(machine: Document) -> tuple[int, int, str]:
    """Whom a pool gives back first: the marked, then those not running yet, then the newest."""
    metadata = machine["metadata"]
    marked = DELETE_FIRST in (metadata.get("annotations") or {})
    runs = machine["status"].get("phase") == "Running"
    age = -int(datetime.fromisoformat(metadata["creationTimestamp"]).timestamp())
    return (0 if marked else 1 if not runs else 2, age, metadata["name"])


def machine_document(deployment: Document, name: str) -> Document:
    template = copy(deployment["spec"]["template"])
    inner, pool = template.get("metadata") or {}, deployment["metadata"]["name"]
    labels = (inner.get("labels") or {}) | {
        "cluster.x-k8s.io/cluster-name": deployment["spec"]["clusterName"],
        DEPLOYMENT: pool,
    }
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Machine",
        "metadata": {
            "name": name,
            "namespace": deployment["metadata"]["namespace"],
            "labels": labels,
            "annotations": inner.get("annotations") or {},
            "ownerReferences": owned_by(deployment),
            "finalizers": [FINALIZER],
        },
        "spec": template.get("spec") or {},
    }


def provisioning(machine: Document, ready: str, reason: str, message: str, now: datetime) -> None:
    status = machine["status"]
    status["phase"] = "Provisioning"
    report(status, "InfrastructureReady", ready, reason, message, now)
    report(status, "Ready", "False", reason, message, now)


def report(status: Document, type_: str, value: str, reason: str, message: str, now: datetime) -> None:
    """A condition as Cluster API's schema wants it: with a message, if an empty one."""
    set_condition(status, type_, value, reason, message, now)
    for entry in status["conditions"]:
        entry.setdefault("message", "")


def running(machine: Document, node: str, now: datetime) -> None:
    machine["spec"]["providerID"] = f"simulated://{machine['metadata']['namespace']}/{machine['metadata']['name']}"
    status = machine["status"]
    status |= {"phase": "Running", "nodeRef": {"name": node}}
    for name in ("InfrastructureReady", "NodeReady", "Ready"):
        report(status, name, "True", "Ready", "", now)


def gpus_of(deployment: Document, node: str) -> Machine | None:
    """The GPUs of a fresh node of this pool, by the hardware annotation; None for a pool without."""
    annotations = deployment["metadata"].get("annotations") or {}
    text = annotations.get(HARDWARE)
    if not text:
        return None
    wish = json.loads(text)
    board = BOARDS[wish["product"]]
    sharing = wish.get("sharing") or {}
    plan = SharingPlan(
        sharing.get("strategy", "none"),
        int(sharing.get("replicas", 1)),
        sharing.get("failRequestsGreaterThanOne", True),
    )
    gpus = machines.build(
        node, board, int(wish["cards"]), sharing=plan, strategy=wish.get("migStrategy", ""),
        type_=wish.get("machine", "unknown"),
    )  # fmt: skip
    if wish.get("migConfig"):
        machines.cut(gpus, built_in(wish["migConfig"], board, len(gpus.cards)))
    return gpus
