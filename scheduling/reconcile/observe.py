"""Look: one picture of tables and cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from uuid import UUID

from scheduling import snapshot
from scheduling.cluster.port import ClusterPort, Observation
from scheduling.models import Cluster, Placement, Workload
from scheduling.planning.facts import Phase, Problem, QueueRules, Snapshot, WorkloadFact
from scheduling.planning.owners import disowned, unproven
from scheduling.reconcile import queueing, records, steps
from scheduling.reconcile.lease import Lease, LeaseLost
from scheduling.reconcile.lingering import Paid


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen, the picture made of it, and whether anything is new; the rows behind it, as the look left them."""

    seen: Observation
    snapshot: Snapshot
    changed: bool
    queue: queueing.Picture | None = None  # where the cluster queues with Kueue
    rows: Mapping[UUID, Workload] = field(default_factory=dict)
    placements: Mapping[UUID, Placement] = field(default_factory=dict)


def observe(cluster: Cluster, port: ClusterPort, now: datetime, ours: Lease | None = None) -> Look:
    """Ask the cluster, write down what is new, let phases follow, and make the planner's picture.

    An incomplete look writes nothing: what could not be read is unknown, not gone. Raises LeaseLost when the answer
    came so late that somebody else has taken over: an old picture would undo what they wrote.
    """
    seen = port.observe(now, ours.at_least if ours else None)
    if ours is not None and not ours.prolong():
        raise LeaseLost
    if ours is not None and seen.complete:
        ours.picture = port.picture()
    if not seen.complete:
        return Tables.read(cluster).look(seen, records.unwritten(cluster, seen), now)
    told, seen = seen, proven(cluster, seen)
    queue = queueing.look_at(cluster, port, seen, now)
    moved = queueing.follow(cluster, seen, queue, now) if queue else 0
    tables, blind = Tables.read(cluster), steps.blind_since(cluster, seen)
    moved += steps.follow(tables.rows, tables.facts, tables.placements, seen, now, blind=blind)
    if moved:  # first: whose meter ends here no longer pays for a card there
        tables = tables.followed()
    nodes = records.see_nodes(cluster, seen, now, changed=seen.changed, paid=tables.paid)
    records.see_pools(cluster, seen.sizes, seen.problems)
    port.taken(told)
    look = tables.look(seen, nodes, now, queue.rules if queue else None)
    return replace(look, changed=nodes.changed or moved > 0, queue=queue)


@dataclass(frozen=True)
class Tables:
    """The open rows and placements of a cluster, read once for a look; following the picture moves the rows along."""

    cluster: Cluster
    rows: Sequence[Workload]
    placements: Mapping[UUID, Placement]

    @classmethod
    def read(cls, cluster: Cluster) -> "Tables":
        rows = list(snapshot.open_workloads(cluster))
        for row in rows:
            row.cluster = cluster
        return cls(cluster, rows, open_placements(cluster))

    def followed(self) -> "Tables":
        """The same after rows have moved along: without those that have ended, and with the placements of now."""
        left = [row for row in self.rows if row.phase != Phase.ENDED]
        return Tables(self.cluster, left, open_placements(self.cluster))

    @property
    def paid(self) -> Paid:
        return {(found.workload_id, found.node) for found in self.placements.values()}

    @cached_property
    def facts(self) -> tuple[WorkloadFact, ...]:
        """Of the rows as they are when they are first asked for."""
        return snapshot.facts_of(self.cluster, self.rows, list(self.placements.values()))

    def look(self, seen: Observation, nodes: records.Seen, now: datetime, rules: QueueRules | None = None) -> Look:
        """The picture that follows from all of it."""
        picture = snapshot.from_look(
            self.cluster, seen, nodes.nodes, now, rules, empty_since=nodes.empty_since, workloads=self.facts
        )
        found = {row.pk: row for row in self.rows}
        return Look(seen, picture, changed=False, rows=found, placements=self.placements)


def open_placements(cluster: Cluster) -> dict[UUID, Placement]:
    return {found.workload_id: found for found in Placement.objects.filter(cluster=cluster, ended_at=None)}


def proven(cluster: Cluster, seen: Observation) -> Observation:
    """The look, in which pods that only wear our labels are others': nobody is charged by a label that anybody may set.

    A pod that has lost its object (`kubectl delete --cascade=orphan`) is still known by its own uid.
    """
    doubtful = {pod.uid for pod in unproven(seen.pods, seen.objects)}
    if not doubtful:
        return seen
    known = Placement.objects.filter(cluster=cluster, pod_uid__in=doubtful).values_list("pod_uid", flat=True)
    others = doubtful - set(known)
    if not others:
        return seen
    problems = [
        Problem(
            pod.namespace, "metadata.labels", f"Pod {pod.name} wears Berth's labels but was not made for a workload."
        )
        for pod in seen.pods
        if pod.uid in others
    ]
    nodes = {pod.node for pod in seen.pods if pod.uid in others}
    changed = None if seen.changed is None else seen.changed | nodes
    pods = disowned(seen.pods, others)
    return replace(seen, pods=pods, problems=(*seen.problems, *problems), changed=changed)
