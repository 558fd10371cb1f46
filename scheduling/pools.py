"""The operator's rules for a pool: how many nodes, when an idle workspace sleeps, how cards may be cut."""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.http import Http404

from scheduling.announce import announce_on_commit, fleet_topic
from scheduling.models import NodePool
from scheduling.planning import catalog
from scheduling.planning.facts import Sharing
from scheduling.wake import wake_cycle
from tenants.access import Standing
from tenants.errors import NotAllowed, Refused
from tenants.models import User

log = logging.getLogger(__name__)

MOST_NODES = 1000
IDLE_MINUTES = (5, 7 * 24 * 60)
EMPTY_MINUTES = (0, 24 * 60)
RULES = ("min_nodes", "max_nodes", "idle_minutes", "empty_minutes", "spread", "layout", "layouts")


def access_pool(stand: Standing, pk: int, *, to: str = "read") -> NodePool:
    """The pool, which everybody may `read` and the operator may `change`."""
    found = NodePool.objects.select_related("cluster").filter(pk=pk).first()
    if found is None:
        raise Http404("There is no such pool.")
    if to == "change" and not stand.is_operator:
        raise NotAllowed("Only the operator changes the rules of a pool.")
    return found


@transaction.atomic
def change_pool(pool: NodePool, rules: Mapping[str, Any], *, by: User, now: datetime) -> NodePool:
    """Write those of RULES that are given; the next look at the cluster follows them. Nothing running is stopped.

    Refuses with the field at fault, and then writes nothing.
    """
    row = NodePool.objects.select_for_update().select_related("cluster").get(pk=pool.pk)
    before = {name: getattr(row, name) for name in RULES}
    changes = {name: rules[name] for name in RULES if name in rules and rules[name] != before[name]}
    if not changes:
        return row
    _check(row, before | changes, changes)
    NodePool.objects.filter(pk=row.pk).update(**changes)
    row.refresh_from_db()
    was = {name: before[name] for name in changes}
    log.info("pool %s of %s changed by %s at %s: %s, was %s", row, row.cluster, by.username, now, changes, was)
    announce_on_commit(fleet_topic(), "fleet", pool=row.pk)
    wake_cycle(row.cluster_id)
    return row


def _check(pool: NodePool, wanted: Mapping[str, Any], changes: Mapping[str, Any]) -> None:
    _check_nodes(pool, wanted, changes)
    if "idle_minutes" in changes and wanted["idle_minutes"] is not None:
        _check_range(wanted["idle_minutes"], *IDLE_MINUTES, "idle_minutes", "Minutes until an idle workspace sleeps")
    if "empty_minutes" in changes:
        _check_range(wanted["empty_minutes"], *EMPTY_MINUTES, "empty_minutes", "Minutes until an empty node goes")
    if {"layout", "layouts"} & set(changes):
        _check_layouts(pool, wanted["layout"], wanted["layouts"])


def _check_nodes(pool: NodePool, wanted: Mapping[str, Any], changes: Mapping[str, Any]) -> None:
    bounds = [name for name in ("min_nodes", "max_nodes") if name in changes]
    if bounds and pool.provider == "static":
        raise Refused(f"{pool} is static: its nodes come and go by hand, so it has no bounds to set.", field=bounds[0])
    for name in bounds:
        _check_range(wanted[name], 0, MOST_NODES, name, "Nodes")
    if wanted["min_nodes"] > wanted["max_nodes"]:
        raise Refused(
            f"At least {wanted['min_nodes']} and at most {wanted['max_nodes']} nodes do not go together; "
            "lower the least or raise the most.",
            field=bounds[0],
        )


def _check_layouts(pool: NodePool, layout: str, layouts: Sequence[str]) -> None:
    """Each must be a MIG config that the catalog can make of this pool's cards: the node would reject it otherwise."""
    if pool.sharing != Sharing.MIG:
        if layout or layouts:
            raise Refused(f"The cards of {pool} are not cut ({pool.sharing}), so they have no layout.", field="layouts")
        return
    model = catalog.model(pool.model)
    for field, configs in (("layout", [layout] if layout else []), ("layouts", layouts)):
        for config in configs:
            if model is None or catalog.layout(model, config) is None:
                raise Refused(
                    f"{catalog.title(pool.model)} has no such MIG layout; choose names such as all-1g.10gb "
                    "or all-balanced that its cards can be cut to.",
                    field=field,
                )


def _check_range(value: int, least: int, most: int, field: str, words: str) -> None:
    if not least <= value <= most:
        raise Refused(f"{words}: choose {least} to {most}; {value} is outside.", field=field)
