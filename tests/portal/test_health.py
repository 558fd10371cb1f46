from __future__ import annotations

import subprocess

import pytest
import redis
from django.db import DatabaseError
from django.test import Client
from pytest_django import Settings

from portal import health, messages
from portal.processes import free_port
from tests.world import World


def test_health_asks_nobody(client: Client) -> None:
    """Without the database fixture a query would fail this test."""
    assert client.get("/health").json() == {"status": "ok"}


def test_ready_when_both_answer(client: Client, db: None) -> None:
    answer = client.get("/ready")
    assert (answer.status_code, answer.json()) == (200, {"database": "ok", "messages": "ok"})
    assert "no-store" in answer.headers["Cache-Control"]


def test_without_messages_it_serves_and_says_so(client: Client, db: None, settings: Settings) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}/0"
    answer = client.get("/ready")
    assert (answer.status_code, answer.json()["database"]) == (200, "ok")
    assert answer.json()["messages"].startswith("The message server does not answer. Requests are taken")


@pytest.mark.parametrize(
    ("trouble", "says"),
    [
        (("CONFIG", "SET", "maxmemory", "1"), "used memory > 'maxmemory'"),
        (("REPLICAOF", "127.0.0.1", "1"), "read only replica"),
    ],
    ids=["it is full", "it is a replica"],
)
def test_a_message_server_that_takes_nothing_answers_a_ping_and_is_found_out(
    client: Client,
    db: None,
    settings: Settings,
    valkey: tuple[subprocess.Popen[bytes], str],
    trouble: tuple[str, ...],
    says: str,
) -> None:
    settings.REDIS_URL = valkey[1]
    with redis.Redis.from_url(valkey[1]) as server:
        server.execute_command(*trouble)
        assert server.ping()

    answer = client.get("/ready")

    assert answer.status_code == 200
    assert "takes nothing" in answer.json()["messages"]
    assert says in answer.json()["messages"]


def test_a_server_that_hangs_holds_up_one_page_and_not_each(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def ask() -> str:
        asked.append("once more")
        return "It hangs."

    monkeypatch.setattr(messages, "ask", ask)
    last = messages.Last()

    assert [last.ask() for _ in range(5)] == ["It hangs."] * 5
    assert len(asked) == 1


def test_the_operator_sees_it_on_the_fleet_s_page(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.pages.fleet.trouble", lambda: "The message server takes nothing: full.")
    seen = {}
    for person in (world.omar, world.robin):
        client.force_login(person)
        seen[person.username] = "takes nothing: full" in client.get("/fleet/").content.decode()

    assert seen == {world.omar.username: True, world.robin.username: False}


def test_not_ready_without_a_database(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        raise DatabaseError("connection refused")

    monkeypatch.setattr(health, "ask_database", gone)
    answer = client.get("/ready")
    assert (answer.status_code, answer.json()) == (503, {"database": "no answer", "messages": "ok"})


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_probes_are_only_read(client: Client, path: str) -> None:
    assert client.post(path).status_code == 405
