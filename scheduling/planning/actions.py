"""What a plan says: nouns that print as sentences, safest first.

An action is a value. Applying it twice is the same as applying it once; the order is stops before starts, cuts
before places, and sentences last.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction as F
from typing import ClassVar
from uuid import UUID

from scheduling.planning.facts import Reason
from scheduling.planning.wording import listed


@dataclass(frozen=True, slots=True)
class Stop:
    """End a workload: its object goes, its storage goes with it."""

    rank: ClassVar[int] = 10
    workload: UUID
    reason: Reason
    text: str

    def __str__(self) -> str:
        return f"stop {self.workload}: {self.text}"


@dataclass(frozen=True, slots=True)
class Sleep:
    """Scale a workspace to zero: storage stays, quota is free."""

    rank: ClassVar[int] = 15
    workload: UUID
    reason: Reason
    text: str

    def __str__(self) -> str:
        return f"put {self.workload} to sleep: {self.text}"


@dataclass(frozen=True, slots=True)
class Reopen:
    """Take a node back into service after its cut has been seen done, or when it is no longer to leave."""

    rank: ClassVar[int] = 18
    node: str
    text: str

    def __str__(self) -> str:
        return f"reopen node {self.node}: {self.text}"


@dataclass(frozen=True, slots=True)
class Cut:
    """Give an empty node another MIG layout."""

    rank: ClassVar[int] = 20
    node: str
    before: str
    after: str
    text: str

    def __str__(self) -> str:
        return f"cut node {self.node} from {self.before or 'uncut'} to {self.after}: {self.text}"


@dataclass(frozen=True, slots=True)
class Place:
    """Put a waiting workload on a node."""

    rank: ClassVar[int] = 30
    workload: UUID
    node: str
    pool: str
    resource: str
    count: int
    share: F

    def __str__(self) -> str:
        return f"place {self.workload} on {self.node}: {self.count} x {self.resource}"


@dataclass(frozen=True, slots=True)
class Queue:
    """Hand a waiting workload to the cluster's own queue, which admits it."""

    rank: ClassVar[int] = 31
    workload: UUID
    share: F

    def __str__(self) -> str:
        return f"hand {self.workload} to Kueue"


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Cordon an empty node and mark it as leaving; the next look re-checks before the pool shrinks."""

    rank: ClassVar[int] = 35
    node: str
    text: str

    def __str__(self) -> str:
        return f"withdraw node {self.node}: {self.text}"


@dataclass(frozen=True, slots=True)
class Resize:
    """Ask the provider for another number of nodes; `drop` names the nodes to give back first."""

    rank: ClassVar[int] = 40
    pool: str
    before: int
    after: int
    drop: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"resize pool {self.pool} from {self.before} to {self.after}: {self.text}"


@dataclass(frozen=True, slots=True)
class Note:
    """Tell the owner why a workload waits, and what would have to change."""

    rank: ClassVar[int] = 50
    workload: UUID
    reason: Reason
    text: str

    def __str__(self) -> str:
        return f"{self.workload} waits: {self.text}"


@dataclass(frozen=True, slots=True)
class Recut:
    """A node's layout before and after, whom that lets in, and what it costs: carried out, or put before a person."""

    node: str
    pool: str
    cards: int
    before: str  # names of MIG configs
    after: str
    unmade: Mapping[str, int]  # slices of the whole node that go, and that come; "" is a whole card
    made: Mapping[str, int]
    lets_in: tuple[UUID, ...]
    names: tuple[str, ...]  # theirs, in line
    served: F  # cards' worth of their work
    minutes: int  # that the node is out of service
    lost: F | None  # cards that would have been in use meanwhile; None: nobody knows what is usually asked for
    agreed: bool  # False: a person is asked first

    def __str__(self) -> str:
        return self.diff().replace("\n", "; ")

    def diff(self) -> str:
        """Lines: what changes, with - and + for slices that go and come, whom it lets in, what it costs."""
        cards = f"{self.cards} card{'' if self.cards == 1 else 's'}"
        return "\n".join(
            [
                f"node {self.node} of pool {self.pool}, {cards}: {self.before or 'uncut'} -> {self.after}",
                *(f"- {_slices(count, name)}" for name, count in sorted(self.unmade.items())),
                *(f"+ {_slices(count, name)}" for name, count in sorted(self.made.items())),
                f"lets in: {listed(self.names)}" if self.names else "lets in: nobody yet, what is usually asked for",
                f"costs: {cards} out of service for {self.minutes} min{self._lost_words()}",
            ]
        )

    def _lost_words(self) -> str:
        if self.lost is None:
            return ""
        return f"; {float(self.lost):.1f} of them would usually be in use meanwhile"


Action = Stop | Sleep | Reopen | Cut | Place | Queue | Withdraw | Resize | Note


@dataclass(frozen=True, slots=True)
class Plan:
    """All actions of one look at the cluster, in the order in which they are safe."""

    actions: tuple[Action, ...]
    recuts: tuple[Recut, ...] = ()  # what is cut, and what would be if a person agreed

    @classmethod
    def of(cls, actions: Sequence[Action], recuts: Sequence[Recut] = ()) -> "Plan":
        return cls(tuple(sorted(actions, key=lambda action: action.rank)), tuple(recuts))

    @property
    def proposals(self) -> tuple[Recut, ...]:
        """Cuts that wait for a person."""
        return tuple(recut for recut in self.recuts if not recut.agreed)

    def __str__(self) -> str:
        return "\n".join(str(action) for action in self.actions) or "nothing to do"


def _slices(count: int, profile: str) -> str:
    if profile:
        return f"{count} x {profile}"
    return f"{count} whole card{'' if count == 1 else 's'}"
