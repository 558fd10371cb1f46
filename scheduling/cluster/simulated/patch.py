"""The four ways to change a document by a part of it: JSON patch, merge patch, strategic merge and apply.

Lists are whole values, but for those whose items have a key: `containers` by name, `conditions` by type. Strategic
merge and server-side apply do not agree on all of them (taints merge by key in the one and are whole in the other).
"""

from __future__ import annotations

import json
from typing import Any

from .errors import ApiError
from .kinds import Document, copy

STRATEGIC_KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",), "initContainers": ("name",), "ephemeralContainers": ("name",), "volumes": ("name",),
    "env": ("name",), "imagePullSecrets": ("name",), "volumeMounts": ("mountPath",), "volumeDevices": ("devicePath",),
    "conditions": ("type",), "taints": ("key",), "ownerReferences": ("uid",), "addresses": ("type",),
    "hostAliases": ("ip",),
}  # fmt: skip
APPLY_KEYS = {name: keys for name, keys in STRATEGIC_KEYS.items() if name != "taints"}
CONTAINER_PORT = ("containerPort", "protocol")
SERVICE_PORT = ("port", "protocol")
SET_LISTS = frozenset({"finalizers"})
WHOLE_MAPS = frozenset({"nodeSelector", "selector"})


def list_keys(field: str, items: list[Any], table: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The fields that name an item of this list; empty when the list is one whole value."""
    if not items or not all(isinstance(item, dict) for item in items):
        return ()
    if field == "ports":
        return CONTAINER_PORT if "containerPort" in items[0] else SERVICE_PORT
    keys = table.get(field, ())
    return keys if keys and all(keys[0] in item for item in items) else ()


def item_key(item: Document, keys: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(item.get(key, "TCP" if key == "protocol" else None) for key in keys)


def merge_patch(document: Any, patch: Any) -> Any:
    """RFC 7386: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return copy(patch)
    result = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result


def strategic_merge(document: Any, patch: Any, field: str = "") -> Any:
    """Merge patch, but lists with a key merge item by item; knows `$patch` and `$deleteFromPrimitiveList`."""
    if isinstance(patch, list):
        return strategic_list(document if isinstance(document, list) else [], patch, field)
    if not isinstance(patch, dict):
        return copy(patch)
    if patch.get("$patch") == "replace":
        return copy({name: value for name, value in patch.items() if name != "$patch"})
    result = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if name.startswith("$"):
            remove_primitives(result, name, value)
        elif value is None:
            result.pop(name, None)
        else:
            result[name] = strategic_merge(result.get(name), value, name)
    return result


def strategic_list(items: list[Any], patch: list[Any], field: str) -> list[Any]:
    if field in SET_LISTS:
        return items + [value for value in patch if value not in items]
    keys = list_keys(field, patch, STRATEGIC_KEYS)
    if not keys or {"$patch": "replace"} in patch:
        return copy([item for item in patch if item != {"$patch": "replace"}])
    result = {item_key(item, keys): item for item in items}
    for item in patch:
        name = item_key(item, keys)
        if item.get("$patch") == "delete":
            result.pop(name, None)
        else:
            result[name] = strategic_merge(result.get(name), item)
    return list(result.values())


def remove_primitives(result: Document, directive: str, values: Any) -> None:
    """`$deleteFromPrimitiveList/finalizers: [a]`; the other directives only order a list and may be ignored."""
    word, _, field = directive.partition("/")
    if word == "$deleteFromPrimitiveList" and field in result:
        result[field] = [value for value in result[field] if value not in values]


def apply_merge(document: Any, wanted: Any, field: str = "") -> Any:
    """What server-side apply puts over the live document; what it does not name stays."""
    if isinstance(wanted, list):
        return apply_list(document if isinstance(document, list) else [], wanted, field)
    if not isinstance(wanted, dict) or field in WHOLE_MAPS:
        return copy(wanted)
    result = dict(document) if isinstance(document, dict) else {}
    for name, value in wanted.items():
        result[name] = apply_merge(result.get(name), value, name)
    return result


def apply_list(items: list[Any], wanted: list[Any], field: str) -> list[Any]:
    if field in SET_LISTS:
        return items + [value for value in wanted if value not in items]
    keys = list_keys(field, wanted, APPLY_KEYS)
    if not keys:
        return copy(wanted)
    result = {item_key(item, keys): item for item in items}
    for item in wanted:
        name = item_key(item, keys)
        result[name] = apply_merge(result.get(name), item)
    return list(result.values())


def json_patch(document: Document, operations: Any) -> Document:
    """RFC 6902. An operation that does not fit answers 422, as the real server does."""
    if not isinstance(operations, list):
        raise unfit("a JSON patch is a list of operations")
    result: Any = {"": copy(document)}
    for operation in operations:
        try:
            run_operation(result, operation)
        except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
            raise unfit(f"{json.dumps(operation)}: {error}") from None
    return dict(result[""])


def run_operation(root: Any, operation: Document) -> None:
    parent, last = walk(root, operation["path"])
    match operation["op"]:
        case "test":
            if look(parent, last) != operation.get("value"):
                raise ValueError("the value to test is another one")
        case "remove":
            del parent[step_of(parent, last)]
        case "replace":
            look(parent, last)
            parent[step_of(parent, last)] = copy(operation["value"])
        case "add":
            insert(parent, last, copy(operation["value"]))
        case "copy" | "move":
            source, name = walk(root, operation["from"])
            value = copy(look(source, name))
            if operation["op"] == "move":
                del source[step_of(source, name)]
            insert(*walk(root, operation["path"]), value)
        case other:
            raise ValueError(f"unknown operation {other!r}")


def walk(root: Any, pointer: str) -> tuple[Any, str]:
    """The container that holds the end of a JSON pointer, and the last step into it."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")]
    if steps[0]:
        raise ValueError(f"the path {pointer!r} does not begin with a slash")
    for step in steps[:-1]:
        root = look(root, step)
    return root, steps[-1]


def look(container: Any, step: str) -> Any:
    return container[step_of(container, step)]


def step_of(container: Any, step: str) -> Any:
    return int(step) if isinstance(container, list) else step


def insert(container: Any, step: str, value: Any) -> None:
    if not isinstance(container, list):
        container[step] = value
    elif step == "-":
        container.append(value)
    elif int(step) > len(container):
        raise IndexError(f"index {step} is beyond the list")
    else:
        container.insert(int(step), value)


def unfit(why: str) -> ApiError:
    message = f"the server rejected our request due to an error in our request: {why}"
    return ApiError(422, "Invalid", message)
