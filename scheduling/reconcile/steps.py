"""Phases follow what was seen: each workload's row takes the step that the cluster's picture calls for.

Only a complete picture moves phases: a pod that could not be read is not a pod that is gone.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from datetime import timedelta as td
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery

from scheduling.changes import Step, move, note
from scheduling.cluster.port import Observation
from scheduling.models import Cluster, Placement, Transition, Workload
from scheduling.planning.facts import Desired, NodeFact, ObjectFact, Phase, PodFact, Reason
from scheduling.planning.phases import Move, observed
from scheduling.snapshot import facts_of, open_workloads

BLIND = td(minutes=2)  # between two looks; less is the usual pace


@dataclass(frozen=True, slots=True)
class Found:
    """What the cluster shows for our workloads."""

    pods: Mapping[UUID, Sequence[PodFact]]
    objects: Mapping[UUID, ObjectFact]
    nodes: Mapping[str, NodeFact]


def found_in(seen: Observation) -> Found:
    pods: defaultdict[UUID, list[PodFact]] = defaultdict(list)
    for pod in seen.pods:
        if pod.workload is not None:
            pods[pod.workload].append(pod)
    return Found(pods, {item.workload: item for item in seen.objects}, {node.name: node for node in seen.nodes})


def follow(cluster: Cluster, seen: Observation, now: datetime) -> int:
    """Move every workload of the cluster that calls for it; returns how many moved."""
    found = found_in(seen)
    rows = list(with_last_stop(open_workloads(cluster)))
    open_placements = list(Placement.objects.filter(cluster=cluster, ended_at=None))
    placement_of = {placement.workload_id: placement for placement in open_placements}
    blind = blind_since(cluster, seen)
    moved = 0
    for row, fact in zip(rows, facts_of(cluster, rows, open_placements), strict=True):
        if row.phase == Phase.ASLEEP:
            moved += _wake(row, now)
        elif row.phase != Phase.PLACED or arrived(row, found.objects.get(row.pk)):
            pods = found.pods.get(fact.id, ())
            thing = found.objects.get(fact.id)
            step = observed(fact, thing, pods, now, nodes=found.nodes, seen_before=blind)
            moved += step is not None and take(row, placement_of.get(fact.id), step)
    return moved


def blind_since(cluster: Cluster, seen: Observation) -> datetime | None:
    """When the cluster was last seen whole, if looks failed since, or nobody looked for long; else None.

    What ended in between ended nobody knows when, and hours that nobody saw the end of must not be charged.
    """
    if cluster.seen_at is None or seen.at - cluster.seen_at < BLIND:
        return None
    watched = seen.heard_at is not None and not cluster.trouble
    return None if watched and _looked_lately(cluster) else cluster.seen_at


def _looked_lately(cluster: Cluster) -> bool:
    """Whether workers have been at it all the while: on the wall clock each cluster is looked at now and then."""
    usual = td(seconds=3 * settings.BERTH_LOOK_SECONDS)
    return cluster.looked_at is not None and datetime.now(UTC) - cluster.looked_at < max(usual, BLIND)


@transaction.atomic
def take(row: Workload, placement: Placement | None, step: Move) -> bool:
    """One observed step: the phase, and what it means for the placement (the meter)."""
    if step.to == row.phase:
        noted = note(row, step.reason, step.text, step.at)
        if noted and placement is not None and row.phase == Phase.STOPPING:  # its grace is over (Q11)
            _meter_stops(placement, step.at)
        return noted
    if not move(row, Step(step.to, step.reason, step.text, step.at), **_facts(row, step)):
        return False
    if placement is None:
        return True
    if step.to in (Phase.STARTING, Phase.RUNNING):
        _meter_runs(placement, step)
    if step.to in (Phase.WAITING, Phase.ASLEEP, Phase.ENDED) or step.reason == Reason.REMOVED_OUTSIDE:  # Q1
        _meter_stops(placement, step.at)
    return True


def with_last_stop(rows: QuerySet[Workload]) -> QuerySet[Workload]:
    """The rows, each with `stopped_at`: when it last began to stop; None where it never did."""
    stops = Transition.objects.filter(workload=OuterRef("pk"), after=Phase.STOPPING).exclude(before=Phase.STOPPING)
    return rows.annotate(stopped_at=Subquery(stops.order_by("-version").values("at")[:1]))


def _wake(row: Any, now: datetime) -> bool:
    """A sleeper whose owner asked for it again stands in line once more; asking while it still stopped counts too.

    One that fell asleep by itself is still wished to run, by a wish that is older than its stop.
    """
    if row.desired != Desired.RUN or (row.stopped_at is not None and row.desired_at < row.stopped_at):
        return False
    text = "Woken; it passes the quota check again."
    return move(row, Step(Phase.WAITING, Reason.WOKEN, text, now), by=row.desired_by)


def arrived(row: Workload, item: ObjectFact | None) -> bool:
    """Whether the object of this attempt has been seen. Until then `apply` puts it again; nothing was lost.

    A Job in Kueue's queue stays the same through all its attempts.
    """
    return item is not None and (bool(item.queue) or item.generation == row.attempt)


def _facts(row: Workload, step: Move) -> dict[str, Any]:
    """The cycle's own columns that go with a step."""
    if step.to == Phase.RUNNING:
        return {"failures": 0, "not_before": None, "first_ran_at": row.first_ran_at or step.at}
    if step.to == Phase.WAITING:
        shunned = sorted({*row.shunned, step.shun}) if step.shun else row.shunned
        failures = row.failures if step.failures is None else step.failures
        return {"failures": failures, "not_before": step.not_before, "shunned": shunned}
    return {}


def _meter_runs(placement: Placement, step: Move) -> None:
    facts: dict[str, Any] = {"pod": step.pod, "pod_uid": step.pod_uid} if step.pod else {}
    if step.to == Phase.RUNNING:
        facts["running_at"] = max(step.at, placement.placed_at)
    Placement.objects.filter(pk=placement.pk, ended_at=None).update(**facts)


def _meter_stops(placement: Placement, at: datetime) -> None:
    ends = max(at, placement.running_at or placement.placed_at)
    Placement.objects.filter(pk=placement.pk, ended_at=None).update(ended_at=ends)
