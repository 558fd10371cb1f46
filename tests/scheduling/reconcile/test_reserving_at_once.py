"""Two workers take places at the same instant: the database decides, on both databases, and nobody waits for ever."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction as F
from threading import Barrier
from typing import Any

import pytest
from django.db import connection, transaction

from scheduling.changes import Change, Step, move_all
from scheduling.models import Placement, Workload
from scheduling.planning.actions import Place
from scheduling.planning.facts import Phase, Reason
from scheduling.reconcile.reserve import reserve_all
from scheduling.snapshot import held
from tests.world import H100

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

TIMES = 5
QUOTA = 4


def at_once(acts: Sequence[Callable[[], Any]]) -> list[Any]:
    start = Barrier(len(acts))

    def one(act: Callable[[], Any]) -> Any:
        try:
            start.wait(timeout=10)
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as threads:
        return list(threads.map(one, acts))


@pytest.fixture
def team(world: Any) -> Any:
    """A team that may hold so many cards, and no more."""
    found = world.vision.__class__.objects.create(
        slug="tight", name="Tight", parent=world.research, created_at=world.now
    )
    world.grant(found, H100, F(QUOTA))
    return found


def places(rows: Sequence[Workload]) -> list[Place]:
    return [Place(row.pk, "train-1", "h100-train", "nvidia.com/gpu", 1, F(1)) for row in rows]


@pytest.mark.parametrize("time", range(TIMES))
def test_no_card_of_a_quota_is_given_out_twice(world: Any, team: Any, time: int) -> None:
    """Other workloads of the same team in each worker's plan, more than its quota holds."""
    rows = [world.workload(f"row-{number}-{time}", team=team, flavor="whole") for number in range(12)]
    taken = at_once([lambda part=rows[at::2]: reserve_all(places(part), world.now) for at in (0, 1)])  # type: ignore[misc]

    assert sum(len(found) for found in taken) == QUOTA
    assert held(teams=[team.pk])[team.pk, H100, world.robin.pk] == F(QUOTA)
    assert Placement.objects.filter(workload__team=team, ended_at=None).count() == QUOTA


@pytest.mark.parametrize("time", range(TIMES))
def test_no_workload_is_placed_twice(world: Any, team: Any, time: int) -> None:
    """The same plan, carried out by two workers in opposite orders."""
    world.grant(team, H100, F(20))
    rows = [world.workload(f"row-{number}-{time}", team=team, flavor="whole") for number in range(10)]
    plan = places(rows)
    taken = at_once([lambda: reserve_all(plan, world.now), lambda: reserve_all(plan[::-1], world.now)])

    placed = [row.pk for found in taken for row, _ in found]
    assert sorted(placed) == sorted(row.pk for row in rows)
    assert {row.transitions.count() for row in Workload.objects.filter(team=team)} == {2}


@pytest.mark.postgres
def test_a_row_that_somebody_holds_is_left_to_them(world: Any, team: Any) -> None:
    """Nobody waits for anybody: who decides about many workloads at once may hold them in any order."""
    rows = [world.workload(f"row-{number}", team=team, flavor="whole") for number in range(10)]
    step = Step(Phase.ASLEEP, Reason.ASKED_TO_SLEEP, "", world.now)
    with transaction.atomic():
        Workload.objects.select_for_update().get(pk=rows[0].pk)
        [moved] = at_once([lambda: move_all([Change(row, step) for row in rows])])

    assert {row.pk for row in moved} == {row.pk for row in rows[1:]}
