"""The Prometheus text format and the Prometheus query API, as flat points. Total: any text gives an answer.

What is not a sample line is counted, never raised: an exporter that prints one odd line still says the rest.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*", re.ASCII)
LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(,?)', re.ASCII | re.DOTALL)
CLOSE = re.compile(r"\s*\}")
VALUE = re.compile(
    r"\s+([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?[Ii]nf(?:inity)?|[+-]?NaN|nan)"
    r"(?:\s+[+-]?\d+(?:\.\d+)?)?\s*(?:#.*)?",  # a timestamp, an exemplar
    re.ASCII,
)
ESCAPED = re.compile(r"\\(.)", re.DOTALL)
PLAIN = {"n": "\n", "\\": "\\", '"': '"'}
LONGEST_LINE = 65_536


@dataclass(frozen=True, slots=True)
class Point:
    metric: str
    labels: Mapping[str, str]
    value: float  # may be NaN or infinite: the reader of a metric decides what it accepts


@dataclass(frozen=True, slots=True)
class Points:
    points: tuple[Point, ...]
    odd: Mapping[str, int]  # reason -> how many lines or rows were no samples


def from_text(text: str) -> Points:
    """The samples of an exposition."""
    points: list[Point] = []
    odd: dict[str, int] = {}
    for line in text.split("\n"):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        point = point_of(bare)
        if point is None:
            count(odd, "not a sample line")
        else:
            points.append(point)
    return Points(tuple(points), odd)


def from_api(text: str) -> Points:
    """The newest samples of an instant or range query's answer."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return Points((), {"not JSON": 1})
    rows = rows_of(answer)
    if rows is None:
        return Points((), {"not the answer of a Prometheus query": 1})
    points: list[Point] = []
    odd: dict[str, int] = {}
    for row in rows:
        point = point_of_row(row)
        if point is None:
            count(odd, "not a row of a Prometheus query")
        else:
            points.append(point)
    return Points(tuple(points), odd)


def point_of(line: str) -> Point | None:
    name = NAME.match(line)
    if name is None or len(line) > LONGEST_LINE:
        return None
    labels: dict[str, str] = {}
    end = name.end()
    if line[end : end + 1] == "{":
        found = labels_of(line, end + 1)
        if found is None:
            return None
        labels, end = found
    value = VALUE.fullmatch(line, end)
    return Point(name.group(), labels, float(value.group(1))) if value else None


def labels_of(line: str, start: int) -> tuple[dict[str, str], int] | None:
    """The labels that stand from `start`, and where the closing brace ends."""
    labels: dict[str, str] = {}
    while (close := CLOSE.match(line, start)) is None:
        label = LABEL.match(line, start)
        if label is None or not (label.group(3) or CLOSE.match(line, label.end())):
            return None
        labels[label.group(1)] = unescaped(label.group(2))
        start = label.end()
    return labels, close.end()


def unescaped(text: str) -> str:
    return ESCAPED.sub(lambda match: PLAIN.get(match.group(1), match.group()), text) if "\\" in text else text


def rows_of(answer: Any) -> list[Any] | None:
    if not isinstance(answer, dict) or answer.get("status") != "success" or not isinstance(answer.get("data"), dict):
        return None
    rows = answer["data"].get("result")
    return rows if isinstance(rows, list) and answer["data"].get("resultType") in {"vector", "matrix"} else None


def point_of_row(row: Any) -> Point | None:
    if not isinstance(row, dict) or not isinstance(row.get("metric"), dict):
        return None
    labels = {str(key): value for key, value in row["metric"].items() if isinstance(value, str)}
    metric = labels.pop("__name__", "")
    pair = next(newest_first(row), None)
    if not metric or not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[1], str):
        return None
    value = VALUE.fullmatch(" " + pair[1])
    return Point(metric, labels, float(value.group(1))) if value else None


def newest_first(row: Mapping[str, Any]) -> Iterator[Any]:
    if "value" in row:
        yield row["value"]
    values = row.get("values")
    if isinstance(values, list):
        yield from reversed(values)


def count(odd: dict[str, int], reason: str) -> None:
    odd[reason] = odd.get(reason, 0) + 1
