"""The OpenAPI document is valid, complete, strict, and true: what we answer is what it says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta as td
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import get_resolver
from jsonschema import Draft202012Validator

from portal.api.views.reference import document
from scheduling.models import CycleReport, Sample
from scheduling.planning.facts import Problem
from tests.portal.api.asking import Caller
from tests.portal.api.test_query_counts import line, month

Ask = Callable[[str], Caller]
Operation = dict[str, Any]


def operations() -> Iterator[tuple[str, str, Operation]]:
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def test_it_is_valid_and_makes_no_warnings(tmp_path: Path) -> None:
    call_command("spectacular", "--validate", "--fail-on-warn", "--format=openapi-json", file=str(tmp_path / "x.json"))


def test_every_address_of_the_api_is_in_it() -> None:
    api = next(entry for entry in get_resolver().url_patterns if str(entry.pattern) == "api/")
    routes = [str(entry.pattern) for entry in api.url_patterns if str(entry.pattern).startswith("v1/")]
    addresses = {"/api/" + re.sub(r"<\w+:(\w+)>", named, route) for route in routes}

    assert addresses == set(document()["paths"])


def named(converter: re.Match[str]) -> str:
    return "{" + converter[1].replace("pk", "id") + "}"


def test_names_of_operations_are_unique() -> None:
    names = [operation["operationId"] for _, _, operation in operations()]

    assert len(names) == len(set(names))


def test_every_operation_says_what_it_does_and_how_it_refuses() -> None:
    for path, method, operation in operations():
        needed = {"400", "404", "401", "503"} | ({"403"} if operation.get("security") else {"429"})
        needed |= {"409", "415", "413"} if method != "get" else set()
        assert operation["summary"], path
        assert needed <= set(operation["responses"]), path


def test_only_logging_in_needs_no_session_and_every_change_needs_the_token() -> None:
    for path, method, operation in operations():
        if path == "/api/v1/login/":
            assert "security" not in operation
            continue
        expected = {"session": []} if method == "get" else {"session": [], "csrf_cookie": [], "csrf_token": []}
        assert operation["security"] == [expected], path


def test_bodies_are_closed_and_texts_and_numbers_are_bounded() -> None:
    inputs = {
        name: schema for name, schema in document()["components"]["schemas"].items() if name.endswith("InputRequest")
    }
    parameters = [one["schema"] for _, _, operation in operations() for one in operation.get("parameters", [])]
    fields = [field for schema in inputs.values() for field in schema["properties"].values()]

    assert len(inputs) >= 7
    assert all(schema["additionalProperties"] is False for schema in inputs.values())
    for field in [*parameters, *fields]:
        if field["type"] == "integer":
            assert {"minimum", "maximum"} <= set(field), field
        if field["type"] == "string":
            assert {"maxLength", "enum", "format", "pattern"} & set(field), field


def test_links_lead_from_each_list_to_what_can_be_done_with_its_rows() -> None:
    paths = document()["paths"]
    links = paths["/api/v1/workloads/"]["post"]["responses"]["201"]["links"]

    assert links["post_workloads_id_sleep"]["parameters"] == {"id": "$response.body#/id"}
    linked = {
        name for _, _, one in operations() for answer in one["responses"].values() for name in answer.get("links", {})
    }
    with_keys = {one["operationId"] for path, _, one in operations() if "{" in path}
    assert with_keys <= linked


def closed(schema: Any) -> Any:
    """The schema as JSON Schema, where null is a type and an object has no fields beyond its own."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(value) for name, value in schema.items() if name != "nullable"}
    if made.get("type") == "object" and "properties" in made:
        made.setdefault("additionalProperties", False)
    return {"anyOf": [made, {"type": "null"}]} if schema.get("nullable") else made


def check(path: str, method: str, answer: Any) -> None:
    """The answer against the document's schema for its status."""
    responses = document()["paths"][f"/api/v1{path}"][method]["responses"]
    assert str(answer.status) in responses
    schema = responses[str(answer.status)]["content"]["application/json"]["schema"]
    components = closed(document()["components"])
    Draft202012Validator({**closed(schema), "components": components}).validate(answer.body)


@pytest.fixture
def lively(world: Any) -> Any:
    """A world in which no list is empty."""
    world.publish()
    running = world.workload("notebook", phase="running", asked_at=world.now - td(hours=3))
    Sample.objects.create(placement=running.placements.get(), at=world.now, busy=0.5, memory_used_mib=3, watts=70.5)
    Sample.objects.create(placement=running.placements.get(), at=world.now - td(minutes=1))
    world.workload("waits", quota_request=world.asks(world.robin))
    world.workload("train", kind="job", hours=3, flavor="whole", phase="ended")
    world.grant(world.vision, "h100-80gb", 1, member=world.robin, ends_at=world.now + td(days=1))
    offer = {"offered_amount": 1, "decided_by": world.dana, "decided_at": world.now}
    world.asks(world.robin, state="countered", until=world.now + td(days=1), **offer)
    world.node("odd", "h100-shared", problems=(Problem("odd", "status", "Odd."),))
    CycleReport.objects.create(cluster=world.cluster, at=world.now, actions=["a"], failures=["b"], problems=["c"])
    month(world, 1)
    line(world, 1)
    return world


