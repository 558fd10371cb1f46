"""Where objects of any kind stand in the API, for those who may do everything there."""

from __future__ import annotations

from typing import Any

CLUSTER_WIDE = {
    "Namespace",
    "Node",
    "PersistentVolume",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "ResourceFlavor",
    "ClusterQueue",
    "Cohort",
}


def collection_of(document: dict[str, Any]) -> str:
    """The path of all objects of the document's kind, in its namespace."""
    version, kind = document["apiVersion"], document["kind"]
    group = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = document["metadata"].get("namespace", "default")
    inside = "" if kind in CLUSTER_WIDE else f"/namespaces/{namespace}"
    return f"{group}{inside}/{plural(kind)}"


def path_of(document: dict[str, Any]) -> str:
    return f"{collection_of(document)}/{document['metadata']['name']}"


def plural(kind: str) -> str:
    return f"{kind.lower()}s"
