"""What pages read of workloads."""

from __future__ import annotations

from datetime import timedelta as td
from typing import Any

from scheduling import selectors
from scheduling.models import NodePool, Placement, Sample, Workload
from tenants.access import standing
from tests.world import World


def sample(world: World, row: Workload, minutes: float, busy: float | None, memory: int | None = 1024) -> None:
    at = world.now - td(minutes=minutes)
    Sample.objects.create(placement=row.placements.latest("attempt"), at=at, busy=busy, memory_used_mib=memory)


def test_the_newest_reading_of_each_running_workload(world: World, django_assert_num_queries: Any) -> None:
    rows = [world.workload(f"w{number}", phase="running") for number in range(10)]
    for row in rows:
        sample(world, row, 2, 0.1)
        sample(world, row, 1, 0.9)

    with django_assert_num_queries(2):
        found = selectors.newest_readings(rows, world.now)

    assert {reading.busy for reading in found.values()} == {0.9}
    assert set(found) == {row.pk for row in rows}


def test_an_old_reading_and_one_of_the_last_attempt_say_nothing_about_now(world: World) -> None:
    stale, moved = world.workload("stale", phase="running"), world.workload("moved", phase="running")
    sample(world, stale, 11, 0.5)
    sample(world, moved, 1, 0.5)
    Placement.objects.filter(workload=moved).update(ended_at=world.now)
    world.placement(moved)

    assert selectors.newest_readings([stale, moved], world.now) == {}


def test_buckets_tell_apart_nothing_reported_and_nothing_used(world: World) -> None:
    row = world.workload("w", phase="running")
    sample(world, row, 1, 0.0)
    sample(world, row, 2, 0.5, 4096)
    sample(world, row, 7, None, None)

    buckets = selectors.in_buckets(selectors.samples_of(row, world.now), world.now)

    assert len(buckets) == 12
    assert (buckets[0].busy, buckets[0].memory_mib) == (0.25, 4096)
    assert (buckets[1].busy, buckets[1].memory_mib) == (None, None)


def test_samples_reach_back_one_hour(world: World) -> None:
    row = world.workload("w", phase="running")
    for minutes in (0, 30, 59, 60, 61):
        sample(world, row, minutes, 0.5)

    assert len(selectors.samples_of(row, world.now)) == 3


class TestIdleRule:
    def rule(self, world: World, row: Workload, *, fresh: bool = True) -> selectors.IdleRule:
        placement = selectors.last_placement(row)
        return selectors.idle_rule(row, placement, selectors.pool_of(placement), fresh=fresh, now=world.now)

    def test_it_is_the_pools_and_says_so(self, world: World) -> None:
        row = world.workload("w", phase="running", idle_since=world.now - td(minutes=30))

        rule = self.rule(world, row)

        assert (rule.limit, rule.quiet) == (td(minutes=90), td(minutes=30))
        assert (rule.limit_minutes, rule.quiet_minutes) == (90, 30)
        assert rule.origin == "Rule of pool h100-shared."

    def test_the_meter_ends_at_the_limit(self, world: World) -> None:
        row = world.workload("w", phase="running", idle_since=world.now - td(hours=5))

        assert self.rule(world, row).quiet_minutes == 90

    def test_a_changed_rule_holds_at_once(self, world: World) -> None:
        """U2: the shown limit is the real one."""
        row = world.workload("w", phase="running")
        NodePool.objects.update(idle_minutes=20)

        assert self.rule(world, row).limit == td(minutes=20)

    def test_what_does_not_run_is_not_idle(self, world: World) -> None:
        row = world.workload("w", phase="asleep", idle_since=world.now - td(hours=5))

        assert self.rule(world, row).quiet is None

    def test_a_pool_that_is_gone_takes_its_rule_along(self, world: World) -> None:
        row = world.workload("w", phase="running")
        Placement.objects.update(pool="former")

        rule = self.rule(world, row)

        assert rule.limit is None
        assert "former is gone" in rule.origin

    def test_what_was_never_placed_has_no_rule_yet(self, world: World) -> None:
        assert "in which it will run" in self.rule(world, world.workload("w")).origin


def test_the_list_is_newest_first_and_of_ones_own_teams(world: World) -> None:
    world.workload("old", asked_at=world.now - td(days=1))
    world.workload("new")
    world.workload("theirs", by=world.sasha, team=world.speech)

    assert [row.name for row in selectors.listed(standing(world.robin))] == ["new", "old"]
    assert selectors.listed(standing(world.omar)).count() == 3
