"""What a mirror watches, and what a line of a watch says. Pure, and total over whatever a server may send."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Generic, NamedTuple

import msgspec

from scheduling.cluster import names
from scheduling.cluster.api import list_path
from scheduling.cluster.documents import (
    D,
    ListMeta,
    Meta,
    NodeDocument,
    ObjectDocument,
    Page,
    Part,
    PodDocument,
    Unreadable,
    decoded,
)
from scheduling.cluster.pods import pod_fact
from scheduling.cluster.reading import dot, node_fact, object_fact
from scheduling.cluster.shelf import Item, number
from scheduling.planning.facts import Problem

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"
OF_OBJECTS = frozenset({ADDED, MODIFIED, DELETED})


@dataclass(frozen=True, slots=True)
class Source:
    """A kind of objects: where it is listed, and what of each object counts."""

    kind: str
    paths: tuple[str, ...]  # the same collection in the versions that a server may speak, best first
    document: type[Any]
    fact: Callable[[Any, list[Problem]], Any]  # answers None where the object means nothing to us
    selector: str = ""
    missing: str = ""  # what follows where a server does not know the kind; "" where every server has to


class Event(Part, frozen=True, kw_only=True):
    """One line of a watch; its object is still bytes."""

    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"{}")


class Status(Part, frozen=True, kw_only=True):
    """The object of an ERROR."""

    code: int | None = None
    message: str | None = None


class Named(Part, frozen=True, kw_only=True):
    metadata: Meta = Meta()


class Heard(NamedTuple):
    """What a line says: of one object, of how far the stream is, or that it ends. An unknown word says nothing."""

    word: str
    version: str = ""
    item: Item | None = None
    status: Status | None = None


NODES = Source("Node", (list_path("Node"),), NodeDocument, node_fact)
PODS = Source("Pod", (list_path("Pod"),), PodDocument, lambda pod, _: pod_fact(pod))


def our_objects(kind: str) -> Source:
    """Those that stand for a workload. The items of a list do not say their kind."""
    return Source(
        kind, (list_path(kind),), ObjectDocument, lambda found, _: object_fact(found, kind), selector=names.OUR_PODS
    )


STATEFUL_SETS, JOBS = our_objects("StatefulSet"), our_objects("Job")


class Typed(Part, Generic[D], frozen=True, kw_only=True):
    """A page of a list of which every item is as it should be."""

    metadata: ListMeta = ListMeta()
    items: list[D] | None = None


def read_page(raw: bytes, source: Source) -> tuple[list[Item], list[Problem], ListMeta]:
    """The items of one page of a list. Raises Unreadable when it is none; one bad item never stops the rest."""
    documents, meta = documents_in(raw, source.document)
    items: list[Item] = []
    problems: list[Problem] = []
    for place, found in enumerate(documents):
        try:
            document, odd = decoded(found, source.document) if isinstance(found, msgspec.Raw) else (found, [])
            item = item_of(document, odd, source)
        except Unreadable as error:
            field = f"items[{place}]" + dot(error.problem.field)
            problems.append(replace(error.problem, where=source.kind, field=field))
            continue
        if item.fact is not None:
            items.append(item)
    return items, problems, meta


def documents_in(raw: bytes, kind: type[D]) -> tuple[Sequence[D | msgspec.Raw], ListMeta]:
    """All documents of a page in one go; where one of them is odd, each as bytes, to be read by itself."""
    try:
        page = decoder_of(kind).decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return bytes_in(raw)
    return page.items or (), page.metadata


def bytes_in(raw: bytes) -> tuple[Sequence[msgspec.Raw], ListMeta]:
    try:
        page = msgspec.json.decode(raw, type=Page)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Unreadable(Problem("", "items", f"this is not a list of Kubernetes objects: {error}")) from None
    return page.items or (), page.metadata


@cache
def decoder_of(kind: type[D]) -> msgspec.json.Decoder[Typed[D]]:
    return msgspec.json.Decoder(Typed[kind])  # type: ignore[valid-type]


def read_item(raw: bytes | msgspec.Raw, source: Source) -> tuple[Item, str]:
    """One object and its version; its fact is None when it means nothing to us. Raises Unreadable."""
    document, odd = decoded(raw, source.document)
    return item_of(document, odd, source), document.metadata.resource_version


def item_of(document: Any, odd: list[Problem], source: Source) -> Item:
    meta: Meta = document.metadata
    fact = source.fact(document, odd)
    return Item((meta.namespace, meta.name), meta.uid, number(meta.resource_version), fact)


def read_line(line: bytes, source: Source) -> Heard:
    """One line of a watch. Raises Unreadable for what is none, and for an object that cannot be named."""
    try:
        event = msgspec.json.decode(line, type=Event)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Unreadable(Problem(source.kind, "", f"a line of the watch cannot be read: {error}")) from None
    if event.type == ERROR:
        return Heard(ERROR, status=status_in(event.object))
    if event.type == BOOKMARK:
        found, _ = decoded(event.object, Named)
        return Heard(BOOKMARK, found.metadata.resource_version)
    if event.type not in OF_OBJECTS:
        return Heard(event.type)
    item, version = read_item(event.object, source)
    if not item.key[1]:
        raise Unreadable(Problem(source.kind, "metadata.name", "an object of the watch has no name"))
    return Heard(event.type, version, item)


def status_in(raw: msgspec.Raw) -> Status:
    try:
        return msgspec.json.decode(raw, type=Status)
    except (msgspec.DecodeError, RecursionError):
        return Status()
