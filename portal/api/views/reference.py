"""The API's own description: the document for programs, the reference for people."""

from functools import cache
from typing import Any

from django.contrib.auth.decorators import login_required
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.doors import Door
from portal.api.fields import OneOf
from portal.api.inputs import Query


@cache
def document() -> dict[str, Any]:
    """The whole document; it is the same for everybody and made once per process."""
    return SchemaGenerator().get_schema(request=None, public=True)


class SchemaQuery(Query):
    format = OneOf(["json"], required=False)


class SchemaView(Door):
    """The OpenAPI document of this API."""

    schema = None
    queries = {"GET": SchemaQuery}

    def get(self, request: Request) -> Response:
        return Response(document())


docs = login_required(SpectacularSwaggerSplitView.as_view(url_name="api-schema", template_name="api/docs.html"))
"""The generated reference, read in a browser."""
