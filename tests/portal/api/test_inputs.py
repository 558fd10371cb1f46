"""Nonsense at every door: a sentence and the field, never a fault, and nothing written."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from portal.api.doors import LONGEST_BODY
from tests.portal.api.asking import ROOT, TOKEN, Answer, Caller, rows

Ask = Callable[[str], Caller]


def wish(world: Any, **changes: Any) -> dict[str, Any]:
    """A workload that would be opened."""
    plain = {"name": "train", "kind": "job", "team": str(world.vision.pk), "command": "python train.py"}
    return {**plain, "flavor": world.flavors["slice"].sku, **changes}


BODIES: dict[str, bytes] = {
    "nothing": b"",
    "cut off": b'{"name": "x"',
    "two values": b"{} {}",
    "not JSON": b"name=x",
    "not UTF-8": b'{"name": "\xff\xfe"}',
    "UTF-16": '{"name": "x"}'.encode("utf-16"),
    "half a character": b'{"name": "\\ud800"}',
    "half a character as a name": b'{"\\udfff": 1}',
    "no number": b'{"count": NaN}',
    "no finite number": b'{"count": Infinity}',
    "a number without end": b'{"count": ' + b"9" * 5000 + b"}",
    "a deep list": b"[" * 100_000,
    "a list": b"[1, 2]",
    "text": b'"name"',
    "a number": b"5",
    "null": b"null",
    "true": b"true",
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_is_no_object_is_refused(world: Any, ask: Ask, name: str) -> None:
    before = rows()

    answer = ask("robin").post("/workloads/", BODIES[name])

    assert answer.status == 400
    assert rows() == before


def test_a_body_that_is_too_long_is_refused(ask: Ask) -> None:
    answer = ask("robin").post("/workloads/", json.dumps({"reason": "x" * LONGEST_BODY}))

    assert (answer.status, answer.text) == (413, "The body is too long; send at most 256 KiB.")


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "json", "a/b/c"],
)
def test_a_body_that_is_not_sent_as_json_is_refused(world: Any, content_type: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(world.robin)
    client.cookies["csrf"] = TOKEN

    response = client.generic(
        "POST", f"{ROOT}/workloads/", json.dumps(wish(world)), content_type, headers={"X-CSRFToken": TOKEN}
    )

    answer = Answer.of(response)
    assert (answer.status, answer.text) == (415, "Send JSON: Content-Type: application/json.")


def test_json_may_name_its_charset(world: Any) -> None:
    client = Client()
    client.force_login(world.robin)

    response = client.generic("POST", f"{ROOT}/workloads/", json.dumps(wish(world)), "Application/JSON; charset=utf-8")

    assert response.status_code == 201


HOSTILE = [
    "<script>alert(1)</script>",
    "'; DROP TABLE x; --",
    "../../etc/passwd",
    "{{ 7*7 }}",
    "a\nb",
    "a\x00b",
    "x" * 70_000,
]
WORKLOAD_FIELDS: dict[str, list[Any]] = {
    "name": [*HOSTILE, "", "Upper", "-x", "x-", "ünïcode", 5, None, ["x"], {"x": 1}, True],
    "kind": ["", "training", "JOB", 1, None, ["job"]],
    "team": ["", "vision", 5, None, [], "00000000-0000-0000-0000-00000000000g"],
    "flavor": [*HOSTILE, "", 5, None, ["x"]],
    "count": [0, -1, 65, 10**40, 1.5, "1", None, True, [1], {}],
    "image": ["", "no spaces please", "http://x/y", "x;rm -rf /", "x\x00", "$(id)", 5, None, "x" * 301],
    "command": ["a\x00b", "x" * 2001, 5, None, ["ls"]],
    "cpu_milli": [0, 99, 256_001, -1, 2**63, "4000", None, 0.5],
    "memory_mib": [0, 127, 2**31, "16384", None, False],
    "storage_gib": [-1, 2049, 10**20, "0", None],
    "hours": [0, 721, -5, "24", 1.5, []],
    "reason": ["a\x00b", "x" * 501, 5, None],
    "ask": ["0", "-1", "1/0", "1e9", "two", 2, None, "99999999999"],
    "ask_until": ["tomorrow", "2027-01-01", "2027-01-01T00:00:00", 5, None, ""],
}


@pytest.mark.parametrize(("field", "value"), [(f, value) for f, values in WORKLOAD_FIELDS.items() for value in values])
def test_a_wrong_value_of_a_workload(world: Any, ask: Ask, field: str, value: Any) -> None:
    before = rows()

    answer = ask("robin").post("/workloads/", wish(world, **{field: value}))

    assert (answer.status, answer.field) == (400, field)
    assert answer.body["error"]["fields"] == {field: answer.text}
    assert rows() == before


@pytest.mark.parametrize(
    "field", ["owner", "phase", "desired", "price", "cluster", "id", "submission", "nodeName", "\x00", "x" * 500]
)
def test_a_field_that_is_not_known_is_refused_instead_of_ignored(world: Any, ask: Ask, field: str) -> None:
    before = rows()

    answer = ask("robin").post("/workloads/", wish(world, **{field: "omar"}))

    assert (answer.status, answer.field) == (400, field[:40])
    assert answer.text.startswith("There is no field of this name here; known are: name, kind, team")
    assert rows() == before


def test_every_missing_field_is_named(ask: Ask) -> None:
    answer = ask("robin").post("/workloads/", {})

    assert answer.status == 400
    assert set(answer.body["error"]["fields"]) == {"name", "kind", "team", "flavor"}
    assert (answer.field, answer.text) == ("name", "Give a value for name.")


LISTS = [
    "/workloads/",
    "/quota-requests/",
    "/teams/",
    "/grants/",
    "/flavors/",
    "/fleet/",
    "/chargeback/",
    "/chargeback/2026-11/lines/",
]
QUERIES: dict[str, tuple[str, str]] = {
    "an unknown filter": ("colour=red", "colour"),
    "an unknown filter of the framework": ("format=xml", "format"),
    "a double page": ("page=1&page=2", "page"),
    "page zero": ("page=0", "page"),
    "a page in words": ("page=last", "page"),
    "a page without end": ("page=" + "9" * 400, "page"),
    "an empty page": ("page=", "page"),
    "a page that is too long": ("page_size=201", "page_size"),
    "a negative page": ("page_size=-1", "page_size"),
    "a NUL": ("colour=%00", "colour"),
    "a name of nothing": ("=x", ""),
    "no UTF-8": ("%ff=%fe", "\ufffd"),
}


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("name", QUERIES)
def test_a_wrong_query_of_a_list(ask: Ask, path: str, name: str) -> None:
    query, field = QUERIES[name]

    answer = ask("omar").get(f"{path}?{query}")

    assert (answer.status, answer.field) == (400, field)


@pytest.mark.parametrize("path", LISTS)
def test_a_page_beyond_the_last(ask: Ask, path: str) -> None:
    answer = ask("omar").get(path, page=999)

    assert answer.status == 404
    assert answer.text.startswith("There is no such page")


FILTERS = {
    "/workloads/": {
        "team": "vision",
        "phase": "Running",
        "kind": "pod",
        "owner": "",
        "ordering": "owner__password",
        "search": "\x00",
    },
    "/quota-requests/": {"team": "1", "state": "open", "asked_by": "robin", "model": "\x00"},
    "/grants/": {"team": "x", "member": "robin", "in_force": "1", "model": "\x00"},
    "/flavors/": {"sharing": "half", "model": "x" * 61},
    "/teams/": {"search": "x" * 61},
    "/fleet/": {"cluster": "\x00", "pool": "x" * 64, "troubled": "yes"},
    "/chargeback/2026-11/lines/": {
        "team": "x",
        "member": "0",
        "kind": "USE",
        "since": "2026-11-01",
        "until": "now",
        "sku": "\x00",
    },
    "/offers/": {"team": "x", "kind": "x", "count": "0", "cpu_milli": "1", "memory_mib": "big"},
}


@pytest.mark.parametrize(
    ("path", "name", "value"), [(p, n, v) for p, fields in FILTERS.items() for n, v in fields.items()]
)
def test_a_wrong_filter(world: Any, ask: Ask, path: str, name: str, value: str) -> None:
    others = {"team": str(world.vision.pk)} if path == "/offers/" else {}

    answer = ask("omar").get(path, **{**others, name: value})

    assert (answer.status, answer.field) == (400, name)


@pytest.mark.parametrize(
    "path",
    [
        "/nothing/",
        "/workloads",
        "/workloads/5/",
        "/pools/x/",
        "/chargeback/2026-13/",
        "/chargeback/1066-10/",
        "/",
        "/%00/",
        "/a%0Ab/",
    ],
)
def test_an_address_that_is_none(ask: Ask, path: str) -> None:
    for verb in ("get", "post", "put", "patch", "delete"):
        assert ask("robin").ask(verb, path).status == 404
    assert ask("").get(path).status == 401


@pytest.mark.parametrize(
    ("path", "allowed"), [("/workloads/", "GET, HEAD, POST"), ("/me/", "GET, HEAD"), ("/pools/1/", "PATCH")]
)
def test_a_method_that_an_address_does_not_know(ask: Ask, path: str, allowed: str) -> None:
    for verb in ("put", "delete", "options", "trace"):
        response = ask("robin").client.generic(verb.upper(), ROOT + path, headers={"X-CSRFToken": TOKEN})
        answer = Answer.of(response)

        assert (answer.status, answer.headers["Allow"]) == (405, allowed)
