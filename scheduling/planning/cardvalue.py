"""What a card is worth with so many thousandths free: the dual prices of cutting cards into the usual shares.

Prices y of the sizes maximise what the usual shares are worth together, while no set of shares that fits one card is
worth more than that card. They are the dual of the cutting-stock problem, which is solved here by generating its
patterns: a simplex step on a dense inverse, then the best pattern at the present prices by an unbounded knapsack.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

WHOLE = 1000
EPSILON = 1e-9
MOST_STEPS = 50  # per size; far more than are ever needed, so that no cycle runs on


def card_values(shares: Mapping[int, float]) -> Floats:
    """The value of a card by its free thousandths, 0 … 1000: rising, 0 with nothing free and 1 when all is.

    `shares` is how often each size below 1000 is asked for. Without any, only a whole card is worth something.
    """
    values = np.zeros(WHOLE + 1)
    if shares:
        sizes = np.array(sorted(shares), dtype=np.int64)
        wanted = np.array([shares[int(size)] for size in sizes])
        values, _ = knapsack(sizes, share_prices(sizes, wanted / wanted.sum()))
    values = np.minimum(values, 1.0)
    values[WHOLE] = 1.0
    return values


def share_prices(sizes: Integers, wanted: Floats) -> Floats:
    """The price of each size, such that nothing that fits one card costs more than 1; all positive."""
    count = len(sizes)
    inverse: Floats = np.diag(1.0 / (WHOLE // sizes))  # of the basis: at first, cards cut into one size each
    amounts = inverse @ wanted
    for _ in range(MOST_STEPS * count):
        best, last = knapsack(sizes, inverse.sum(axis=0))
        if best[WHOLE] <= 1.0 + EPSILON:
            break
        _pivot(inverse, amounts, _pattern(sizes, last))
    # A size of which too much would be cut costs less than nothing for a while: then the best pattern does without it.
    prices = np.maximum(inverse.sum(axis=0), 0.0)
    dearest = knapsack(sizes, prices)[0][WHOLE]
    found: Floats = prices / max(1.0, dearest)
    return found


def knapsack(sizes: Integers, prices: Floats) -> tuple[Floats, Integers]:
    """The most that shares together cost that fit into 0 … 1000, and which of them was put in last (-1: none)."""
    best = np.zeros(WHOLE + 1)
    last = np.full(WHOLE + 1, -1, dtype=np.int64)
    step = int(np.gcd.reduce([*sizes.tolist(), WHOLE]))
    for room in range(step, WHOLE + 1, step):
        best[room] = best[room - step]
        fitting = int(np.searchsorted(sizes, room, side="right"))
        if fitting:
            sums = best[room - sizes[:fitting]] + prices[:fitting]
            choice = int(sums.argmax())
            if sums[choice] > best[room] + 1e-12:
                best[room], last[room] = sums[choice], choice
    return np.repeat(best[::step], step)[: WHOLE + 1], last


def _pattern(sizes: Integers, last: Integers) -> Floats:
    """How many of each size the best filling of one card holds."""
    found = np.zeros(len(sizes))
    room = WHOLE
    while room > 0:
        if last[room] < 0:
            room -= 1
        else:
            found[last[room]] += 1
            room -= int(sizes[last[room]])
    return found


def _pivot(inverse: Floats, amounts: Floats, pattern: Floats) -> None:
    """The pattern enters the basis in place of the one that runs out first; both change in place."""
    direction = inverse @ pattern
    ratios = np.full(len(direction), np.inf)
    rising = direction > EPSILON
    ratios[rising] = amounts[rising] / direction[rising]
    leaving = int(ratios.argmin())
    inverse[leaving] /= direction[leaving]
    amounts[leaving] /= direction[leaving]
    others = np.flatnonzero(direction)
    others = others[others != leaving]
    inverse[others] -= np.outer(direction[others], inverse[leaving])
    amounts[others] -= direction[others] * amounts[leaving]
    np.maximum(amounts, 0.0, out=amounts)
