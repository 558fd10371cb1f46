"""The demo's past on a small fleet, without a cluster: for tests of the history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from fractions import Fraction as F
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from portal.demo import estate
from portal.demo.history import History, Setting, write_history
from portal.demo.seed import setting
from scheduling.planning.facts import DeviceFact, Isolation, NodeFact, Sharing

ZONE = ZoneInfo("Europe/Berlin")
HARDWARE = Isolation.HARDWARE
NOW = datetime(2026, 12, 1, 11, 46, tzinfo=UTC)


WHOLE, BALANCED = (("", F(1), 8),), (("1g.10gb", F(1, 8), 4), ("2g.20gb", F(1, 4), 2), ("3g.40gb", F(1, 2), 2))


def node(name: str, pool: str, devices: Sequence[tuple[str, F, int]], **changes: Any) -> NodeFact:
    """A healthy node of a pool as the cluster would show it; devices by (profile, share, units)."""
    fact = estate.pool(pool)
    found = (
        DeviceFact(f"nvidia.com/mig-{profile}" if profile else "nvidia.com/gpu", profile, share, HARDWARE, n, n, None)
        for profile, share, n in devices
    )
    facts: dict[str, Any] = {
        "name": name,
        "uid": f"uid-{name}",
        "pool": pool,
        "model": fact.model,
        "known": True,
        "memory_mib": None,
        "cards": fact.cards_per_node,
        "sick_cards": 0,
        "sharing": fact.sharing,
        "replicas": fact.replicas,
        "capacity": fact.capacity,
        "devices": tuple(found),
        "cpu_milli": fact.cpu_milli,
        "host_memory_mib": fact.host_memory_mib,
        "ready": True,
        "schedulable": True,
    }
    return NodeFact(**facts | changes)


def nodes() -> list[NodeFact]:
    """The nodes of the demo's fleet that are up: one for training, one sliced, one not cut yet, one shared by time."""
    return [
        node("train-a", "h100-train", WHOLE),
        node("mig-a", "h100-mig", BALANCED, mig_config="all-balanced"),
        node("mig-b", "h100-mig", (("", F(1), 2),), sharing=Sharing.WHOLE, mig_config="all-disabled"),
        node("shared-a", "a10g-shared", (("", F(1, 4), 16),)),
    ]


def setting_at(now: datetime) -> Setting:
    return setting(nodes(), estate.beginning(now, ZONE), now, ZONE)


@cache
def history_at(now: datetime) -> History:
    return write_history(setting_at(now))
