"""ResourceQuota: the check when something is created, and what the status says is used."""

from __future__ import annotations

from . import errors
from .kinds import Document, Kind
from .quantities import is_extended, milli, pod_requests, written
from .store import Store

COUNTED = {"pods", "services", "secrets", "configmaps", "persistentvolumeclaims", "resourcequotas"}


def admit(store: Store, kind: Kind, document: Document) -> None:
    """Forbidden when a quota of the namespace would be exceeded by this new object."""
    namespace = document["metadata"].get("namespace", "")
    for quota in store.all("resourcequotas", namespace) if namespace else []:
        hard = (quota.get("spec") or {}).get("hard") or {}
        asked = {name: amount for name, amount in claims(kind.plural, document).items() if name in hard}
        if not asked:
            continue
        used = usage(store, namespace, hard)
        over = sorted(name for name, amount in asked.items() if amount and used[name] + amount > milli(hard[name]))
        if over:
            requested = ",".join(f"{name}={written(asked[name])}" for name in over)
            taken = ",".join(f"{name}={written(used[name])}" for name in over)
            limited = ",".join(f"{name}={hard[name]}" for name in over)
            why = f"exceeded quota: {quota['metadata']['name']}, requested: {requested}, used: {taken}"
            raise errors.forbidden(kind, document["metadata"]["name"], f"{why}, limited: {limited}")


def status_of(store: Store, quota: Document) -> Document:
    hard = (quota.get("spec") or {}).get("hard") or {}
    used = usage(store, quota["metadata"]["namespace"], hard)
    return {"hard": hard, "used": {name: written(used[name]) for name in hard}}


def usage(store: Store, namespace: str, hard: Document) -> dict[str, int]:
    """Thousandths in use by name of the quota's entries; pods that have ended do not count."""
    total = dict.fromkeys(hard, 0)
    for plural, documents in store.documents.items():
        if plural != "pods" and not any(plural in name for name in hard):
            continue
        for key, document in documents.items():
            if key.namespace != namespace:
                continue
            for name, amount in claims(plural, document).items():
                if name in total:
                    total[name] += amount
    return total


def claims(plural: str, document: Document) -> dict[str, int]:
    """What one object counts for, under every name that a quota may use."""
    found = {f"count/{plural}": 1000}
    if plural in COUNTED:
        found[plural] = 1000
    if plural == "pods":
        if (document.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            return {}
        for name, amount in pod_requests(document["spec"]).items():
            found[f"requests.{name}"] = amount
            if name in ("cpu", "memory") and not is_extended(name):
                found[name] = amount
    return found
