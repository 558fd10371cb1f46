from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from portal import guesses
from portal.demo.people import FOUR
from scheduling.announce import connection
from tenants.models import User
from tests.portal.pages.reading import as_person, look
from tests.world import World

WORD = "a long enough password"


@pytest.fixture(autouse=True)
def _quick_and_fresh(settings: Any) -> Iterator[None]:
    """A quick hash; and counts of failed log-ins live in Redis, so each test starts without any."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    connection().flushdb()
    yield
    connection().flushdb()


@pytest.fixture
def robin(world: World) -> User:
    world.robin.set_password(WORD)
    world.robin.save()
    return world.robin


def knock(client: Client, **data: str) -> int:
    return client.post("/login/", {"username": "robin", "password": WORD, **data}).status_code


def test_name_and_password_lead_in(robin: User, client: Client) -> None:
    answer = client.post("/login/", {"username": "robin", "password": WORD})

    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert client.session["_auth_user_id"] == str(robin.pk)


def test_a_wrong_password_says_so_and_keeps_the_name(robin: User, client: Client) -> None:
    answer = client.post("/login/", {"username": "robin", "password": "wrong"})

    assert answer.status_code == 400
    assert "Name and password do not match." in answer.content.decode()
    assert 'value="robin"' in answer.content.decode()
    assert "wrong" not in answer.content.decode()


@pytest.mark.parametrize("data", [{"username": ""}, {"password": ""}, {"username": "x" * 151}, {"username": "a\x00b"}])
def test_what_is_no_name_or_password_is_a_bad_request(robin: User, client: Client, data: dict[str, str]) -> None:
    assert knock(client, **data) == 400


def test_guessing_ends_after_some_failures_even_with_the_right_password(robin: User, client: Client) -> None:
    tries = [knock(client, password="wrong") for _ in range(guesses.OF_PAIR)]

    assert set(tries) == {400}
    assert knock(client) == 429
    assert "_auth_user_id" not in client.session


def test_somebody_who_was_deactivated_does_not_get_in(robin: User, client: Client) -> None:
    User.objects.filter(pk=robin.pk).update(is_active=False)

    assert knock(client) == 400


NEXT = {  # where `next` leads after logging in
    "/workloads/": "/workloads/",
    "/workloads/?phase=all": "/workloads/?phase=all",
    "": "/",
    "https://elsewhere.example/": "/",
    "//elsewhere.example/": "/",
    "/\\elsewhere.example": "/",
    "javascript:alert(1)": "/",
    "workloads/": "/",
}


@pytest.mark.parametrize("wanted", NEXT)
def test_next_leads_only_to_our_own_pages(robin: User, client: Client, wanted: str) -> None:
    answer = client.post("/login/", {"username": "robin", "password": WORD, "next": wanted})

    assert answer["Location"] == NEXT[wanted]


def test_who_is_logged_in_need_not_do_it_again(world: World) -> None:
    answer = as_person(world.robin).get("/login/?next=/fleet/")

    assert (answer.status_code, answer["Location"]) == (302, "/fleet/")


def test_the_demo_lists_the_four_people_with_what_each_can_do(world: World, client: Client, settings: Any) -> None:
    settings.BERTH_DEMO = True

    page = look(client, "/login/")

    assert [value for name, value in page.forms[0].buttons if name == "person"] == [one.username for one in FOUR]
    assert all(one.does[1:] in page.words for one in FOUR)


@pytest.mark.parametrize(("simulated", "cluster"), [(True, "a simulated cluster"), (False, "a real control plane")])
def test_the_demo_says_what_stands_behind_it(
    world: World, client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch, simulated: bool, cluster: str
) -> None:
    settings.BERTH_DEMO = True
    monkeypatch.setattr("portal.pages.context.clock.is_simulated", lambda: simulated)

    assert f"This is a demo: a small institute, {cluster}" in look(client, "/login/").words


def test_in_the_demo_one_click_is_enough(world: World, client: Client, settings: Any) -> None:
    settings.BERTH_DEMO = True

    answer = client.post("/login/", {"person": "omar", "next": "/fleet/"})

    assert (answer.status_code, answer["Location"]) == (302, "/fleet/")
    assert client.session["_auth_user_id"] == str(world.omar.pk)


@pytest.mark.parametrize("name", ["lena", "root", "", "robin "])
def test_the_demo_lets_in_nobody_but_the_four(world: World, client: Client, settings: Any, name: str) -> None:
    settings.BERTH_DEMO = True

    assert client.post("/login/", {"person": name}).status_code == 400
    assert "_auth_user_id" not in client.session


def test_outside_the_demo_a_name_alone_is_nothing(world: World, client: Client) -> None:
    page = look(client, "/login/")

    assert client.post("/login/", {"person": "omar"}).status_code == 400
    assert "_auth_user_id" not in client.session
    assert [form.buttons for form in page.forms] == [[]]


def test_logging_out_ends_the_session(world: World) -> None:
    client = as_person(world.robin)

    assert client.get("/logout/").status_code == 405
    assert client.post("/logout/")["Location"] == "/login/"
    assert "_auth_user_id" not in client.session
