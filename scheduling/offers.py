"""What a person may ask for right now: every flavor in words, with price, what is free, what is left, and the outlook.

The outlook is the planner's own: the wish is put into a picture made from the tables, planned, and the answer read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction as F

from scheduling import snapshot
from scheduling.models import Cluster, Flavor
from scheduling.planning.facts import Isolation, Kind
from scheduling.planning.outlook import Outlook, outlook
from scheduling.planning.shares import isolation_of
from tenants.billing.selectors import prices_at
from tenants.models import Team, User

MICRO = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class Offer:
    """One line of the request form."""

    flavor: Flavor
    count: int
    isolation: Isolation
    share: F  # cards, all units together
    per_hour: Decimal | None  # all units together; None: nobody has priced it, so it cannot be started
    outlook: Outlook
    missing: F  # cards to ask the lead for; 0 when the quota is enough

    @property
    def starts(self) -> str:
        """now, waits or lead."""
        return self.outlook.kind


@dataclass(frozen=True, slots=True)
class Sizes:
    """The plain resources of a wish."""

    count: int = 1
    cpu_milli: int = 4000
    memory_mib: int = 16384


def offers(team: Team, member: User, *, kind: Kind, sizes: Sizes, now: datetime) -> list[Offer]:
    """All offered flavors for one member of one team: what starts now first, then by price."""
    prices = prices_at(now)
    pictures = {cluster.pk: snapshot.from_tables(cluster, now) for cluster in Cluster.objects.all()}
    found = []
    for flavor in Flavor.objects.filter(offered=True):
        if best := _offer(flavor, team, member, kind, sizes, pictures, prices):
            found.append(best)
    order = {"now": 0, "waits": 1, "lead": 2}
    return sorted(found, key=lambda offer: (order[offer.starts], offer.per_hour or Decimal(10**9), offer.flavor.sku))


def _offer(flavor, team, member, kind, sizes, pictures, prices) -> Offer | None:  # type: ignore[no-untyped-def]
    count = sizes.count if flavor.sharing == "whole" else 1
    looks = [
        outlook(picture, snapshot.candidate(flavor, team, member, kind, count, sizes, picture.now))
        for picture in pictures.values()
        if _offers(picture, flavor, count)
    ]
    if not looks:
        return None
    best = _best(looks)
    share = flavor.share * count
    price = prices.get(flavor.sku)
    return Offer(
        flavor=flavor,
        count=count,
        isolation=isolation_of(flavor.sharing),
        share=share,
        per_hour=None if price is None else (price * share.numerator / share.denominator).quantize(MICRO),
        outlook=best,
        missing=max(F(0), share - best.quota_left),
    )


def _offers(picture: snapshot.Snapshot, flavor: Flavor, count: int) -> bool:
    return any(
        (pool.model, pool.sharing, pool.replicas, pool.capacity)
        == (flavor.model, flavor.sharing, flavor.replicas, flavor.capacity)
        and (flavor.sharing != "whole" or pool.cards_per_node >= count)
        for pool in picture.pools
    )


def _best(looks: Sequence[Outlook]) -> Outlook:
    order = {"now": 0, "waits": 1, "lead": 2}
    return min(looks, key=lambda look: order[look.kind])
