"""The table cost[kind of request, host], kept in step with what is placed and released, and the place to take.

The table stands in two parts, since the prices of models change for all hosts at once: cost = price · priced + plain,
infinite where it does not fit. A placement changes one host, so one column is computed anew; hosts in equal states
share it when the table is made. Of equal costs the first host in order is taken, so the judges keep equals exact.
"""

from typing import NamedTuple, Protocol

import numpy as np

from scheduling.planning.hosts import Asks, Floats, Hosts, Integers, Seat, View
from scheduling.planning.mix import Ask

REFRESH = 200  # requests after which the prices are looked up again


class Column(NamedTuple):
    """What each kind of request would cost on one host; whether it fits is not asked here."""

    priced: Floats | float  # by the model's price
    plain: Floats
    card: Integers  # the card that one-card requests take


class Judge(Protocol):
    """Says what is better; the board says what is possible."""

    asks: Asks

    def column(self, view: View, /) -> Column: ...

    def prices(self, hosts: Hosts, /) -> Floats | None:
        """By model; None: all cost 1."""


class Board:
    """Places requests on hosts as its judge thinks best; without a judge, by best fit."""

    def __init__(self, hosts: Hosts, judge: Judge | None = None) -> None:
        self.hosts = hosts
        self.judge_by(judge)

    def judge_by(self, judge: Judge | None) -> None:
        """Take another judge, as when more has been learned; what is placed stays."""
        self.judge = judge
        rows = len(judge.asks.all) if judge else 0
        shape = (rows, len(self.hosts))
        self.priced, self.plain = np.zeros(shape), np.zeros(shape)
        self.card = np.zeros(shape, dtype=np.int64)
        self._asked = 0
        self._fill()
        self.reprice()

    def place(self, ask: Ask) -> Seat | None:
        """Put it where it costs least; None where it fits nowhere."""
        self._count()
        seat = self.best(ask)
        if seat is not None:
            self.take(seat)
        return seat

    def best(self, ask: Ask) -> Seat | None:
        """Where it would cost least; nothing changes."""
        row = self.judge.asks.row.get(ask) if self.judge else None
        if row is None:
            return self._tightest(ask)
        costs = self.costs(row)
        host = int(costs.argmin())
        if costs[host] == np.inf:
            return None
        cards = (int(self.card[row, host]),) if ask.cards == 1 else self.hosts.tightest(host, ask)
        return Seat(host, ask, cards)

    def costs(self, row: int) -> Floats:
        """By host, for one kind of request."""
        if self._price is None:
            found: Floats = self.plain[row]
            return found
        found = self._price * self.priced[row]
        found += self.plain[row]
        return found

    def take(self, seat: Seat) -> None:
        self.hosts.take(seat)
        self.look(seat.host)

    def release(self, seat: Seat) -> None:
        self.hosts.give_back(seat)
        self.look(seat.host)

    def look(self, host: int) -> None:
        """Compute one host's column anew."""
        if self.judge is None:
            return
        view = self.hosts.view(host)
        priced, plain, card = self.judge.column(view)
        plain[self.judge.asks.misfits(view)] = np.inf
        self.priced[:, host] = priced
        self.plain[:, host] = plain
        self.card[:, host] = card

    def reprice(self) -> None:
        prices = self.judge.prices(self.hosts) if self.judge else None
        self._price = None if prices is None else prices[self.hosts.model]

    def _fill(self) -> None:
        seen: dict[tuple[bytes, int, int, int], int] = {}
        for host in range(len(self.hosts)):
            first = seen.setdefault(self.hosts.view(host).key, host)
            if first == host:
                self.look(host)
            else:
                for table in (self.priced, self.plain, self.card):
                    table[:, host] = table[:, first]

    def _count(self) -> None:
        self._asked += 1
        if self._asked % REFRESH == 0:
            self.reprice()

    def _tightest(self, ask: Ask) -> Seat | None:
        """Best fit by what is left over, first of the host and then of the card."""
        fits = np.flatnonzero(self.hosts.fitting(ask))
        if not len(fits):
            return None
        left = self.hosts.free[fits].sum(axis=1) - ask.total
        host = int(fits[left.argmin()])
        return Seat(host, ask, self.hosts.tightest(host, ask) if ask.cards else ())
