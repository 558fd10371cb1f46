"""Fields that take exactly what their document says, and refuse everything else in a sentence.

DRF's own fields are generous: they read 5 as "5" and "5" as 5. Here a wrong type is a wrong type, so that the OpenAPI
document is the whole truth. `Checked` fields describe themselves for it with `document()`.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction as F
from typing import Any, NoReturn
from uuid import UUID

from rest_framework import serializers

from scheduling.planning import catalog
from tenants.billing import house

UUID_TEXT = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
INSTANT_TEXT = r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d{1,12})?([Zz]|[+-]\d{2}:\d{2})"
CARDS_TEXT = r"10000|[1-9]\d{0,3}(\.\d{1,3})?|0\.(\d{0,2}[1-9]\d{0,2})|[1-9]\d{0,3}/(1000|[1-9]\d{0,2})"
ANY_TEXT = r"[^\u0000]*"
SOME_TEXT = r"[^\u0000]*[^\s\u0000][^\u0000]*"
MODEL_TEXT = r"[a-z0-9][a-z0-9.+-]{0,58}"
SKU_TEXT = r"[a-zA-Z0-9][a-zA-Z0-9./+_-]{0,118}"
MONTH_TEXT = "(?:19[7-9][0-9]|[2-8][0-9]{3})-(?:0[1-9]|1[0-2])"
LARGEST = 2**31 - 1
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class Described(serializers.Field):
    """A field that says its OpenAPI schema itself."""

    def document(self) -> dict[str, Any]:
        raise NotImplementedError


class Checked(Described):
    """The common part: one sentence says what the field takes, and the name stands in the sentence where it helps."""

    default_error_messages = {
        "required": "Give a value for {name}.",
        "null": "{name} cannot be null; leave it out instead.",
        "wrong": "{words}",
    }

    def fail(self, key: str, **facts: Any) -> NoReturn:
        super().fail(key, name=self.field_name, **{"words": self.words, **facts})

    @property
    def words(self) -> str:
        """What the field takes, as a sentence."""
        raise NotImplementedError

    def to_representation(self, value: Any) -> Any:
        return value


class Text(Checked):
    """Text of `least` to `most` characters that matches the whole of `pattern`; never a NUL."""

    def __init__(self, most: int, *, least: int = 0, pattern: str = "", words: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.most, self.least = most, least
        self.pattern = pattern or (SOME_TEXT if least else ANY_TEXT)
        self._words = words

    @property
    def words(self) -> str:
        return self._words or f"Write {self.least} to {self.most} characters of text, without NUL characters."

    def document(self) -> dict[str, Any]:
        limits = {"minLength": self.least} if self.least else {}
        return {"type": "string", "maxLength": self.most, "pattern": f"^({self.pattern})$", **limits}

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or not self.least <= len(data) <= self.most:
            self.fail("wrong")
        if not re.fullmatch(self.pattern, data):
            self.fail("wrong")
        return data


class Whole(Checked):
    """A whole number in [least, most]. `of_text`: it comes out of an address, so it is written in digits."""

    def __init__(self, least: int, most: int = LARGEST, *, of_text: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.least, self.most, self.of_text = least, most, of_text

    @property
    def words(self) -> str:
        return f"Choose a whole number from {self.least} to {self.most}."

    def document(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}

    def to_internal_value(self, data: Any) -> int:
        number = self._of_text(data) if self.of_text else self._of_json(data)
        if not self.least <= number <= self.most:
            self.fail("wrong")
        return number

    def _of_text(self, data: Any) -> int:
        if not re.fullmatch(r"-?[0-9]{1,12}", str(data)):
            self.fail("wrong")
        return int(data)

    def _of_json(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int | float) or data != data // 1:
            self.fail("wrong")
        return int(data)


class Flag(Checked):
    """True or false; in an address the words `true` and `false`."""

    def __init__(self, *, of_text: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.of_text = of_text

    @property
    def words(self) -> str:
        return "Write true or false."

    def document(self) -> dict[str, Any]:
        return {"type": "boolean"}

    def to_internal_value(self, data: Any) -> bool:
        found = {"true": True, "false": False}.get(str(data)) if self.of_text else data
        if not isinstance(found, bool):
            self.fail("wrong")
        return found


class OneOf(Checked):
    """One of a few words."""

    def __init__(self, choices: Iterable[Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.choices = [str(choice) for choice in choices]

    @property
    def words(self) -> str:
        return f"Choose one of {', '.join(self.choices)}."

    def document(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.choices)}

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or data not in self.choices:
            self.fail("wrong")
        return data


class Key(Checked):
    """The id of something: a UUID in its usual spelling."""

    @property
    def words(self) -> str:
        return "Give an id: a UUID such as 123e4567-e89b-12d3-a456-426614174000."

    def document(self) -> dict[str, Any]:
        return {"type": "string", "format": "uuid"}

    def to_internal_value(self, data: Any) -> UUID:
        if not isinstance(data, str) or not re.fullmatch(UUID_TEXT, data):
            self.fail("wrong")
        return UUID(data)

    def to_representation(self, value: Any) -> str:
        return str(value)


class Instant(Checked):
    """A time with its zone (RFC 3339); answers in UTC. Beyond the calendar's ends it is its first or last day."""

    @property
    def words(self) -> str:
        return "Write a time with its zone, such as 2026-12-24T18:00:00Z."

    def document(self) -> dict[str, Any]:
        return {"type": "string", "format": "date-time"}

    def to_internal_value(self, data: Any) -> datetime:
        if not isinstance(data, str) or not re.fullmatch(INSTANT_TEXT, data, re.ASCII):
            self.fail("wrong")
        try:
            found = datetime.fromisoformat(data.upper())
        except ValueError:
            self.fail("wrong")
        try:
            return found.astimezone(UTC)
        except OverflowError:
            return FIRST if found.year == 1 else LAST

    def to_representation(self, value: datetime) -> str:
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


