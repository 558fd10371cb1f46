"""Every address of the site, every method, everybody: who gets in, and that nobody else changes or learns anything.

The table is the specification. An address that is not in it fails the first test: whoever adds one says here who may
use it. Words of the table:

    in    has to log in first: sent to the log-in page, or 401
    404   may not know of it          403   may know of it, but not do this
    ok    is let in; what the rules then say about the empty body that these tests send is another matter
    -     the address does not know the method: 405
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from datetime import timedelta as td
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.apps import apps
from django.contrib.sessions.models import Session
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from tenants.billing.models import Charge, Statement
from tenants.models import Membership, Role, User
from tests.portal.api.asking import TOKEN

EVERYBODY = ("nobody", "outsider", "colleague", "owner", "lead", "finance", "operator")
SHORT = {
    "all": "in ok ok ok ok ok ok",
    "none": "in - - - - - -",
    "anybody": "ok ok ok ok ok ok ok",
    "unknown": "- - - - - - -",
    "gone": "in 404 404 404 404 404 404",
}
TABLE = """
                                                | GET                          | POST
                                                | nob out col own lea fin ope  | nob out col own lea fin ope

health                                          | anybody                      | unknown
ready                                           | anybody                      | unknown
login/                                          | anybody                      | anybody
logout/                                         | unknown                      | anybody

                                                | all                          | none
workloads/                                      | all                          | none
workloads/new/                                  | in  ok  ok  ok  ok  403 403  | in  ok  ok  ok  ok  403 403
workloads/new/offers/                           | in  ok  ok  ok  ok  403 403  | none
workloads/<uuid:pk>/                            | in  404 ok  ok  ok  ok  ok   | none
workloads/<uuid:pk>/samples/                    | in  404 ok  ok  ok  ok  ok   | none
workloads/<uuid:pk>/logs/                       | in  404 403 ok  ok  403 403  | none
workloads/<uuid:pk>/events/                     | in  404 ok  ok  ok  ok  ok   | none
workloads/<uuid:pk>/sleep/                      | none                         | in  404 403 ok  ok  403 ok
workloads/<uuid:pk>/wake/                       | none                         | in  404 403 ok  ok  403 ok
workloads/<uuid:pk>/end/                        | none                         | in  404 403 ok  ok  403 ok
workloads/<uuid:pk>/force/                      | none                         | in  404 403 403 403 403 ok
quotas/                                         | all                          | none
quotas/ask/                                     | none                         | all
quotas/requests/<uuid:pk>/accept/               | none                         | in  404 404 ok  403 404 403
quotas/requests/<uuid:pk>/withdraw/             | none                         | in  404 404 ok  403 404 403
quotas/grants/<uuid:pk>/end/                    | none                         | in  404 403 403 ok  403 ok
approvals/                                      | in  403 403 403 ok  403 ok   | none
approvals/<uuid:pk>/approve/                    | none                         | in  404 404 403 ok  404 403
approvals/<uuid:pk>/deny/                       | none                         | in  404 404 403 ok  404 403
approvals/<uuid:pk>/counter/                    | none                         | in  404 404 403 ok  404 403
menu/                                           | all                          | none
fleet/                                          | all                          | none
fleet/pools/<int:pk>/                           | all                          | in  403 403 403 403 403 ok
fleet/reports/                                  | in  403 403 403 403 403 ok   | none
fleet/clusters/<int:pk>/pause/                  | none                         | in  403 403 403 403 403 ok
fleet/clusters/<int:pk>/resume/                 | none                         | in  403 403 403 403 403 ok
fleet/pace/                                     | none                         | gone
chargeback/                                     | in  403 403 403 ok  ok  ok   | none
chargeback/<slug:period>/                       | in  403 403 403 ok  ok  ok   | none
chargeback/<slug:period>/balance/               | in  403 403 403 ok  ok  ok   | none
chargeback/<slug:period>/lines.csv              | in  403 403 403 ok  ok  ok   | none
chargeback/<slug:period>/workloads/             | in  403 403 403 ok  ok  ok   | none
chargeback/<slug:period>/workloads/<uuid:pk>/   | in  403 403 403 ok  ok  ok   | none
chargeback/<slug:period>/placements/<uuid:pk>/  | in  403 403 403 ok  ok  ok   | none
chargeback/<slug:period>/close/                 | none                         | in  403 403 403 403 ok  403

