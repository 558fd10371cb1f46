"""Nodes as arrays: what each has free, thousandths of cards, CPU and memory, all exact integers."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduling.planning.mix import WHOLE, Ask

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Host(NamedTuple):
    """One empty node."""

    name: str
    model: str
    cards: int
    cpu_milli: int
    memory_mib: int


class Seat(NamedTuple):
    """Where something was placed: the host's number, and the numbers of its cards."""

    host: int
    ask: Ask
    cards: tuple[int, ...]


class View(NamedTuple):
    """What one host has free now."""

    free: Integers  # thousandths, by card
    cpu: int
    memory: int
    model: int  # its number
    kind: int  # the number of what it is when it is empty

    @property
    def whole(self) -> int:
        """Cards of which nothing is taken."""
        return int(np.count_nonzero(self.free == WHOLE))

    @property
    def key(self) -> tuple[bytes, int, int, int]:
        """Hosts with the same key are worth the same for everything."""
        return self.free.tobytes(), self.cpu, self.memory, self.kind


class Hosts:
    """All of them, in the order in which equals are taken."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self.names = tuple(host.name for host in hosts)
        self.models = tuple(sorted({host.model for host in hosts}))
        self.model = np.array([self.models.index(host.model) for host in hosts], dtype=np.int64)
        self.cards = np.array([host.cards for host in hosts], dtype=np.int64)
        self.cpu = np.array([host.cpu_milli for host in hosts], dtype=np.int64)
        self.memory = np.array([host.memory_mib for host in hosts], dtype=np.int64)
        self.free = np.zeros((len(hosts), max((host.cards for host in hosts), default=0)), dtype=np.int64)
        for number, host in enumerate(hosts):
            self.free[number, : host.cards] = WHOLE
        self.capacity = int(self.cards.sum()) * WHOLE
        kinds: dict[Host, int] = {}
        self.kind = np.array([kinds.setdefault(host._replace(name=""), len(kinds)) for host in hosts], dtype=np.int64)
        self.kinds = tuple(kinds)  # hosts without a name
        self._largest = (self.cpu.copy(), self.memory.copy())

    def __len__(self) -> int:
        return len(self.names)

    @property
    def taken(self) -> int:
        """Thousandths of cards in use."""
        return self.capacity - int(self.free.sum())

    def view(self, host: int) -> View:
        free = self.free[host, : self.cards[host]]
        return View(free, int(self.cpu[host]), int(self.memory[host]), int(self.model[host]), int(self.kind[host]))

    def fitting(self, ask: Ask) -> Flags:
        """Which hosts have room for it now."""
        fits = (self.cpu >= ask.cpu_milli) & (self.memory >= ask.memory_mib) & self.accepted(ask)
        if ask.cards == 1 and self.free.size:
            fits &= self.free.max(axis=1) >= ask.milli
        elif ask.cards:
            fits &= (self.free == WHOLE).sum(axis=1) >= ask.cards
        found: Flags = fits
        return found

    def could_fit(self, ask: Ask) -> Flags:
        """Which hosts would have room for it if they were empty."""
        cpu, memory = self._largest
        found: Flags = (
            (cpu >= ask.cpu_milli) & (memory >= ask.memory_mib) & (self.cards >= ask.cards) & self.accepted(ask)
        )
        return found

    def accepted(self, ask: Ask) -> Flags:
        """Which hosts are of a model that it accepts."""
        if not ask.models:
            return np.ones(len(self), dtype=np.bool_)
        wanted = np.array([model in ask.models for model in self.models], dtype=np.bool_)
        found: Flags = wanted[self.model]
        return found

    def tightest(self, host: int, ask: Ask) -> tuple[int, ...]:
        """The cards to take when nothing else decides: the fullest that has room, or the first whole ones."""
        free = self.view(host).free
        if ask.cards == 1:
            return (int(np.where(free >= ask.milli, free, 2 * WHOLE).argmin()),)
        return tuple(np.flatnonzero(free == WHOLE)[: ask.cards].tolist())

    def take(self, seat: Seat) -> None:
        """Raises ValueError where it does not fit: nothing is ever given out twice."""
        host, ask, cards = seat
        numbers = list(cards)
        short = self.free[host, numbers] < ask.milli
        if len(set(cards)) != ask.cards or short.any() or self.cpu[host] < ask.cpu_milli:
            raise ValueError(f"{self.names[host]} has no room for {ask}.")
        if self.memory[host] < ask.memory_mib:
            raise ValueError(f"{self.names[host]} has no memory for {ask}.")
        self.free[host, numbers] -= ask.milli
        self.cpu[host] -= ask.cpu_milli
        self.memory[host] -= ask.memory_mib

    def give_back(self, seat: Seat) -> None:
        """Raises ValueError where more would come back than the host has."""
        host, ask, cards = seat
        numbers = list(cards)
        if (self.free[host, numbers] + ask.milli > WHOLE).any():
            raise ValueError(f"{self.names[host]} cannot get {ask} back: nothing of that size is taken there.")
        self.free[host, numbers] += ask.milli
        self.cpu[host] += ask.cpu_milli
        self.memory[host] += ask.memory_mib


class Asks:
    """Requests as arrays, one row for each kind."""

    def __init__(self, asks: Sequence[Ask], models: Sequence[str]) -> None:
        self.all = tuple(asks)
        self.row = {ask: row for row, ask in enumerate(self.all)}
        self.cpu = np.array([ask.cpu_milli for ask in asks], dtype=np.int64)
        self.memory = np.array([ask.memory_mib for ask in asks], dtype=np.int64)
        self.cards = np.array([ask.cards for ask in asks], dtype=np.int64)
        self.total = np.array([ask.total for ask in asks], dtype=np.int64)
        self.lone = np.array([ask.milli if ask.cards == 1 else 0 for ask in asks], dtype=np.int64)
        self.several = np.array([ask.cards if ask.cards > 1 else 0 for ask in asks], dtype=np.int64)
        accepts = [[not ask.models or model in ask.models for model in models] for ask in asks]
        self.accepts = np.ascontiguousarray(np.array(accepts, dtype=np.bool_).reshape(len(asks), len(models)).T)

    def misfits(self, view: View) -> Flags:
        """Which of them have no room there now."""
        top = int(view.free.max()) if len(view.free) else 0
        found: Flags = (self.cpu > view.cpu) | (self.memory > view.memory) | (self.lone > top)
        found |= self.several > view.whole
        found |= ~self.accepts[view.model]
        return found
