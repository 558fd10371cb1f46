"""Phases follow what was seen: each workload's row takes the step that the cluster's picture calls for.

Only a complete picture moves phases: a pod that could not be read is not a pod that is gone.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from datetime import timedelta as td
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from scheduling.changes import Change, Step, move, move_all
from scheduling.cluster.port import Observation
from scheduling.models import Cluster, Placement, Transition, Workload
from scheduling.planning.facts import Desired, NodeFact, ObjectFact, Phase, PodFact, Reason, WorkloadFact
from scheduling.planning.phases import Move, observed

BATCH = 200  # steps of one transaction
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


def follow(
    rows: Sequence[Workload],
    facts: Sequence[WorkloadFact],
    placements: Mapping[UUID, Placement],
    seen: Observation,
    now: datetime,
    *,
    blind: datetime | None = None,
) -> int:
    """Move every one of these rows that calls for it, batch by batch; returns how many moved. The rows say so then."""
    found = found_in(seen)
    moved = sum(_wake(row, now) for row in _woken(rows))
    steps = [
        (row, step)
        for row, fact in zip(rows, facts, strict=True)
        if row.phase not in (Phase.ASLEEP, Phase.WAITING) and (step := _step(row, fact, found, now, blind))
    ]
    for start in range(0, len(steps), BATCH):
        moved += _take(steps[start : start + BATCH], placements)
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


def _step(row: Workload, fact: WorkloadFact, found: Found, now: datetime, blind: datetime | None) -> Move | None:
    thing = found.objects.get(row.pk)
    if row.phase == Phase.PLACED and not arrived(row, thing):
        return None
    step = observed(fact, thing, found.pods.get(row.pk, ()), now, nodes=found.nodes, seen_before=blind)
    return None if step is None or _was_said(row, step) else step


def _was_said(row: Workload, step: Move) -> bool:
    """A remark that says nothing new."""
    return step.to == row.phase and (row.phase_reason, row.phase_text) == (step.reason, step.text[:500])


def take(row: Workload, placement: Placement | None, step: Move) -> bool:
    """One observed step; whether it was taken."""
    return not _was_said(row, step) and bool(_take([(row, step)], {row.pk: placement} if placement else {}))


@transaction.atomic
def _take(steps: Sequence[tuple[Workload, Move]], placements: Mapping[UUID, Placement]) -> int:
    """Observed steps: the phases, and what they mean for the placements (the meter), all or none of it."""
    befores = {row.pk: (step, step.to == row.phase) for row, step in steps}
    changes = [
        Change(row, Step(step.to, step.reason, step.text, step.at), {} if step.to == row.phase else _facts(row, step))
        for row, step in steps
    ]
    moved = move_all(changes)
    for row in moved:
        placement = placements.get(row.pk)
        if placement is not None:
            step, remark = befores[row.pk]
            _meter(placement, step, remark=remark)
    return len(moved)


def _meter(placement: Placement, step: Move, *, remark: bool) -> None:
    """What a step means for what is charged. A remark while stopping says that its grace is over (Q11)."""
    if remark and step.to != Phase.STOPPING:
        return
    if step.to in (Phase.STARTING, Phase.RUNNING):
        _meter_runs(placement, step)
    ended = step.to in (Phase.WAITING, Phase.ASLEEP, Phase.ENDED) or step.reason == Reason.REMOVED_OUTSIDE  # Q1
    if remark or ended:
        _meter_stops(placement, step.at)


def _woken(rows: Sequence[Workload]) -> list[Any]:
    """Sleepers whose owners want them to run, each with `stopped_at`: when it last began to stop."""
    wanted = [row.pk for row in rows if row.phase == Phase.ASLEEP and row.desired == Desired.RUN]
    if not wanted:
        return []
    last = dict(_last_stops(wanted))
    found = [row for row in rows if row.pk in set(wanted)]
    for row in found:
        row.stopped_at = last.get(row.pk)  # type: ignore[attr-defined]
    return found


def _last_stops(pks: Sequence[UUID]) -> Iterable[tuple[UUID, datetime]]:
    stops = Transition.objects.filter(workload__in=pks, after=Phase.STOPPING).exclude(before=Phase.STOPPING)
    return stops.order_by("version").values_list("workload_id", "at")


def _wake(row: Any, now: datetime) -> bool:
    """A sleeper whose owner asked for it again stands in line once more; asking while it still stopped counts too.

    One that fell asleep by itself is still wished to run, by a wish that is older than its stop.
    """
    if row.stopped_at is not None and row.desired_at < row.stopped_at:
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
