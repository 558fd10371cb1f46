"""What keeps the objects tidy: namespaces that end, dependents of what is gone, claims, quotas, old events."""

from __future__ import annotations

from datetime import timedelta as td

from . import quota
from .api import DeleteOptions
from .clock import moment
from .kinds import BY_PLURAL, BY_TYPE, Document, Key, copy, key_of
from .store import Change
from .world import Controller, World

EVENTS_LIVE = td(hours=1)
NAMESPACED = tuple(kind.plural for kind in BY_PLURAL.values() if kind.namespaced)


class Namespaces(Controller):
    """A terminating namespace empties itself, then goes."""

    kinds = frozenset(BY_PLURAL)

    def reconcile(self, key: Key) -> None:
        name = key.name if key.plural == "namespaces" else key.namespace
        namespace = self.world.get("namespaces", "", name) if name else None
        if namespace is None or not namespace["metadata"].get("deletionTimestamp"):
            return
        left = [key for plural in NAMESPACED for key in self.world.store.documents[plural] if key.namespace == name]
        for found in sorted(left):
            document = self.world.store.get(found)
            if document and not document["metadata"].get("deletionTimestamp"):
                self.world.delete(found)
        if not left and not namespace["metadata"].get("finalizers"):
            self.world.forget(Key("namespaces", "", name))


class Garbage(Controller):
    """Objects whose owners are all gone go too; Foreground and Orphan are finalizers that end here."""

    kinds = frozenset(BY_PLURAL) - {"events"}

    def __init__(self, world: World) -> None:
        super().__init__(world)
        world.store.listeners.append(self.heard)

    def heard(self, change: Change) -> None:
        """Something is gone: what it owned is looked at again, and whoever waited for it to go as well."""
        if change.type != "DELETED":
            return
        metadata = change.document["metadata"]
        around = set(self.world.store.dependents.get(metadata["uid"], set()))
        for owner in metadata.get("ownerReferences") or []:
            kind = BY_TYPE.get((owner["apiVersion"], owner["kind"]))
            if kind:
                around.add(Key(kind.plural, change.key.namespace if kind.namespaced else "", owner["name"]))
        for key in sorted(around):
            self.world.wake(self.world.now, self, key)

    def reconcile(self, key: Key) -> None:
        document = self.world.store.get(key)
        if document is None:
            return
        finalizers = document["metadata"].get("finalizers") or []
        if document["metadata"].get("deletionTimestamp") and "orphan" in finalizers:
            self.orphan(document)
        elif document["metadata"].get("deletionTimestamp") and "foregroundDeletion" in finalizers:
            self.foreground(document)
        elif self.is_garbage(document):
            self.world.delete(key)

    def is_garbage(self, document: Document) -> bool:
        owners = document["metadata"].get("ownerReferences") or []
        return bool(owners) and all(self.owner(document, owner) is None for owner in owners)

    def owner(self, document: Document, reference: Document) -> Document | None:
        """The live owner; a namesake with another uid is none. Owners of kinds not served here count as alive."""
        kind = BY_TYPE.get((reference["apiVersion"], reference["kind"]))
        if kind is None:
            return reference
        namespace = document["metadata"].get("namespace", "") if kind.namespaced else ""
        found = self.world.store.get(Key(kind.plural, namespace, reference["name"]))
        return found if found and found["metadata"]["uid"] == reference["uid"] else None

    def orphan(self, document: Document) -> None:
        uid = document["metadata"]["uid"]
        for key in sorted(self.world.store.dependents.get(uid, set())):
            self.world.edit(key, lambda child: drop_owner(child, uid))
        self.drop_finalizer(document, "orphan")

    def foreground(self, document: Document) -> None:
        """The dependents first; the owner goes when the last of them has gone."""
        owned = sorted(self.world.store.dependents.get(document["metadata"]["uid"], set()))
        for key in owned:
            child = self.world.store.get(key)
            if child and not child["metadata"].get("deletionTimestamp"):
                self.world.delete(key, DeleteOptions("Foreground"))
        if not self.world.store.dependents.get(document["metadata"]["uid"]):
            self.drop_finalizer(document, "foregroundDeletion")

    def drop_finalizer(self, document: Document, name: str) -> None:
        key = key_of(document)
        kept = [finalizer for finalizer in document["metadata"]["finalizers"] if finalizer != name]
        if kept:
            self.world.edit(key, lambda live: live["metadata"].update(finalizers=kept))
        else:
            self.world.forget(key)


class Claims(Controller):
    """Binds every PersistentVolumeClaim at once, to a volume that is not shown."""

    kinds = frozenset({"persistentvolumeclaims"})

    def reconcile(self, key: Key) -> None:
        self.world.edit(key, bind_claim)


class Quotas(Controller):
    """Keeps the status of ResourceQuotas."""

    kinds = frozenset(NAMESPACED) - {"events"}

    def reconcile(self, key: Key) -> None:
        for document in self.world.store.all("resourcequotas", key.namespace):
            fresh = quota.status_of(self.world.store, document)
            self.world.edit(key_of(document), lambda live, fresh=fresh: live.update(status=fresh))  # type: ignore[misc]


class OldEvents(Controller):
    """Events live for an hour."""

    kinds = frozenset({"events"})

    def reconcile(self, key: Key) -> None:
        event = self.world.store.get(key)
        if event is None:
            return
        until = moment(event["metadata"]["creationTimestamp"]) + EVENTS_LIVE
        if until <= self.world.now:
            self.world.forget(key)
        else:
            self.world.wake(until, self, key)


def drop_owner(child: Document, uid: str) -> None:
    kept = [owner for owner in child["metadata"].get("ownerReferences") or [] if owner["uid"] != uid]
    child["metadata"]["ownerReferences"] = kept
    if not kept:
        del child["metadata"]["ownerReferences"]


def bind_claim(claim: Document) -> None:
    if claim["status"].get("phase") != "Pending":
        return
    spec = claim["spec"]
    spec["volumeName"] = f"pvc-{claim['metadata']['uid']}"
    claim["status"] = {
        "phase": "Bound",
        "accessModes": copy(spec.get("accessModes") or ["ReadWriteOnce"]),
        "capacity": copy((spec.get("resources") or {}).get("requests") or {}),
    }


def controllers(world: World) -> list[Controller]:
    return [Namespaces(world), Garbage(world), Claims(world), Quotas(world), OldEvents(world)]
