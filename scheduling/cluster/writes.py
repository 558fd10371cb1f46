"""Writing objects: no reading before, nothing of others overwritten, nothing of ours lost.

An apply names the version that it was made for. What we do not know is created, or applied for a version that no
object ever has: that makes it where it is not there, and is a conflict where it is. Only then it is read: somebody
else's is left alone, ours is taken up and applied again for the version that it has.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock
from typing import Any, NamedTuple

import msgspec

from scheduling.cluster import names
from scheduling.cluster.api import APPLY, CONFLICT, MERGE, Api, Query, document_in, list_path, path_of
from scheduling.cluster.mirror import Mirror
from scheduling.cluster.port import ClusterError, Document, Ref
from scheduling.planning.facts import ObjectFact

NOT_FOUND, INVALID = 404, 422
NEVER = "1"  # a resourceVersion that no object has: the store counts from it
CREATED = frozenset({"Job", "ConfigMap"})
"""Kinds of which a later write says the same fields or none. The first is a creation: half the work for a server."""

MOST_TRIES = 3
MOST_KNOWN = 10_000
STANDS = 600.0  # seconds for which a namespace that we have applied is taken to be as we left it

Address = tuple[str, str, str]  # kind, namespace, name


class Known(NamedTuple):
    """An object of ours as it was last told."""

    uid: str
    version: str


class Theirs(NamedTuple):
    """An object as it stands in the cluster, as far as removing and scaling ask."""

    uid: str
    version: str
    replicas: int | None
    ours: bool
    leaving: bool = False
    heard: bool = True  # just now, or by a mirror; else it is as we left it, and whose it is by now is not known


class Applied(NamedTuple):
    """A namespace that we have applied, and when, on the monotonic clock."""

    uid: str
    document: Document
    digest: bytes
    at: float


@dataclass(eq=False)
class Writes:
    """Remembers what it wrote, so that the next write needs no look. Safe to use from several threads."""

    api: Api
    mirror: Mirror

    def __post_init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[Address, Known] = OrderedDict()
        self._spaces: dict[str, Applied] = {}

    def put(self, document: Document) -> str:
        """Server-side apply; the object's uid. A namespace that stands as we left it is not written again."""
        if document["kind"] == "Namespace":
            return self._put_namespace(document)
        try:
            return self._put(document)
        except ClusterError as error:
            space = self._spaces.get(document["metadata"].get("namespace", ""))
            if error.status != NOT_FOUND or space is None:
                raise
        self._doubt(space)  # somebody has deleted it meanwhile
        self._put_namespace(space.document)
        return self._put(document)

    def remove(self, ref: Ref) -> bool:
        """By uid, so that a namesake made meanwhile stays. A Job's pods would be left behind without a policy."""
        return self._on(ref, self._remove) is True

    def scale(self, ref: Ref, replicas: int) -> None:
        done = self._on(ref, lambda ref, there: self._scale(ref, there, replicas))
        if done is None and (replicas or ref.uid):
            raise not_ours(ref)

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """The object as the cluster has it now."""
        try:
            return document_in(self.api.ask("GET", path_of(kind, namespace, name)))
        except ClusterError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    # Applying

    def _put_namespace(self, document: Document) -> str:
        name, digest = document["metadata"]["name"], blake2b(msgspec.json.encode(document)).digest()
        there = self._spaces.get(name)
        if there is not None and there.digest == digest and time.monotonic() - there.at < STANDS:
            return there.uid
        uid = self._put(document)
        self._spaces[name] = Applied(uid, document, digest, time.monotonic())
        return uid

    def _doubt(self, space: Applied) -> None:
        """It is written again before anything else. It is kept meanwhile, for others that find its namespace gone."""
        self._spaces[space.document["metadata"]["name"]] = space._replace(at=space.at - STANDS)

    def _put(self, document: Document) -> str:
        address = address_of(document)
        known = self._known_of(address, document)
        for _ in range(MOST_TRIES):
            try:
                return self._apply(document, known)
            except ClusterError as error:
                if not is_overtaken(error):
                    raise
                trouble = error
            self._forget(address)
            known = self._looked_up(address, document)
        raise trouble

    def _apply(self, document: Document, known: Known | None) -> str:
        address = address_of(document)
        if known is None and address[0] in CREATED:
            query: Query = {"fieldManager": names.FIELD_MANAGER}
            answer = self.api.ask("POST", list_path(*address[:2]), query=query, body=document)
        else:
            meta = {"resourceVersion": NEVER} if known is None else {"uid": known.uid, "resourceVersion": known.version}
            body = {**document, "metadata": {**document["metadata"], **meta}}
            query = {"fieldManager": names.FIELD_MANAGER, "force": "true"}
            answer = self.api.ask("PATCH", path_of(*address), query=query, body=body, content=APPLY)
        there = document_in(answer)
        self.mirror.wrote(address[0], answer)
        self._learn(address, Known(uid_of(there), version_of(there)))
        return uid_of(there)

    def _known_of(self, address: Address, document: Document) -> Known | None:
        """What we know without asking. Refuses what the cluster would have to refuse."""
        item = self.mirror.find(address[0], address[1:])
        if item is None or item.version is None:
            with self._lock:
                return self._known.get(address)
        fact: Any = item.fact
        if str(fact.workload) != labels_of(document["metadata"]).get(names.WORKLOAD):
            raise of_another(address)
        if fact.deleting_since is not None:
            raise still_there(address)
        return Known(item.uid, str(item.version))

    def _looked_up(self, address: Address, document: Document) -> Known | None:
        there = self.find(*address)
        if there is None:
            return None
        refuse_foreign(address, there, document["metadata"])
        return Known(uid_of(there), version_of(there))

    # Removing and scaling

    def _on(self, ref: Ref, act: Callable[[Ref, Theirs], bool]) -> bool | None:
        """Do it to the object as it is; None when it is not there."""
        there = self._held(ref) or self._asked(ref)
        for _ in range(MOST_TRIES):
            if there is None or (ref.uid and there.uid != ref.uid):
                return None
            try:
                return act(ref, there)
            except ClusterError as error:
                if error.status == NOT_FOUND and there.ours:
                    self._gone(ref, there.uid)
                    return None
                if error.status != CONFLICT:
                    raise
                trouble = error
            self._forget((ref.kind, ref.namespace, ref.name))
            there = self._asked(ref)
        raise trouble

    def _remove(self, ref: Ref, there: Theirs) -> bool:
        if there.leaving or not there.ours:
            return there.ours
        only = {"uid": there.uid} | ({} if there.heard else {"resourceVersion": there.version})
        body = {"propagationPolicy": "Background", "preconditions": only}
        answer = self.api.ask("DELETE", path_of(ref.kind, ref.namespace, ref.name), body=body)
        if is_leaving(answer):
            self.mirror.wrote(ref.kind, answer)
        else:
            self._gone(ref, there.uid)
        return True

    def _scale(self, ref: Ref, there: Theirs, replicas: int) -> bool:
        if not there.ours:
            raise not_ours(ref)
        if there.replicas == replicas:
            return False
        path = path_of(ref.kind, ref.namespace, ref.name) + "/scale"
        body = {"metadata": {"uid": there.uid, "resourceVersion": there.version}, "spec": {"replicas": replicas}}
        version = version_of(document_in(self.api.ask("PATCH", path, body=body, content=MERGE)))
        self.mirror.amended(ref.kind, (ref.namespace, ref.name), version, replicas=replicas)
        self._learn((ref.kind, ref.namespace, ref.name), Known(there.uid, version))
        return True

    def _held(self, ref: Ref) -> Theirs | None:
        """As the mirror has it, or as it was after our last write."""
        item = self.mirror.find(ref.kind, (ref.namespace, ref.name))
        if item is None or item.version is None:
            with self._lock:
                known = self._known.get((ref.kind, ref.namespace, ref.name))
            return Theirs(known.uid, known.version, None, ours=True, heard=False) if known else None
        fact: Any = item.fact
        replicas = fact.replicas if isinstance(fact, ObjectFact) else None
        ours = fact.workload is not None
        return Theirs(item.uid, str(item.version), replicas, ours=ours, leaving=fact.deleting_since is not None)

    def _asked(self, ref: Ref) -> Theirs | None:
        there = self.find(ref.kind, ref.namespace, ref.name)
        if there is None:
            return None
        leaving = bool(there["metadata"].get("deletionTimestamp"))
        replicas = (there.get("spec") or {}).get("replicas")
        return Theirs(uid_of(there), version_of(there), replicas, ours=is_ours(there), leaving=leaving)

    # Remembering

    def _learn(self, address: Address, known: Known) -> None:
        with self._lock:
            self._known[address] = known
            self._known.move_to_end(address)
            while len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)

    def _forget(self, address: Address) -> None:
        with self._lock:
            self._known.pop(address, None)

    def _gone(self, ref: Ref, uid: str) -> None:
        self._forget((ref.kind, ref.namespace, ref.name))
        self.mirror.removed(ref.kind, (ref.namespace, ref.name), uid)


