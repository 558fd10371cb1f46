"""Who owns which field: the bookkeeping behind server-side apply.

A path is a tuple of steps as `managedFields` writes them: `f:name` into a map, `k:{"name":"main"}` into a keyed list,
`v:"x"` into a set, `.` for the item itself. Only leaves are owned. Controllers of the simulation write without
leaving a trace here, as if they owned nothing that anybody applies.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .errors import ApiError
from .kinds import Document
from .patch import APPLY_KEYS, SET_LISTS, WHOLE_MAPS, apply_merge, item_key, list_keys

Path = tuple[str, ...]
OURS = frozenset(
    {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink",
     "deletionTimestamp", "deletionGracePeriodSeconds", "generateName"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Manager:
    name: str
    operation: str = "Update"  # or Apply
    subresource: str = ""


def leaves(document: Document) -> dict[Path, Any]:
    """Every field that somebody can own, with its value."""
    found: dict[Path, Any] = {}
    for name, value in document.items():
        part = {key: item for key, item in value.items() if key not in OURS} if name == "metadata" else value
        if name not in {"apiVersion", "kind"} and part != {}:
            found.update(below(part, (f"f:{name}",), name))
    return found


def below(value: Any, path: Path, field: str) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and value and field not in WHOLE_MAPS:
        for name, item in value.items():
            yield from below(item, (*path, f"f:{name}"), name)
    elif isinstance(value, list) and field in SET_LISTS:
        for item in value:
            yield (*path, f"v:{json.dumps(item)}"), item
    elif isinstance(value, list) and (keys := list_keys(field, value, APPLY_KEYS)):
        for item in value:
            yield from keyed(item, keys, path)
    else:
        yield path, value


def keyed(item: Document, keys: tuple[str, ...], path: Path) -> Iterator[tuple[Path, Any]]:
    name = json.dumps(dict(zip(keys, item_key(item, keys), strict=True)), separators=(",", ":"))
    yield (*path, f"k:{name}", "."), True
    yield from below(item, (*path, f"k:{name}"), "")


def apply(live: Document, wanted: Document, manager: Manager, *, force: bool, now: str) -> Document:
    """The live document with the manager's whole wish applied; a conflict is a 409 that names the other manager."""
    owners = read(live)
    have, want = leaves(live), leaves(wanted)
    lost = contested(owners, have, want, manager)
    if lost and not force:
        raise conflicting(lost)
    others = {path for other, paths in owners.items() if other != manager for path in paths}
    result = apply_merge(live, wanted)
    unwished = owners.get(manager, set()) - set(want) - others
    for path in sorted(unwished, key=lambda path: (-len(path), path[-1] == ".")):  # an item after its fields
        result = without(result, path)
    owners = {other: paths - {path for path, _ in lost} for other, paths in owners.items()}
    owners[manager] = set(want)
    return written(result, live, owners, now)


def create(document: Document, wanted: Document, manager: Manager, now: str) -> Document:
    """A new document that server-side apply brought: what was wished is owned, what defaults added is not."""
    return written(document, {}, {manager: set(leaves(wanted))}, now)


def update(live: Document, new: Document, manager: Manager, now: str) -> Document:
    """A change by PUT or PATCH: the manager owns what it changed, and whoever owned it before does not any more."""
    have, want = leaves(live), leaves(new)
    changed = {path for path, value in want.items() if path not in have or have[path] != value}
    gone = changed | (set(have) - set(want))
    if not gone:
        return new
    owners = {other: paths - gone for other, paths in read(live).items()}
    owners[manager] = owners.get(manager, set()) | changed
    return written(new, live, owners, now)


def contested(
    owners: dict[Manager, set[Path]], have: dict[Path, Any], want: dict[Path, Any], manager: Manager
) -> list[tuple[Path, Manager]]:
    """Fields wanted with another value than the one that somebody else owns."""
    return [
        (path, other)
        for other, paths in owners.items()
        if other != manager
        for path in sorted(paths)
        if path in want and path in have and want[path] != have[path]
    ]


