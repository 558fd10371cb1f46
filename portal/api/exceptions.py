"""One shape for every refusal: `{"error": {"text": sentence, "field": name or "", "fields": {name: sentence}}}`."""

from collections.abc import Collection, Mapping
from typing import Any

import structlog
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

from portal.api.inputs import WHOLE
from scheduling.cluster.port import ClusterError
from tenants.errors import AlreadyDecided, NotAllowed, Refused

log = structlog.get_logger(__name__)
AGAIN_IN = 5  # seconds after which to try again when the database is away
CLASHES = ("40001", "40P01")  # serialization failure, deadlock: the same again may well succeed


class NotKnown(Refused):
    """What the body names does not exist, or is none of the person's business: the answer is the same (404)."""


class OtherSubmission(Refused):
    """The same Idempotency-Key came with another body (422)."""


class TooLong(exceptions.APIException):
    status_code = 413
    default_detail = "The body is too long; send at most 256 KiB."


class TooManyGuesses(exceptions.APIException):
    status_code = 429

    def __init__(self, wait: int) -> None:
        super().__init__(f"Too many failed log-ins; try again in {wait} seconds.")
        self.wait = wait


def answer(error: Exception, context: Mapping[str, Any]) -> Response:
    """The response for whatever a view raised. Nothing of an unexpected fault is told, but it is logged whole."""
    if isinstance(error, exceptions.ValidationError):
        return _of_fields(error)
    if isinstance(error, Refused):
        return _of_rule(error, getattr(context.get("view"), "inputs", frozenset()))
    if isinstance(error, exceptions.APIException):
        return _of_framework(error)
    if isinstance(error, Http404):
        return _response(404, _sentence(error, "There is nothing of that name."))
    if isinstance(error, PermissionDenied):
        return _response(403, _sentence(error, "Your roles do not include this."))
    if isinstance(error, RequestDataTooBig):
        return _response(413, TooLong.default_detail)
    if isinstance(error, ClusterError):
        return _response(
            503, f"The cluster does not answer: {error.for_everybody}", headers={"Retry-After": str(AGAIN_IN)}
        )
    if isinstance(error, OperationalError | InterfaceError):
        return _of_database(error)
    log.error("api_fault", view=type(context.get("view")).__name__, exc_info=error)
    return _response(500, "Something went wrong on our side. It has been noted; try again later.")


def _of_rule(error: Refused, inputs: Collection[str]) -> Response:
    """A refusal about an input names it and is a bad request; one about the state of things is a conflict."""
    known = {AlreadyDecided: 409, NotAllowed: 403, NotKnown: 404, OtherSubmission: 422}
    if status := known.get(type(error)):
        return _response(status, error.text, error.field)
    return _response(400, error.text, error.field) if error.field in inputs else _response(409, error.text)


def _of_fields(error: exceptions.ValidationError) -> Response:
    found = error.detail if isinstance(error.detail, Mapping) else {WHOLE: error.detail}
    fields = {name: str(_first(detail)) for name, detail in found.items()}
    field, text = next(iter(fields.items()))
    return _response(400, text, "" if field == WHOLE else field, {k: v for k, v in fields.items() if k != WHOLE})


def _first(detail: Any) -> Any:
    """The first sentence of however deeply nested lists and mappings."""
    while isinstance(detail, list | Mapping):
        detail = next(iter(detail.values() if isinstance(detail, Mapping) else detail), "")
    return detail


def _of_framework(error: exceptions.APIException) -> Response:
    headers = {}
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = str(int(wait))
    if scheme := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = scheme
    return _response(error.status_code, _words(error), headers=headers)


def _words(error: exceptions.APIException) -> str:
    """Our sentence where the framework's would repeat what was sent, or says too little."""
    sentences = {
        exceptions.UnsupportedMediaType: "Send JSON: Content-Type: application/json.",
        exceptions.NotAuthenticated: "Log in first: POST /api/v1/login/, or use the session of your browser.",
        exceptions.MethodNotAllowed: "This address does not know that method; the header Allow lists those it knows.",
        exceptions.ParseError: "The body is not JSON in UTF-8.",
    }
    return sentences.get(type(error), str(error.detail))


def _of_database(error: Exception) -> Response:
    log.warning("database_away", reason=str(error))
    if getattr(error.__cause__, "sqlstate", None) in CLASHES:
        return _response(409, "Somebody changed the same thing at the same instant; nothing was written. Try again.")
    text = "The database does not answer; nothing was written. Try again in a few seconds."
    return _response(503, text, headers={"Retry-After": str(AGAIN_IN)})


def _sentence(error: Exception, default: str) -> str:
    """What our own code said with the exception; the URL resolver says structures instead of sentences."""
    return error.args[0] if error.args and isinstance(error.args[0], str) and error.args[0] else default


def _response(
    status: int, text: str, field: str = "", fields: Mapping[str, str] | None = None, *, headers: Mapping[str, str] = {}
) -> Response:
    told = fields if fields is not None else ({field: text} if field else {})
    error = {"text": text, "field": field, "fields": dict(told)}
    return Response({"error": error}, status=status, headers=dict(headers))
