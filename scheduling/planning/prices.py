"""What each kind of thing is worth that is cut from cards: the dual prices of the usual mix, exactly.

Many cards are to be filled with many slices. Of all ways to fill one card, which fewest cards hold what is asked for?
Without the rule that a card is filled whole or not at all, that is a linear programme (Gilmore and Gomory's), and its
dual says it in prices: no way to fill a card costs more than one card, and what is asked for is as dear as possible.
The prices tell what a free place is worth; their sum over what is asked for is how many cards it needs at least.

Dantzig's simplex on exact fractions with Bland's rule, which never goes round in circles. Everything starts at price 0,
so there is no first phase.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction as F

Row = list[F]


@dataclass(frozen=True, slots=True)
class Prices:
    """In cards. `total` is what all that is asked for costs: no smaller number of cards can hold it."""

    each: tuple[F, ...]
    total: F


def prices(ways: Sequence[Sequence[int]], asked: Sequence[F | int]) -> Prices:
    """One price for each kind. `ways` says how many of each kind one card holds, one way a row; each kind that is
    asked for stands in some way, or a ValueError says which does not."""
    for kind, number in enumerate(asked):
        if number > 0 and not any(way[kind] for way in ways):
            raise ValueError(f"Kind {kind} is asked for, and no card can hold one.")
    rows, goal = _tableau(ways, asked)
    basis = list(range(len(asked), len(asked) + len(rows)))
    while (column := _entering(goal)) is not None:
        row = _leaving(rows, basis, column)
        _pivot(rows, goal, row, column)
        basis[row] = column
    found = [F(0)] * len(asked)
    for row, kind in enumerate(basis):
        if kind < len(asked):
            found[kind] = rows[row][-1]
    return Prices(tuple(found), goal[-1])


def _tableau(ways: Sequence[Sequence[int]], asked: Sequence[F | int]) -> tuple[list[Row], Row]:
    """Each way as an equation with what it leaves below one card, and the goal with its sign turned."""
    spare = [[F(one == other) for other in range(len(ways))] for one in range(len(ways))]
    rows = [[*map(F, way), *spare[number], F(1)] for number, way in enumerate(ways)]
    return rows, [*(-F(number) for number in asked), *([F(0)] * (len(ways) + 1))]


def _entering(goal: Row) -> int | None:
    return next((column for column, value in enumerate(goal[:-1]) if value < 0), None)


def _leaving(rows: list[Row], basis: list[int], column: int) -> int:
    """The way that binds first. There is one: no price can grow beyond all bounds, as each kind stands in a way."""
    return min((rows[row][-1] / rows[row][column], basis[row], row) for row in _bounding(rows, column))[2]


def _bounding(rows: list[Row], column: int) -> list[int]:
    return [row for row, values in enumerate(rows) if values[column] > 0]


def _pivot(rows: list[Row], goal: Row, row: int, column: int) -> None:
    pivot = rows[row][column]
    rows[row] = [value / pivot for value in rows[row]]
    for number, values in enumerate(rows):
        if number != row:
            _subtract(values, values[column], rows[row])
    _subtract(goal, goal[column], rows[row])


def _subtract(values: Row, times: F, others: Row) -> None:
    if times:
        values[:] = [value - times * other for value, other in zip(values, others, strict=True)]
