"""Nodes in a file: a Node, a List, many documents, as JSON or YAML, whole or broken."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import yaml

from portal.management.console import CouldNot
from scheduling.cluster.documents import Unreadable
from scheduling.cluster.reading import read_node
from scheduling.planning.facts import NodeFact, Problem

ITEMS = re.compile(r'"items"\s*:\s*\[\s*')
BETWEEN = {" ", "\t", "\r", "\n", ","}
FIRST_ITEM = re.compile(r"^items:[ \t]*\n( *)(?=- )", re.MULTILINE)


class Loader(yaml.CSafeLoader):
    """Numbers and times stay the text that they are in the file; Kubernetes writes both as text."""

    yaml_implicit_resolvers = {
        letter: [(tag, form) for tag, form in resolvers if tag.endswith((":bool", ":null", ":merge"))]
        for letter, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


@dataclass(frozen=True, slots=True)
class NodeFile:
    """The nodes of a file, and what is odd about the file itself."""

    nodes: tuple[NodeFact, ...]
    problems: tuple[Problem, ...]  # `where` is the place in the file


def read_nodes(text: str) -> NodeFile:
    """Whatever can be read of the text. Raises CouldNot when it is empty or nothing that nodes could stand in."""
    if not text.strip():
        raise CouldNot("it is empty; give it what `kubectl get nodes -o json` prints.")
    nodes: list[NodeFact] = []
    problems: list[Problem] = []
    seen: set[str] = set()
    for where, found in candidates(text):
        if isinstance(found, Problem):
            problems.append(found)
            continue
        try:
            node = read_node(found)
        except Unreadable as error:
            problems.append(replace(error.problem, where=where))
            continue
        if node.name in seen:
            problems.append(Problem(where, "metadata.name", f"the node {node.name} stands here again; it is left out"))
            continue
        seen.add(node.name)
        nodes.append(node)
    return NodeFile(tuple(nodes), tuple(problems))


def candidates(text: str) -> Iterator[tuple[str, Any]]:
    """Everything that may be a Node, with its place; or the Problem that stands there."""
    for number, found in enumerate(documents(text), start=1):
        where = f"document {number}"
        if isinstance(found, Problem):
            yield where, found
        elif isinstance(found, Mapping) and isinstance(found.get("items"), list):
            yield from members(found["items"], f"{where}, items")
        elif isinstance(found, list):
            yield from members(found, where)
        elif found is not None:
            yield where, as_node(found, where)


def members(items: Sequence[Any], where: str) -> Iterator[tuple[str, Any]]:
    for number, item in enumerate(items):
        yield f"{where}[{number}]", as_node(item, f"{where}[{number}]")


def as_node(found: Any, where: str) -> Any:
    """The same, unless it says that it is something else."""
    if not isinstance(found, Mapping):
        return found  # reading it says what it is
    kind = found.get("kind", "Node")
    if kind == "Node" and ("metadata" in found or "status" in found):
        return found
    if kind == "Node":
        return Problem(where, "kind", "this is not a Kubernetes object; a Node is wanted")
    return Problem(where, "kind", f"this is a {str(kind)[:63]}; a Node or a list of Nodes is wanted")


def documents(text: str) -> Iterator[Any]:
    """The documents of the text, and a Problem wherever one cannot be read; its neighbours stay."""
    if text.lstrip()[:1] in {"{", "["}:
        yield from from_json(text)
        return
    line = 0
    for part in re.split(r"^(?=---(?:\s|$))", text, flags=re.MULTILINE):
        yield from from_yaml(part, line)
        line += part.count("\n")


def from_json(text: str) -> Iterator[Any]:
    try:
        yield msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        yield from whole_items(text)
        yield Problem("", "items" if ITEMS.search(text) else "", f"this is not JSON: {error}")


def whole_items(text: str) -> Iterator[Any]:
    """The members of a list that is cut off or broken somewhere: those before the break."""
    start = ITEMS.search(text)
    place = start.end() if start else len(text)
    while place < len(text):
        try:
            item, place = json.JSONDecoder().raw_decode(text, place)
        except (ValueError, RecursionError):
            return
        yield item
        while text[place : place + 1] in BETWEEN:
            place += 1


def from_yaml(text: str, line: int) -> Iterator[Any]:
    """The document of one part of a file that begins behind so many lines."""
    found = parsed(text, line)
    parts = list(members_apart(text)) if isinstance(found, Problem) else []
    if not parts:
        yield found
    for start, part in parts:
        yield parsed(part, line + start)


def members_apart(text: str) -> Iterator[tuple[int, str]]:
    """The members of a list of objects as they stand in the text, each with its line: one may be broken alone."""
    first = FIRST_ITEM.search(text)
    if first is None:
        return
    line = text.count("\n", 0, first.start(1))
    for part in re.split(rf"^(?={first[1]}- )", text[first.start(1) :], flags=re.MULTILINE):
        if part.strip():
            yield line, part
        line += part.count("\n")


def parsed(text: str, line: int) -> Any:
    """The document, or the Problem with it."""
    try:
        return yaml.load(text, Loader=Loader)  # noqa: S506  a safe loader, only narrower
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {line + mark.line + 1}, column {mark.column + 1}" if mark else ""
        return Problem(place, "", f"this is not YAML: {error.problem or error.context}")
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        return Problem("", "", f"this is not YAML: {' '.join(str(error).split())}")
