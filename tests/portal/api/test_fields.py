"""Each field takes what its document says and refuses everything else with its one sentence."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from fractions import Fraction as F
from typing import Any
from uuid import UUID

import pytest
from jsonschema import Draft202012Validator
from rest_framework.exceptions import ValidationError

from portal.api.fields import (
    MONTH_TEXT,
    Cards,
    Checked,
    Flag,
    Instant,
    Key,
    OneOf,
    Text,
    Whole,
    model_key,
    sku,
)

ID = "123e4567-e89b-12d3-a456-426614174000"
FIELDS: dict[str, Checked] = {
    "name": Text(5, least=1, pattern="[a-z]+", words="Write one to five small letters."),
    "reason": Text(10, least=1),
    "note": Text(10),
    "count": Whole(1, 64),
    "page": Whole(1, 99, of_text=True),
    "flag": Flag(),
    "flag in an address": Flag(of_text=True),
    "kind": OneOf(["workspace", "job"]),
    "id": Key(),
    "until": Instant(),
    "cards": Cards(),
    "model": model_key(),
    "sku": sku(),
}
TAKES: dict[str, list[tuple[Any, Any]]] = {
    "name": [("abc", "abc")],
    "reason": [(" x ", " x "), ("üñ😀", "üñ😀"), ("a\nb", "a\nb")],
    "note": [("", ""), ("<script>", "<script>")],
    "count": [(1, 1), (64, 64), (2.0, 2)],
    "page": [("1", 1), ("99", 99), ("007", 7)],
    "flag": [(True, True), (False, False)],
    "flag in an address": [("true", True), ("false", False)],
    "kind": [("job", "job")],
    "id": [(ID, UUID(ID)), (ID.upper(), UUID(ID))],
    "until": [
        ("2026-12-24T18:00:00Z", datetime(2026, 12, 24, 18, tzinfo=UTC)),
        ("2026-12-24t18:00:00.5z", datetime(2026, 12, 24, 18, 0, 0, 500_000, tzinfo=UTC)),
        ("2026-12-24T18:00:00+01:00", datetime(2026, 12, 24, 17, tzinfo=UTC)),
        ("0001-01-01T00:00:00+01:00", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59-01:00", datetime.max.replace(tzinfo=UTC)),
    ],
    "cards": [
        ("1/8", F(1, 8)),
        ("2", F(2)),
        ("2.5", F(5, 2)),
        ("0.125", F(1, 8)),
        ("10000", F(10_000)),
        ("7/1000", F(7, 1000)),
    ],
    "model": [("h100-80gb", "h100-80gb")],
    "sku": [("h100-80gb/mig-1g.10gb/on-demand", "h100-80gb/mig-1g.10gb/on-demand")],
}
WRONG_TYPES: list[Any] = [1.5, [], {}, ["job"], {"id": 1}, b"x"]
REFUSES: dict[str, list[Any]] = {
    "name": ["", "abcdef", "ab1", "abc\n", "a\x00", 5, True],
    "reason": ["", "   ", "x" * 11, "a\x00b", 5, True],
    "note": ["x" * 11, "\x00", 0, False],
    "count": [0, 65, -1, 10**30, 1e300, float("inf"), float("nan"), "1", True, "", "١"],
    "page": ["0", "100", "-1", "1.0", "", " 1", "1e1", "9" * 5000, "١", "0x1"],
    "flag": ["true", 1, 0, ""],
    "flag in an address": ["True", "1", "yes", ""],
    "kind": ["Job", "job ", "", 1, "training"],
    "id": ["", ID[:-1], ID.replace("-", ""), f"{{{ID}}}", f"urn:uuid:{ID}", 5, ID + "\n", "../etc"],
    "until": [
        "2026-12-24",
        "2026-12-24T18:00:00",
        "2026-13-24T18:00:00Z",
        "2026-12-24 18:00:00Z",
        "2026-12-24T25:00:00Z",
        "now",
        "",
        1_700_000_000,
        "٢٠٢٦-12-24T18:00:00Z",
        "2026-12-24T18:00:00Z\n",
    ],
    "cards": [
        "0",
        "0.0",
        "-1",
        "1/0",
        "1/1001",
        "1e3",
        "10001",
        "1.2345",
        " 1",
        "1 ",
        "",
        "½",
        "NaN",
        "١",
        1,
        True,
        "2\n",
    ],
    "model": ["", "H100", "h100 80gb", "../x", "x" * 61, "h100\x00"],
    "sku": ["", "/whole", "h100 whole", "a\x00", "<b>", "x" * 121],
}


@pytest.mark.parametrize(("name", "sent", "read"), [(name, *case) for name, cases in TAKES.items() for case in cases])
def test_it_takes(name: str, sent: Any, read: Any) -> None:
    assert FIELDS[name].run_validation(sent) == read


@pytest.mark.parametrize(
    ("name", "sent"), [(name, sent) for name, cases in REFUSES.items() for sent in [*cases, *WRONG_TYPES, None]]
)
def test_it_refuses(name: str, sent: Any) -> None:
    with pytest.raises(ValidationError) as refusal:
        FIELDS[name].run_validation(sent)

    (sentence,) = refusal.value.detail
    assert str(sentence).endswith(".")
    assert sent is None or str(sentence) == FIELDS[name].words


IN_ADDRESSES = ("page", "flag in an address")


@pytest.mark.parametrize(
    ("name", "sent"), [(n, sent) for n, cases in TAKES.items() if n not in IN_ADDRESSES for sent, _ in cases]
)
def test_what_it_takes_is_valid_by_its_document(name: str, sent: Any) -> None:
    assert Draft202012Validator(FIELDS[name].document()).is_valid(sent)


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        (name, sent)
        for name, cases in REFUSES.items()
        if name not in (*IN_ADDRESSES, "id", "until")  # formats are not checked by this validator
        for sent in [*cases, *WRONG_TYPES]
        if not isinstance(sent, str) or sent.isascii()
        if not (isinstance(sent, str) and sent.endswith("\n"))  # $ of Python's patterns, but not of JSON Schema's
    ],
)
def test_what_it_refuses_is_not_valid_by_its_document(name: str, sent: Any) -> None:
    assert not Draft202012Validator(FIELDS[name].document()).is_valid(sent)


def test_a_missing_value_is_named() -> None:
    field = Whole(1, 5)
    field.bind("count", None)

    with pytest.raises(ValidationError, match=re.escape("Give a value for count.")):
        field.run_validation()


@pytest.mark.parametrize(
    ("month", "is_one"),
    [
        ("2026-11", True),
        ("1970-01", True),
        ("8999-12", True),
        ("2026-13", False),
        ("2026-00", False),
        ("1969-12", False),
    ],
)
def test_a_month(month: str, is_one: bool) -> None:
    assert bool(re.fullmatch(MONTH_TEXT, month)) is is_one
