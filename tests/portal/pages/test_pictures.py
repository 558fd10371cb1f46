"""The geometry of the small pictures: nothing lies outside, nothing overlaps, nothing is lost."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from portal.pages.bars import HEIGHT, WIDTH, bars_of
from portal.pages.tiles import SIDE, Tile, tile_of, waking_tile
from scheduling.fleet import holders_of, node_seen
from scheduling.models import Node
from tenants.access import standing
from tenants.billing.days import Day
from tests.world import World


def day(number: int, used: str, idle: str = "0", other: str = "0") -> Day:
    return Day(date(2026, 11, number), Decimal(used), Decimal(idle), Decimal(other))


def tile(world: World, name: str) -> Tile:
    row = Node.objects.get(name=name)
    return tile_of(node_seen(row, holders_of([row], world.now)), standing(world.omar))


def test_bars_stand_on_the_floor_and_the_dearest_day_fills_the_height() -> None:
    bars = bars_of([day(1, "10", "5", "5"), day(2, "10")])

    assert bars is not None
    dearest, half = bars.bars
    assert dearest.parts[0][1] + dearest.parts[0][2] == pytest.approx(HEIGHT)
    assert sum(height for _, _, height in dearest.parts) == pytest.approx(HEIGHT - 6)
    assert sum(height for _, _, height in half.parts) == pytest.approx((HEIGHT - 6) / 2)
    assert half.x + half.width <= WIDTH


def test_the_parts_of_a_bar_touch_and_never_overlap() -> None:
    bars = bars_of([day(1, "3", "2", "1")])

    assert bars is not None
    used, idle, other = bars.bars[0].parts
    assert idle[1] + idle[2] == pytest.approx(used[1], abs=0.02)
    assert other[1] + other[2] == pytest.approx(idle[1], abs=0.02)


def test_an_empty_month_has_no_picture() -> None:
    assert bars_of([]) is None
    assert bars_of([day(1, "0")]) is None


@pytest.mark.parametrize("name", ["train-1", "shared-1"])
def test_every_unit_lies_inside_the_tile(world: World, name: str) -> None:
    world.workload("a", flavor="whole", phase="running")
    world.workload("b", phase="running")

    drawn = tile(world, name)

    for rect in drawn.rects:
        assert 0 <= float(rect.x or 0) <= drawn.width - float(rect.width or 0) + 0.02
        assert 0 <= float(rect.y or 0) <= drawn.height - float(rect.height or 0) + 0.02


def test_the_slices_of_a_card_share_its_height(world: World) -> None:
    rects = [rect for rect in tile(world, "shared-1").rects if rect.x in ("0", "")]

    assert len(rects) == 8  # seven slices and the eighth that no slice covers
    assert sum(float(rect.height) for rect in rects) == pytest.approx(SIDE - 7, abs=0.1)


def test_a_waking_node_has_its_cards(world: World) -> None:
    assert len(waking_tile(8).rects) == 8
    assert waking_tile(1).width == SIDE
