"""From tables to the queues of one cluster: what each team may hold there, and what limits it."""

from __future__ import annotations

from datetime import timedelta as td
from fractions import Fraction as F

from scheduling.cluster.kueue import Limit, TeamFact
from scheduling.models import Cluster, Workload
from scheduling.planning.facts import QueueFact, Reason, Standing
from scheduling.queueing import Setup, setup_of
from tenants.models import Grant, LendingLimit, Team
from tests.world import A10G, H100, World


def made(world: World) -> Setup:
    return setup_of(world.cluster, [], world.now)


def team(world: World, slug: str) -> TeamFact:
    return next(one for one in made(world).teams if one.slug == slug)


def only(world: World, *grants: tuple[Team, F | int]) -> None:
    """These grants of H100 and no others."""
    Grant.objects.filter(model=H100).delete()
    for owner, cards in grants:
        world.grant(owner, H100, cards)


def test_the_numbers_of_a_branch_add_up_to_its_heads(world: World) -> None:
    only(world, (world.organisation, 10), (world.research, 6), (world.vision, F(5, 2)), (world.speech, 2))

    assert {slug: team(world, slug).cards[H100] for slug in ("meridian", "research", "vision", "speech")} == {
        "meridian": F(4),
        "research": F(3, 2),
        "vision": F(5, 2),
        "speech": F(2),
    }
    assert made(world).trees[world.organisation.pk, H100] == 10


def test_a_members_own_grants_count_to_the_teams_number(world: World) -> None:
    only(world, (world.vision, 2))
    world.grant(world.vision, H100, 1, member=world.robin)

    assert team(world, "vision").cards[H100] == 3


def test_a_head_whose_grant_has_ended_has_nothing_and_not_less(world: World) -> None:
    only(world, (world.vision, 2))

    assert team(world, "research").cards[H100] == 0


def test_what_is_not_in_force_does_not_count(world: World) -> None:
    only(world, (world.vision, 2))
    world.grant(world.vision, H100, 4, starts_at=world.now + td(hours=1))

    assert team(world, "vision").cards[H100] == 2


def test_what_is_held_in_another_cluster_is_not_given_here_again(world: World) -> None:
    only(world, (world.vision, 2))
    world.workload("there", phase="running", flavor="whole")
    other = Cluster.objects.create(name="other", server="http://127.0.0.1:1", created_at=world.now)
    Workload.objects.update(cluster=other)

    assert team(world, "vision").cards[H100] == 1
    assert made(world).trees[world.vision.pk if world.vision.parent_id is None else world.organisation.pk, H100] == 2


def test_limits_are_those_of_the_team_and_model(world: World) -> None:
    LendingLimit.objects.create(team=world.vision, model=H100, borrowing=F(1), lending=None)

    setup = made(world)

    assert team(world, "vision").limits == {H100: Limit(borrowing=F(1))}
    assert setup.lending[world.vision.pk, H100].limit == 1
    assert setup.lending[world.vision.pk, A10G].limit is None
    assert setup.lending[world.speech.pk, H100].limit is None
    assert setup.lending[world.vision.pk, H100].tree == world.organisation.pk


def test_the_tree_of_teams_is_the_tree_of_cohorts(world: World) -> None:
    assert (team(world, "meridian").parent, team(world, "meridian").heads) == ("", True)
    assert (team(world, "research").parent, team(world, "research").cohort) == ("meridian", "berth-research")
    assert (team(world, "vision").heads, team(world, "vision").cohort) == (False, "berth-research")


def test_a_team_alone_has_a_cohort_of_its_own(world: World) -> None:
    Team.objects.create(slug="alone", name="Alone", created_at=world.now)

    assert team(world, "alone").cohort == "berth-alone"


def test_a_kind_of_cards_stays_as_long_as_somebody_asks_for_it(world: World) -> None:
    world.workload("train", flavor="whole")
    before = {stock.name for stock in made(world).stocks}
    world.cluster.nodes.all().delete()
    world.cluster.pools.all().delete()

    assert {stock.name for stock in made(world).stocks} == {"h100-80gb-whole-on-demand"}
    assert before > {"h100-80gb-whole-on-demand"}
    Workload.objects.update(phase="ended")
    assert made(world).stocks == ()


def test_models_under_several_names_are_told_to_the_plan(world: World) -> None:
    fact = QueueFact(Standing.PENDING, Reason.HANDED_OVER, "")
    row = world.workload("train")

    rules = made(world).rules({row.pk: fact})

    assert H100 in rules.mixed
    assert rules.facts == {row.pk: fact}


def test_the_number_of_questions_does_not_grow_with_the_teams(world: World, django_assert_num_queries: object) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(
        connection,
    ) as few:
        made(world)
    for number in range(5):
        Team.objects.create(slug=f"t{number}", name="T", parent=world.research, created_at=world.now)
    with CaptureQueriesContext(connection) as many:
        made(world)

    assert len(many) == len(few) <= 7
