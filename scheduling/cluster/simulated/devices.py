"""The device plugin of every node: publishes labels and resources, and gives devices to pods.

A pod gets concrete devices: a card, a MIG instance in its place, or one replica of a shared card. Which ones shows in
the DCGM exposition and at `GET /simulation/state`, and nowhere else, as in life.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from . import gfd, machines
from .faults import Faults
from .gfd import Unit
from .kinds import Document, Key
from .machines import PREFIX, Machine
from .quantities import container_requests
from .world import Controller, World, is_true


@dataclass(frozen=True, slots=True)
class Assignment:
    """One device of one container of one pod."""

    pod_uid: str
    namespace: str
    pod: str
    container: str
    node: str
    unit: Unit


class Devices(Controller):
    kinds = frozenset({"nodes"})

    def __init__(self, world: World, faults: Faults) -> None:
        super().__init__(world)
        self.faults = faults
        self.machines: dict[str, Machine] = {}  # by node
        self.advertised: set[str] = set()
        self.due: dict[str, datetime] = {}  # when a fresh node will show its GPUs
        self.paused: set[str] = set()  # the plugin is down while the MIG manager works
        self.assignments: dict[str, list[Assignment]] = {}  # by pod uid

    # Nodes

    def adopt(self, node: Document) -> None:
        """Take over the GPUs of a node that is up already."""
        machine = machines.read(node)
        if machine is None:
            return
        name = node["metadata"]["name"]
        self.machines[name] = machine
        self.advertised.add(name)
        withhold(machine, node)
        self.publish(name)

    def install(self, node: str, machine: Machine) -> None:
        """A fresh node: its GPUs show some time after it is Ready."""
        self.machines[node] = machine

    def reconcile(self, key: Key) -> None:
        name = key.name
        node = self.world.store.get(key)
        if node is None:
            self.forget(name)
        elif name in self.machines and name not in self.advertised and is_true(node, "Ready"):
            self.advertise(key, node)

    def advertise(self, key: Key, node: Document) -> None:
        name = key.name
        due = self.due.setdefault(name, self.world.after("gpu_advertised"))
        pool = (node["metadata"].get("labels") or {}).get("node.cluster.x-k8s.io/pool", "")
        if due > self.world.now:
            self.world.wake(due, self, key)
        elif not self.faults.unadvertised & {name, pool}:
            self.advertised.add(name)
            self.publish(name)

    def publish(self, name: str) -> None:
        """Write what the plugin and GPU Feature Discovery know into the node."""
        machine = self.machines.get(name)
        if machine is None or name not in self.advertised:
            return
        capacity, allocatable = gfd.resources(machine)
        if name in self.paused:
            allocatable = dict.fromkeys(allocatable, 0)
        wanted = gfd.labels(machine, int(self.world.now.timestamp()))

        def write(node: Document) -> None:
            gfd.write_resources(node, capacity, allocatable)
            if machine.labelled and name not in self.paused and not same_labels(node, wanted):
                gfd.write_labels(node, wanted)

        self.world.edit(Key("nodes", "", name), write)

    def pause(self, name: str, *, on: bool) -> None:
        """Stop or restart the plugin of a node. While it is down nothing of the node can be given out."""
        (self.paused.add if on else self.paused.discard)(name)
        self.publish(name)

    def mark_card(self, name: str, card: int, xid: int) -> None:
        """A card reports an XID (0: it was reset and is well again)."""
        with self.world.lock:
            machine = self.machines.get(name)
            if machine is None or not 0 <= card < len(machine.cards):
                raise ValueError(f"Node {name!r} has no card {card}.")
            machine.cards[card].xid = xid
            self.publish(name)
            self.world.settle()

    def forget(self, name: str) -> None:
        self.machines.pop(name, None)
        self.due.pop(name, None)
        self.advertised.discard(name)
        self.paused.discard(name)
        for uid in [uid for uid, given in self.assignments.items() if given[0].node == name]:
            del self.assignments[uid]

    # Pods

    def admit(self, pod: Document, node: str) -> str:
        """Give the pod its devices. The answer is the kubelet's sentence when it cannot, else empty."""
        machine = self.machines.get(node)
        given: list[Assignment] = []
        for container in pod["spec"]["containers"]:
            for resource, thousandths in container_requests(container).items():
                if not resource.startswith(f"{PREFIX}/") or not thousandths:
                    continue
                refusal = self.give(machine, pod, node, container["name"], resource, thousandths // 1000, given)
                if refusal:
                    return refusal
        if given:
            self.assignments[pod["metadata"]["uid"]] = given
        return ""

    def give(
        self,
        machine: Machine | None,
        pod: Document,
        node: str,
        container: str,
        resource: str,
        count: int,
        given: list[Assignment],
    ) -> str:
        """Add `count` devices to `given`; or the sentence that says why not."""
        if machine and machine.sharing.is_shared and machine.sharing.strict and count > 1:
            return (
                f"Allocate failed due to rpc error: code = Unknown desc = error validating request: "
                f"{resource}: {count} requested: maximum request size for shared resources is 1, which is unexpected"
            )
        free = self.free(machine, node, resource, {assignment.unit for assignment in given}) if machine else []
        if len(free) < count:
            return (
                f"Allocate failed due to requested number of devices unavailable for {resource}. "
                f"Requested: {count}, Available: {len(free)}, which is unexpected"
            )
        metadata = pod["metadata"]
        given += [
            Assignment(metadata["uid"], metadata["namespace"], metadata["name"], container, node, unit)
            for unit in free[:count]
        ]
        return ""

    def free(self, machine: Machine, node: str, resource: str, also_taken: set[Unit]) -> list[Unit]:
        """Healthy devices that nobody holds: the least shared card first, then by index and place."""
        if node in self.paused or node not in self.advertised:
            return []
        taken = {assignment.unit for assignment in self.on_node(node)} | also_taken
        load = Counter(unit.card for unit in taken)
        offered = [
            unit
            for unit in gfd.units(machine)
            if unit.resource == resource and unit not in taken and gfd.is_healthy(machine.cards[unit.card])
        ]
        if machine.sharing.is_shared:
            offered.sort(key=lambda unit: (load[unit.card], unit.card, unit.replica or 0))
        return offered

    def release(self, uid: str) -> None:
        self.assignments.pop(uid, None)

    def on_node(self, node: str) -> list[Assignment]:
        return [one for given in self.assignments.values() if given[0].node == node for one in given]

    def describe(self, node: str) -> Document:
        """The cards of a node and who holds them."""
        machine = self.machines[node]
        return {
            "product": machine.board.product,
            "advertised": node in self.advertised,
            "paused": node in self.paused,
            "cards": [
                {
                    "index": card.index,
                    "uuid": card.uuid,
                    "xid": card.xid,
                    "mig": card.mig,
                    "instances": [
                        {"profile": one.profile.name, "start": one.start, "size": one.profile.size, "gi": one.gi}
                        for one in card.instances
                    ],
                }
                for card in machine.cards
            ],
            "assignments": [
                {
                    "namespace": one.namespace,
                    "pod": one.pod,
                    "uid": one.pod_uid,
                    "container": one.container,
                    "resource": one.unit.resource,
                    "card": one.unit.card,
                    "gi": one.unit.instance.gi if one.unit.instance else None,
                    "device": self.device_id(one),
                }
                for one in self.on_node(node)
            ],
        }

    def device_id(self, assignment: Assignment) -> str:
        """As the plugin names it: a UUID, with `::n` for the replicas of a shared card."""
        card = self.machines[assignment.node].cards[assignment.unit.card]
        unit = assignment.unit
        base = card.instance_uuid(unit.instance) if unit.instance else card.uuid
        return base if unit.replica is None else f"{base}::{unit.replica}"


def withhold(machine: Machine, node: Document) -> None:
    """A node that comes with fewer allocatable cards than capacity has so many sick ones."""
    status = node.get("status") or {}
    name = f"{PREFIX}/gpu"
    have, give = (int((status.get(part) or {}).get(name) or 0) for part in ("capacity", "allocatable"))
    per_card = machine.sharing.replicas if not machine.is_cut else 0
    sick = (have - give) // per_card if per_card else 0
    for card in machine.cards[len(machine.cards) - sick :] if sick > 0 else []:
        card.xid = 79


def same_labels(node: Document, wanted: dict[str, str]) -> bool:
    """Do the node's labels say the same already, whenever they were written?"""
    stamp = f"{PREFIX}/gfd.timestamp"
    have = {key: value for key, value in (node["metadata"].get("labels") or {}).items() if gfd.OWNED.match(key)}
    return have | {stamp: ""} == wanted | {stamp: ""}
