"""What somebody changed by hand in the cluster is put right, and said: how many cards the pods of a workload ask for,
and how many pods there are. Nobody gets cards past the quota, or without paying, by `kubectl edit`.

Other fields stay as somebody left them: tools of a site add labels, sidecars and mounts with reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta as td
from functools import partial
from typing import TYPE_CHECKING

from scheduling.changes import note
from scheduling.cluster.port import Ref
from scheduling.models import Placement, Transition, Workload
from scheduling.planning.facts import Kind, ObjectFact, Phase, PodFact, Reason, WorkloadFact
from scheduling.planning.packing import CARD_RESOURCES
from scheduling.planning.pods import live
from scheduling.reconcile import launch

if TYPE_CHECKING:
    from scheduling.reconcile.hands import Hands

UP = (Phase.PLACED, Phase.STARTING, Phase.RUNNING)
FIRST_PAUSE, LONGEST_PAUSE = td(minutes=1), td(minutes=30)  # where somebody changes it again and again

Cards = Mapping[str, int]
"""Units of one pod by resource."""


def drifts(hands: Hands) -> Iterator[tuple[str, Callable[[], bool]]]:
    """The workloads that are not as they were put. Asks the tables for none but these."""
    for fact in hands.look.snapshot.workloads:
        item, placement = hands.found.objects.get(fact.id), hands.look.placements.get(fact.id)
        if fact.phase not in UP or item is None or placement is None:
            continue
        wanted = {placement.resource: fact.count}
        text = changed(fact, item, wanted) or changed_pods(hands.found.pods.get(fact.id, ()), wanted)
        if text:
            yield f"put {fact.name} right: {text}", partial(put_right, fact, text, hands)


def changed(fact: WorkloadFact, item: ObjectFact, wanted: Cards) -> str:
    """What of the object of this attempt is not as it was put; empty when all of it is."""
    if item.generation != fact.attempt or item.deleting_since is not None or item.complete or item.failed:
        return ""
    if item.replicas > 1 or (item.replicas == 0 and fact.kind is Kind.WORKSPACE):
        return f"it was changed to {item.replicas} pods from outside of this portal; it has 1."
    if item.requests is not None and cards(item.requests) != wanted:
        return f"it was changed to ask for {instead(item.requests, wanted)} from outside of this portal."
    return ""


def changed_pods(pods: Sequence[PodFact], wanted: Cards) -> str:
    found = astray(pods, wanted)
    return f"pod {found[0].name} holds {instead(found[0].requests, wanted)}." if found else ""


def astray(pods: Sequence[PodFact], wanted: Cards) -> list[PodFact]:
    """Its pods that were made while it was changed."""
    return [pod for pod in pods if live(pod) and cards(pod.requests) != wanted]


def cards(requests: Mapping[str, int]) -> Cards:
    """Those whose units are cards or parts of them."""
    return {resource: units for resource, units in requests.items() if resource.startswith(CARD_RESOURCES)}


def instead(requests: Mapping[str, int], wanted: Cards) -> str:
    """ "8 instead of 1"; by their names where it is not only their number."""
    asks = cards(requests)
    if asks.keys() <= wanted.keys():
        return f"{sum(asks.values())} instead of {sum(wanted.values())}"
    return f"{in_words(asks)} instead of {in_words(wanted)}"


def in_words(found: Cards) -> str:
    return " and ".join(f"{units} {resource}" for resource, units in sorted(found.items()))


def put_right(fact: WorkloadFact, text: str, hands: Hands) -> bool:
    """Apply its documents once more and take away pods that hold something else; rarer where it does not help."""
    row = Workload.objects.select_related("team", "flavor").get(pk=fact.id)
    placement = Placement.objects.filter(workload=row, ended_at=None).first()
    node = hands.found.nodes.get(placement.node) if placement else None
    if placement is None or node is None or row.phase not in UP or _too_soon(row, hands):
        return False
    wanted, item = {placement.resource: fact.count}, hands.object_of(row)
    strange = cards((item.requests if item else None) or {}).keys() - wanted.keys()
    launch.put_all(row, placement, node, hands.port, none_of=sorted(strange))
    for pod in astray(hands.found.pods.get(row.pk, ()), wanted):
        hands.port.remove(Ref("Pod", pod.namespace, pod.name, pod.uid))
    said = f"{text[0].upper()}{text[1:]} That was put right."
    row.refresh_from_db()
    if not note(row, Reason.CHANGED_OUTSIDE, said, hands.now):
        note(row, Reason.CHANGED_OUTSIDE, f"{said} Once more.", hands.now)
    return True


def _too_soon(row: Workload, hands: Hands) -> bool:
    """Each time that it is put right, the next time waits longer: two who disagree must not wear out a cluster."""
    times = Transition.objects.filter(
        workload=row, reason=Reason.CHANGED_OUTSIDE, at__gt=hands.now - td(days=1)
    ).order_by("-version")
    last = times.values_list("at", flat=True).first()
    pause = min(LONGEST_PAUSE, FIRST_PAUSE * times.count())
    return last is not None and hands.now < last + pause
