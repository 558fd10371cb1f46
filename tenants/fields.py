"""A column for exact fractions of a card."""

from fractions import Fraction as F
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models


class FractionField(models.CharField):
    """An exact fraction, kept as text ("7/8", "3"). Sums are made in Python: no database adds fractions exactly."""

    # For the type checker: what may be assigned, and what is read.
    _pyi_private_set_type: F | int | str  # type: ignore[assignment]
    _pyi_private_get_type: F  # type: ignore[assignment]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("max_length", 64)
        super().__init__(*args, **kwargs)

    def from_db_value(self, value: str | None, _expression: Any, _connection: Any) -> F | None:
        return None if value is None else F(value)

    def to_python(self, value: Any) -> F | None:
        if value is None or isinstance(value, F):
            return value
        try:
            return F(value)
        except (ValueError, ZeroDivisionError, TypeError) as error:
            raise ValidationError(f"“{value}” is not a fraction such as 7/8, 1 or 2.5.") from error

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else str(self.to_python(value))

    def value_to_string(self, obj: models.Model) -> str:
        return self.get_prep_value(self.value_from_object(obj)) or ""
