"""What a placement costs: how much less the node can still be used for, by what is usually asked for.

Three things are lost by a placement, each compared before and after: the value of the free parts of cards
(`cardvalue`), the fluid capacity Φ of the node, at a price that rises where the models that some requests insist on
get scarce, and the room for requests of several cards. See docs/decisions/0020-packing-by-worth.md for where the
numbers come from and what was tried.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from scheduling.planning.board import Column
from scheduling.planning.cardvalue import card_values
from scheduling.planning.hosts import Asks, Flags, Floats, Host, Hosts, Integers, View
from scheduling.planning.mix import WHOLE, Mix

# Pods use less CPU and memory for a card than the mean, or as much.
STRETCH = 1.0 / np.array([0.3, 0.475, 0.65, 0.825, 1.0])
GRAIN = 2.0**20  # weights are multiples of its inverse, so that their sums are exact and equals stay equal
Numbers = Floats | Integers | float
LITTLE = 1e-12  # instead of nothing asked for at all


@dataclass(frozen=True, slots=True)
class Weights:
    """How the parts of the cost stand to each other; the unit is a thousandth of a card."""

    cards: float = 3e3  # of the value lost on the card
    fuller: float = 1e-3  # of the card's free thousandths: of equals the fuller card
    rooms: float = 0.7  # of the room lost for requests of several cards
    rarity: float = 0.7  # of the part of the fleet that could give such a room: its inverse's power
    hope: float = 0.6  # of a room for which a card is missing, and as much again for each further one
    scarcity: float = 0.1  # of the price that scarce models cost more
    floor: float = 0.003  # of what is left of a model, as a part of the fleet
    steepness: float = 1.5


USUAL = Weights()


class State(NamedTuple):
    """What a node has free."""

    model: str
    free: tuple[int, ...]  # thousandths, by card
    cpu_milli: int
    memory_mib: int
    kind: int  # of host, as the fleet numbers them

    @classmethod
    def of(cls, hosts: Hosts, host: int) -> "State":
        view = hosts.view(host)
        return cls(hosts.models[view.model], tuple(view.free.tolist()), view.cpu, view.memory, view.kind)


class Worth:
    """Judges by a mix; made for a fleet, since it counts that fleet's models."""

    def __init__(self, mix: Mix, hosts: Hosts, weights: Weights = USUAL) -> None:
        self.asks = Asks(mix.asks, hosts.models)
        self.weights = weights
        parts = np.array(mix.parts)
        self._total = self.asks.total.astype(np.float64)
        self._lone = self.asks.lone > 0
        self._cpu, self._memory = _per_milli(self.asks, parts)
        self._sizes, self._of_size = _sizes(self.asks)
        self._wishes, self._wanted = _wishes(self.asks, parts)
        self.values = card_values(mix.shares())
        self._lost = _losses(self._sizes, self.values, weights)
        self._models = hosts.models
        self._price = self.prices(hosts)
        most = int(hosts.cards.max()) if len(hosts) else 0
        self._rooms, self._room_weights = _rooms(self.asks, _wanted_rooms(self.asks, parts, hosts, weights), most)
        self._hopes = _hopes(self._rooms, self._room_weights, weights.hope, hosts.kinds)
        self._open_weights = _exact(self._room_weights * (1.0 - weights.hope))

    def column(self, view: View) -> Column:
        on_cards = self._lost[:, view.free] if len(view.free) else np.zeros((len(self._lost), 1))
        choice = on_cards.argmin(axis=1)
        plain = on_cards[np.arange(len(choice)), choice][self._of_size]
        card = choice[self._of_size]
        free = float(view.free.sum())
        before = self.fluid(free, float(view.cpu), float(view.memory))
        after = self.fluid(free - self._total, view.cpu - self.asks.cpu, view.memory - self.asks.memory)
        if len(self._rooms[0]) and len(view.free):
            plain = plain + self._rooms_lost(view, card)
        return Column(before - after, plain, card)

    def fluid(self, free: Numbers, cpu: Numbers, memory: Numbers) -> Floats:
        """Φ: the thousandths that the usual pods could use, were they fluid."""
        beside = np.minimum(cpu / self._cpu, memory / self._memory)
        found: Floats = np.minimum(free, np.multiply.outer(STRETCH, beside)).sum(axis=0) / len(STRETCH)
        return found

    def prices(self, hosts: Hosts) -> Floats:
        """By model: 1, and more for each wish that names the model and for which little is left."""
        left = np.zeros(len(hosts.models))
        np.add.at(left, hosts.model, self.fluid(hosts.free.sum(axis=1), hosts.cpu, hosts.memory))
        capacity = max(1, hosts.capacity)
        prices = np.ones(len(hosts.models))
        for models, part in zip(self._wishes, self._wanted, strict=True):
            scarce = max(0.0, left[models].sum() / capacity) + self.weights.floor
            prices[models] += self.weights.scarcity * part * scarce**-self.weights.steepness
        found: Floats = prices / prices.min(initial=np.inf)
        return found

    def cost(self, before: State, after: State) -> float:
        """The same for one change of one node, at the prices of the fleet as it was when this was made."""
        price = self._price[self._models.index(before.model)] if before.model in self._models else 1.0
        fluid = [self.fluid(float(sum(state.free)), state.cpu_milli, state.memory_mib) for state in (before, after)]
        changed = [old for old, new in zip(before.free, after.free, strict=True) if old != new]
        found = price * (fluid[0] - fluid[1]) + self._room(before) - self._room(after)
        if len(changed) == 1:
            lost = sum(self.values[free] for free in before.free) - sum(self.values[free] for free in after.free)
            found += self.weights.cards * lost + self.weights.fuller * changed[0]
        return float(found)

    def _room(self, state: State) -> float:
        """What the node's room for requests of several cards is worth."""
        cards, cpu, memory = self._rooms
        whole = sum(free == WHOLE for free in state.free)
        has = (cards <= whole) & (cpu <= state.cpu_milli) & (memory <= state.memory_mib)
        return float(self._open_weights[has].sum() + self._hopes[state.kind, whole])

    def _rooms_lost(self, view: View, card: Integers) -> Floats:
        """Room for requests of several cards, before and after each kind of request."""
        cards, cpu, memory = self._rooms
        whole = view.free == WHOLE
        count = int(whole.sum())
        left = count - self.asks.several - (self._lone & whole[card])
        hopes = self._hopes[view.kind]
        hope: Floats = hopes[count] - hopes[np.maximum(left, 0)]
        open_now = np.flatnonzero((cards <= count) & (cpu <= view.cpu) & (memory <= view.memory))
        if not len(open_now):
            return hope
        weights = self._open_weights[open_now]
        still = cards[open_now] <= left[:, None]
        still &= cpu[open_now] <= (view.cpu - self.asks.cpu)[:, None]
        still &= memory[open_now] <= (view.memory - self.asks.memory)[:, None]
        found: Floats = weights.sum() - still @ weights
        return found + hope


