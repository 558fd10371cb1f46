"""The openb traces (cluster-trace-gpu-v2023), as they are published: text in, hosts and requests out."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from scheduling.planning.facts import Problem
from scheduling.planning.hosts import Host
from scheduling.planning.mix import WHOLE, Ask

HOST_FIELDS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_FIELDS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
TIMES = ("creation_time", "deletion_time", "scheduled_time")
LARGEST = 2**40  # of anything
MOST_CARDS = 64


class Pod(NamedTuple):
    """One row of a pod list; times in seconds from the trace's start, None where the row has none."""

    name: str
    ask: Ask
    created: int | None = None
    deleted: int | None = None
    scheduled: int | None = None


class Odd(ValueError):
    """A row that cannot be read."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(f"{field}: {text}")
        self.field, self.text = field, text


def looks_like_trace(text: str) -> bool:
    """Is it a CSV file of ours, going by its first line?"""
    first = next(csv.reader(text.lstrip("\ufeff").splitlines()[:1]), [])
    return set(HOST_FIELDS) <= set(first) or set(POD_FIELDS) <= set(first)


def read_hosts(text: str) -> tuple[list[Host], list[Problem]]:
    """The nodes of a node list, and what is odd in it; an odd row is left out."""
    hosts: list[Host] = []
    problems: list[Problem] = []
    seen: set[str] = set()
    for where, row in _rows(text, HOST_FIELDS, problems):
        try:
            host = _host(row)
        except Odd as odd:
            problems.append(Problem(where, odd.field, odd.text))
            continue
        if host.name in seen:
            problems.append(Problem(where, "sn", f"the node {host.name} stands here again; it is left out"))
            continue
        seen.add(host.name)
        hosts.append(host)
    return hosts, problems


def read_pods(text: str) -> tuple[list[Pod], list[Problem]]:
    """The pods of a pod list, and what is odd in it; an odd row is left out."""
    pods: list[Pod] = []
    problems: list[Problem] = []
    for where, row in _rows(text, POD_FIELDS, problems):
        try:
            times = (_time(row, field) for field in TIMES)
            pods.append(Pod(row["name"], _ask(row), *times))
        except Odd as odd:
            problems.append(Problem(where, odd.field, odd.text))
    return pods, problems


def _rows(text: str, fields: Sequence[str], problems: list[Problem]) -> Iterator[tuple[str, Mapping[str, str]]]:
    lines = csv.DictReader(text.lstrip("\ufeff").splitlines())
    missing = [field for field in fields if field not in (lines.fieldnames or ())]
    if missing:
        problems.append(Problem("line 1", missing[0], f"there is no such column; wanted are {', '.join(fields)}"))
        return
    try:
        for row in lines:
            yield f"line {lines.line_num}", {key: value or "" for key, value in row.items() if isinstance(key, str)}
    except csv.Error as error:
        problems.append(Problem(f"line {lines.line_num}", "", f"this is not CSV: {error}"))


def _host(row: Mapping[str, str]) -> Host:
    cards = _whole(row, "gpu", most=MOST_CARDS)
    if cards and not row["model"]:
        raise Odd("model", "a node with cards has to name their model")
    return Host(_name(row, "sn"), row["model"], cards, _whole(row, "cpu_milli"), _whole(row, "memory_mib"))


def _ask(row: Mapping[str, str]) -> Ask:
    cards = _whole(row, "num_gpu", most=MOST_CARDS)
    milli = _whole(row, "gpu_milli", most=WHOLE) if cards == 1 else WHOLE if cards else 0
    if cards and not milli:
        raise Odd("gpu_milli", "a pod with a card has to ask for a part of it, 1 to 1000")
    models = frozenset(filter(None, row.get("gpu_spec", "").split("|"))) if cards else frozenset()
    return Ask(_whole(row, "cpu_milli"), _whole(row, "memory_mib"), cards, milli, models)


def _name(row: Mapping[str, str], field: str) -> str:
    if not row[field]:
        raise Odd(field, "it is empty")
    return row[field]


def _whole(row: Mapping[str, str], field: str, most: int = LARGEST) -> int:
    """A whole number of the row; nothing at all is 0."""
    text = row[field].strip()
    if text and not (text.isascii() and text.isdigit()):
        raise Odd(field, f"{text[:40]!r} is not a whole number from 0 on")
    if len(text) > 18 or int(text or 0) > most:
        raise Odd(field, f"{text[:40]} is more than {most}")
    return int(text or 0)


def _time(row: Mapping[str, str], field: str) -> int | None:
    text = row.get(field, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST)) else None
