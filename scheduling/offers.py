"""What a person may ask for right now: every flavor in words, with price, what is free, what is left, and the outlook.

The outlook is the planner's own: the wish is put into a picture made from the tables, planned, and the answer read.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction as F

from scheduling import snapshot
from scheduling.models import Cluster, Flavor
from scheduling.planning.facts import Isolation, Kind, Sharing, Snapshot
from scheduling.planning.outlook import Outlook, outlooks
from scheduling.planning.shares import isolation_of
from tenants.billing.selectors import prices_at
from tenants.models import Team, User

MICRO = Decimal("0.000001")
DEAR = Decimal(10**9)
ORDER = {"now": 0, "waits": 1, "lead": 2}


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
    flavors = list(Flavor.objects.filter(offered=True))
    prices = prices_at(now)
    looks: dict[str, list[Outlook]] = defaultdict(list)
    for cluster in Cluster.objects.all():
        picture = snapshot.from_tables(cluster, now)
        offered = [flavor for flavor in flavors if _offers(picture, flavor, _count(flavor, sizes))]
        wishes = [
            snapshot.candidate(flavor, team, member, kind, _count(flavor, sizes), sizes, now) for flavor in offered
        ]
        for flavor, look in zip(offered, outlooks(picture, wishes), strict=True):
            looks[flavor.sku].append(_held_up(look, cluster))
    found = [
        _offer(flavor, _count(flavor, sizes), looks[flavor.sku], prices) for flavor in flavors if looks[flavor.sku]
    ]
    return sorted(found, key=lambda offer: (ORDER[offer.starts], offer.per_hour or DEAR, offer.flavor.sku))


def _held_up(look: Outlook, cluster: Cluster) -> Outlook:
    """On a paused cluster nothing starts, whatever is free there."""
    if not cluster.paused or look.kind == "lead":
        return look
    return replace(look, kind="waits", text=f"{cluster.name} is paused; it starts when the operator resumes it.")


def _count(flavor: Flavor, sizes: Sizes) -> int:
    """Several units at once only of whole cards."""
    return sizes.count if flavor.sharing == Sharing.WHOLE else 1


def _offer(flavor: Flavor, count: int, looks: Sequence[Outlook], prices: Mapping[str, Decimal]) -> Offer:
    best = min(looks, key=lambda look: ORDER[look.kind])
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


def _offers(picture: Snapshot, flavor: Flavor, count: int) -> bool:
    """Whether a pool of the cluster can ever hold so many of the flavor."""
    wanted = (flavor.model, flavor.sharing, flavor.replicas, flavor.capacity)
    return any(
        (pool.model, pool.sharing, pool.replicas, pool.capacity) == wanted
        and (flavor.sharing != Sharing.WHOLE or pool.cards_per_node >= count)
        for pool in picture.pools
    )
