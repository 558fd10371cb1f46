"""The OpenAPI document: what drf-spectacular reads off the views, with our refusals and our strictness added."""

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension, OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import get_lib_doc_excludes

from portal.api.inputs import Input, PageQuery, Query

PREFIX = "/api/v1/"
SAFE = ("get", "head")
ERROR = {
    "type": "object",
    "description": "Why not, in the one shape that every refusal has.",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["text", "field", "fields"],
            "properties": {
                "text": {"type": "string", "minLength": 1, "description": "One sentence for people."},
                "field": {"type": "string", "description": "The field at fault, or empty."},
                "fields": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "description": "Each field at fault with its sentence.",
                },
            },
        }
    },
}
ALWAYS = {
    "400": "A field or parameter is wrong, unknown, or against a rule; `field` names it.",
    "404": "There is no such thing, or it is not for you to know of.",
    "503": "The database does not answer; `Retry-After` says when to come again.",
}
LOGGED_IN = {
    "401": "Nobody is logged in.",
    "403": "You may know of it, but your roles do not include this; or the CSRF token is missing.",
}
CHANGES = {
    "409": "The thing is in another state by now, or somebody was first.",
    "413": "The body is longer than 256 KiB.",
    "415": "The body is not sent as application/json.",
}
IDEMPOTENT = {"422": "The Idempotency-Key was used before, with another body."}
GUESSES = {"401": "Name and password do not belong together.", "429": "Too many failed log-ins; see `Retry-After`."}
LINKS = (  # an operation, where a key stands in its answer, the parameter that takes it, and the addresses that have it
    ("get_me", "/teams/0/id", "team", "/api/v1/offers/"),
    ("get_workloads", "/results/0/id", "id", "/api/v1/workloads/{id}/"),
    ("post_workloads", "/id", "id", "/api/v1/workloads/{id}/"),
    ("get_quota_requests", "/results/0/id", "id", "/api/v1/quota-requests/{id}/"),
    ("post_quota_requests", "/request/id", "id", "/api/v1/quota-requests/{id}/"),
    ("get_grants", "/results/0/id", "id", "/api/v1/grants/{id}/"),
    ("get_fleet", "/pools/0/id", "id", "/api/v1/pools/{id}/"),
    ("get_chargeback", "/results/0/period", "month", "/api/v1/chargeback/{month}/"),
)


class DoorSchema(AutoSchema):
    """Takes parameters from `queries`, names from the address, and summaries from docstrings."""

    def get_override_parameters(self) -> list[Any]:
        shape = getattr(self.view, "queries", {}).get(self.method)
        return [shape] if shape else []

    def get_operation_id(self) -> str:
        parts = [part.strip("{}") for part in self.path.removeprefix(PREFIX).split("/") if part]
        return "_".join([self.method.lower(), *parts]).replace("-", "_")

    def get_summary(self) -> str:
        return self.get_description().partition("\n")[0].rstrip(".")

    def get_serializer_name(self, serializer: Any, direction: str) -> str:
        """`Workload` for WorkloadShape; names of inputs keep their last word."""
        return serializer.__class__.__name__.removesuffix("Shape")

    def get_tags(self) -> list[str]:
        return [self.path.removeprefix(PREFIX).partition("/")[0]]


class DescribedField(OpenApiSerializerFieldExtension):
    """Fields of portal.api.fields describe themselves."""

    target_class = "portal.api.fields.Described"
    match_subclasses = True
    priority = 1

    def map_serializer_field(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        return self.target.document()


class SessionAndToken(OpenApiAuthenticationExtension):
    """The session cookie for everything; and for what changes something, the CSRF token as cookie and header."""

    target_class = "portal.api.doors.BrowserSession"
    name = ["session", "csrf_cookie", "csrf_token"]

    def get_security_definition(self, auto_schema: AutoSchema) -> list[dict[str, Any]]:
        words = "The `csrf_token` of POST /login/ or GET /me/; it goes with the cookie of the same answer."
        return [
            {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME},
            {"type": "apiKey", "in": "cookie", "name": settings.CSRF_COOKIE_NAME},
            {"type": "apiKey", "in": "header", "name": "X-CSRFToken", "description": words},
        ]

    def get_security_requirement(self, auto_schema: AutoSchema) -> dict[str, list[Any]]:
        changes = auto_schema.method.lower() not in SAFE
        return {key: [] for key in (self.name if changes else self.name[:1])}


def undescribed() -> list[type]:
    """Classes whose docstrings say nothing about the API: those that others are made of."""
    return [*get_lib_doc_excludes(), Input, Query, PageQuery]


def add_refusals(result: dict[str, Any], **context: Any) -> dict[str, Any]:
    """A post-processing hook: every operation lists its refusals, and bodies admit no unknown fields."""
    schemas = result.setdefault("components", {}).setdefault("schemas", {})
    schemas["Refusal"] = ERROR
    for name, schema in schemas.items():
        if name.endswith("InputRequest") and schema.get("type") == "object":
            schema["additionalProperties"] = False
    for path in result["paths"].values():
        for method, operation in path.items():
            if _is_choice(schemas, operation.get("requestBody")):
                operation["requestBody"]["required"] = True
            for status, words in _refusals(method, operation).items():
                operation["responses"].setdefault(status, _refusal(words))
    _add_links(result["paths"])
    return result


def _add_links(paths: dict[str, Any]) -> None:
    """Say which answers hold the keys of which addresses, so that a program can walk from one to the next."""
    operations = [(path, operation) for path, methods in paths.items() for operation in methods.values()]
    named = {operation["operationId"]: operation for _, operation in operations}
    for source, pointer, parameter, prefix in LINKS:
        parameters = {parameter: f"$response.body#{pointer}"}
        targets = [operation["operationId"] for path, operation in operations if path.startswith(prefix)]
        links = {target: {"operationId": target, "parameters": parameters} for target in targets}
        for status, response in named[source]["responses"].items():
            if status.startswith("2"):
                response.setdefault("links", {}).update(links)


def _is_choice(schemas: dict[str, Any], body: dict[str, Any] | None) -> bool:
    """Whether a body is one of several shapes, of which each needs a field: the framework does not look so deep."""
    schema = body["content"]["application/json"]["schema"] if body else {}
    return "oneOf" in schemas.get(schema.get("$ref", "").rpartition("/")[2], {})


def _refusals(method: str, operation: dict[str, Any]) -> dict[str, str]:
    """The statuses that an operation may refuse with, and what each means."""
    found = {**ALWAYS, **(LOGGED_IN if operation.get("security") else GUESSES)}
    if method not in SAFE:
        found |= CHANGES
    if any(parameter["name"] == "Idempotency-Key" for parameter in operation.get("parameters", [])):
        found |= IDEMPOTENT
    return dict(sorted(found.items()))


def _refusal(words: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}
    return {"description": words, "content": content}
