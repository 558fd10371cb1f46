"""What a request does to the objects: create, replace, patch, apply, scale, delete. Knows nothing of HTTP.

Every refusal is an ApiError with the reason that the real server gives. The controllers of the simulation create and
delete through here too, so that quota and validation hold for the pods of a StatefulSet as for anybody's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from datetime import timedelta as td
from random import Random
from typing import Any

from . import defaults, errors, fields, patch, quota, shapes, validation
from .clock import moment, stamp
from .fields import Manager
from .kinds import BY_PLURAL, Document, Key, Kind, copy, decoded, key_of
from .store import Store

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
KEPT = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
LETTERS = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    propagation: str = ""  # Background, Foreground, Orphan; empty: the kind's own default
    grace: int | None = None  # seconds; None: the pod's own
    uid: str = ""  # precondition
    version: str = ""  # precondition


class Api:
    def __init__(self, store: Store, now: Callable[[], datetime], identity: str) -> None:
        self.store = store
        self.now = now
        self.random = Random(identity)  # noqa: S311 - uids that repeat from run to run, not secrets
        self.rehearsing = False  # dryRun=All: answer as if, store nothing

    # Reading

    def get(self, kind: Kind, namespace: str, name: str) -> Document:
        found = self.store.get(Key(kind.plural, namespace, name))
        if found is None:
            raise errors.not_found(kind, name)
        return found

    # Creating

    def create(
        self, kind: Kind, namespace: str, body: Document, manager: str = "", *, wish: Document | None = None
    ) -> Document:
        """A new object. `wish` is given when it comes by server-side apply: then only what it names is owned."""
        document = self.shaped(kind, namespace, body)
        metadata = document["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"][:58] + self.letters(5)
        self.check_name_free(kind, metadata)
        self.check_namespace_open(kind, namespace, metadata["name"])
        for field in ("resourceVersion", "managedFields", *KEPT):
            metadata.pop(field, None)
        metadata |= {"uid": self.new_uid(), "creationTimestamp": stamp(self.now())}
        if kind.has_status:
            metadata["generation"] = 1
        self.finish(kind, document, None)
        status = defaults.first_status(kind, document)
        document.pop("status", None)
        self.check_runtime_class(kind, document)
        quota.admit(self.store, kind, document)
        document = self.owned(document, manager, wish) if manager else document
        return self.put(document | {"status": status} if status is not None else document)

    def check_runtime_class(self, kind: Kind, document: Document) -> None:
        """A pod whose RuntimeClass nobody has made is turned away, as the admission plugin of that name does."""
        name = document["spec"].get("runtimeClassName") if kind.plural == "pods" else None
        if name and self.store.get(Key("runtimeclasses", "", name)) is None:
            why = f'pod rejected: RuntimeClass "{name}" not found'
            raise errors.forbidden(kind, document["metadata"]["name"], why)

    def owned(self, document: Document, manager: str, wish: Document | None) -> Document:
        now = stamp(self.now())
        if wish is not None:
            return fields.create(document, wish, Manager(manager, "Apply"), now)
        return fields.update(skeleton(document), document, Manager(manager), now)

    def check_name_free(self, kind: Kind, metadata: Document) -> None:
        name = metadata.get("name")
        if not name:
            raise errors.invalid(kind, "", [validation.required("metadata.name", "name or generateName is required")])
        if self.store.get(Key(kind.plural, metadata.get("namespace", ""), name)) is not None:
            raise errors.already_exists(kind, name)

    def check_namespace_open(self, kind: Kind, namespace: str, name: str) -> None:
        if not kind.namespaced:
            return
        home = self.get(BY_PLURAL["namespaces"], "", namespace)
        if home["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            cause = {"reason": "NamespaceTerminating", "field": "metadata.namespace", "message": why}
            raise errors.forbidden(kind, name, why, [cause])

    # Changing

    def replace(
        self, kind: Kind, namespace: str, name: str, body: Document, *, subresource: str = "", manager: str = ""
    ) -> Document:
        live = self.get(kind, namespace, name)
        document = self.shaped(kind, namespace, body)
        document["metadata"].setdefault("name", name)
        return self.commit(kind, live, document, subresource, Manager(manager or "unknown", subresource=subresource))

    def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        body: Any,
        *,
        style: str,
        subresource: str = "",
        manager: str = "",
        force: bool = False,
    ) -> Document:
        if style == APPLY_PATCH:
            return self.apply(kind, namespace, name, body, subresource=subresource, manager=manager, force=force)
        live = self.get(kind, namespace, name)
        document = patched(kind, live, body, style)
        shapes.check(kind, document)
        document["metadata"] = document.get("metadata") or {}
        who = Manager(manager or "unknown", subresource=subresource)
        return self.commit(kind, live, document, subresource, who, patched=True)

    def apply(
        self, kind: Kind, namespace: str, name: str, body: Document, *, subresource: str, manager: str, force: bool
    ) -> Document:
        """Server-side apply: the manager says its whole wish; fields that others hold stay theirs."""
        if not manager:
            raise errors.bad_request("PatchOptions.meta.k8s.io is invalid: fieldManager: Required value")
        wish = self.shaped(kind, namespace, body)
        if wish["metadata"].setdefault("name", name) != name:
            raise errors.bad_request("the name of the object does not match the name on the URL")
        if wish["metadata"].pop("managedFields", None):
            raise errors.bad_request("metadata.managedFields must be nil")
        wish = part_of(wish, subresource, kind)
        who = Manager(manager, "Apply", subresource)
        live = self.store.get(Key(kind.plural, namespace, name))
        if live is None and subresource:
            raise errors.not_found(kind, name)
        uid = wish["metadata"].get("uid")
        if live is None:
            if uid:
                why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise errors.conflict(kind, name, why)
            return self.create(kind, namespace, wish, manager, wish=wish)
        if uid and uid != live["metadata"]["uid"]:
            raise errors.invalid(kind, name, [validation.wrong("metadata.uid", uid, "field is immutable")])
        document = fields.apply(live, wish, who, force=force, now=stamp(self.now()))
        return self.commit(kind, live, document, subresource, None, patched=True)

    def commit(
        self,
        kind: Kind,
        live: Document,
        document: Document,
        subresource: str,
        manager: Manager | None,
        *,
        patched: bool = False,
    ) -> Document:
        """Store what a request made of the live document, if it may be; the same again changes nothing."""
        self.check_same_object(kind, live, document["metadata"], patched=patched)
        document = isolated(kind, live, document, subresource)
        keep_identity(live, document)
        if subresource != "status":
            self.finish(kind, document, live)
            if kind.has_status and document.get("spec") != live.get("spec"):
                document["metadata"]["generation"] = live["metadata"].get("generation", 0) + 1
        if manager:
            document = fields.update(live, document, manager, stamp(self.now()))
        if document == live:
            return live
        if leaving(document) and not document["metadata"].get("finalizers") and not lingers(kind, document):
            return self.remove(key_of(live))
        return self.put(document)

    def check_same_object(self, kind: Kind, live: Document, metadata: Document, *, patched: bool) -> None:
        """Another uid is a conflict for a replacement, and for a patch a change of what cannot change, as in life."""
        name, mine = live["metadata"]["name"], live["metadata"]
        if kind.namespaced and metadata.setdefault("namespace", mine["namespace"]) != mine["namespace"]:
            raise errors.bad_request("the namespace of the object does not match the namespace on the request")
        if metadata.get("name") != name:
            raise errors.bad_request(
                f"the name of the object ({metadata.get('name')}) does not match the name on the URL ({name})"
            )
        if patched and metadata.get("uid") and metadata["uid"] != mine["uid"]:
            raise errors.invalid(kind, name, [validation.wrong("metadata.uid", metadata["uid"], "field is immutable")])
        if metadata.get("uid") and metadata["uid"] != mine["uid"]:
            why = f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: {mine['uid']}"
            raise errors.conflict(kind, name, why)
        if metadata.get("resourceVersion") and metadata["resourceVersion"] != mine["resourceVersion"]:
            raise errors.conflict(kind, name)

    # Scale

    def scale_of(self, kind: Kind, namespace: str, name: str) -> Document:
        live = self.get(kind, namespace, name)
        spec, status, metadata = live["spec"], live.get("status") or {}, live["metadata"]
        chosen = (spec.get("selector") or {}).get("matchLabels") or {}
        return {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion")}
            | {"creationTimestamp": metadata["creationTimestamp"]},
            "spec": {"replicas": spec.get("replicas", 1)},
            "status": {
                "replicas": status.get("replicas", 0),
                "selector": ",".join(f"{label}={value}" for label, value in sorted(chosen.items())),
            },
        }

    def scale(self, kind: Kind, namespace: str, name: str, body: Document, manager: str = "") -> Document:
        """Set spec.replicas from a Scale document. A resourceVersion in it must be the live one."""
        replicas = (body.get("spec") or {}).get("replicas", 0)
        if not isinstance(replicas, int) or replicas < 0:
            raise errors.invalid(kind, name, [validation.wrong("spec.replicas", replicas, "must be 0 or more")])
        live = self.get(kind, namespace, name)
        document = copy(live)
        document["spec"]["replicas"] = replicas
        document["metadata"]["resourceVersion"] = (body.get("metadata") or {}).get("resourceVersion", "")
        self.commit(kind, live, document, "", Manager(manager or "unknown", subresource="scale"))
        return self.scale_of(kind, namespace, name)

    def patched_scale(self, kind: Kind, namespace: str, name: str, body: Any, style: str) -> Document:
        """The Scale document as a patch leaves it."""
        live = self.scale_of(kind, namespace, name)
        if style == JSON_PATCH:
            return patch.json_patch(live, body)
        return dict(patch.merge_patch(live, body))

    # Deleting

    def delete(self, kind: Kind, namespace: str, name: str, options: DeleteOptions | None = None) -> Document:
        """Delete, or begin to: pods have their grace, finalizers hold, namespaces empty themselves first."""
        options = options or DeleteOptions()
        live = self.get(kind, namespace, name)
        check_preconditions(kind, live, options)
        document = copy(live)
        finalizers = list(document["metadata"].get("finalizers") or [])
        how = options.propagation or ("Orphan" if kind.plural == "jobs" else "Background")
        extra = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}.get(how)
        if extra and extra not in finalizers and self.store.dependents.get(live["metadata"]["uid"]):
            document["metadata"]["finalizers"] = [*finalizers, extra]
        grace = self.grace_of(kind, document, options)
        if not grace and not document["metadata"].get("finalizers") and kind.plural != "namespaces":
            return self.remove(key_of(live))
        return self.mark_leaving(kind, live, document, grace)

    def mark_leaving(self, kind: Kind, live: Document, document: Document, grace: int) -> Document:
        metadata = document["metadata"]
        earlier, given = metadata.get("deletionTimestamp"), int(metadata.get("deletionGracePeriodSeconds") or 0)
        if not earlier or grace < given:  # a second word only shortens the grace, from the first one on
            asked_at = moment(earlier) - td(seconds=given) if earlier else self.now()
            metadata["deletionTimestamp"] = stamp(asked_at + td(seconds=grace))
            metadata["deletionGracePeriodSeconds"] = grace
            metadata["generation"] = metadata.get("generation", 0) + 1
        if kind.plural == "namespaces":
            document["status"] = {"phase": "Terminating"}
        return live if document == live else self.put(document)

    def grace_of(self, kind: Kind, document: Document, options: DeleteOptions) -> int:
        """Seconds until a pod is killed; a pod that never ran or has ended goes at once."""
        if kind.plural != "pods":
            return 0
        if not document["spec"].get("nodeName") or document["status"].get("phase") in ("Succeeded", "Failed"):
            return 0
        asked = options.grace
        return int(document["spec"].get("terminationGracePeriodSeconds", 30) if asked is None else max(asked, 0))

    # Parts

    def put(self, document: Document) -> Document:
        return document if self.rehearsing else self.store.put(document)

    def remove(self, key: Key) -> Document:
        return self.store.documents[key.plural][key] if self.rehearsing else self.store.remove(key)

    def shaped(self, kind: Kind, namespace: str, body: Any) -> Document:
        """The body as a document of this kind in this namespace; BadRequest when it is another thing."""
        if not isinstance(body, dict):
            raise errors.bad_request("the body of the request is no object")
        document: Document = decoded(body)
        said = (document.get("apiVersion") or kind.api_version, document.get("kind") or kind.kind)
        if said != (kind.api_version, kind.kind):
            raise errors.bad_request(
                f"the API version and kind in the data ({said[0]}, {said[1]}) do not match the expected ones "
                f"({kind.api_version}, {kind.kind})"
            )
        document["apiVersion"], document["kind"] = kind.api_version, kind.kind
        metadata = document.get("metadata") or {}
        document["metadata"] = metadata
        shapes.check(kind, document)
        if kind.namespaced and metadata.setdefault("namespace", namespace) != namespace:
            raise errors.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        return document

    def finish(self, kind: Kind, document: Document, old: Document | None) -> None:
        """Defaults, then validation; a field of the wrong type is a BadRequest, as when JSON does not decode."""
        try:
            defaults.fill(kind, document)
            found = validation.problems(kind, document, old)
        except (TypeError, AttributeError, KeyError, IndexError, ValueError) as error:
            raise errors.bad_request(f"{kind.kind} in version {kind.version!r} cannot be handled: {error}") from None
        if found:
            raise errors.invalid(kind, document["metadata"]["name"], found)

    def new_uid(self) -> str:
        bits = f"{self.random.getrandbits(128):032x}"
        return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-a{bits[17:20]}-{bits[20:]}"

    def letters(self, count: int) -> str:
        return "".join(self.random.choice(LETTERS) for _ in range(count))


def patched(kind: Kind, live: Document, body: Any, style: str) -> Document:
    if style == JSON_PATCH:
        return dict(decoded(patch.json_patch(live, body)))
    if not isinstance(body, dict):
        raise errors.bad_request("the body of the patch is no object")
    if style == MERGE_PATCH:
        result = patch.merge_patch(live, body)
    elif style == STRATEGIC_PATCH and not kind.is_custom:
        result = patch.strategic_merge(live, body)
    else:
        accepted = [JSON_PATCH, MERGE_PATCH, APPLY_PATCH] + ([] if kind.is_custom else [STRATEGIC_PATCH])
        raise errors.unsupported_media_type(f"accepted media types include: {', '.join(accepted)}")
    return dict(decoded(result))


def part_of(wish: Document, subresource: str, kind: Kind) -> Document:
    """The part of an applied document that counts: status by its own door only."""
    if subresource == "status":
        return {name: value for name, value in wish.items() if name in ("apiVersion", "kind", "metadata", "status")}
    return {name: value for name, value in wish.items() if name != "status" or not kind.has_status}


def isolated(kind: Kind, live: Document, document: Document, subresource: str) -> Document:
    """Status comes in through /status only, and nothing else does."""
    if subresource == "status":
        return live | {"metadata": document["metadata"], "status": document.get("status") or {}}
    if not kind.has_status:
        return document
    rest = {name: value for name, value in document.items() if name != "status"}
    return rest | {"status": live["status"]} if "status" in live else rest


def keep_identity(live: Document, document: Document) -> None:
    """Nobody changes these by a request."""
    metadata = dict(document["metadata"])
    for field in KEPT:
        metadata.pop(field, None)
        if field in live["metadata"]:
            metadata[field] = live["metadata"][field]
    metadata["resourceVersion"] = live["metadata"]["resourceVersion"]
    if "managedFields" in live["metadata"]:
        metadata.setdefault("managedFields", live["metadata"]["managedFields"])
    document["metadata"] = metadata


def check_preconditions(kind: Kind, live: Document, options: DeleteOptions) -> None:
    name, metadata = live["metadata"]["name"], live["metadata"]
    for word, field, wanted in (("UID", "uid", options.uid), ("ResourceVersion", "resourceVersion", options.version)):
        if wanted and wanted != metadata[field]:
            why = f"Precondition failed: {word} in precondition: {wanted}, {word} in object meta: {metadata[field]}"
            raise errors.conflict(kind, name, why)


def skeleton(document: Document) -> Document:
    """The empty document of the same type: against it, everything in a created document is new."""
    return {"apiVersion": document["apiVersion"], "kind": document["kind"], "metadata": {}}


def leaving(document: Document) -> bool:
    return bool(document["metadata"].get("deletionTimestamp"))


def lingers(kind: Kind, document: Document) -> bool:
    """Does somebody else end this object? A namespace its controller, a pod on a node its kubelet."""
    if kind.plural == "namespaces":
        return True
    waits = kind.plural == "pods" and int(document["metadata"].get("deletionGracePeriodSeconds") or 0) > 0
    return waits and document["status"].get("phase") not in ("Succeeded", "Failed")
