"""What the Meridian Institute owns and has agreed on: pools, prices, grants, and the requests of the last weeks.

Pure data. The pools are the operator's rules for the fleet that the simulated cluster has; what a node offers is read
from the cluster, never from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from datetime import timedelta as td
from decimal import Decimal
from fractions import Fraction as F
from zoneinfo import ZoneInfo

from scheduling.planning.facts import Capacity, PoolFact, Sharing

CLUSTER = "harbour-1"
H100, A10G, A100 = "h100-80gb", "a10g-24gb", "a100-40gb"
CHANGE_NEAR = td(days=14)  # before now, prices changed

POOLS = (
    PoolFact(
        name="h100-train", model=H100, sharing=Sharing.WHOLE, replicas=1, capacity=Capacity.ON_DEMAND,
        cards_per_node=8, cpu_milli=207_620, host_memory_mib=1_848_632, min_nodes=1, max_nodes=2, wished_nodes=None,
        layout="", layouts=(), empty_after=td(minutes=30),
    ),
    PoolFact(
        name="h100-mig", model=H100, sharing=Sharing.MIG, replicas=1, capacity=Capacity.ON_DEMAND,
        cards_per_node=2, cpu_milli=51_730, host_memory_mib=455_175, min_nodes=2, max_nodes=3, wished_nodes=None,
        layout="all-balanced", layouts=("all-balanced", "all-1g.10gb", "all-3g.40gb"), empty_after=td(minutes=30),
    ),
    PoolFact(
        name="a10g-shared", model=A10G, sharing=Sharing.TIME_SLICE, replicas=4, capacity=Capacity.SPOT,
        cards_per_node=4, cpu_milli=47_810, host_memory_mib=185_742, min_nodes=1, max_nodes=3, wished_nodes=None,
        layout="", layouts=(), empty_after=td(minutes=30),
    ),
    PoolFact(
        name="a100-burst", model=A100, sharing=Sharing.WHOLE, replicas=1, capacity=Capacity.ON_DEMAND,
        cards_per_node=2, cpu_milli=23_850, host_memory_mib=159_599, min_nodes=0, max_nodes=4, wished_nodes=None,
        layout="", layouts=(), empty_after=td(minutes=15),
    ),
)  # fmt: skip

SHORT_LIMITS = {  # where time cannot run fast: of the pool that sleeps at zero
    "a100-burst": {"idle_minutes": 1, "empty_minutes": 0},
}

GRANTS = (  # team, model, cards; a parent comes before its children
    ("meridian", H100, 22), ("meridian", A10G, 12), ("meridian", A100, 10),
    ("perception", H100, 12), ("perception", A10G, 6), ("perception", A100, 4),
    ("systems", H100, 10), ("systems", A10G, 6), ("systems", A100, 6),
    ("vision", H100, 5), ("vision", A10G, 2),
    ("speech", H100, 4), ("speech", A10G, 2),
    ("robotics", H100, 3), ("robotics", A10G, 3), ("robotics", A100, 2),
    ("language", H100, 6), ("language", A10G, 1), ("language", A100, 2),
)  # fmt: skip

SIZES = {  # of one unit of a flavor: thousandths of a core, MiB
    "whole": (10_000, 65_536),
    "mig": (3_500, 16_384),
    "time-slice": (2_500, 8_192),
}

PRICES = {  # per card-hour, before and after the change
    "whole": {H100: ("4.10", "3.95"), A100: ("2.60", "2.45")},
    "mig": {H100: ("4.55", "4.40")},
    "time-slice": {A10G: ("0.92", "0.88")},
}


@dataclass(frozen=True, slots=True)
class PastRequest:
    """A quota request that was decided; times are days before now."""

    by: str
    team: str
    model: str
    amount: F
    reason: str
    asked: float
    decided_by: str
    decided: float
    verdict: str  # approved, denied, countered, withdrawn
    note: str = ""
    until: float | None = None  # as asked
    offered: F | None = None
    offered_until: float | None = None


REQUESTS = (
    PastRequest(
        "mina", "vision", H100, F(2), "Two more cards for the pose model before the review.", 24.2, "dana", 24.1,
        "approved", "Good luck with the review; back to the team's quota afterwards.", 13.0, F(2), 13.0,
    ),
    PastRequest(
        "tomas", "vision", H100, F(8), "A whole node to try the large detector.", 19.4, "dana", 19.0, "denied",
        "The detector fits on two cards, see the note in the team's channel; ask again with numbers from there.",
    ),
    PastRequest(
        "jonas", "speech", H100, F(4), "Retraining all voices for the release.", 12.3, "priya", 12.2, "countered",
        "Four cards are more than we have left this month: two until the release.", None, F(2), -6.0,
    ),
    PastRequest(
        "robin", "vision", A10G, F(1), "Annotation previews for the depth data set.", 16.2, "dana", 16.15,
        "approved", "", 2.0, F(1), 2.0,
    ),
    PastRequest(
        "sana", "robotics", A100, F(2), "Simulator runs for the gait paper.", 6.1, "kofi", 6.0, "approved",
        "Until the deadline.", -8.0, F(2), -8.0,
    ),
    PastRequest(
        "noor", "language", H100, F(4), "Distillation of the base model; no longer needed.", 9.2, "noor", 8.9,
        "withdrawn",
    ),
)  # fmt: skip


def pool(name: str) -> PoolFact:
    return next(fact for fact in POOLS if fact.name == name)


def sizes_of(sharing: str, count: int) -> tuple[int, int]:
    """What so many units are given beside the cards: thousandths of a core and MiB of memory."""
    cpu_milli, memory_mib = SIZES[sharing]
    return cpu_milli * count, memory_mib * count


def price_of(sku: str, *, changed: bool) -> Decimal:
    """Per card-hour, of the first or of the second rate card."""
    model, kind, _ = sku.split("/")
    table = next(prices for name, prices in PRICES.items() if kind.startswith(name))
    return Decimal(table[model][changed])


def beginning(now: datetime, zone: ZoneInfo) -> datetime:
    """Where the history begins: the zone's midnight thirty days before now."""
    day = now.astimezone(zone).date() - td(days=30)
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(now.tzinfo)


def price_change(now: datetime, zone: ZoneInfo) -> datetime:
    """When prices changed: the midnight within a month, never at its start, that is nearest to two weeks ago."""
    wished = (now - CHANGE_NEAR).astimezone(zone).date()
    days = [wished + td(days=shift) for shift in range(-8, 9)]
    inside = [day for day in days if 8 <= day.day <= 22]
    day = min(inside, key=lambda day: abs((day - wished).days))
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(now.tzinfo)