READ = [path for path, method, _ in operations() if method == "get"]


@pytest.mark.parametrize("who", ["robin", "dana", "farah", "omar", "sasha", ""])
@pytest.mark.parametrize("path", READ)
def test_what_is_read_is_what_the_document_says(lively: Any, ask: Ask, path: str, who: str) -> None:
    ids = {
        "workloads": lively.vision.workloads.get(name="notebook").pk,
        "quota-requests": lively.vision.quota_requests.first().pk,
    }
    address = path.removeprefix("/api/v1").replace("{month}", "2026-11")
    address = address.replace("{id}", str(ids.get(address.split("/")[1])))

    answer = ask(who).get(address, **({"team": str(lively.vision.pk)} if "offers" in address else {}))

    assert answer.status < 500
    check(path.removeprefix("/api/v1"), "get", answer)


def test_what_changes_answers_as_the_document_says(lively: Any, ask: Ask) -> None:
    flavor = lively.flavors["slice"].sku
    body = {"name": "x", "kind": "job", "team": str(lively.vision.pk), "flavor": flavor, "command": "ls"}
    workload = lively.vision.workloads.get(name="notebook").pk
    wanted = lively.asks(lively.robin, 1).pk
    other = lively.asks(lively.robin, 1).pk
    grant = lively.vision.grants.first().pk
    asked = {"team": str(lively.vision.pk), "model": "h100-80gb", "amount": "1", "reason": "x"}

    check("/workloads/", "post", ask("robin").post("/workloads/", body, **{"Idempotency-Key": "1"}))
    check("/workloads/", "post", ask("robin").post("/workloads/", body, **{"Idempotency-Key": "1"}))
    check("/workloads/", "post", ask("robin").post("/workloads/", {**body, "name": "y"}, **{"Idempotency-Key": "1"}))
    for step in ("sleep", "wake", "wake", "end"):
        check(f"/workloads/{{id}}/{step}/", "post", ask("robin").post(f"/workloads/{workload}/{step}/"))
    check("/quota-requests/", "post", ask("robin").post("/quota-requests/", asked))
    steps = "/quota-requests/{id}/"
    check(f"{steps}counter/", "post", ask("dana").post(f"/quota-requests/{wanted}/counter/", {"amount": "1/2"}))
    check(f"{steps}accept/", "post", ask("robin").post(f"/quota-requests/{wanted}/accept/"))
    check(f"{steps}withdraw/", "post", ask("robin").post(f"/quota-requests/{wanted}/withdraw/"))
    check(f"{steps}deny/", "post", ask("dana").post(f"/quota-requests/{other}/deny/", {"note": "No."}))
    check(f"{steps}approve/", "post", ask("dana").post(f"/quota-requests/{other}/approve/"))
    check("/grants/{id}/end/", "post", ask("dana").post(f"/grants/{grant}/end/"))
    pool = lively.pools["h100-train"].pk
    check("/pools/{id}/", "patch", ask("omar").patch(f"/pools/{pool}/", {"max_nodes": 5, "idle_minutes": None}))
    check("/chargeback/{month}/close/", "post", ask("farah").post("/chargeback/2026-11/close/"))
    check("/login/", "post", ask("").post("/login/", {"username": "robin", "password": "x"}))


def test_the_document_is_for_who_is_logged_in(world: Any, ask: Ask) -> None:
    stranger, robin = Client(), ask("robin").client

    assert stranger.get("/api/schema/").status_code == 401
    assert robin.get("/api/schema/").json() == document()
    assert robin.get("/api/schema/?format=json").json()["info"]["title"] == "Berth"
    assert robin.get("/api/schema/?format=yaml").status_code == 400


def test_the_reference_works_offline_and_without_inline_code(world: Any, ask: Ask) -> None:
    stranger, robin = Client(), ask("robin").client

    page = robin.get("/api/docs/")
    html = page.content.decode()
    script = robin.get("/api/docs/?script=")

    assert stranger.get("/api/docs/").headers["Location"] == "/login/?next=/api/docs/"
    assert (page.status_code, script.status_code) == (200, 200)
    assert script.headers["Content-Type"] == "application/javascript"
    assert "/api/schema/" in script.content.decode() or "../schema/" in script.content.decode()
    links = re.findall(r'(?:src|href)="([^"]+)"', html)
    assert len(links) == 5
    assert all(link.startswith(("/static/", "/api/docs/")) for link in links), links
    assert not re.search(r"<script>|<style|style=|onclick", html)
    for link in links:
        assert robin.get(link.replace("&amp;", "&")).status_code == 200, link
