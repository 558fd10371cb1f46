"""Label and field selectors: from the text of a query to a test of one document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from .errors import ApiError, bad_request
from .kinds import Document, Kind

Test = Callable[[Document], bool]

FIELDS: dict[str, frozenset[str]] = {
    "pods": frozenset({"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "status.phase", "status.podIP"}),
    "nodes": frozenset({"spec.unschedulable"}),
    "namespaces": frozenset({"status.phase"}),
    "secrets": frozenset({"type"}),
    "jobs": frozenset({"status.successful"}),
    "events": frozenset(
        {"reason", "type", "source"}
        | {f"involvedObject.{name}" for name in ("kind", "namespace", "name", "uid", "apiVersion", "fieldPath")}
    ),
}
ALWAYS = frozenset({"metadata.name", "metadata.namespace"})
SET_BASED = re.compile(r"^([^\s!=,()]+)\s+(in|notin)\s+\(([^()]*)\)$")
PLAIN = re.compile(r"^([^\s!=,()]+)\s*(==|=|!=)\s*([^\s=,()]*)$")
NAME = re.compile(r"^!?\s*[A-Za-z0-9][-A-Za-z0-9_./]*$")


def both(labels: str, fields: str, kind: Kind) -> Test:
    """Does a document match the label selector and the field selector?"""
    by_label, by_field = label_test(labels), field_test(fields, kind)
    return lambda document: by_label(document) and by_field(document)


def label_test(text: str) -> Test:
    """BadRequest when the text is no label selector."""
    tests = [requirement(part) for part in split(text)]
    return lambda document: all(test(document.get("metadata", {}).get("labels") or {}) for test in tests)


def field_test(text: str, kind: Kind) -> Test:
    """BadRequest for a field that this kind cannot be selected by, as the real server does."""
    wanted: list[tuple[str, str, bool]] = []
    for part in split(text):
        match = PLAIN.match(part)
        if not match:
            raise bad_request(f"unable to parse field selector {text!r}")
        if match[1] not in ALWAYS | FIELDS.get(kind.plural, frozenset()):
            raise bad_request(f"field label not supported: {match[1]}")
        wanted.append((match[1], match[3], match[2] != "!="))
    return lambda document: all((field_of(document, path) == value) is same for path, value, same in wanted)


def split(text: str) -> list[str]:
    """The requirements of a selector; commas inside brackets do not separate."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", text or "") if part.strip()]


def requirement(part: str) -> Callable[[dict[str, str]], bool]:
    if match := SET_BASED.match(part):
        key, within = match[1], match[2] == "in"
        values = {value.strip() for value in match[3].split(",")}
        return lambda labels: (labels.get(key) in values) if within else (labels.get(key) not in values)
    if match := PLAIN.match(part):
        key, same, value = match[1], match[2] != "!=", match[3]
        return lambda labels: (labels.get(key) == value) is same
    if not NAME.match(part):
        raise unparsable(part)
    key, absent = part.lstrip("! "), part.startswith("!")
    return lambda labels: (key in labels) is not absent


def unparsable(part: str) -> ApiError:
    return bad_request(f"unable to parse requirement: {part!r}")


def field_of(document: Document, path: str) -> str:
    """The value at a dotted path as text; absent is the empty text, as in Kubernetes."""
    value: Any = document
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    if value is True or value is False:
        return str(value).lower()
    return "" if value is None else str(value)


def labels_match(selector: Document | None, labels: dict[str, str]) -> bool:
    """A LabelSelector document against labels; an empty selector matches everything, none matches nothing."""
    if selector is None:
        return False
    exact = all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())
    return exact and expressions_match(selector.get("matchExpressions") or [], labels)


def expressions_match(expressions: Iterable[Document], values: dict[str, str]) -> bool:
    return all(expression_matches(expression, values) for expression in expressions)


def expression_matches(expression: Document, values: dict[str, str]) -> bool:
    """One matchExpressions entry of a selector or an affinity. An unknown operator matches nothing."""
    key, operator, wanted = expression.get("key", ""), expression.get("operator"), expression.get("values") or []
    match operator:
        case "In":
            return values.get(key) in wanted
        case "NotIn":
            return values.get(key) not in wanted
        case "Exists":
            return key in values
        case "DoesNotExist":
            return key not in values
        case "Gt" | "Lt":
            return compares(operator, values.get(key), wanted)
    return False


def compares(operator: str, have: str | None, wanted: list[str]) -> bool:
    try:
        left, right = int(have or ""), int(wanted[0])
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right