api/schema/                                     | all                          | none
api/docs/                                       | all                          | none
api/v1/login/                                   | unknown                      | anybody
api/v1/me/                                      | all                          | none
api/v1/teams/                                   | all                          | none
api/v1/flavors/                                 | all                          | none
api/v1/offers/                                  | all                          | none
api/v1/grants/                                  | all                          | none
api/v1/grants/<uuid:pk>/end/                    | none                         | in  404 403 403 ok  403 ok
api/v1/workloads/                               | all                          | all
api/v1/workloads/<uuid:pk>/                     | in  404 ok  ok  ok  ok  ok   | none
api/v1/workloads/<uuid:pk>/transitions/         | in  404 ok  ok  ok  ok  ok   | none
api/v1/workloads/<uuid:pk>/placements/          | in  404 ok  ok  ok  ok  ok   | none
api/v1/workloads/<uuid:pk>/samples/             | in  404 ok  ok  ok  ok  ok   | none
api/v1/workloads/<uuid:pk>/logs/                | in  404 403 ok  ok  403 403  | none
api/v1/workloads/<uuid:pk>/events/              | in  404 ok  ok  ok  ok  ok   | none
api/v1/workloads/<uuid:pk>/sleep/               | none                         | in  404 403 ok  ok  403 ok
api/v1/workloads/<uuid:pk>/wake/                | none                         | in  404 403 ok  ok  403 ok
api/v1/workloads/<uuid:pk>/end/                 | none                         | in  404 403 ok  ok  403 ok
api/v1/workloads/<uuid:pk>/force/               | none                         | in  404 403 403 403 403 ok
api/v1/quota-requests/                          | all                          | all
api/v1/quota-requests/<uuid:pk>/                | in  404 404 ok  ok  404 ok   | none
api/v1/quota-requests/<uuid:pk>/approve/        | none                         | in  404 404 403 ok  404 403
api/v1/quota-requests/<uuid:pk>/deny/           | none                         | in  404 404 403 ok  404 403
api/v1/quota-requests/<uuid:pk>/counter/        | none                         | in  404 404 403 ok  404 403
api/v1/quota-requests/<uuid:pk>/accept/         | none                         | in  404 404 ok  403 404 403
api/v1/quota-requests/<uuid:pk>/withdraw/       | none                         | in  404 404 ok  403 404 403
api/v1/fleet/                                   | all                          | none
api/v1/pools/<int:pk>/                          | none                         | none
api/v1/chargeback/                              | in  403 403 403 ok  ok  ok   | none
api/v1/chargeback/<month:month>/                | in  403 403 403 ok  ok  ok   | none
api/v1/chargeback/<month:month>/lines/          | in  403 403 403 ok  ok  ok   | none
api/v1/chargeback/<month:month>/close/          | none                         | in  403 403 403 403 ok  403
api/                                            | gone                         | gone
"""
OTHERS = {("api/v1/pools/<int:pk>/", "PATCH"): "in 403 403 403 403 403 ok"}
"""PUT, PATCH and DELETE are unknown everywhere but here."""
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
SECRETS = ("Vision", "Robin", "robins-secret", "A secret deadline")


def rows() -> dict[str, dict[str, str]]:
    """For each address, what everybody is answered to each method."""
    cells = [[cell.strip() for cell in line.split("|")] for line in TABLE.splitlines()[4:] if "|" in line]
    found = {}
    for address, got, posted in cells:
        rest = {"anybody": "unknown", "unknown": "unknown", "gone": "gone"}.get(got, "none")
        words = {"GET": got, "POST": posted, **dict.fromkeys(METHODS[2:], rest)}
        words |= {method: word for (where, method), word in OTHERS.items() if where == address}
        found[address] = {method: SHORT.get(word, word) for method, word in words.items()}
    return found


ROWS = rows()


def expected(address: str, method: str) -> dict[str, str]:
    return dict(zip(EVERYBODY, ROWS[address][method].split(), strict=True))


@pytest.fixture
def people(world: Any) -> dict[str, User | None]:
    """Robin of Vision owns what the addresses name; Kim is a colleague; Sasha of Speech is the outsider."""
    kim = User.objects.create(username="kim", first_name="Kim")
    Membership.objects.create(team=world.vision, user=kim, role=Role.RESEARCHER, since=world.now)
    return {
        "nobody": None,
        "outsider": world.sasha,
        "colleague": kim,
        "owner": world.robin,
        "lead": world.dana,
        "finance": world.farah,
        "operator": world.omar,
    }


@pytest.fixture
def keys(world: Any) -> dict[str, Any]:
    """What fills the gaps of the addresses: things of Vision."""
    world.publish()
    workload = world.workload("robins-secret", phase="running")
    request = world.asks(world.robin, reason="A secret deadline.")
    grant = world.grant(world.vision, "h100-80gb", 1, member=world.robin, reason="A secret deadline.")
    at = world.now - td(days=1)
    placement = workload.placements.get()
    Charge.objects.create(
        key="use:1",
        period="2026-11",
        hour=at,
        kind="use",
        team=world.vision,
        team_name="Vision",
        member=world.robin,
        member_name="Robin",
        workload_id=workload.pk,
        workload_name=workload.name,
        resource_id=placement.pk,
        cluster="harbour-1",
        pool="h100-shared",
        node="shared-1",
        model="h100-80gb",
        sku=world.flavors["slice"].sku,
        share=1,
        started_at=at,
        ended_at=at + td(hours=1),
        seconds=3600,
        per_card_hour_micro=1,
        amount_micro=1,
        currency="EUR",
        posted_at=world.now,
    )
    Statement.objects.create(period="2026-11", zone="UTC", currency="EUR")
    return {
        "workloads": workload.pk,
        "requests": request.pk,
        "grants": grant.pk,
        "placements": placement.pk,
        "pools": world.pools["h100-shared"].pk,
        "clusters": world.cluster.pk,
        "month": "2026-11",
    }


def walk(patterns: Any = None, prefix: str = "") -> Iterator[str]:
    """Every address of the site, with its gaps as they are written."""
    for entry in get_resolver().url_patterns if patterns is None else patterns:
        route = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from walk(entry.url_patterns, route)
        elif isinstance(entry, URLPattern):
            yield route


def filled(route: str, keys: dict[str, Any]) -> str:
    parts = []
    before = ""
    kind = {"approvals": "requests", "quota-requests": "requests"}
    for part in route.split("/"):
        gap = part.startswith("<")
        parts.append(str(keys[kind.get(before, before)] if "pk" in part else keys["month"]) if gap else part)
        before = part
    return "/" + "/".join(parts)


def client_of(person: User | None, **options: Any) -> Client:
    client = Client(raise_request_exception=False, **options)
    if person:
        client.force_login(person)
    return client


def ask(
    client: Client, method: str, address: str, *, undo: bool = True, headers: dict[str, str] | None = None
) -> tuple[Any, bytes]:
    """One request with an empty body, undone afterwards unless told otherwise; the response and its whole body."""
    kind = "application/json" if address.startswith("/api/") else "application/x-www-form-urlencoded"
    sent = {} if method == "GET" else {"data": "{}" if "json" in kind else "", "content_type": kind}
    with transaction.atomic():
        response = getattr(client, method.lower())(address, headers=headers or {}, **sent)
        body = b"".join(response.streaming_content) if response.streaming else response.content
        transaction.set_rollback(undo)
    return response, body


def picture() -> dict[str, list[Any]]:
    """Every row of every table, but for sessions."""
    models = [model for model in apps.get_models() if model is not Session]
    return {model.__name__: sorted(model._default_manager.values_list(), key=str) for model in models}


def word_for(response: Any) -> str:
    status = response.status_code
    if status == 401 or (status == 302 and response.headers["Location"].startswith("/login/?next=")):
        return "in"
    return {403: "403", 404: "404", 405: "-"}.get(status, "ok" if status < 500 else str(status))


def test_every_address_of_the_site_is_in_the_table() -> None:
    assert sorted(ROWS) == sorted(walk())


@pytest.mark.parametrize("route", ROWS)
def test_who_gets_in(people: dict[str, User | None], keys: dict[str, Any], route: str) -> None:
    clients = {name: client_of(person) for name, person in people.items()}

    for method in METHODS:
        found = {name: word_for(ask(client, method, filled(route, keys))[0]) for name, client in clients.items()}
        assert found == expected(route, method), method


@pytest.mark.parametrize("route", ROWS)
def test_reading_and_being_refused_change_nothing(
    people: dict[str, User | None], keys: dict[str, Any], route: str
) -> None:
    """Whatever is not let in, and every GET, leaves each row of each table as it was."""
    clients = {name: client_of(person) for name, person in people.items()}
    before = picture()

    for method in METHODS:
        for name, word in expected(route, method).items():
            if method == "GET" or word != "ok":
                ask(clients[name], method, filled(route, keys), undo=False)

    assert picture() == before


CHANGES = [
    (
        route,
        method,
        next(name for name in ("owner", "lead", "finance", "operator") if expected(route, method)[name] == "ok"),
    )
    for route in ROWS
    for method in METHODS[1:]
    if "ok" in expected(route, method).values() and route != "api/v1/login/"  # it has tests of its own
]


@pytest.mark.parametrize(("route", "method", "who"), CHANGES)
def test_a_change_needs_the_token_and_our_own_origin(
    people: dict[str, User | None], keys: dict[str, Any], route: str, method: str, who: str
) -> None:
    client = client_of(people[who], enforce_csrf_checks=True)
    client.cookies["csrf"] = TOKEN
    address = filled(route, keys)
    before = picture()

    bare, _ = ask(client, method, address, undo=False)
    wrong, _ = ask(client, method, address, undo=False, headers={"X-CSRFToken": "b" * 32})
    foreign, _ = ask(client, method, address, undo=False, headers={"X-CSRFToken": TOKEN, "Origin": "https://evil.test"})

    assert [bare.status_code, wrong.status_code, foreign.status_code] == [403, 403, 403]
    assert picture() == before
    allowed, _ = ask(client, method, address, headers={"X-CSRFToken": TOKEN, "Origin": "http://testserver"})
    assert word_for(allowed) == "ok"


READ = [route for route in ROWS if expected(route, "GET")["outsider"] != "-"]


@pytest.mark.parametrize("route", READ)
def test_an_outsider_learns_nothing(people: dict[str, User | None], keys: dict[str, Any], route: str) -> None:
    """Neither by what is shown, nor by a difference between what exists and what does not."""
    sasha = client_of(people["outsider"])
    strange = {name: uuid4() if isinstance(key, UUID) else key for name, key in keys.items()}

    response, body = ask(sasha, "GET", filled(route, keys))
    other, other_body = ask(sasha, "GET", filled(route, strange))

    assert [secret for secret in SECRETS if secret in body.decode()] == []
    assert response.status_code == other.status_code
    if response.status_code >= 400 and route.startswith("api/"):
        assert body == other_body


@pytest.mark.parametrize("route", READ)
def test_a_session_that_has_expired_is_nobodys(
    people: dict[str, User | None], keys: dict[str, Any], route: str
) -> None:
    client = client_of(people["operator"])
    session = Session.objects.get(pk=client.cookies["session"].value)
    session.expire_date = datetime(2020, 1, 1, tzinfo=UTC)
    session.save()

    response, _ = ask(client, "GET", filled(route, keys))

    assert word_for(response) == expected(route, "GET")["nobody"]


def test_a_role_that_was_taken_away_is_gone_at_the_next_request(
    people: dict[str, User | None], keys: dict[str, Any]
) -> None:
    client, address = client_of(people["lead"]), f"/workloads/{keys['workloads']}/"
    assert client.get(address).status_code == 200

    Membership.objects.filter(user=people["lead"]).delete()

    assert client.get(address).status_code == 404
    assert client.get(f"/api/v1{address}").status_code == 404
