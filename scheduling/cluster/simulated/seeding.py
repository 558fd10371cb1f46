"""How a cluster begins: its controllers, its namespaces, and the documents that somebody gives it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import yaml

from . import lifecycle
from .faults import Faults
from .kinds import BY_TYPE, Document, copy
from .world import World

NAMESPACES = ("default", "fleet", "gpu-operator", "kube-node-lease", "kube-public", "kube-system")
FLEET = Path(__file__).parent / "fleet"


def furnish(world: World, faults: Faults) -> None:
    """The controllers, and the namespaces that every cluster has."""
    for controller in lifecycle.controllers(world):
        world.add(controller)
    for name in NAMESPACES:
        world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def plant(world: World, documents: Iterable[Document]) -> None:
    """Store the documents in order."""
    for document in flattened(documents):
        kind = BY_TYPE.get((document.get("apiVersion", ""), document.get("kind", "")))
        if kind is None:
            raise ValueError(f"The seed has a {document.get('kind')!r} ({document.get('apiVersion')!r}), which is not served.")
        world.create(copy(document))


def flattened(documents: Iterable[Document]) -> Iterable[Document]:
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
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [document for file in files for document in yaml.load_all(file.read_text(), loader) if document]


def fleet_documents() -> list[Document]:
    """The demo's fleet: four pools, and the nodes that are up."""
    return read_documents(FLEET)
