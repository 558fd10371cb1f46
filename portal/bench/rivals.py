"""The published policies that ours is held against, written anew from their papers: FGD and best fit."""

import numpy as np

from scheduling.planning.board import Column
from scheduling.planning.fragments import Fragments
from scheduling.planning.hosts import Asks, Floats, Hosts, Integers, View
from scheduling.planning.mix import WHOLE, Mix, mix_of

LARGEST_CPU, LARGEST_CARDS = 128_000, 8_000


class Fgd:
    """Fragmentation gradient descent: place where the node's fragment by the typical requests grows least."""

    def __init__(self, mix: Mix, hosts: Hosts) -> None:
        self.asks = Asks(mix.asks, hosts.models)
        self._fragments = Fragments(without_memory(mix), hosts)
        self._rows = np.arange(len(mix.asks))

    def column(self, view: View) -> Column:
        free = view.free
        level = self._fragments.level(view.cpu - self.asks.cpu)
        before = self._fragments.of(view)
        total = int(free.sum()) - self.asks.total
        several = self.asks.several
        # Cards as they stand, with the CPU that is left afterwards.
        used = self._fragments.usable(view.model, level[:, None], free[None, :])
        whole = view.whole - several
        after = total - used.sum(axis=1) + several * self._fragments.usable(view.model, level, WHOLE)
        after -= self._fragments.usable_whole(view.model, level, np.maximum(whole, 0))
        plain = score(before - after)
        card = np.zeros(len(plain), dtype=np.int64)
        one = np.flatnonzero(self.asks.lone)
        if len(free) and len(one):
            plain[one], card[one] = self._on_one_card(view, one, level[one], used[one], before)
        return Column(0.0, -plain, card)

    def prices(self, _: Hosts) -> None:
        return None

    def _on_one_card(
        self, view: View, one: Integers, level: Integers, used: Floats, before: float
    ) -> tuple[Floats, Integers]:
        """The best score over the cards on which it fits, and the first such card."""
        free = view.free[None, :]
        left = free - self.asks.lone[one][:, None]
        changed = self._fragments.usable(view.model, level[:, None], np.maximum(left, 0))
        whole = view.whole - (view.free == WHOLE)
        rooms = self._fragments.usable_whole(view.model, level[:, None], whole[None, :])
        total = int(view.free.sum()) - self.asks.lone[one][:, None]
        after = total - (used.sum(axis=1)[:, None] - used + changed) - rooms
        scores = np.where(left >= 0, score(before - after), -1.0)
        card = scores.argmax(axis=1)
        return scores[np.arange(len(one)), card], card


class BestFit:
    """Least free CPU and cards afterwards, as parts of the largest node, in whole percents; the fullest card."""

    def __init__(self, mix: Mix, hosts: Hosts) -> None:
        self.asks = Asks(mix.asks, hosts.models)

    def column(self, view: View) -> Column:
        cpu = (view.cpu - self.asks.cpu) / LARGEST_CPU
        cards = (int(view.free.sum()) - self.asks.total) / LARGEST_CARDS
        plain = -np.floor(100.0 * (1.0 - (cpu + cards) / 2.0))
        if not len(view.free):
            return Column(0.0, plain, np.zeros(len(plain), dtype=np.int64))
        left = view.free[None, :] - self.asks.lone[:, None]
        return Column(0.0, plain, np.where(left >= 0, left, 2 * WHOLE).argmin(axis=1))

    def prices(self, _: Hosts) -> None:
        return None


def score(gained: Floats) -> Floats:
    """Whole hundredths of the sigmoid, as published: many nodes tie, and the first in order is taken."""
    found: Floats = np.floor(100.0 / (1.0 + np.exp(-gained / 1000.0)))
    return found


def without_memory(mix: Mix) -> Mix:
    """Kinds that differ by memory alone are one kind."""
    merged = mix_of((ask._replace(memory_mib=0), part) for ask, part in zip(mix.asks, mix.parts, strict=True))
    return merged or mix
