"""Asking the API as somebody, the way a program does: a session, the CSRF token, JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from django.apps import apps
from django.contrib.sessions.models import Session
from django.test import Client

from tenants.models import User

ROOT = "/api/v1"
TOKEN = "a" * 32


@dataclass
class Caller:
    """A person with a session; every answer has to be JSON, and every refusal has to have the one shape."""

    person: User | None
    client: Client = field(default_factory=lambda: Client(enforce_csrf_checks=True))

    def __post_init__(self) -> None:
        if self.person:
            self.client.force_login(self.person)
        self.client.cookies["csrf"] = TOKEN

    def get(self, path: str, **query: Any) -> Answer:
        return self.ask("get", path, query)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        return self.ask("post", path, body, headers=headers)

    def patch(self, path: str, body: Any) -> Answer:
        return self.ask("patch", path, body)

    def ask(self, verb: str, path: str, data: Any = None, *, headers: dict[str, str] | None = None) -> Answer:
        """`data` is the query of a GET and the JSON body of everything else; a str or bytes body goes out as it is."""
        sent = {"X-CSRFToken": TOKEN, **(headers or {})}
        if verb == "get":
            return Answer.of(self.client.get(ROOT + path, data or {}, headers=sent))
        body = data if isinstance(data, str | bytes) else json.dumps({} if data is None else data)
        response = getattr(self.client, verb)(ROOT + path, body, content_type="application/json", headers=sent)
        return Answer.of(response)


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any
    headers: Any

    @classmethod
    def of(cls, response: Any) -> Answer:
        assert response.headers["Content-Type"] == "application/json", response.content[:200]
        body = json.loads(response.content)
        if response.status_code >= 400:
            check_shape(body)
        return cls(response.status_code, body, response.headers)

    @property
    def text(self) -> str:
        """The sentence of a refusal."""
        return str(self.body["error"]["text"])

    @property
    def field(self) -> str:
        return str(self.body["error"]["field"])

    @property
    def results(self) -> list[Any]:
        return list(self.body["results"])


def rows() -> dict[str, int]:
    """How many rows each table has; logging in writes sessions, so they do not count."""
    models = [model for model in apps.get_models() if model is not Session]
    return {model.__name__: model._default_manager.count() for model in models}


def check_shape(body: Any) -> None:
    """`{"error": {"text", "field", "fields"}}`, with a sentence."""
    assert set(body) == {"error"}, body
    error = body["error"]
    assert set(error) == {"text", "field", "fields"}, error
    text = error["text"]
    assert text[0].isupper() or text[0] in "“0123456789" or text[0].islower(), text
    assert text.endswith((".", "…", ":")), text
    assert all(isinstance(sentence, str) for sentence in error["fields"].values())
