"""Who asks, what the teams hold, grants, and logging in."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta as td
from fractions import Fraction as F
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from portal import guesses
from scheduling.announce import connection
from tests.portal.api.asking import ROOT, Answer, Caller
from tests.world import H100

Ask = Callable[[str], Caller]
PASSWORD = "correct horse battery staple"


def test_me(world: Any, ask: Ask) -> None:
    world.workload("notebook", phase="running")
    world.grant(world.vision, H100, F(1, 2), member=world.robin)

    me = ask("robin").get("/me/").body

    assert me["person"] == {"id": world.robin.pk, "username": "robin", "name": "Robin"}
    assert (me["operator"], me["to_decide"], me["zone"], me["currency"]) == (False, 0, "UTC", "EUR")
    assert (me["now"], me["clock_rate"]) == ("2026-12-01T08:00:00Z", 1.0)
    (vision,) = me["teams"]
    assert (vision["slug"], vision["roles"], vision["parent"]) == ("vision", ["researcher"], None)
    assert vision["quotas"][1] == {
        "model": H100,
        "title": "H100 80GB",
        "granted": "16",
        "own": "1/2",
        "held": "1/8",
        "free": "16",
        "over": "0",
        "left": "131/8",
    }


def test_the_token_of_me_is_good_for_changes(world: Any) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(world.robin)
    workload = world.workload("notebook", phase="running")
    token = client.get(f"{ROOT}/me/").json()["csrf_token"]

    address = f"{ROOT}/workloads/{workload.pk}/sleep/"
    response = client.post(address, content_type="application/json", headers={"X-CSRFToken": token})

    assert response.status_code == 200


def test_a_lead_is_told_how_many_requests_wait(world: Any, ask: Ask) -> None:
    world.asks(world.robin)

    assert ask("dana").get("/me/").body["to_decide"] == 1


TEAMS = {  # who: the teams they see
    "robin": ["Vision"],
    "dana": ["Vision"],
    "lena": ["Research", "Speech", "Vision"],
    "farah": ["Meridian", "Research", "Speech", "Vision"],
    "omar": ["Meridian", "Research", "Speech", "Vision"],
}


@pytest.mark.parametrize("who", TEAMS)
def test_teams(ask: Ask, who: str) -> None:
    answer = ask(who).get("/teams/")

    assert [team["name"] for team in answer.results] == TEAMS[who]
    assert answer.body["count"] == len(TEAMS[who])


def test_a_parent_that_one_may_not_know_of_is_not_named(world: Any, ask: Ask) -> None:
    seen = {team["name"]: team["parent"] for team in ask("lena").get("/teams/").results}

    assert seen == {"Research": None, "Speech": str(world.research.pk), "Vision": str(world.research.pk)}


def test_a_search_finds_part_of_a_name(ask: Ask) -> None:
    assert [team["name"] for team in ask("omar").get("/teams/", search="SIO").results] == ["Vision"]


def test_over_quota_is_said_and_nothing_is_negative(world: Any, ask: Ask) -> None:
    world.workload("big", flavor="whole", phase="running", count=8)
    grant = world.vision.grants.get(model=H100)
    grant.ends_at = world.now
    grant.save()
    world.grant(world.vision, H100, 2)

    quota = ask("dana").get("/teams/").results[0]["quotas"][1]

    assert (quota["granted"], quota["held"], quota["free"], quota["over"], quota["left"]) == ("2", "8", "0", "6", "0")


def test_grants_of_other_teams_are_not_there(world: Any, ask: Ask) -> None:
    seen = {grant["team"]["name"] for grant in ask("robin").get("/grants/").results}

    assert seen == {"Vision"}
    assert ask("robin").get("/grants/", team=str(world.speech.pk)).status == 404


def test_grants_are_filtered(world: Any, ask: Ask) -> None:
    world.grant(world.vision, H100, 1, member=world.robin, ends_at=world.now - td(minutes=1))
    robin, lena = ask("robin"), ask("lena")

    assert robin.get("/grants/").body["count"] == 3
    assert robin.get("/grants/", model=H100).body["count"] == 2
    assert robin.get("/grants/", member=world.robin.pk).body["count"] == 1
    assert robin.get("/grants/", in_force="false").results[0]["in_force"] is False
    assert robin.get("/grants/", in_force="true").body["count"] == 2
    assert lena.get("/grants/", team=str(world.vision.pk)).body["count"] == 3


def test_a_lead_ends_a_grant_once(world: Any, ask: Ask) -> None:
    grant = world.grant(world.vision, H100, 1, member=world.robin)

    first = ask("dana").post(f"/grants/{grant.pk}/end/")
    second = ask("dana").post(f"/grants/{grant.pk}/end/")

    assert (first.status, first.body["ends_at"], first.body["in_force"]) == (200, "2026-12-01T08:00:00Z", False)
    assert (second.status, second.text) == (409, "This grant has already ended.")


@pytest.mark.parametrize(
    ("who", "status"), [("robin", 403), ("sasha", 404), ("farah", 403), ("omar", 200), ("lena", 200)]
)
def test_who_ends_a_grant(world: Any, ask: Ask, who: str, status: int) -> None:
    grant = world.grant(world.vision, H100, 1)

    assert ask(who).post(f"/grants/{grant.pk}/end/").status == status


def log_in(client: Client, **body: str) -> Answer:
    return Answer.of(client.post(f"{ROOT}/login/", json.dumps(body), content_type="application/json"))


@pytest.fixture
def robin(world: Any) -> Any:
    world.robin.set_password(PASSWORD)
    world.robin.save()
    return world.robin


@pytest.fixture(autouse=True)
def _forget_guesses() -> Any:
    yield
    guesses._alone.clear()
    connection().flushdb()


def test_logging_in_by_name_and_password(robin: Any) -> None:
    client = Client(enforce_csrf_checks=True)

    answer = log_in(client, username="robin", password=PASSWORD)

    assert (answer.status, answer.body["person"]["username"]) == (200, "robin")
    assert client.get(f"{ROOT}/me/").json()["person"]["username"] == "robin"
    assert client.cookies[settings.SESSION_COOKIE_NAME]["httponly"]


def test_a_session_from_before_does_not_become_the_persons(robin: Any) -> None:
    client = Client()
    client.session["planted"] = True
    session = client.session
    session.save()
    client.cookies[settings.SESSION_COOKIE_NAME] = session.session_key or ""

    log_in(client, username="robin", password=PASSWORD)

    assert client.cookies[settings.SESSION_COOKIE_NAME].value != session.session_key


WRONG = {
    "a wrong password": {"username": "robin", "password": "x"},
    "a wrong name": {"username": "nobody", "password": PASSWORD},
    "somebody without a password": {"username": "omar", "password": "!"},
}


@pytest.mark.parametrize("name", WRONG)
def test_the_answer_does_not_tell_what_was_wrong(robin: Any, name: str) -> None:
    answer = log_in(Client(), **WRONG[name])

    assert (answer.status, answer.text) == (401, "Name and password do not belong together.")
    assert answer.headers["WWW-Authenticate"].startswith("Session")


def test_who_was_deactivated_does_not_get_in(robin: Any) -> None:
    robin.is_active = False
    robin.save()

    assert log_in(Client(), username="robin", password=PASSWORD).status == 401


def test_a_deactivated_persons_session_is_worth_nothing(world: Any, ask: Ask) -> None:
    caller = ask("robin")
    world.robin.is_active = False
    world.robin.save()

    assert caller.get("/me/").status == 401


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"username": "robin"},
        {"username": "x" * 151, "password": "x"},
        {"username": "x" * 100_000, "password": "x"},
        {"username": "a\x00b", "password": "x"},
        {"username": "robin", "password": "x" * 257},
        {"username": "robin", "password": ["x"]},
        {"username": "robin", "password": "x", "is_staff": True},
        {"person": "robin"},
    ],
)
def test_a_wrong_log_in_body(robin: Any, body: Any) -> None:
    assert log_in(Client(), **body).status == 400


def test_another_sites_page_cannot_log_anybody_in(robin: Any) -> None:
    body = json.dumps({"username": "robin", "password": PASSWORD})
    client = Client()

    foreign = client.post(
        f"{ROOT}/login/", body, content_type="application/json", headers={"Origin": "http://evil.test"}
    )
    form = client.post(f"{ROOT}/login/", {"username": "robin", "password": PASSWORD})
    text = client.post(f"{ROOT}/login/", body, content_type="text/plain")
    own = client.post(f"{ROOT}/login/", body, content_type="application/json", headers={"Origin": "http://testserver"})

    assert [response.status_code for response in (foreign, form, text, own)] == [403, 415, 415, 200]


def test_who_is_logged_in_stays_so(world: Any, ask: Ask, robin: Any) -> None:
    caller = ask("dana")

    answer = caller.post("/login/", {"username": "robin", "password": PASSWORD})

    assert (answer.status, answer.text[:26]) == (409, "You are logged in as Dana;")
    assert caller.get("/me/").body["person"]["username"] == "dana"


def test_ten_wrong_guesses_close_the_door_for_that_name_from_there(robin: Any) -> None:
    for _ in range(guesses.OF_PAIR):
        assert log_in(Client(), username="robin", password="x").status == 401

    answer = log_in(Client(), username="robin", password=PASSWORD)

    assert answer.status == 429
    assert 0 < int(answer.headers["Retry-After"]) <= guesses.WINDOW


def test_a_demo_is_entered_by_name(world: Any, settings: Any) -> None:
    settings.BERTH_DEMO = True

    answer = log_in(Client(), person="omar")

    assert (answer.status, answer.body["person"]["username"]) == (200, "omar")
    assert log_in(Client(), person="nobody").status == 401
    assert log_in(Client(), person="sasha").status == 401, "only the four of the log-in page"
    assert log_in(Client(), person="omar", username="robin").status == 400


def test_nobody_enters_by_name_alone_where_it_is_no_demo(world: Any) -> None:
    answer = log_in(Client(), person="omar")

    assert (answer.status, answer.field) == (400, "person")
