"""What each card of a node is doing, and the fleet in one line."""

from __future__ import annotations

from datetime import timedelta as td
from fractions import Fraction as F
from typing import Any

import pytest

from scheduling.fleet import holders_of, node_seen, pools_seen, told, totals
from scheduling.models import CardSpan, CycleReport, Node, NodePool, Sample
from tests.world import H100, World

NOTHING = F(0)


def states(world: World, row: Node) -> list[list[str]]:
    seen = node_seen(row, holders_of([row], world.now))
    return [[unit.state for unit in card] for card in seen.cards]


def test_whole_cards_are_held_from_the_first_on(world: World) -> None:
    world.workload("a", flavor="whole", count=3, phase="running")

    assert states(world, Node.objects.get(name="train-1")) == [["held"]] * 3 + [["free"]] * 5


def test_a_cut_card_has_its_slices_and_what_no_slice_covers(world: World) -> None:
    world.workload("a", phase="running")
    world.workload("b", phase="running")

    first, second = states(world, Node.objects.get(name="shared-1"))

    assert first == ["held"] * 2 + ["free"] * 5 + ["stranded"]
    assert second == ["free"] * 7 + ["stranded"]


def test_time_slices_share_a_card(world: World) -> None:
    row = world.node("burst-1", "a10g-burst")
    world.workload("a", flavor="quarter", phase="running")

    assert states(world, row)[0] == ["held", "free", "free", "free"]


def test_sick_cards_come_last_and_are_not_free(world: World) -> None:
    """S10: seven of eight, and all seven held: nothing is free, and never minus one."""
    from dataclasses import replace

    from tests.world import device_of

    device = replace(device_of(world.pools["h100-train"]), allocatable=7)
    row = world.node("trap", "h100-train", sick_cards=1, devices=(device,))
    Node.objects.filter(name="train-1").delete()
    world.workload("a", flavor="whole", count=7, phase="running")

    assert states(world, row) == [["held"]] * 7 + [["sick"]]


def test_what_others_hold_is_told_apart(world: World) -> None:
    row = world.node("mixed", "h100-train")
    Node.objects.filter(pk=row.pk).update(foreign={"theirs": {"nvidia.com/gpu": 1}, "others": {"nvidia.com/gpu": 1}})
    row.refresh_from_db()

    assert states(world, row)[:3] == [["foreign"], ["foreign"], ["free"]]


def test_a_node_that_offers_nothing_is_sick_or_being_cut(world: World) -> None:
    silent = world.node("silent", "h100-train", devices=(), schedulable=False)
    cut = world.node("cut", "h100-shared", devices=(), cutting_to="all-3g.40gb")

    assert states(world, silent) == [["sick"]] * 8
    assert states(world, cut) == [["cutting"]] * 2


CONDITIONS = {
    "fit": {}, "not ready": {"ready": False, "schedulable": False}, "leaving": {"leaving": True, "schedulable": False},
    "cordoned": {"schedulable": False}, "cutting": {"mig_state": "pending"},
}  # fmt: skip


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_condition_of_a_node(world: World, condition: str) -> None:
    row = world.node("n", "h100-shared", **CONDITIONS[condition])

    seen = node_seen(row, holders_of([], world.now))

    assert seen.condition == condition
    assert bool(seen.words) == (condition != "fit")


def test_only_fresh_readings_count(world: World) -> None:
    fresh, stale, silent = (world.workload(name, flavor="whole", phase="running") for name in "abc")
    for row, age in ((fresh, 1), (stale, 60)):
        Sample.objects.create(placement=row.placements.get(), at=world.now - td(minutes=age), busy=0.5)

    [pool] = pools_seen([world.pools["h100-train"]], world.now, most=10)

    assert pool.busy == 0.5
    assert [card[0].busy for card in pool.nodes[0].cards].count(0.5) == 1
    assert silent.placements.count() == 1


def test_nodes_with_a_problem_are_never_cut_off(world: World) -> None:
    from scheduling.planning.facts import Problem

    for number in range(5):
        world.node(f"a-{number}", "h100-train")
    world.node("z-last", "h100-train", problems=(Problem("z-last", "f", "Odd."),))

    [pool] = pools_seen([world.pools["h100-train"]], world.now, most=3)

    assert "z-last" in [node.row.name for node in pool.nodes]
    assert (pool.total, len(pool.nodes)) == (7, 3)
    assert pool.problems == ["z-last: Odd."]


def test_the_fleet_in_one_line(world: World) -> None:
    world.workload("a", flavor="whole", phase="running")
    CardSpan.objects.create(
        cluster=world.cluster, pool="h100-shared", node="shared-1", node_uid="u", model=H100, cards=2,
        out_of_service=F(1, 2), stranded=F(1, 4), foreign=F(1, 8), started_at=world.now,
    )  # fmt: skip
    NodePool.objects.filter(name="a10g-burst").update(wished_nodes=2)

    found = totals(NodePool.objects.all())

    assert (found.nodes, found.cards, found.held, found.waking) == (2, 10, 1, 8)
    assert (found.foreign, found.lost) == (F(1, 8), F(3, 4))
    assert found.unallocated == 10 - 1 - F(1, 8) - F(3, 4)


def test_an_unknown_pool_size_wakes_nothing(world: World) -> None:
    NodePool.objects.update(wished_nodes=None)

    assert totals(NodePool.objects.all()).waking == 0


def test_no_nodes_no_numbers(world: World) -> None:
    Node.objects.all().delete()

    found = totals([])

    assert (found.cards, found.held, found.unallocated) == (0, NOTHING, NOTHING)


def test_reports_name_workloads_and_leave_strange_keys(world: World, django_assert_num_queries: Any) -> None:
    row = world.workload("notebook")
    strange = "00000000-0000-0000-0000-000000000000"
    rows = [
        CycleReport(cluster=world.cluster, at=world.now, actions=[f"place {row.pk} on n", f"stop {strange}: gone"])
        for _ in range(5)
    ]

    with django_assert_num_queries(1):
        found = told(rows)

    assert found[0].actions == ["place notebook on n", f"stop {strange}: gone"]
