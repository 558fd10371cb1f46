"""What comes in: bodies and addresses. What is not known is refused, not ignored, so nothing can be slipped in."""

from collections.abc import Mapping
from typing import Any

from django.http import QueryDict
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.settings import api_settings

from portal.api.fields import Whole, quoted

LONGEST_NAME = 40  # of an unknown field, in our answer
WHOLE = api_settings.NON_FIELD_ERRORS_KEY


class Input(serializers.Serializer):
    """A JSON object. Each field of it is known, and each is checked before anything is done."""

    thing = "field"

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        unknown = sorted(name for name in data if name not in self.fields)
        if unknown:
            raise ValidationError({name[:LONGEST_NAME]: [self._unknown()] for name in unknown[:10]})
        return super().to_internal_value(data)

    def _unknown(self) -> str:
        return f"There is no {self.thing} of this name here; known are: {quoted(list(self.fields))}."


class Nothing(Input):
    """For steps that need no words: no body, or an empty object."""


class Query(Input):
    """The parameters of an address. Without fields of its own, an address takes none."""

    thing = "parameter"


class PageQuery(Query):
    """Which page of a list, and how long it is."""

    page = Whole(1, 1_000_000, of_text=True, default=1, help_text="From 1.")
    page_size = Whole(1, 200, of_text=True, default=50, help_text="Rows of one page.")


def checked(shape: type[Input], data: Any) -> dict[str, Any]:
    """The values of a body. Raises ValidationError with a sentence for each field at fault."""
    if not isinstance(data, Mapping):
        raise ValidationError({WHOLE: ["Send a JSON object: {…}."]})
    found = shape(data=data)
    found.is_valid(raise_exception=True)
    return dict(found.validated_data)


def checked_query(shape: type[Query], parameters: QueryDict) -> dict[str, Any]:
    """The values of an address; each parameter is given once."""
    for name, values in parameters.lists():
        if len(values) != 1:
            raise ValidationError({name[:LONGEST_NAME]: ["Give this parameter once."]})
    return checked(shape, parameters.dict())
