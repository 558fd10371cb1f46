"""What a plan says: nouns that print as sentences, safest first.

An action is a value. Applying it twice is the same as applying it once; the order is stops before starts, cuts
before places, and sentences last.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction as F
from typing import ClassVar
from uuid import UUID

from scheduling.planning.facts import Reason


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


Action = Stop | Sleep | Reopen | Cut | Place | Queue | Withdraw | Resize | Note


@dataclass(frozen=True, slots=True)
class Plan:
    """All actions of one look at the cluster, in the order in which they are safe."""

    actions: tuple[Action, ...]

    @classmethod
    def of(cls, actions: Sequence[Action]) -> "Plan":
        return cls(tuple(sorted(actions, key=lambda action: action.rank)))

    def __str__(self) -> str:
        return "\n".join(str(action) for action in self.actions) or "nothing to do"
