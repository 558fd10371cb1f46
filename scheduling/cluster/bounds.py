"""The outer bound of a team's namespace, as a ResourceQuota. Pure.

Berth's own plan decides who holds what; this holds even for pods that Berth did not make. It is never tighter than
the plan: each resource alone is allowed as many units as all of the team's grants could be spent on, and what is held
or still goes away is always covered. A bound below use evicts nobody; it only keeps new pods out.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction as F

from scheduling.cluster import names
from scheduling.cluster.writing import Document, label_value
from scheduling.planning import catalog
from scheduling.planning.facts import NodeFact, PoolFact, Sharing
from scheduling.planning.packing import CARD_RESOURCES

NAME = "berth"
Units = Mapping[str, F]  # resource -> what one unit is of one card


def bound_document(namespace: str, team: str, most: Mapping[str, int]) -> Document:
    """`most` units by resource. For extended resources only keys of the form `requests.<resource>` count (Q12)."""
    labels = {names.MANAGED_BY: names.MANAGER, names.TEAM: label_value(team)}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels},
        "spec": {"hard": {f"requests.{resource}": str(units) for resource, units in sorted(most.items())}},
    }


def most_units(granted: Mapping[str, F], offered: Mapping[str, Units]) -> dict[str, int]:
    """Units by resource that `granted` cards by model come to, spent on nothing but that resource.

    A resource that several models offer may be filled from the grants of all of them. What no grant covers is bound
    at 0: one dimension left open would be no bound at all.
    """
    found: defaultdict[str, int] = defaultdict(int)
    for model, units in offered.items():
        for resource, share in units.items():
            found[resource] += int(granted.get(model, F(0)) / share) if share else 0
    return dict(found)


def offered_by(pools: Iterable[PoolFact], nodes: Iterable[NodeFact]) -> dict[str, dict[str, F]]:
    """By model: each resource that nodes of these pools offer, or will when they are cut, with its smallest share."""
    found: defaultdict[str, dict[str, F]] = defaultdict(dict)
    for pool in pools:
        for resource, share in resources_of(pool):
            note(found[pool.model], resource, share)
    for node in nodes:
        for device in node.devices:
            if device.share and device.resource.startswith(CARD_RESOURCES):
                note(found[node.model], device.resource, device.share)
    return dict(found)


def resources_of(pool: PoolFact) -> Iterable[tuple[str, F]]:
    """By the names that the device plugin gives by default; what nodes really call them is added from the nodes."""
    if pool.sharing in (Sharing.TIME_SLICE, Sharing.MPS):
        yield "nvidia.com/gpu", F(1, max(1, pool.replicas))
    elif pool.sharing is Sharing.WHOLE:
        yield "nvidia.com/gpu", F(1)
    else:
        yield from slices_of(pool)


def slices_of(pool: PoolFact) -> Iterable[tuple[str, F]]:
    model = catalog.model(pool.model)
    if model is None or model.mig is None:
        return
    shares = {profile.name: profile.share for profile in model.mig.profiles}
    for layout in dict.fromkeys((pool.layout, *pool.layouts)):
        cut = catalog.layout(model, layout) if layout else None
        if cut is None:
            continue
        if cut.whole:
            yield "nvidia.com/gpu", F(1)
        for profile, count in cut.counts.items():
            if count and profile in shares:
                yield f"nvidia.com/mig-{catalog.dotted(profile).replace('+', '.')}", shares[profile]


def note(units: dict[str, F], resource: str, share: F) -> None:
    """Where two nodes call shares of different size the same, the smaller one allows more units."""
    units[resource] = min(share, units.get(resource, share))
