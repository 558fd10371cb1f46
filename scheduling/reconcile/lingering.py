"""Pods of ours that hold cards though nobody pays for them any more: they are going and do not go, or nobody sent them.

The meter of a workload ends after its grace (Q11) or at its deletion from outside (Q1); the card is free only when the
pod is gone. In between it is the platform's: out of service, given to nobody.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta as td
from fractions import Fraction as F
from typing import Any
from uuid import UUID

from scheduling.models import Cluster, Placement
from scheduling.planning.facts import NodeFact, PodFact
from scheduling.planning.pods import holds, kept

Paid = Collection[tuple[UUID, str]]
"""Workload and node of every open placement."""


def paid_for(cluster: Cluster) -> Paid:
    return set(Placement.objects.filter(cluster=cluster, ended_at=None).values_list("workload_id", "node"))


def lingering(pods: Iterable[PodFact], paid: Paid) -> Mapping[str, Sequence[PodFact]]:
    """By node, our pods that stand for no open placement there: what holds cards, and what has ended and is not let
    go, which holds nothing but its name."""
    found: defaultdict[str, list[PodFact]] = defaultdict(list)
    for pod in sorted(pods, key=lambda pod: (pod.namespace, pod.name)):
        if not pod.workload or (pod.workload, pod.node) in paid:
            continue
        if kept(pod):
            found[pod.node].append(replace(pod, requests={}))
        elif pod.requests and holds(pod):
            found[pod.node].append(pod)
    return found


def lingering_json(pods: Iterable[PodFact]) -> list[dict[str, Any]]:
    """As the column keeps it; `scheduling.stuck` reads it."""
    return [
        {
            "namespace": pod.namespace,
            "name": pod.name,
            "uid": pod.uid,
            "workload": str(pod.workload),
            "since": pod.deleting_since.isoformat() if pod.deleting_since else None,
            "grace": pod.grace // td(seconds=1),
            "units": dict(pod.requests),
            "cpu_milli": pod.cpu_milli,
            "memory_mib": pod.memory_mib,
        }
        for pod in pods
    ]


def cards_of(node: NodeFact, pods: Iterable[PodFact]) -> F:
    """How many cards' worth of the node these pods hold."""
    shares: Mapping[str, F] = {device.resource: device.share for device in node.devices}
    return sum(
        (shares.get(resource, F(0)) * units for pod in pods for resource, units in pod.requests.items()), start=F(0)
    )
