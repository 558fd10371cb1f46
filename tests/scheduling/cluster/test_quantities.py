"""Kubernetes quantities, exactly."""

from contextlib import suppress
from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.cluster.quantities import LARGEST, SUFFIXES, BadQuantity, mib, mib_up, milli, milli_up, quantity, units

GOOD = {
    "23850m": F(2385, 100),
    "0": F(0),
    "-0": F(0),
    "+5": F(5),
    "1.5": F(3, 2),
    ".5": F(1, 2),
    "5.": F(5),
    "1k": F(1000),
    "1Ki": F(1024),
    "163430000Ki": F(163430000 * 1024),
    "2Gi": F(2 * 2**30),
    "1Ti": F(2**40),
    "1M": F(10**6),
    "1E": F(10**18),
    "1Ei": F(2**60),
    "1e3": F(1000),
    "1E3": F(1000),
    "12e-1": F(6, 5),
    "100n": F(1, 10**7),
    "0.1": F(1, 10),
}


@pytest.mark.parametrize(("text", "number"), GOOD.items(), ids=GOOD)
def test_it_is_exact(text: str, number: F) -> None:
    assert quantity(text) == number


BAD = {
    "a word": ("abc", "'abc' is not a quantity"),
    "nothing": ("", "'' is not a quantity"),
    "a negative number": ("-3", "'-3' is negative"),
    "a suffix that is none": ("1KI", "'1KI' is not a quantity"),
    "two suffixes": ("1mKi", "'1mKi' is not a quantity"),
    "a space": ("1 Gi", "'1 Gi' is not a quantity"),
    "a newline at the end": ("1\n", "'1\\n' is not a quantity"),
    "an underscore": ("1_000", "'1_000' is not a quantity"),
    "digits of another script": ("٣", "'٣' is not a quantity"),
    "not a number": ("NaN", "'NaN' is not a quantity"),
    "infinity": ("Inf", "'Inf' is not a quantity"),
    "more than Kubernetes counts": ("9223372036854775808", "'9223372036854775808' is beyond any machine"),
    "an exponent without end": ("1e999999999", "'1e999999999' is not a quantity"),
    "an exponent that is merely large": ("1e99", "'1e99' is beyond any machine"),
    "a megabyte of digits": ("1" * 1_000_000, f"'{'1' * 39}…' is not a quantity"),
    "a boolean": (True, "'True' is not a quantity"),
    "a float": (1.5, "'1.5' is not a quantity"),
    "nothing at all": (None, "'None' is not a quantity"),
    "a list": ([], "'[]' is not a quantity"),
    "a number of too many digits": (10**5000, "a number beyond any machine stands there"),
    "a negative number without quotes": (-(10**5000), "'-1' is negative"),
}


@pytest.mark.parametrize(("value", "sentence"), BAD.values(), ids=BAD)
def test_nonsense_is_refused_in_a_sentence(value: object, sentence: str) -> None:
    with pytest.raises(BadQuantity) as refusal:
        quantity(value)

    assert str(refusal.value) == sentence


def test_a_plain_number_of_json_counts_too() -> None:
    assert quantity(8) == 8


def test_what_is_offered_is_rounded_down_and_what_is_asked_for_up() -> None:
    assert (milli("1.0005"), milli_up("1.0005")) == (1000, 1001)
    assert (mib("1048577"), mib_up("1048577")) == (1, 2)
    assert (milli("2"), milli_up("2"), mib("1Gi"), mib_up("1Gi")) == (2000, 2000, 1024, 1024)


@pytest.mark.parametrize(
    ("value", "sentence"), [("1500m", "is not a whole number"), ("10001", "more than any node can have")]
)
def test_devices_are_whole_and_few(value: str, sentence: str) -> None:
    with pytest.raises(BadQuantity, match=sentence):
        units(value)


def test_devices_may_be_written_in_milli() -> None:
    assert units("8000m") == 8


@given(st.integers(0, 10**6), st.sampled_from(sorted(SUFFIXES)))
def test_number_and_suffix_multiply(number: int, suffix: str) -> None:
    expected = number * SUFFIXES[suffix]

    if expected <= LARGEST:
        assert quantity(f"{number}{suffix}") == expected


@given(st.text() | st.integers() | st.floats() | st.none() | st.booleans())
def test_anything_is_a_number_or_a_refusal(value: object) -> None:
    with suppress(BadQuantity):
        assert quantity(value) >= 0
