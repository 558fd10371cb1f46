"""What an action needs to be carried out: the cluster, the way to it, and what was seen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from uuid import UUID

from scheduling.cluster.port import ClusterPort
from scheduling.models import Cluster, Workload
from scheduling.planning.facts import ObjectFact, PodFact
from scheduling.planning.pods import holds
from scheduling.reconcile import launch
from scheduling.reconcile.chores import Chore, Done, work_off
from scheduling.reconcile.lease import Lease
from scheduling.reconcile.observe import Look
from scheduling.reconcile.steps import Found, found_in


@dataclass(frozen=True)
class Hands:
    cluster: Cluster
    port: ClusterPort
    look: Look
    ours: Lease | None = None
    done: Done = field(default_factory=Done)

    @property
    def now(self) -> datetime:
        return self.look.snapshot.now

    @cached_property
    def found(self) -> Found:
        return found_in(self.look.seen)

    @property
    def queued(self) -> bool:
        """Whether Kueue admits there; then a workspace is a Job as well."""
        return self.look.queue is not None

    @cached_property
    def runtime_classes(self) -> Mapping[str, str]:
        """Of the pools. Ask in the cycle's thread: it reads the tables, once."""
        return launch.runtime_classes(self.cluster)

    def row(self, pk: UUID) -> Workload | None:
        """As it was when this look followed it; whoever moves it finds out whether it still is."""
        return self.look.rows.get(pk)

    def object_of(self, workload: Workload) -> ObjectFact | None:
        return self.found.objects.get(workload.pk)

    def orphans_of(self, workload: Workload) -> list[PodFact]:
        """Pods of ours whose object was deleted over their heads (`kubectl delete --cascade=orphan`)."""
        pods = self.found.pods.get(workload.pk, ())
        return [pod for pod in pods if holds(pod) and pod.deleting_since is None]

    def work_off(self, chores: Sequence[Chore]) -> None:
        work_off(chores, self.done)
