"""What holds after every fault, whatever it was: functions over tables and cluster that answer with sentences.

    assert broken() == []                          # tables alone: I1, I2, I6, I9, I10
    assert broken(port.observe(now)) == []         # and against the cluster: I1, I3, I4

I5 (the ledger) and more of I4 are the checks of `manage.py consistency`; I8 (rest) is asked of whatever turns the
cycle. `python -m tests.faults.invariants` prints the same for the tables that the settings name, as JSON.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from fractions import Fraction as F
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scheduling.cluster.port import Observation

FOREVER = datetime.max.replace(tzinfo=UTC)
MOST_ATTEMPTS = 60  # of one workload, however much went wrong


def broken(seen: Observation | None = None) -> list[str]:
    """Every invariant that does not hold, in sentences."""
    tables = [*oversold_cards(), *quotas_exceeded(), *broken_histories(), *unbounded()]
    return tables if seen is None else [*tables, *oversold_nodes(seen), *doubles(seen), *orphans(seen)]


# I1, I2: what was given out, at every instant


def oversold_cards() -> Iterator[str]:
    """Placements of one node that held more than its cards together, at any time (I1)."""
    from scheduling.models import CardSpan, Placement

    cards: dict[str, int] = {}
    for node, count in CardSpan.objects.values_list("node", "cards"):
        cards[node] = max(count, cards.get(node, 0))
    held: defaultdict[str, list[Any]] = defaultdict(list)
    for row in Placement.objects.all():
        held[row.node].append((row.placed_at, row.ended_at or FOREVER, row.share))
    for node, stays in held.items():
        if node in cards and (most := most_at_once(stays)) > cards[node]:
            yield f"I1: node {node} has {cards[node]} cards, and {most} were given out at once."


def quotas_exceeded() -> Iterator[str]:
    """Teams that were given more than their grants at the moment of giving (I2)."""
    from scheduling.models import Placement
    from tenants.models import Grant

    grants = list(Grant.objects.all())
    held: defaultdict[tuple[Any, str], list[Any]] = defaultdict(list)
    for row in Placement.objects.select_related("workload", "flavor"):
        held[row.workload.team_id, row.flavor.model].append((row.placed_at, row.ended_at or FOREVER, row.share))
    for (team, model), stays in held.items():
        for at, _, _ in stays:
            mine = [one for one in grants if (one.team_id, one.model) == (team, model) and in_force(one, at)]
            holds = sum((share for since, until, share in stays if since <= at < until), F(0))
            if holds > sum((one.amount for one in mine), F(0)):
                yield f"I2: team {team} held {holds} cards of {model} at {at}, which is above its grants."


def in_force(grant: Any, at: datetime) -> bool:
    return bool(grant.starts_at <= at and (grant.ends_at is None or at < grant.ends_at))


def most_at_once(stays: Iterable[tuple[datetime, datetime, F]]) -> F:
    """The largest sum of shares that overlap; what ends at an instant makes room for what begins then."""
    marks = sorted([(end, 0, -share) for _, end, share in stays] + [(start, 1, share) for start, _, share in stays])
    now = most = F(0)
    for _, _, change in marks:
        now += change
        most = max(most, now)
    return most


# I6, I10: histories


def broken_histories() -> Iterator[str]:
    """Transitions with gaps, steps that are not allowed, without words, or that the row does not agree with."""
    from scheduling.models import Workload
    from scheduling.planning.facts import Phase
    from scheduling.planning.phases import MOVES

    for row in Workload.objects.prefetch_related("transitions"):
        steps = sorted(row.transitions.all(), key=lambda step: step.version)
        if [step.version for step in steps] != list(range(row.version + 1)):
            yield f"I6: {row.name} has version {row.version} and the steps {[step.version for step in steps]}."
        began = steps[0].at if steps else None
        for before, step in pairwise(steps):
            stays = step.after == before.after
            allowed = stays or (Phase(step.after) in MOVES[Phase(before.after)] and step.at >= began)
            began = began if stays else step.at
            if step.before != before.after or not allowed:
                yield f"I6: {row.name} went from {before.after} at {before.at} to {step.after} at {step.at}."
        if steps and (steps[-1].after, steps[-1].text) != (row.phase, row.phase_text):
            yield f"I6: {row.name} is {row.phase} ({row.phase_text}), its last step says {steps[-1]}."
        if any(not step.text or not step.reason for step in steps):
            yield f"I10: {row.name} has a step without words."


# I3, I4, I8, I9: what stands in the cluster


def oversold_nodes(seen: Observation) -> Iterator[str]:
    """Nodes whose pods hold more than they have (I1). A card may fall sick under a pod: capacity counts."""
    held: defaultdict[tuple[str, str], int] = defaultdict(int)
    for pod in live(seen):
        for resource, count in pod.requests.items():
            held[pod.node, resource] += count
    for node in seen.nodes:
        for device in node.devices:
            if (count := held[node.name, device.resource]) > device.capacity:
                yield f"I1: pods hold {count} {device.resource} on {node.name}, which has {device.capacity}."


def doubles(seen: Observation) -> Iterator[str]:
    """Workloads with two objects, or two pods that hold something (I3)."""
    for what, found in (("objects", seen.objects), ("pods", live(seen))):
        count: defaultdict[Any, int] = defaultdict(int)
        for one in found:
            if one.workload is not None:
                count[one.workload] += 1
        yield from (f"I3: workload {row} has {number} {what}." for row, number in count.items() if number > 1)


def orphans(seen: Observation) -> Iterator[str]:
    """Objects without a living row, and rows that run without an object (I4)."""
    from scheduling.models import Workload

    phases = dict(Workload.objects.values_list("pk", "phase"))
    objects = {one.workload for one in seen.objects if one.deleting_since is None}
    for row in objects:
        if phases.get(row, "ended") == "ended":
            yield f"I4: an object stands for workload {row}, which is {phases.get(row, 'not in the tables')}."
    for row, phase in phases.items():
        if phase in ("starting", "running") and row not in objects:
            yield f"I4: workload {row} is {phase} and has no object."


def unbounded() -> Iterator[str]:
    """Attempts that went on and on, pools above their most (I9)."""
    from scheduling.models import NodePool, Workload

    for row in Workload.objects.filter(attempt__gt=MOST_ATTEMPTS):
        yield f"I9: {row.name} was tried {row.attempt} times."
    for pool in NodePool.objects.all():
        if pool.wished_nodes is not None and pool.wished_nodes > pool.max_nodes:
            yield f"I9: pool {pool.name} wants {pool.wished_nodes} nodes of at most {pool.max_nodes}."


def live(seen: Observation) -> list[Any]:
    return [pod for pod in seen.pods if pod.node and pod.phase not in ("Succeeded", "Failed")]


def main() -> None:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    print(json.dumps(broken()))


if __name__ == "__main__":
    main()
