"""What every view of the API shares: who asks, how it is read, and in which shape it is refused."""

import codecs
import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from typing import Any, cast

from django.db.models import QuerySet
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import NotFound, ParseError, PermissionDenied
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.permissions import IsAuthenticated
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import IntegerField, Serializer, URLField
from rest_framework.views import APIView

from portal.api import exceptions
from portal.api.inputs import Input, Query, checked, checked_query
from portal.paging import Pages
from tenants import clock
from tenants.access import Standing, standing
from tenants.models import User

LONGEST_BODY = 256 * 1024  # bytes


class BrowserSession(SessionAuthentication):
    """The portal's own session cookie; whoever changes something also sends the CSRF token."""

    def authenticate_header(self, request: Request) -> str:
        return 'Session realm="Berth"'

    def enforce_csrf(self, request: Request) -> None:
        try:
            super().enforce_csrf(request)
        except PermissionDenied:
            raise PermissionDenied(
                "The CSRF token is missing or wrong: send csrf_token of GET /api/v1/me/ in the header X-CSRFToken, "
                "with the csrf cookie, from our own origin."
            ) from None


class PlainJson(BaseParser):
    """JSON in UTF-8, of bounded length and depth, without numbers that are none and without half characters."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        body = stream.read(LONGEST_BODY + 1)
        if len(body) > LONGEST_BODY:
            raise exceptions.TooLong
        try:
            found = json.loads(codecs.decode(body, "utf-8"), parse_constant=_refuse_constant)
            json.dumps(found, ensure_ascii=False).encode("utf-8")  # a lone surrogate can be neither kept nor shown
        except (ValueError, RecursionError) as fault:
            raise ParseError from fault
        return found


class OnlyJson(BaseContentNegotiation):
    """There is one answer, so nothing to negotiate."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        content_type = (request.content_type or "").partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == content_type), None)

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


class Door(APIView):
    """A doorman: fetches with permission, calls one service, answers.

    `queries` names, per method, the shape of the parameters that the address takes; other parameters are refused.
    """

    authentication_classes = [BrowserSession]
    permission_classes = [IsAuthenticated]
    parser_classes = [PlainJson]
    renderer_classes = [JSONRenderer]
    content_negotiation_class = OnlyJson
    http_method_names = ["get", "head", "post", "put", "patch", "delete"]  # a view has those that it defines
    queries: Mapping[str, type[Query]] = {}
    inputs: frozenset[str] = frozenset()

    def get_exception_handler(self) -> Any:
        return exceptions.answer

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.now = clock.now()
        known = request.method is not None and hasattr(self, request.method.lower())
        shape = self.queries.get(request.method or "", Query)
        self.inputs = frozenset(shape().fields)
        self.query = checked_query(shape, request.query_params) if known else {}

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response.headers.setdefault("Cache-Control", "no-store")
        return super().finalize_response(request, response, *args, **kwargs)

    @property
    def person(self) -> User:
        """Who asks; nobody else gets this far."""
        return cast("User", self.request.user)

    @cached_property
    def stand(self) -> Standing:
        """The person's roles; two queries, once per request."""
        return standing(self.person)

    def body(self, shape: type[Input]) -> dict[str, Any]:
        """The values of the body; whatever a rule then says about one of these fields is a bad request."""
        self.inputs |= frozenset(shape().fields)
        return checked(shape, self.request.data)

    def page(
        self,
        rows: "QuerySet[Any]",
        shape: type[Serializer[Any]],
        rows_of: Callable[[list[Any]], Iterable[Any]] = list,
        **context: Any,
    ) -> Response:
        """One page of a list, in a number of queries that does not grow with its rows.

        `rows_of` makes what the shape wants out of the page's rows.
        """
        pages = Pages()
        found = pages.paginate_queryset(rows, self.request, view=self) or []
        return pages.get_paginated_response(shape(rows_of(found), many=True, context=context).data)


@cache
def paged(shape: type[Serializer[Any]]) -> type[Serializer[Any]]:
    """The shape of one page of a list, for the OpenAPI document."""
    fields = {
        "count": IntegerField(help_text="Rows of all pages."),
        "next": URLField(allow_null=True),
        "previous": URLField(allow_null=True),
        "results": shape(many=True),
    }
    return type(f"{shape.__name__.removesuffix('Shape')}Page", (Serializer,), fields)


class Nowhere(Door):
    """Every address below the API that is none: the refusal has the API's shape, whatever the method."""

    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        raise NotFound("There is nothing at this address. Those that exist end with a slash: /api/docs/ lists them.")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON.")
