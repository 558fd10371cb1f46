from __future__ import annotations

import pytest
from django.db import DatabaseError
from django.test import Client
from pytest_django import Settings

from portal import health
from portal.processes import free_port


def test_health_asks_nobody(client: Client) -> None:
    """Without the database fixture a query would fail this test."""
    assert client.get("/health").json() == {"status": "ok"}


def test_ready_when_both_answer(client: Client, db: None) -> None:
    answer = client.get("/ready")
    assert (answer.status_code, answer.json()) == (200, {"database": "ok", "messages": "ok"})
    assert "no-store" in answer.headers["Cache-Control"]


def test_not_ready_without_messages(client: Client, db: None, settings: Settings) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}/0"
    answer = client.get("/ready")
    assert (answer.status_code, answer.json()) == (503, {"database": "ok", "messages": "no answer"})


def test_not_ready_without_a_database(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        raise DatabaseError("connection refused")

    monkeypatch.setattr(health, "ask_database", gone)
    answer = client.get("/ready")
    assert (answer.status_code, answer.json()) == (503, {"database": "no answer", "messages": "ok"})


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_probes_are_only_read(client: Client, path: str) -> None:
    assert client.post(path).status_code == 405
