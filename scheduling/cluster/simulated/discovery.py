"""The documents by which clients find out what is served."""

from __future__ import annotations

from .kinds import KINDS, Document, Kind

VERSION: Document = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.3+simulated",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2026-08-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "linux/amd64",
}
VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
SUBRESOURCES: dict[str, tuple[str, str, str, list[str]]] = {  # group, version and kind of the body, verbs
    "status": ("", "", "", ["get", "patch", "update"]),
    "scale": ("autoscaling", "v1", "Scale", ["get", "patch", "update"]),
    "log": ("", "", "", ["get"]),
    "proxy": ("", "", "PodProxyOptions", ["get"]),
    "eviction": ("policy", "v1", "Eviction", ["create"]),
}


def core() -> Document:
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def groups() -> Document:
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group(name) for name in group_names()]}


def group_names() -> list[str]:
    return list(dict.fromkeys(kind.group for kind in KINDS if kind.group))


def group(name: str) -> Document:
    version = next(kind.version for kind in KINDS if kind.group == name)
    served = {"groupVersion": f"{name}/{version}", "version": version}
    return {"kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": [served], "preferredVersion": served}


def resources(group_name: str, version: str) -> Document | None:
    """The APIResourceList of one group and version; None when it is not served."""
    kinds = [kind for kind in KINDS if (kind.group, kind.version) == (group_name, version)]
    if not kinds:
        return None
    entries = [entry for kind in kinds for entry in (resource(kind), *subresources(kind))]
    named = f"{group_name}/{version}" if group_name else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": named, "resources": entries}


def resource(kind: Kind) -> Document:
    entry: Document = {
        "name": kind.plural,
        "singularName": kind.kind.lower(),
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": VERBS,
    }
    return entry | ({"shortNames": list(kind.short)} if kind.short else {})


def subresources(kind: Kind) -> list[Document]:
    entries = []
    for name in kind.subresources:
        group_name, version, body, verbs = SUBRESOURCES[name]
        entry: Document = {
            "name": f"{kind.plural}/{name}", "singularName": "", "namespaced": kind.namespaced,
            "kind": body or kind.kind, "verbs": verbs,
        }  # fmt: skip
        entries.append(entry | ({"group": group_name, "version": version} if group_name else {}))
    return entries
