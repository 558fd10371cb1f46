"""The wall to Kubernetes: everything that Berth asks of a cluster, in nine verbs.

The same adapter (`client.py`) stands behind it in the demo, in tests and in production; only the server differs.
Every verb may be repeated: twice is the same as once. Failures are `ClusterError`s with a sentence.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from datetime import timedelta as td
from typing import TYPE_CHECKING, Any, Protocol

from scheduling.planning.facts import NodeFact, ObjectFact, PodFact, Problem

if TYPE_CHECKING:
    from scheduling.cluster.kueue_reading import Queues

Document = Mapping[str, Any]
"""A Kubernetes object as plain dicts and lists."""


NOT_NOW = "It cannot be used now; the operator sees why."


class ClusterError(Exception):
    """The cluster could not do it; the text is a sentence. `retry` says whether trying again can help."""

    def __init__(
        self,
        text: str,
        *,
        status: int | None = None,
        retry: bool = True,
        after: float | None = None,
        for_operator: bool = False,
    ) -> None:
        """`for_operator`: about addresses, files or our own rights, which are nobody else's business."""
        super().__init__(text)
        self.status = status
        self.retry = retry
        self.after = after  # seconds, from Retry-After
        self.for_operator = for_operator

    @property
    def for_everybody(self) -> str:
        """What may stand on a tenant's page."""
        return NOT_NOW if self.for_operator else str(self)


class WentSilent(ClusterError):
    """A stream that is open and says nothing: nobody knows whether anything happened."""


@dataclass(frozen=True, slots=True)
class Ref:
    """Names one object; `uid` guards against a namesake."""

    kind: str  # StatefulSet, Job, Namespace, PersistentVolumeClaim, ...
    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class PoolSize:
    """What the provider says of one pool."""

    pool: str
    wished: int
    ready: int
    message: str = ""  # the provider's own words when it cannot deliver


@dataclass(frozen=True, slots=True)
class Picture:
    """How far somebody has seen and written a cluster: no later look may show less.

    Versions are of one kind of object each, and only of one cluster; `torn` when who made it died in the middle.
    """

    by: str  # whose mirror
    identity: str  # of the cluster
    versions: Mapping[str, int]
    torn: bool = False


@dataclass(frozen=True, slots=True)
class Observation:
    """One consistent look: all lists read, or `complete` is False and `problems` says what is missing."""

    at: datetime
    nodes: tuple[NodeFact, ...]
    pods: tuple[PodFact, ...]
    objects: tuple[ObjectFact, ...]
    sizes: tuple[PoolSize, ...]
    complete: bool
    problems: tuple[Problem, ...]
    changed: frozenset[str] | None = None  # nodes that differ, or whose pods do, since the last look that was taken
    heard_at: datetime | None = None  # wall clock: when the slowest of its streams last said anything; None: lists
    age: td = td(0)  # how old the picture was when it was asked for; on the wall clock
    revision: int | None = None  # the same from the same mirror: nothing that matters has changed


@dataclass(frozen=True, slots=True)
class EventFact:
    """What Kubernetes says about an object or a pod of a workload."""

    at: datetime | None  # last seen then; None: nobody says
    about: str  # "Pod notebook-1a2b3c4d-0"
    warning: bool
    reason: str  # FailedScheduling, Pulled, ...
    text: str
    times: int  # how often it was seen
    source: str  # kubelet, default-scheduler, ...


@dataclass(frozen=True, slots=True)
class Exposition:
    """What the DCGM exporter of one node printed, or why it could not be read."""

    node: str
    text: str | None
    problem: str = ""


class ClusterPort(Protocol):
    def observe(self, now: datetime, at_least: Picture | None = None) -> Observation:
        """Nodes, pods, our objects and pool sizes; not less than what somebody else has seen and written."""

    def taken(self, seen: Observation) -> None:
        """A look is written down; `changed` of the next ones counts from there."""

    def picture(self) -> Picture:
        """How far this port has seen and written, for whoever looks next."""

    def put(self, document: Document) -> str:
        """Bring one document into the cluster under its deterministic name, by server-side apply or, where its kind
        is only ever created, by a creation; returns its uid.

        Refuses (ClusterError, retry=False) when an object of that name belongs to somebody else.
        """

    def remove(self, ref: Ref) -> bool:
        """Delete one object of ours; True when it was still there. Somebody else's is never touched."""

    def remove_by_force(self, ref: Ref) -> bool:
        """Take out a pod of ours, named by its uid, whatever holds it; True when it was still there.

        On a node that does not answer its container may still run: only on the operator's word.
        """

    def scale(self, ref: Ref, replicas: int) -> None:
        """Set the replicas of a StatefulSet of ours."""

    def cordon(self, node: str, *, on: bool, marks: Mapping[str, str | None]) -> None:
        """(Un)mark a node unschedulable and set or remove (None) annotations of ours."""

    def cut(self, node: str, config: str) -> None:
        """Ask the MIG manager for another layout by the node's label."""

    def resize(self, pool: str, nodes: int, drop: Iterable[str]) -> None:
        """Ask the provider for `nodes` nodes, and to give back `drop` first."""

    def label(self, node: str, labels: Mapping[str, str | None]) -> None:
        """Set or remove (None) labels of ours on a node."""

    def queues(self) -> "Queues":
        """Our queues in the cluster's Kueue, and what it says of each workload."""

    def logs(self, namespace: str, pod: str, *, lines: int) -> str:
        """The last lines that the pod's main container printed."""

    def events(self, namespace: str, name: str) -> list[EventFact]:
        """What Kubernetes says about a workload's object of this name and its pods, newest last."""

    def metrics(self, nodes: Iterable[str]) -> list[Exposition]:
        """DCGM expositions of these nodes; a node that fails yields a problem, never an exception."""
