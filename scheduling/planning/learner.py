"""The packing policy at work: a board whose judge is made anew from what has been asked for lately."""

from scheduling.planning.board import Board
from scheduling.planning.hosts import Hosts, Seat
from scheduling.planning.mix import Ask, Habit, Mix
from scheduling.planning.worth import USUAL, Weights, Worth

RELEARN = 5_000  # requests


class Learner:
    """Places by worth as soon as it knows a mix, by best fit until then. Knows no request before it comes."""

    def __init__(self, hosts: Hosts, mix: Mix | None = None, weights: Weights = USUAL, relearn: int = RELEARN) -> None:
        self.hosts = hosts
        self.weights = weights
        self.habit = Habit()
        self._relearn = relearn
        self._asked = 0
        self._young = mix is None
        if mix is not None:
            self.habit.know(mix)
        self.board = Board(hosts, self._judge(mix))

    def place(self, ask: Ask) -> Seat | None:
        self._learn(ask)
        return self.board.place(ask)

    def release(self, seat: Seat) -> None:
        self.board.release(seat)

    def _learn(self, ask: Ask) -> None:
        self.habit.add(ask)
        self._asked += 1
        young = self._young and self._asked < self._relearn and self._asked & (self._asked - 1) == 0  # 512, 1024, …
        if young or self._asked % self._relearn == 0:
            mix = self.habit.mix()
            if mix is not None:
                self.board.judge_by(self._judge(mix))

    def _judge(self, mix: Mix | None) -> Worth | None:
        return Worth(mix, self.hosts, self.weights) if mix is not None else None
