"""The packing policy at work: a board whose judge is made anew from what has been asked for lately."""

from collections.abc import Callable

from scheduling.planning.board import Board, Judge
from scheduling.planning.hosts import Hosts, Seat
from scheduling.planning.mix import Ask, Habit, Mix
from scheduling.planning.worth import Worth

RELEARN = 5_000  # requests

Maker = Callable[[Mix, Hosts], Judge]


class Learner:
    """Places by worth as soon as it knows a mix, by best fit until then. Knows no request before it comes."""

    def __init__(self, hosts: Hosts, mix: Mix | None = None, judge: Maker = Worth, relearn: int = RELEARN) -> None:
        self.hosts = hosts
        self.habit = Habit()
        self._judge = judge
        self._relearn = relearn
        self._asked = 0
        self.board = Board(hosts, judge(mix, hosts) if mix else None)

    def place(self, ask: Ask) -> Seat | None:
        self._learn(ask)
        return self.board.place(ask)

    def release(self, seat: Seat) -> None:
        self.board.release(seat)

    def _learn(self, ask: Ask) -> None:
        self.habit.add(ask)
        self._asked += 1
        young = self._asked < self._relearn and self._asked & (self._asked - 1) == 0  # at 512, 1024, 2048, …
        if young or self._asked % self._relearn == 0:
            mix = self.habit.mix()
            if mix is not None:
                self.board.judge_by(self._judge(mix, self.hosts))
