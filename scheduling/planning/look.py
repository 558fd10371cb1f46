"""What was seen of one workload, and the step that follows from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from datetime import timedelta as td
from uuid import UUID

from scheduling.planning import pods as ask
from scheduling.planning.facts import NodeFact, ObjectFact, Phase, PodFact, Reason, WorkloadFact


@dataclass(frozen=True, slots=True)
class Move:
    """One step of one workload (or a remark, when `to` is where it stands), with the facts that go with it.

    A move to WAITING means that this attempt is over: its object is to be removed, its storage stays.
    """

    workload: UUID
    to: Phase
    reason: Reason
    text: str
    at: datetime  # when it happened, never before the phase it leaves and never after now
    node: str = ""
    pod: str = ""
    pod_uid: str = ""
    running_since: datetime | None = None  # the container's start, kept within the same bounds as `at`: the meter
    finished_at: datetime | None = None
    exit_code: int | None = None
    shun: str = ""  # a node that refused it
    failures: int | None = None  # the new count of failures in a row; None: leave it
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """Everything that was seen of one workload."""

    workload: WorkloadFact
    thing: ObjectFact | None  # its StatefulSet or Job
    pods: tuple[PodFact, ...]
    now: datetime
    nodes: Mapping[str, NodeFact] | None  # None: nobody looked at the nodes
    complete: bool
    seen_before: datetime | None = None  # when it was last seen, if nobody could look for a while; None: just before

    @property
    def age(self) -> td:
        return self.now - self.workload.phase_since

    @property
    def newest_live(self) -> PodFact | None:
        return ask.newest(pod for pod in self.pods if ask.live(pod))

    @property
    def holding(self) -> list[PodFact]:
        """Pods that hold something; not those whose node is known to be gone."""
        gone = self.complete and self.nodes is not None
        return [
            pod
            for pod in self.pods
            if ask.holds(pod) and not (gone and pod.node and pod.node not in (self.nodes or {}))
        ]

    @property
    def kept(self) -> PodFact | None:
        """The newest pod that has ended and is not let go."""
        return ask.newest(pod for pod in self.pods if ask.kept(pod))

    def step(
        self, to: Phase, reason: Reason, text: str, *, at: datetime | None = None, pod: PodFact | None = None
    ) -> Move:
        """Clocks of nodes differ from ours, so the instant is kept between the phase it leaves and now."""
        workload = self.workload
        return Move(
            workload=workload.id,
            to=to,
            reason=reason,
            text=text,
            at=max(workload.phase_since, min(at or self.now, self.now)),
            node=(pod.node if pod else "") or workload.node,
            pod=pod.name if pod else "",
            pod_uid=pod.uid if pod else "",
        )
