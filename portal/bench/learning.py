"""Berth's own way with a fleet of cut cards: it learns what is usually asked for, and weighs each cut."""

from collections import Counter, deque
from collections.abc import Iterator
from fractions import Fraction as F

from portal.bench.slicing import BestFit, Counts, Fleet, System
from scheduling.planning.carrying import Yard
from scheduling.planning.weighing import Terms, won, worth_it_ahead

LEARNED = 2_000  # requests that are remembered
REFRESH = 100  # requests after which the demand is learned anew
ENOUGH = 50  # that have to have ended before anything is said to be usual
STAYS = 6  # for which a layout is taken to last
GRAIN = 1_000  # of a usual number of instances


class Weighed(BestFit):
    """As best fit does, until enough is learned. Then a cut is what wins most: what waits, and what the layout will
    carry of the usual demand, without what the old one would have carried meanwhile."""

    def __init__(self, system: System) -> None:
        super().__init__(system)
        self.most = max(system.compute)
        self.recent: deque[tuple[int, float]] = deque(maxlen=LEARNED)
        self.held, self.running, self.ended, self.since = 0.0, 0, 0, 0.0  # minutes of slices, slices, slices, minute
        self.asked_for = 0
        self.yard: Yard | None = None
        self.terms = Terms(F(system.cut_minutes), F(0))
        bare = tuple(0 for _ in system.names)
        self.named = {layout: self._of_one_card(layout) for layout in (bare, *system.layouts)}

    def asked(self, profile: int, now: float) -> None:
        self.recent.append((profile, now))
        self.asked_for += 1
        if self.asked_for % REFRESH == 0 and self.ended >= ENOUGH:
            self._learn(now)

    def ran(self, by: int, now: float) -> None:
        self.held += self.running * (now - self.since)
        self.since = now
        self.running += by
        self.ended += by < 0

    def cut_for(self, profile: int, fleet: Fleet) -> tuple[int, Counts] | None:
        yard = self._counted(fleet)
        if yard is None:
            return super().cut_for(profile, fleet)
        served = F(self.system.compute[profile], self.most)
        found = [(self._won(yard, *option, served), -node, option[1]) for node, option in self._options(profile, fleet)]
        best = max(found, default=(F(0), 0, ()))
        return (-best[1], best[2]) if best[0] > 0 else None

    def came_idle(self, node: int, fleet: Fleet) -> Counts | None:
        yard = self._counted(fleet)
        if yard is None:
            return None
        before = fleet.layout[node]
        after = max(self.system.layouts, key=lambda one: self._won(yard, before, one))
        named = self.named[before], self.named[after]
        return after if worth_it_ahead(yard, self.terms, *named, self.system.cards) else None

    def _options(self, profile: int, fleet: Fleet) -> Iterator[tuple[int, tuple[Counts, Counts]]]:
        for before, node in fleet.idle():
            yield from ((node, (before, after)) for after in self.system.layouts if after[profile] and after != before)

    def _won(self, yard: Yard, before: Counts, after: Counts, served: F = F(0)) -> F:
        return won(yard, self.terms, self.named[before], self.named[after], self.system.cards, served)

    def _of_one_card(self, layout: Counts) -> dict[str, int]:
        return {name: count // self.system.cards for name, count in zip(self.system.names, layout, strict=True)}

    def _learn(self, now: float) -> None:
        """Minutes of slices over slices that ended is the mean stay, also while many have not ended yet."""
        stay = F(round(self.held / self.ended * GRAIN), GRAIN)
        span = F(max(1, round((now - self.recent[0][1]) * GRAIN)), GRAIN)
        seen = Counter(profile for profile, _ in self.recent)
        usual = {name: seen[number] * stay / span for number, name in enumerate(self.system.names)}
        weights = {name: F(size, self.most) for name, size in zip(self.system.names, self.system.compute, strict=True)}
        self.yard = Yard(usual, weights, {})
        self.terms = Terms(F(self.system.cut_minutes), stay * STAYS)

    def _counted(self, fleet: Fleet) -> Yard | None:
        """With all slices that there are, or will be once their cuts are done."""
        if self.yard is not None:
            totals = map(sum, zip(*fleet.layout, strict=True))
            self.yard.stock.update(zip(self.system.names, totals, strict=True))
        return self.yard
