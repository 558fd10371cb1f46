"""The demo's past on a small fleet, without a cluster: for tests of the history."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction as F
from functools import cache
from zoneinfo import ZoneInfo

from portal.demo import estate
from portal.demo.history import History, Setting, write_history
from portal.demo.seed import setting
from scheduling.planning.facts import DeviceFact, Isolation, NodeFact, PoolFact

ZONE = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 12, 1, 11, 46, tzinfo=UTC)


def node(name: str, pool: PoolFact) -> NodeFact:
    """A healthy node of a pool as the cluster would show it."""
    resource, profile, share, units = {
        "whole": ("nvidia.com/gpu", "", F(1), pool.cards_per_node),
        "mig": ("nvidia.com/mig-1g.10gb", "1g.10gb", F(1, 8), 7 * pool.cards_per_node),
        "time-slice": ("nvidia.com/gpu", "", F(1, pool.replicas), pool.replicas * pool.cards_per_node),
    }[pool.sharing]
    return NodeFact(
        name=name,
        uid=f"uid-{name}",
        pool=pool.name,
        model=pool.model,
        known=True,
        memory_mib=None,
        cards=pool.cards_per_node,
        sick_cards=0,
        sharing=pool.sharing,
        replicas=pool.replicas,
        capacity=pool.capacity,
        devices=(DeviceFact(resource, profile, share, Isolation.HARDWARE, units, units, None),),
        cpu_milli=pool.cpu_milli,
        host_memory_mib=pool.host_memory_mib,
        ready=True,
        schedulable=True,
        mig_config="all-1g.10gb" if pool.sharing == "mig" else "",
    )


def nodes() -> list[NodeFact]:
    """Two nodes of each pool that is awake."""
    return [node(f"{pool.name}-{number}", pool) for pool in estate.POOLS if pool.min_nodes for number in (1, 2)]


def setting_at(now: datetime) -> Setting:
    return setting(nodes(), estate.beginning(now, ZONE), now, ZONE)


@cache
def history_at(now: datetime) -> History:
    return write_history(setting_at(now))
