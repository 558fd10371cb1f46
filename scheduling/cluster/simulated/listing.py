"""Lists, page by page, as JSON bytes."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass

from .errors import bad_request
from .kinds import Document, Key, Kind, key_of
from .selectors import both
from .store import Store


@dataclass(frozen=True, slots=True)
class Query:
    """What a list or a watch asks for."""

    kind: Kind
    namespace: str = ""
    labels: str = ""
    fields: str = ""
    limit: int = 0  # 0: everything
    token: str = ""  # where the page before ended


def page(store: Store, query: Query) -> bytes:
    """One page of a list. Later pages carry the version of the first: a watch from there misses nothing."""
    test = both(query.labels, query.fields, query.kind)
    version, after = read_token(query.token) if query.token else (store.version, None)
    store.check_remembered(query.kind.plural, version)
    found = [
        (key, document)
        for document in store.all(query.kind.plural, query.namespace)
        for key in [key_of(document)]
        if (after is None or key > after) and test(document)
    ]
    shown = found[: query.limit] if query.limit else found
    metadata: Document = {"resourceVersion": str(version)}
    if len(shown) < len(found):
        metadata |= {"continue": token(version, shown[-1][0]), "remainingItemCount": len(found) - len(shown)}
    return wrapped(query.kind, metadata, [store.item_json(key, document) for key, document in shown], query.kind)


def wrapped(kind: Kind, metadata: Document, items: list[bytes], of: Kind) -> bytes:
    """The list document. Items of built-in kinds come without apiVersion and kind, those of custom kinds with them."""
    head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata}
    if of.is_custom:
        prefix = json.dumps({"apiVersion": of.api_version, "kind": of.kind})[:-1].encode() + b","
        items = [prefix + item[1:] for item in items]
    return json.dumps(head)[:-1].encode() + b',"items":[' + b",".join(items) + b"]}"


def token(version: int, last: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps([version, *last]).encode()).decode()


def read_token(text: str) -> tuple[int, Key]:
    try:
        version, plural, namespace, name = json.loads(base64.urlsafe_b64decode(text))
        return int(version), Key(plural, namespace, name)
    except (ValueError, TypeError) as error:
        raise bad_request(f"continue key is not valid: {error}") from None
