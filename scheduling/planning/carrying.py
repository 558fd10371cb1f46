"""How much of a usual demand so many slices carry, and what one layout instead of another changes about it.

Where slices of one profile are wanted at random, and what finds none goes without, Erlang's loss formula says how many
are in use on average. It is the fair way to weigh layouts against each other: the tenth slice of a profile is worth
much where fifteen are wanted, and little where five are. It is computed in whole numbers, so that two machines that
look at the same facts decide the same.
"""

from collections.abc import Mapping
from fractions import Fraction as F
from math import lcm

ONE = 1 << 32  # stands for 1 where Erlang's formula is computed


class Line:
    """One profile: `load` is how many instances would be in use if there were enough for everybody."""

    def __init__(self, load: F) -> None:
        self._load = load.numerator * ONE // load.denominator
        self._refused = [ONE]  # by number of instances: the part of the demand that finds none

    def carried(self, instances: int) -> int:
        """Instances in use on average, in parts of ONE."""
        refused = self._refused
        for number in range(len(refused), instances + 1):
            offered = self._load * refused[-1] // ONE
            refused.append(offered * ONE // (number * ONE + offered))
        return self._load * (ONE - refused[max(0, instances)]) // ONE


class Yard:
    """All instances of one kind of card, by profile, and what is usually wanted of them."""

    def __init__(self, usual: Mapping[str, F], weights: Mapping[str, F], stock: Mapping[str, int]) -> None:
        """`weights` says what one instance counts for, in cards. What nobody usually wants carries nothing."""
        self._lines = {name: Line(load) for name, load in usual.items() if load > 0 and name in weights}
        self._scale = lcm(*(weight.denominator for weight in weights.values()))
        self._weights = {name: int(weights[name] * self._scale) for name in self._lines}
        self.stock = {name: stock.get(name, 0) for name in self._lines}

    def gain(self, before: Mapping[str, int], after: Mapping[str, int], cards: int = 1) -> F:
        """Cards in use, on average, that are won (below 0: lost) where so many cards change their layout."""
        won = sum(self._change(name, (after.get(name, 0) - before.get(name, 0)) * cards) for name in self._lines)
        return F(won, self._scale * ONE)

    def carries(self, layout: Mapping[str, int], cards: int = 1) -> F:
        """Cards that are not in use while cards of this layout are out of service."""
        return -self.gain(layout, {}, cards)

    def move(self, before: Mapping[str, int], after: Mapping[str, int], cards: int = 1) -> None:
        """From now on they are cut so."""
        for name in self.stock:
            self.stock[name] += (after.get(name, 0) - before.get(name, 0)) * cards

    def _change(self, name: str, difference: int) -> int:
        if not difference:
            return 0
        line, present = self._lines[name], self.stock[name]
        return self._weights[name] * (line.carried(present + difference) - line.carried(present))
