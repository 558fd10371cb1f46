"""Prices of what is cut from cards, against figures that can be worked out by hand."""

from fractions import Fraction as F
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.planning.prices import prices

CASES: dict[str, tuple[list[list[int]], list[int], tuple[F, ...], F]] = {
    "halves cost a half": ([[2]], [6], (F(1, 2),), F(3)),
    "a big one with a small one beside it, and one small one more": (
        [[1, 1], [0, 3]],
        [4, 5],
        (F(2, 3), F(1, 3)),
        F(13, 3),
    ),
    "more small ones than fit beside the big ones": ([[1, 1], [0, 3]], [4, 10], (F(2, 3), F(1, 3)), F(6)),
    "small ones that fit beside big ones anyway are free": ([[1, 3], [0, 3]], [4, 2], (F(1), F(0)), F(4)),
    "what nobody asks for costs nothing": ([[1, 0], [0, 1]], [0, 5], (F(0), F(1)), F(5)),
    "nothing is asked for": ([[1]], [0], (F(0),), F(0)),
}


@pytest.mark.parametrize(("ways", "asked", "each", "total"), CASES.values(), ids=CASES)
def test_prices(ways: list[list[int]], asked: list[int], each: tuple[F, ...], total: F) -> None:
    found = prices(ways, asked)

    assert (found.each, found.total) == (each, total)


def test_what_no_card_can_hold_has_no_price() -> None:
    with pytest.raises(ValueError, match="Kind 1 is asked for, and no card can hold one"):
        prices([[1, 0]], [1, 1])


KINDS = 3


@settings(deadline=None, derandomize=True, max_examples=80)
@given(
    st.lists(st.lists(st.integers(0, 4), min_size=KINDS, max_size=KINDS), min_size=1, max_size=6),
    st.lists(st.integers(0, 9), min_size=KINDS, max_size=KINDS),
)
def test_no_way_costs_more_than_a_card_and_nothing_dearer_is_possible(ways: list[list[int]], asked: list[int]) -> None:
    asked = [number if any(way[kind] for way in ways) else 0 for kind, number in enumerate(asked)]

    found = prices(ways, asked)

    assert all(price >= 0 for price in found.each)
    assert all(sum(count * price for count, price in zip(way, found.each, strict=True)) <= 1 for way in ways)
    assert found.total == sum(number * price for number, price in zip(asked, found.each, strict=True))
    for grid in product([F(0), F(1, 4), F(1, 3), F(1, 2), F(1)], repeat=KINDS):  # all others of a coarse grid
        if all(sum(count * price for count, price in zip(way, grid, strict=True)) <= 1 for way in ways):
            assert sum(number * price for number, price in zip(asked, grid, strict=True)) <= found.total
