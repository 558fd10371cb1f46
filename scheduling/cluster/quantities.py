"""Kubernetes quantities ("23850m", "163430000Ki", "1e3") as exact numbers.

Nothing is guessed: what is not a quantity, is negative, or is beyond any machine is refused with a sentence.
"""

import re
from fractions import Fraction as F
from functools import lru_cache
from math import ceil

SUFFIXES: dict[str, F] = {
    "n": F(1, 10**9),
    "u": F(1, 10**6),
    "m": F(1, 10**3),
    "": F(1),
    "k": F(10**3),
    "M": F(10**6),
    "G": F(10**9),
    "T": F(10**12),
    "P": F(10**15),
    "E": F(10**18),
    "Ki": F(2**10),
    "Mi": F(2**20),
    "Gi": F(2**30),
    "Ti": F(2**40),
    "Pi": F(2**50),
    "Ei": F(2**60),
}
LARGEST = F(2**63 - 1)  # where Kubernetes itself stops
LONGEST = 40  # characters; a longer text is not a quantity that anybody wrote on purpose
MOST_UNITS = 10_000  # of one extended resource on one node: sixteen cards, forty-eight ways, and room
FORM = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]{1,2})|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII)


class BadQuantity(ValueError):
    """Not a quantity that we can use; the text says what it is instead."""


def quantity(value: object) -> F:
    """The exact number behind a Kubernetes quantity, at least 0."""
    return number_in(written(value))


@lru_cache(maxsize=4096)
def number_in(text: str) -> F:
    """Nodes of one kind say the same few quantities over and over."""
    match = FORM.fullmatch(text) if len(text) <= LONGEST else None
    if match is None:
        raise BadQuantity(f"{shown(text)} is not a quantity")
    sign, digits, exponent, suffix = match.groups()
    number = F(digits) * (F(10) ** int(exponent) if exponent else SUFFIXES[suffix or ""])
    if sign == "-" and number:
        raise BadQuantity(f"{shown(text)} is negative")
    if number > LARGEST:
        raise BadQuantity(f"{shown(text)} is beyond any machine")
    return number


def milli(value: object) -> int:
    """Thousandths of a core, rounded down: what is offered is never more than there is."""
    return int(quantity(value) * 1000)


def milli_up(value: object) -> int:
    """Thousandths of a core, rounded up: what is asked for is never less than it was."""
    return ceil(quantity(value) * 1000)


def mib(value: object) -> int:
    """MiB, rounded down."""
    return int(quantity(value) / 2**20)


def mib_up(value: object) -> int:
    """MiB, rounded up."""
    return ceil(quantity(value) / 2**20)


def units(value: object) -> int:
    """A whole number of devices."""
    number = quantity(value)
    if number.denominator != 1:
        raise BadQuantity(f"{shown(written(value))} is not a whole number")
    if number > MOST_UNITS:
        raise BadQuantity(f"{shown(written(value))} is more than any node can have")
    return int(number)


def written(value: object) -> str:
    """Quantities are text, but JSON and YAML writers leave the quotes off plain numbers."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        if value > LARGEST:
            raise BadQuantity("a number beyond any machine stands there")
        return str(max(value, -1))
    raise BadQuantity(f"{shown(repr(value))} is not a quantity")


def shown(text: str) -> str:
    """Somebody's text as a short quoted word for a sentence."""
    return repr(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")
