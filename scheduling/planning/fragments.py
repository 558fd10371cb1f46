"""How much of what is free the usual requests cannot use, as defined by FGD (Weng et al., USENIX ATC 2023).

For one kind of request, the fragment of a node is all that is free where the request does not fit at all, and else
the cards that are too small for it; requests without cards can use none. The fragment by a mix is the mean over it.
CPU counts, memory does not. It is computed by tables: by what is left of the CPU, and of a card or of whole cards.
"""

import numpy as np

from scheduling.planning.hosts import Asks, Floats, Hosts, Integers, View
from scheduling.planning.mix import WHOLE, Mix

TYPICAL = 0.95  # by count: the most frequent kinds until so much is reached


class Fragments:
    """The fragment of any node of a fleet's models, by a mix."""

    def __init__(self, mix: Mix, hosts: Hosts, *, typical: float = TYPICAL) -> None:
        mix = most_frequent(mix, typical)
        asks = Asks(mix.asks, hosts.models)
        parts = np.array(mix.parts)
        most = int(hosts.cards.max()) if len(hosts) else 0
        self.cpus = np.unique(asks.cpu)
        self._usable = np.zeros((len(hosts.models), len(self.cpus) + 1, WHOLE + 1))
        self._usable_whole = np.zeros((len(hosts.models), len(self.cpus) + 1, most + 1))
        for row in np.flatnonzero(asks.total > 0).tolist():
            models = np.flatnonzero(asks.accepts[:, row])
            enough = slice(int(np.searchsorted(self.cpus, asks.cpu[row])) + 1, None)
            table = self._usable if asks.lone[row] else self._usable_whole
            least = int(asks.lone[row] or asks.several[row])
            table[models, enough, least:] += parts[row]
        self._usable *= np.arange(WHOLE + 1)
        self._usable_whole *= WHOLE * np.arange(most + 1)

    def level(self, cpu: Integers | int) -> Integers:
        """The row of the tables for so much free CPU."""
        return np.searchsorted(self.cpus, cpu, side="right")

    def usable(self, model: int, level: Integers | int, free: Integers | int) -> Floats:
        """Of single cards with so much free, what an average request could use."""
        found: Floats = self._usable[model, level, free]
        return found

    def usable_whole(self, model: int, level: Integers | int, whole: Integers | int) -> Floats:
        """Of so many whole cards, what an average request of several could use."""
        found: Floats = self._usable_whole[model, level, whole]
        return found

    def of(self, view: View) -> float:
        """Thousandths of cards that an average request cannot use."""
        level = self.level(view.cpu)
        used = self.usable(view.model, level, view.free).sum() + self.usable_whole(view.model, level, view.whole)
        return float(view.free.sum() - used)


def fragmentation(mix: Mix, hosts: Hosts) -> float:
    """The part of all free cards that an average request of the mix cannot use, 0 … 1; 0 where nothing is free."""
    free = int(hosts.free.sum())
    fragments = Fragments(mix, hosts, typical=1.0)
    return sum(fragments.of(hosts.view(host)) for host in range(len(hosts))) / free if free else 0.0


def most_frequent(mix: Mix, typical: float) -> Mix:
    """The kinds that come most often, until they are so large a part of all; equals in the mix's order."""
    rows = sorted(zip(mix.parts, mix.asks, strict=True), key=lambda row: -row[0])
    kept, total = [], 0.0
    for part, ask in rows:
        if total >= typical:
            break
        kept.append((part, ask))
        total += part
    return Mix(tuple(ask for _, ask in kept), tuple(part / total for part, _ in kept))
