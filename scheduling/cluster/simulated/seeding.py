"""How a cluster begins: its controllers, its namespaces, and the documents that somebody gives it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml

from . import lifecycle
from .clock import stamp
from .devices import Devices
from .exporter import IMAGE, Exporter
from .faults import Faults
from .jobs import Jobs
from .kinds import BY_TYPE, Document, Key, copy
from .kubelet import Kubelet
from .migmanager import MigManager
from .nodedocument import POOL, belonging
from .nodes import Nodes
from .provider import NAMESPACE, Provider, machine_document
from .scheduler import Scheduler
from .statefulsets import StatefulSets
from .world import World, condition

NAMESPACES = ("default", "gpu-operator", "kube-node-lease", "kube-public", "kube-system", NAMESPACE)
FLEET = Path(__file__).parent / "fleet"


def furnish(world: World, faults: Faults) -> None:
    """The controllers, and the namespaces that every cluster has."""
    devices = Devices(world, faults)
    for controller in lifecycle.controllers(world):
        world.add(controller)
    world.add(Nodes(world, faults), "nodes")
    world.add(devices, "devices")
    world.add(MigManager(world, devices), "migmanager")
    world.add(Provider(world, devices, faults), "provider")
    world.add(StatefulSets(world))
    world.add(Jobs(world))
    world.add(Kubelet(world, devices, faults), "kubelet")
    world.add(Exporter(world, devices), "exporter")
    world.add(Scheduler(world))
    for name in NAMESPACES:
        world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def plant(world: World, documents: Iterable[Document]) -> None:
    """Store the documents: pools first, then the nodes that are up, then the rest as any client would create it."""
    found = [copy(document) for document in flattened(documents)]
    for document in found:
        if (document.get("apiVersion", ""), document.get("kind", "")) not in BY_TYPE:
            said = f"{document.get('kind')!r} of {document.get('apiVersion')!r}"
            raise ValueError(f"The seed has a {said}, which the simulated cluster does not serve.")
    for document in sorted(found, key=lambda document: ORDER.get(document["kind"], 3)):
        if document["kind"] == "Node":
            plant_node(world, document)
        else:
            world.create(document)
    world.settle()


ORDER = {"Namespace": 0, "MachineDeployment": 1, "Node": 2}


def plant_node(world: World, node: Document) -> None:
    """A node that is up already, with its machine when a pool of that name is there."""
    name = node["metadata"]["name"]
    pool = (node["metadata"].get("labels") or {}).get(POOL, "")
    deployment = world.get("machinedeployments", NAMESPACE, pool) if pool else None
    if deployment is not None:
        node["metadata"].setdefault("annotations", {}).update(belonging(deployment, name))
    for entry in (node.get("status") or {}).get("conditions") or []:
        entry["lastHeartbeatTime"] = stamp(world.now)
    ready = condition(node, "Ready")
    if ready and ready["status"] != "True":
        world.parts["kubelet"].faults.dead.add(name)
    world.parts["kubelet"].images[name, IMAGE] = world.now
    planted = world.create(node)
    world.parts["devices"].adopt(planted)
    if deployment is not None:
        world.create(machine_document(deployment, name))
        world.parts["provider"].adopt(Key("machines", NAMESPACE, name), name)


def flattened(documents: Iterable[Document]) -> Iterator[Document]:
    """The documents, with those that are lists taken apart."""
    for document in documents:
        if str(document.get("kind", "")).endswith("List") and "items" in document:
            yield from flattened(document["items"])
        else:
            yield document


def read_documents(path: Path) -> list[Document]:
    """All documents of a YAML file, or of the *.yaml files of a folder in the order of their names."""
    files = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    if not files:
        raise FileNotFoundError(f"{path}: no *.yaml files to seed the cluster from.")
    return [document for file in files for document in documents_in(file)]


def documents_in(file: Path) -> list[Document]:
    """ValueError when the file holds anything but YAML maps."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        found = [document for document in yaml.load_all(file.read_text(), loader) if document]
    except yaml.YAMLError as error:
        raise ValueError(f"{file}: no YAML: {' '.join(str(error).split())}") from None
    if not all(isinstance(document, dict) for document in found):
        raise ValueError(f"{file}: a document in it is no map.")
    return found


def fleet_documents() -> list[Document]:
    """The demo's fleet: four pools, and the nodes that are up."""
    return read_documents(FLEET)
