"""The packing policy at work: a board whose judge is made anew from what has been asked for, and has left, lately."""

from dataclasses import replace

from scheduling.planning.board import Board
from scheduling.planning.hosts import Hosts, Seat
from scheduling.planning.mix import HALF_LIFE, Ask, Habit, Mix
from scheduling.planning.worth import USUAL, Weights, Worth

RELEARN = 5_000  # requests


class Learner:
    """Places by worth as soon as it knows a mix, by best fit until then. Knows no request before it comes.

    `churn` is how many placements leave for one that comes, lately: 0 in a fleet that only fills, 1 in a steady one.
    """

    def __init__(
        self, hosts: Hosts, mix: Mix | None = None, weights: Weights = USUAL, relearn: int = RELEARN, churn: float = 0.0
    ) -> None:
        self.hosts = hosts
        self.weights = weights
        self.churn = churn
        self.habit = Habit()
        self._relearn = relearn
        self._asked = 0
        self._young = mix is None
        if mix is not None:
            self.habit.know(mix)
        self.board = Board(hosts, self._judge(mix))

    def place(self, ask: Ask) -> Seat | None:
        self._learn(ask)
        seat = self.board.place(ask)
        if seat is not None:
            self.churn -= self.churn / HALF_LIFE
        return seat

    def release(self, seat: Seat) -> None:
        self.churn = min(1.0, self.churn + 1 / HALF_LIFE)
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
        """Rooms for requests of several cards count for more where all work leaves again."""
        rooms = self.weights.rooms * (1.0 + self.weights.reuse * round(self.churn, 2))
        return Worth(mix, self.hosts, replace(self.weights, rooms=rooms)) if mix is not None else None