class Cards(Checked):
    """An exact number of cards above 0, as text: "1/8", "2", "2.5"."""

    @property
    def words(self) -> str:
        return 'Write cards as text: a fraction or number above 0 and up to 10000, such as "1/8", "2" or "2.5".'

    def document(self) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^({CARDS_TEXT})$", "maxLength": 12, "example": "1/8"}

    def to_internal_value(self, data: Any) -> F:
        if not isinstance(data, str) or not re.fullmatch(CARDS_TEXT, data, re.ASCII):
            self.fail("wrong")
        return F(data)


class Answer(Described):
    """A field that we say and never read."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"read_only": True, **kwargs})


class Fraction(Answer):
    """An exact number of cards as text, "7/8" or "2"; 0 and more."""

    def document(self) -> dict[str, Any]:
        return {"type": "string", "pattern": r"^\d+(/\d+)?$", "example": "7/8"}

    def to_representation(self, value: F) -> str:
        return str(value)


class Money(Answer):
    """An amount as text with six decimals; its currency stands beside it."""

    def document(self) -> dict[str, Any]:
        return {"type": "string", "pattern": r"^-?\d+\.\d{6}$", "example": "4.200000"}

    def to_representation(self, value: Decimal) -> str:
        return f"{value:.6f}"


class Figure(Answer):
    """A number for reading, as text with so many decimals: rounded so that a column sums to its total."""

    def __init__(self, places: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.places = places

    def document(self) -> dict[str, Any]:
        return {"type": "string", "pattern": rf"^-?\d+\.\d{{{self.places}}}$"}

    def to_representation(self, value: Decimal) -> str:
        return f"{value:.{self.places}f}"


class Currency(Answer):
    """The organisation's currency, beside each amount."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"source": "*", **kwargs})

    def document(self) -> dict[str, Any]:
        return {"type": "string", "pattern": "^[A-Z]{3}$", "example": "EUR"}

    def to_representation(self, value: Any) -> str:
        return house.currency()


class Reading(Answer):
    """A measured number; null where nobody reported it."""

    def document(self) -> dict[str, Any]:
        return {"type": "number"}

    def to_representation(self, value: float) -> float:
        return float(value)


class Title(Answer):
    """The name of a GPU model for people."""

    def document(self) -> dict[str, Any]:
        return {"type": "string", "example": "H100 80GB"}

    def to_representation(self, value: str) -> str:
        return catalog.title(value)


def model_key(**kwargs: Any) -> Text:
    """A GPU model by its key in the catalog."""
    words = "Name a GPU model by its key, such as h100-80gb; GET /api/v1/flavors/ lists them."
    return Text(60, pattern=MODEL_TEXT, words=words, **kwargs)


def sku(**kwargs: Any) -> Text:
    """A flavor by its SKU."""
    words = "Name a flavor by its sku, such as h100-80gb/whole/on-demand; GET /api/v1/flavors/ lists them."
    return Text(120, pattern=SKU_TEXT, words=words, **kwargs)


def quoted(words: Sequence[str]) -> str:
    return ", ".join(words) or "none"
