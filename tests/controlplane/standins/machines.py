"""What machines do on a real server and the simulation leaves out: heartbeats, and volumes for claims."""

from __future__ import annotations

from datetime import timedelta as td

from scheduling.cluster.api import APPLY
from scheduling.cluster.port import ClusterError
from scheduling.cluster.simulated.clock import fine_stamp
from scheduling.cluster.simulated.faults import Faults
from scheduling.cluster.simulated.kinds import Document, Key
from scheduling.cluster.simulated.nodes import healthy_conditions
from scheduling.cluster.simulated.world import Controller, is_true
from tests.controlplane.standins.world import NOT_FOUND, RealWorld

BEAT = td(seconds=2)
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
VOLUMES = "/api/v1/persistentvolumes"


class Heartbeats(Controller):
    """Renews the lease of every node whose kubelet is alive; Kubernetes itself finds out about the others."""

    kinds = frozenset({"nodes"})

    def __init__(self, world: RealWorld, faults: Faults) -> None:
        super().__init__(world)
        self.door, self.faults = world.door, faults
        self.beaten: dict[str, object] = {}  # node -> when last

    def look_at(self, name: str) -> None:
        self.beaten.pop(name, None)
        for controller in (self, self.world.parts["kubelet"]):  # which looks after what it missed while it was silent
            self.world.wake(self.world.now, controller, Key("nodes", "", name))

    def reconcile(self, key: Key) -> None:
        node = self.world.store.get(key)
        if node is None or key.name in self.faults.dead:
            self.beaten.pop(key.name, None)
            return
        if not is_true(node, "Ready"):
            self.world.edit(key, lambda live: healthy_conditions(live, self.world.now))
        last = self.beaten.get(key.name)
        if last is None or last + BEAT <= self.world.now:
            self.beaten[key.name] = self.world.now
            self.renew(node)
        self.world.wake(self.beaten[key.name] + BEAT, self, key)

    def renew(self, node: Document) -> None:
        name, uid = node["metadata"]["name"], node["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-node-lease", "ownerReferences": [owner]},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": fine_stamp(self.world.now)},
        }
        query = {"fieldManager": "kubelet", "force": "true"}
        self.door.ask("PATCH", f"{LEASES}/{name}", query=query, body=body, content=APPLY)


class Volumes(Controller):
    """A volume for every claim; Kubernetes binds the two. It goes with its claim."""

    kinds = frozenset({"persistentvolumeclaims"})

    def __init__(self, world: RealWorld) -> None:
        super().__init__(world)
        self.door = world.door
        self.made: dict[Key, str] = {}

    def reconcile(self, key: Key) -> None:
        claim = self.world.store.get(key)
        if claim is None:
            self.remove(self.made.pop(key, ""))
        elif not claim["spec"].get("volumeName") and key not in self.made:
            document = volume(claim)
            self.door.ask("POST", VOLUMES, body=document)
            self.made[key] = document["metadata"]["name"]

    def remove(self, name: str) -> None:
        if not name:
            return
        try:
            self.door.ask("DELETE", f"{VOLUMES}/{name}")
        except ClusterError as error:
            if error.status != NOT_FOUND:
                raise


def volume(claim: Document) -> Document:
    metadata, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{metadata['uid']}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec["accessModes"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": spec.get("storageClassName") or "",
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": metadata["namespace"],
                         "name": metadata["name"], "uid": metadata["uid"]},
            "hostPath": {"path": f"/srv/volumes/{name}"},
        },
    }  # fmt: skip
