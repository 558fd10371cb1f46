"""What teams hold beside what they may hold, and what of a node's units is taken."""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

from scheduling.holdings import Holding, holdings, units_held
from tests.world import A10G, H100


def of(world: Any, team: Any, member: Any, model: str = H100) -> Holding:
    (found,) = [line for line in holdings([team.pk], world.now, member=member.pk)[team.pk] if line.model == model]
    return found


def test_a_quiet_team(world: Any) -> None:
    line = of(world, world.vision, world.robin)

    assert (line.granted, line.own, line.held, line.free, line.over, line.left) == (16, 0, 0, 16, 0, 16)
    assert [one.model for one in holdings([world.vision.pk], world.now, member=0)[world.vision.pk]] == [A10G, H100]


def test_own_grants_stand_beside_the_teams(world: Any) -> None:
    world.grant(world.vision, H100, F(1, 2), member=world.robin)
    world.workload("notebook", phase="running")

    mine, danas = of(world, world.vision, world.robin), of(world, world.vision, world.dana)

    assert (mine.own, mine.held, mine.free, mine.total) == (F(1, 2), F(1, 8), 16, F(33, 2))
    assert (mine.left, danas.left) == (16 + F(3, 8), 16)


def test_what_sleeps_or_waits_is_not_held(world: Any) -> None:
    for phase in ("waiting", "asleep", "ended"):
        world.workload(phase, phase=phase)
    world.workload("stops", phase="stopping")

    assert of(world, world.vision, world.robin).held == F(1, 8)


def test_over_quota_is_a_number_and_nothing_is_negative(world: Any) -> None:
    world.vision.grants.all().delete()
    world.grant(world.vision, H100, 2)
    world.workload("big", flavor="whole", count=6, phase="running")

    line = of(world, world.vision, world.robin)

    assert (line.granted, line.held, line.free, line.over, line.left) == (2, 6, 0, 4, 0)


def test_a_model_that_is_held_without_any_grant_is_shown(world: Any) -> None:
    world.speech.grants.all().delete()
    world.workload("old", by=world.sasha, team=world.speech, phase="running")

    line = of(world, world.speech, world.sasha)

    assert (line.granted, line.held, line.over) == (0, F(1, 8), F(1, 8))


def test_teams_without_anything_have_an_empty_list(world: Any) -> None:
    world.research.grants.all().delete()

    assert holdings([world.research.pk], world.now, member=0) == {world.research.pk: []}


def test_many_teams_cost_two_queries(world: Any, django_assert_num_queries: Any) -> None:
    teams = [world.organisation.pk, world.research.pk, world.vision.pk, world.speech.pk]

    with django_assert_num_queries(2):
        assert len(holdings(teams, world.now, member=world.robin.pk)) == 4


def test_units_of_our_own_and_of_others(world: Any, django_assert_num_queries: Any) -> None:
    world.workload("a", phase="running")
    world.workload("b", phase="placed")
    world.workload("gone", phase="ended")
    world.workload("cards", flavor="whole", count=3, phase="running")
    shared, train = world.cluster.nodes.get(name="shared-1"), world.cluster.nodes.get(name="train-1")
    shared.foreign = {
        "a": {"nvidia.com/mig-1g.10gb": 3},
        "b": {"nvidia.com/mig-1g.10gb": 1, "nvidia.com/mig-3g.40gb": 1},
    }

    with django_assert_num_queries(1):
        held = units_held([shared, train])

    assert held[shared.pk] == {"nvidia.com/mig-1g.10gb": 6, "nvidia.com/mig-3g.40gb": 1}
    assert held[train.pk] == {"nvidia.com/gpu": 3}