def conflicting(lost: list[tuple[Path, Manager]]) -> ApiError:
    causes = [
        {"reason": "FieldManagerConflict", "message": f'conflict with "{other.name}"', "field": dotted(path)}
        for path, other in lost
    ]
    listed = ", ".join(f'conflict with "{other.name}": {dotted(path)}' for path, other in lost)
    plural = "conflicts" if len(lost) > 1 else "conflict"
    message = f"Apply failed with {len(lost)} {plural}: {listed}"
    return ApiError(409, "Conflict", message, details={"causes": causes})


def dotted(path: Path) -> str:
    """A path as people write it: `.spec.containers[name="main"].image`."""
    text = ""
    for step in path:
        kind, _, rest = step.partition(":")
        if kind == "f":
            text += f".{rest}"
        elif kind == "k":
            text += "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in json.loads(rest).items()) + "]"
    return text


def without(document: Any, path: Path) -> Any:
    """The document without the field at a path; maps and lists that become empty by it go too."""
    step, rest = path[0], path[1:]
    if isinstance(document, list):
        return without_item(document, step, rest)
    name = step.removeprefix("f:")
    if not isinstance(document, dict) or name not in document:
        return document
    kept = without(document[name], rest) if rest else None
    result = {key: value for key, value in document.items() if key != name}
    return result | {name: kept} if kept else result


def without_item(items: list[Any], step: str, rest: Path) -> list[Any]:
    if step.startswith("v:"):
        return [item for item in items if item != json.loads(step[2:])]
    wanted = json.loads(step[2:])
    result = []
    for item in items:
        if not all(item.get(key, "TCP" if key == "protocol" else None) == value for key, value in wanted.items()):
            result.append(item)
        elif rest != (".",):
            result.append(item if rest[0].removeprefix("f:") in wanted else without(item, rest))
        elif set(item) - set(wanted):
            result.append(item)  # somebody else still owns a field of it
    return result


def read(document: Document) -> dict[Manager, set[Path]]:
    """The owners that a document's managedFields name."""
    owners: dict[Manager, set[Path]] = {}
    for entry in document.get("metadata", {}).get("managedFields") or []:
        manager = Manager(entry.get("manager", ""), entry.get("operation", "Update"), entry.get("subresource", ""))
        owners[manager] = set(paths_in(entry.get("fieldsV1") or {}))
    return owners


def paths_in(tree: Document, path: Path = ()) -> Iterator[Path]:
    for step, inner in tree.items():
        if inner:
            yield from paths_in(inner, (*path, step))
        else:
            yield (*path, step)


def written(result: Document, live: Document, owners: dict[Manager, set[Path]], now: str) -> Document:
    """The result with its managedFields; an entry whose fields did not change keeps its time."""
    before = {entry_manager(entry): entry for entry in live.get("metadata", {}).get("managedFields") or []}
    entries = []
    for manager, paths in owners.items():
        if not paths:
            continue
        fields = tree_of(paths)
        known = before.get(manager)
        if known and known["fieldsV1"] == fields:
            entries.append(known)
            continue
        entry: Document = {
            "manager": manager.name, "operation": manager.operation, "apiVersion": result["apiVersion"], "time": now,
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        }  # fmt: skip
        entries.append(entry | ({"subresource": manager.subresource} if manager.subresource else {}))
    return result | {"metadata": result["metadata"] | {"managedFields": entries}}


def entry_manager(entry: Document) -> Manager:
    return Manager(entry.get("manager", ""), entry.get("operation", "Update"), entry.get("subresource", ""))


def tree_of(paths: set[Path]) -> Document:
    tree: Document = {}
    for path in sorted(paths):
        inner = tree
        for step in path:
            inner = inner.setdefault(step, {})
    return tree