def _per_milli(asks: Asks, parts: Floats) -> tuple[float, float]:
    """Mean CPU and memory per thousandth of a card, over requests with cards."""
    with_cards = asks.total > 0
    milli = float((parts * asks.total).sum()) or 1.0
    cpu = float((parts * asks.cpu)[with_cards].sum()) / milli
    memory = float((parts * asks.memory)[with_cards].sum()) / milli
    return max(cpu, LITTLE), max(memory, LITTLE)


def _sizes(asks: Asks) -> tuple[Integers, Integers]:
    """The sizes of one-card requests, 0 last for all others; and for each request, which of them is its own."""
    sizes = np.unique(asks.lone[asks.lone > 0])
    own = np.where(asks.lone > 0, np.searchsorted(sizes, asks.lone), len(sizes))
    return np.append(sizes, 0), own


def _losses(sizes: Integers, values: Floats, weights: Weights) -> Floats:
    """What a card with 0 … 1000 free loses to each size; infinite where it has no room. The last row costs nothing."""
    found = np.full((len(sizes), WHOLE + 1), np.inf)
    for row, size in enumerate(sizes[:-1].tolist()):
        free = np.arange(size, WHOLE + 1)
        found[row, size:] = weights.cards * (values[free] - values[free - size]) + weights.fuller * free
    found[-1] = 0.0
    return found


