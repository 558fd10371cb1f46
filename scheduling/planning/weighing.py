"""Is a cut worth what it costs?

All in card-minutes. A cut wins the waiting work that it lets in, for about as long as work stays, and what the new
layout carries beyond the old one, for as long as layouts last. It costs what the old one would have carried while its
cards are out of service. Where nobody waits, the gain must be several times whole cards out of service for that time:
so layouts do not swing with every small change of what is usually asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction as F

from scheduling.planning.carrying import Yard
from scheduling.planning.facts import CutRules

CAUTION = 2  # times its cost, that a cut has to win where nobody waits for it
STAYS = F(1, 3)  # of the horizon, that work stays which is let in

Slices = Mapping[str, int]  # profile -> instances on one card; "" is the card as a whole


@dataclass(frozen=True, slots=True)
class Terms:
    """Minutes: out of service for a cut, and for which a layout is taken to last."""

    minutes: F
    horizon: F

    @classmethod
    def of(cls, rules: CutRules) -> "Terms":
        return cls(F(rules.minutes), F(int(rules.horizon.total_seconds()), 60))


def won(yard: Yard, terms: Terms, before: Slices, after: Slices, cards: int, served: F = F(0)) -> F:
    """By cutting so many cards of one layout to another one, which lets in `served` cards of waiting work."""
    gained = terms.horizon * (yard.gain(before, after, cards) + STAYS * served)
    return gained - terms.minutes * yard.carries(before, cards)


def worth_it_ahead(yard: Yard, terms: Terms, before: Slices, after: Slices, cards: int) -> bool:
    """Although nobody waits for it."""
    return won(yard, terms, before, after, cards) > CAUTION * terms.minutes * cards
