"""A morning of one node: the cards that were there and who held them, to be handed over at LATE."""

from __future__ import annotations

from datetime import datetime
from datetime import timedelta as td
from fractions import Fraction as F
from typing import Any

from scheduling.models import CardSpan, Cluster, Flavor, Placement
from tests.tenants.billing.builders import at

POOL = "h100-train"
NOON = at("2026-12-01 12:00")
LATE = NOON + td(minutes=6)  # when the hour before noon is complete


class Past:
    """A day of one node with eight cards, and who held them. All times are of 1 December 2026, UTC."""

    def __init__(self, world: Any) -> None:
        self.world = world
        world.publish()
        self.seen(LATE)

    def seen(self, instant: datetime | None, cluster: Cluster | None = None) -> None:
        Cluster.objects.filter(pk=(cluster or self.world.cluster).pk).update(seen_at=instant)

    def cards(self, since: str, until: str | None = None, number: int = 8, **facts: Any) -> CardSpan:
        usual = {
            "cluster": self.world.cluster, "pool": POOL, "node": "train-1", "node_uid": "uid-train-1",
            "model": "h100-80gb", "cards": number, "out_of_service": F(0), "stranded": F(0), "foreign": F(0),
        }  # fmt: skip
        return CardSpan.objects.create(started_at=today(since), ended_at=today(until), **usual | facts)

    def held(self, placed: str, running: str | None = None, ended: str | None = None, **facts: Any) -> Placement:
        """A workload of Robin's with one placement."""
        flavor, by, team, count = (facts.pop(name, None) for name in ("flavor", "by", "team", "count"))
        row = self.world.workload(
            f"w{Placement.objects.count()}", flavor=flavor or "whole", by=by, team=team, count=count or 1,
            phase="waiting", asked_at=today(placed),
        )  # fmt: skip
        when = {"placed_at": today(placed), "running_at": today(running), "ended_at": today(ended)}
        return self.world.placement(row, **when | facts)

    def odd_flavor(self) -> str:
        """The key of a flavor that no rate card names."""
        made = Flavor.objects.get(pk=self.world.flavors["whole"].pk)
        made.pk, made.sku = None, "h100-80gb/odd/on-demand"
        made.save()
        self.world.flavors["odd"] = made
        return "odd"


def today(text: str | None) -> Any:
    return at(f"2026-12-01 {text}") if text else None
