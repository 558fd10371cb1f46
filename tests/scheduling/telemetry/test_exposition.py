"""The two formats in which metrics come, and everything that is not one of them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.telemetry.exposition import Point, from_api, from_text

LINES = {
    "a bare name": ("up 1", Point("up", {}, 1.0)),
    "labels": ('a{x="1",y="2"} 3.5', Point("a", {"x": "1", "y": "2"}, 3.5)),
    "a comma at the end": ('a{x="1",} 3', Point("a", {"x": "1"}, 3.0)),
    "empty braces": ("a{} 3", Point("a", {}, 3.0)),
    "spaces everywhere": (' a { x = "1" , y = "2" }  3 ', None),
    "spaces inside the braces": ('a{ x="1", y="2" } 3', Point("a", {"x": "1", "y": "2"}, 3.0)),
    "escapes": (r'a{x="\"q\"\\ \n"} 1', Point("a", {"x": '"q"\\ \n'}, 1.0)),
    "a brace and a comma in a value": ('a{x="},{"} 1', Point("a", {"x": "},{"}, 1.0)),
    "an exponent": ("a 1e3", Point("a", {}, 1000.0)),
    "a negative exponent": ("a -1.5E-2", Point("a", {}, -0.015)),
    "infinity": ("a +Inf", Point("a", {}, math.inf)),
    "a number too large": ("a 1e999", Point("a", {}, math.inf)),
    "a timestamp": ("a 1 1764550800000", Point("a", {}, 1.0)),
    "an exemplar": ('a 1 # {trace="x"} 0.5', Point("a", {}, 1.0)),
    "no value": ("a", None),
    "a word for a value": ("a eleven", None),
    "an underscore in a number": ("a 1_000", None),
    "a hexadecimal number": ("a 0x10", None),
    "digits of another script": ("a ٣", None),
    "an open brace": ('a{x="1" 1', None),
    "an open quote": ('a{x="1} 1', None),
    "no comma between labels": ('a{x="1" y="2"} 1', None),
    "a name that begins with a digit": ("1a 1", None),
    "rubbish behind the value": ("a 1 2 3", None),
}


@pytest.mark.parametrize(("line", "point"), LINES.values(), ids=LINES)
def test_a_line_is_a_point_or_is_counted(line: str, point: Point | None) -> None:
    found = from_text(line)

    assert found.points == (() if point is None else (point,))
    assert found.odd == ({"not a sample line": 1} if point is None else {})


def test_nan_is_a_value_too() -> None:
    assert math.isnan(from_text("a NaN").points[0].value)


def test_comments_and_blank_lines_are_nothing() -> None:
    found = from_text('# HELP a b\n# TYPE a gauge\n\n  \na{x="1"} 1\r\n# EOF\n')

    assert [point.metric for point in found.points] == ["a"]
    assert found.odd == {}


def test_a_line_of_a_megabyte_is_not_read() -> None:
    assert from_text('a{x="' + "y" * 1_000_000 + '"} 1').odd == {"not a sample line": 1}


def test_an_instant_query_gives_its_rows() -> None:
    found = from_api(
        '{"status":"success","data":{"resultType":"vector","result":['
        '{"metric":{"__name__":"a","x":"1"},"value":[1790000000,"88"]},'
        '{"metric":{"__name__":"a"},"value":[1790000000,"NaN"]}]}}'
    )

    assert found.points[0] == Point("a", {"x": "1"}, 88.0)
    assert math.isnan(found.points[1].value)


def test_a_range_query_gives_its_newest_values() -> None:
    found = from_api(
        '{"status":"success","data":{"resultType":"matrix","result":['
        '{"metric":{"__name__":"a"},"values":[[1,"5"],[2,"6"]]}]}}'
    )

    assert found.points == (Point("a", {}, 6.0),)


ROWS_THAT_ARE_NONE = {
    "no name": '{"metric":{},"value":[1,"2"]}',
    "no value": '{"metric":{"__name__":"a"}}',
    "an empty range": '{"metric":{"__name__":"a"},"values":[]}',
    "a value that is a number": '{"metric":{"__name__":"a"},"value":[1,2]}',
    "a value that is a word": '{"metric":{"__name__":"a"},"value":[1,"two"]}',
    "a text": '"row"',
    "nothing": "null",
}


@pytest.mark.parametrize("row", ROWS_THAT_ARE_NONE.values(), ids=ROWS_THAT_ARE_NONE)
def test_an_odd_row_does_not_spoil_its_neighbour(row: str) -> None:
    good = '{"metric":{"__name__":"a"},"value":[1,"2"]}'
    found = from_api(f'{{"status":"success","data":{{"resultType":"vector","result":[{row},{good}]}}}}')

    assert found.points == (Point("a", {}, 2.0),)
    assert found.odd == {"not a row of a Prometheus query": 1}


ANSWERS_THAT_ARE_NONE = {
    "not JSON": ("{", "not JSON"),
    "nested beyond reason": ("[" * 100_000, "not JSON"),
    "another document": ('{"kind":"Node"}', "not the answer of a Prometheus query"),
    "an error": ('{"status":"error","error":"bad query"}', "not the answer of a Prometheus query"),
    "a scalar": (
        '{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}',
        "not the answer of a Prometheus query",
    ),
    "a list": ("[]", "not the answer of a Prometheus query"),
}


@pytest.mark.parametrize(("text", "reason"), ANSWERS_THAT_ARE_NONE.values(), ids=ANSWERS_THAT_ARE_NONE)
def test_what_is_no_answer_is_said_so(text: str, reason: str) -> None:
    assert from_api(text).points == ()
    assert from_api(text).odd == {reason: 1}


@given(st.text())
def test_any_text_gives_an_answer(text: str) -> None:
    lines = [line for line in text.split("\n") if line.strip() and not line.strip().startswith("#")]

    found = from_text(text)

    assert len(found.points) + sum(found.odd.values()) == len(lines)
    from_api(text)


QUOTED = {"\\": r"\\", '"': r"\"", "\n": r"\n"}


@given(
    labels=st.dictionaries(
        st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True), st.text(max_size=20), max_size=4
    ),
    value=st.floats(allow_nan=False),
)
def test_what_is_written_is_read_back(labels: dict[str, str], value: float) -> None:
    quoted = {name: "".join(QUOTED.get(letter, letter) for letter in text) for name, text in labels.items()}
    line = "a{" + ",".join(f'{name}="{text}"' for name, text in quoted.items()) + f"}} {value}"

    assert from_text(line).points == (Point("a", labels, value),)
