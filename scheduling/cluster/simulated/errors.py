"""What the API answers when it says no: `Status` bodies with the reasons that real clients look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .kinds import Document, Kind


@dataclass(frozen=True, slots=True)
class Cause:
    """One field that is wrong, as in `details.causes` of an Invalid answer."""

    reason: str  # FieldValueRequired, FieldValueInvalid, FieldValueForbidden, FieldValueDuplicate, ...
    field: str
    text: str

    def as_document(self) -> Document:
        return {"reason": self.reason, "message": self.text, "field": self.field}


class ApiError(Exception):
    """An answer other than success. `headers` go out with it (Retry-After)."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Document | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.headers = headers or {}

    def status(self) -> Document:
        body: Document = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        if self.details:
            body["details"] = self.details
        return body


def not_found(kind: Kind, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{kind.resource} "{name}" not found', details=about(kind, name))


def no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def already_exists(kind: Kind, name: str) -> ApiError:
    return ApiError(409, "AlreadyExists", f'{kind.resource} "{name}" already exists', details=about(kind, name))


def conflict(kind: Kind, name: str, why: str = "") -> ApiError:
    text = why or ("the object has been modified; please apply your changes to the latest version and try again")
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {text}'
    return ApiError(409, "Conflict", message, details=about(kind, name))


def invalid(kind: Kind, name: str, causes: list[Cause]) -> ApiError:
    sentences = [f"{cause.field}: {cause.text}" for cause in causes]
    joined = sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"
    details = {"name": name, "group": kind.group, "kind": kind.kind, "causes": [c.as_document() for c in causes]}
    return ApiError(422, "Invalid", f'{kind.kind} "{name}" is invalid: {joined}', details=details)


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def forbidden(kind: Kind, name: str, why: str, causes: list[Document] | None = None) -> ApiError:
    details = about(kind, name)
    if causes:
        details["causes"] = causes
    return ApiError(403, "Forbidden", f'{kind.resource} "{name}" is forbidden: {why}', details=details)


def expired(asked: int, oldest: int) -> ApiError:
    return ApiError(410, "Expired", f"too old resource version: {asked} ({oldest})")


def method_not_allowed() -> ApiError:
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def unsupported_media_type(what: str) -> ApiError:
    return ApiError(415, "UnsupportedMediaType", f"the body of the request was in an unknown format - {what}")


def about(kind: Kind, name: str) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name, "kind": kind.plural}
    if kind.group:
        details["group"] = kind.group
    return details
