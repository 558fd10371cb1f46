"""Whatever a view raises becomes one shape, and what is nobody's business is not told."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions as framework
from rest_framework.exceptions import ValidationError

from portal.api.exceptions import NotKnown, OtherSubmission, TooManyGuesses, answer
from scheduling.cluster.port import ClusterError
from tenants.errors import AlreadyDecided, NotAllowed, Refused
from tests.portal.api.asking import check_shape


def deadlock() -> OperationalError:
    cause = Exception("deadlock detected")
    cause.sqlstate = "40P01"  # type: ignore[attr-defined]
    fault = OperationalError("deadlock detected")
    fault.__cause__ = cause
    return fault


CASES: dict[str, tuple[Exception, int, str, str]] = {  # raised, status, field, text begins
    "a rule about a field": (Refused("Too many.", field="count"), 400, "count", "Too many."),
    "a rule about the state of things": (Refused("It has ended."), 409, "", "It has ended."),
    "a rule about what is no input here": (Refused("It is not over.", field="month"), 409, "", "It is not over."),
    "somebody was first": (AlreadyDecided("Already approved by Dana."), 409, "", "Already approved by Dana."),
    "a role is missing": (NotAllowed("Ask a lead."), 403, "", "Ask a lead."),
    "the body names nothing": (NotKnown("No such team.", field="team"), 404, "team", "No such team."),
    "another body for a key": (OtherSubmission("Used.", field="Idempotency-Key"), 422, "Idempotency-Key", "Used."),
    "nothing of that name": (Http404("There is no such pool."), 404, "", "There is no such pool."),
    "nothing, said by the resolver": (Http404({"tried": []}), 404, "", "There is nothing of that name."),
    "Django's own refusal": (PermissionDenied(), 403, "", "Your roles do not include this."),
    "not logged in": (framework.NotAuthenticated(), 401, "", "Log in first"),
    "not JSON": (framework.ParseError("Expecting value: line 1"), 400, "", "The body is not JSON in UTF-8."),
    "too many guesses": (TooManyGuesses(30), 429, "", "Too many failed log-ins; try again in 30 seconds."),
    "a body beyond Django's limit": (RequestDataTooBig(), 413, "", "The body is too long"),
    "a cluster that is away": (ClusterError("It timed out."), 503, "", "The cluster does not answer: It timed out."),
    "a database that is away": (OperationalError("password of berth wrong"), 503, "", "The database does not answer"),
    "a connection that broke": (InterfaceError("closed"), 503, "", "The database does not answer"),
    "two at once": (deadlock(), 409, "", "Somebody changed the same thing at the same instant"),
    "a fault of ours": (KeyError("secret"), 500, "", "Something went wrong on our side."),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_raised_becomes_a_sentence(name: str) -> None:
    raised, status, field, text = CASES[name]

    response = answer(raised, {"view": SimpleNamespace(inputs=frozenset({"count", "team"}))})

    body = json.loads(json.dumps(response.data))
    check_shape(body)
    assert (response.status_code, body["error"]["field"]) == (status, field)
    assert body["error"]["text"].startswith(text)
    assert body["error"]["fields"] == ({field: body["error"]["text"]} if field else {})


@pytest.mark.parametrize("name", ["a database that is away", "a cluster that is away", "too many guesses"])
def test_it_says_when_to_come_again(name: str) -> None:
    assert int(answer(CASES[name][0], {}).headers["Retry-After"]) > 0


@pytest.mark.parametrize("name", ["a database that is away", "a fault of ours"])
def test_nothing_of_a_fault_is_told_but_it_is_logged(name: str, caplog: pytest.LogCaptureFixture, capsys: Any) -> None:
    raised = CASES[name][0]

    told = str(answer(raised, {}).data)

    assert str(raised.args[0]) not in told
    assert str(raised.args[0]) in caplog.text + capsys.readouterr().err


def test_nested_details_become_one_sentence_per_field() -> None:
    fault = ValidationError({"layouts": {"0": ["Name a layout."], "1": ["Name another."]}, "min_nodes": ["Too many."]})

    error = answer(fault, {}).data["error"]

    assert error == {
        "text": "Name a layout.",
        "field": "layouts",
        "fields": {"layouts": "Name a layout.", "min_nodes": "Too many."},
    }


def test_a_database_that_is_away_is_a_503_and_not_a_fault(
    world: Any, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise OperationalError("connection refused")

    caller = ask("robin")
    monkeypatch.setattr("portal.api.doors.standing", away)

    reply = caller.get("/me/")

    assert (reply.status, reply.headers["Retry-After"]) == (503, "5")