def is_overtaken(error: ClusterError) -> bool:
    """Is the object not the one that we took it for? A changed uid is `immutable` to the API server."""
    return error.status == CONFLICT or (error.status == INVALID and "metadata.uid" in str(error))


def refuse_foreign(address: Address, there: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Never write over what is not ours, over what is newer than we are, nor over what is about to go."""
    kind, _, name = address
    if not is_ours(there):
        label = f"{names.MANAGED_BY}={names.MANAGER}"
        text = f"{kind} {name} is there already and is not Berth's; remove it, or label it {label}."
        raise ClusterError(text, status=CONFLICT, retry=False)
    if labels_of(there["metadata"]).get(names.WORKLOAD) != labels_of(wanted).get(names.WORKLOAD):
        raise of_another(address)
    if attempt_in(there["metadata"]) > attempt_in(wanted):
        raise ClusterError(f"{kind} {name} is there already, from a later attempt.", status=CONFLICT)
    if there["metadata"].get("deletionTimestamp"):
        raise still_there(address)


def of_another(address: Address) -> ClusterError:
    return ClusterError(
        f"{address[0]} {address[2]} is there already, for another workload.", status=CONFLICT, retry=False
    )


def not_ours(ref: Ref) -> ClusterError:
    text = f"{ref.kind} {ref.name} of ours is not there to be scaled."
    return ClusterError(text, status=NOT_FOUND, retry=False)


def still_there(address: Address) -> ClusterError:
    return ClusterError(f"{address[0]} {address[2]} is still being deleted.", status=CONFLICT)


def address_of(document: Document) -> Address:
    meta = document["metadata"]
    return document["kind"], meta.get("namespace", ""), meta["name"]


def is_ours(there: Mapping[str, Any]) -> bool:
    return labels_of(there.get("metadata") or {}).get(names.MANAGED_BY) == names.MANAGER


def labels_of(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    return meta.get("labels") or {}


def attempt_in(meta: Mapping[str, Any]) -> int:
    said = str((meta.get("annotations") or {}).get(names.ATTEMPT, ""))
    return int(said) if said.isascii() and said.isdigit() and len(said) < len("999999999") else 0


def uid_of(there: Mapping[str, Any]) -> str:
    return str((there.get("metadata") or {}).get("uid", ""))


def version_of(there: Mapping[str, Any]) -> str:
    return str((there.get("metadata") or {}).get("resourceVersion", ""))


def is_leaving(answer: bytes) -> bool:
    """Whether a deletion has only begun: the answer is the object, marked, and not a word that it is gone."""
    there = document_in(answer)
    return bool((there.get("metadata") or {}).get("deletionTimestamp"))