def _wishes(asks: Asks, parts: Floats) -> tuple[list[Flags], list[float]]:
    """Each set of models that requests with cards accept, and which part of the cards asked for insists on it."""
    total = float((parts * asks.total).sum()) or 1.0
    found: dict[bytes, tuple[Flags, float]] = {}
    for row in np.flatnonzero(asks.total > 0).tolist():
        models = asks.accepts[:, row]
        _, before = found.get(models.tobytes(), (models, 0.0))
        found[models.tobytes()] = (models, before + float(parts[row]) * float(asks.total[row]))
    return [models for models, _ in found.values()], [wanted / total for _, wanted in found.values()]


def _wanted_rooms(asks: Asks, parts: Floats, hosts: Hosts, weights: Weights) -> Floats:
    """The weight of a card of a room, by request: the square root of how often so many cards are asked for at once,
    shared out among those requests by their parts, and more where few hosts could give the room."""
    often = np.zeros(int(asks.cards.max(initial=0)) + 1)
    np.add.at(often, asks.cards, parts)
    shared = parts / np.sqrt(np.maximum(often[asks.cards], LITTLE))
    found: Floats = weights.rooms * shared / _reach(asks, hosts) ** weights.rarity
    return found


def _reach(asks: Asks, hosts: Hosts) -> Floats:
    """The part of all cards on hosts that have room for the request while they are empty; infinite where none has."""
    found = np.full(len(asks.all), np.inf)
    for row in np.flatnonzero(asks.several).tolist():
        cards = int(hosts.cards[hosts.could_fit(asks.all[row])].sum())
        found[row] = cards * WHOLE / hosts.capacity if cards else np.inf
    return found


def _rooms(asks: Asks, weights: Floats, most: int) -> tuple[tuple[Integers, Integers, Integers], Floats]:
    """Needs of the first, second, … request of each kind with several cards on one node, as cards, CPU and memory."""
    needs: dict[tuple[int, int, int], float] = {}
    for row in np.flatnonzero(asks.several).tolist():
        cards, cpu, memory = int(asks.several[row]), int(asks.cpu[row]), int(asks.memory[row])
        for times in range(1, most // cards + 1):
            need = (times * cards, times * cpu, times * memory)
            needs[need] = needs.get(need, 0.0) + float(weights[row]) * WHOLE * cards
    table = np.array(sorted(needs), dtype=np.int64).reshape(len(needs), 3)
    return (table[:, 0], table[:, 1], table[:, 2]), np.array([needs[need] for need in sorted(needs)])


def _hopes(rooms: tuple[Integers, Integers, Integers], weights: Floats, hope: float, kinds: Sequence[Host]) -> Floats:
    """What rooms are worth that a host of this kind (row) may have again, with so many cards whole (column)."""
    most = max((kind.cards for kind in kinds), default=0)
    found = np.zeros((len(kinds), most + 1))
    for row, kind in enumerate(kinds):
        could = (rooms[0] <= kind.cards) & (rooms[1] <= kind.cpu_milli) & (rooms[2] <= kind.memory_mib)
        for need, weight in zip(rooms[0][could].tolist(), weights[could].tolist(), strict=True):
            found[row] += weight * hope ** np.maximum(1, need - np.arange(most + 1))
    return _exact(found)


def _exact(numbers: Floats) -> Floats:
    """Multiples of a power of two, whose sums are the same in any order."""
    found: Floats = np.round(numbers * GRAIN) / GRAIN
    return found
