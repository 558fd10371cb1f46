"""Roles reach down the tree, and what one may not know of is not there."""

import pytest
from django.http import Http404

from tenants.access import access_grant, access_quota_request, access_team, pending_to_decide, standing
from tenants.errors import NotAllowed
from tenants.models import Grant, Role

MAY = {  #                         person   team       purpose   outcome
    "a researcher reads the own team": ("robin", "vision", "read", True),
    "and runs work in it": ("robin", "vision", "run", True),
    "but does not lead it": ("robin", "vision", "lead", NotAllowed),
    "nor sees its money": ("robin", "vision", "money", NotAllowed),
    "another team is not there": ("robin", "speech", "read", Http404),
    "nor is the parent": ("robin", "research", "read", Http404),
    "a lead leads": ("dana", "vision", "lead", True),
    "and sees the money": ("dana", "vision", "money", True),
    "a department's lead leads its teams": ("lena", "speech", "lead", True),
    "a lead's power ends at the own subtree": ("dana", "speech", "lead", Http404),
    "finance sees the money everywhere below": ("farah", "speech", "money", True),
    "finance runs nothing": ("farah", "speech", "run", NotAllowed),
    "the operator reads": ("omar", "speech", "read", True),
    "the operator does not lead": ("omar", "speech", "lead", NotAllowed),
    "the operator runs no work for teams": ("omar", "speech", "run", NotAllowed),
}


@pytest.mark.parametrize("case", MAY)
def test_access_to_teams(world, case):
    person, team, purpose, outcome = MAY[case]
    stand, wanted = standing(getattr(world, person)), getattr(world, team)

    if outcome is True:
        assert access_team(stand, wanted.pk, to=purpose) == wanted
    else:
        with pytest.raises(outcome):
            access_team(stand, wanted.pk, to=purpose)


@pytest.mark.parametrize("key", ["", "x", "1", "../etc", "\x00", "0" * 300])
def test_a_key_that_is_none_names_nothing(world, key):
    for access in (access_team, access_quota_request, access_grant):
        with pytest.raises(Http404):
            access(standing(world.omar), key)


def test_requests_are_fetched_with_permission(world):
    request = world.asks(world.robin)

    assert access_quota_request(standing(world.dana), request.pk, to="decide") == request
    assert access_quota_request(standing(world.robin), request.pk, to="asker") == request
    with pytest.raises(NotAllowed):
        access_quota_request(standing(world.robin), request.pk, to="decide")
    with pytest.raises(NotAllowed):
        access_quota_request(standing(world.omar), request.pk, to="decide")
    with pytest.raises(Http404):
        access_quota_request(standing(world.sasha), request.pk)


def test_grants_are_ended_by_leads_and_the_operator(world):
    grant = Grant.objects.get(team=world.vision, model="h100-80gb")

    assert access_grant(standing(world.dana), grant.pk, to="end") == grant
    assert access_grant(standing(world.omar), grant.pk, to="end") == grant
    with pytest.raises(NotAllowed):
        access_grant(standing(world.robin), grant.pk, to="end")
    with pytest.raises(Http404):
        access_grant(standing(world.sasha), grant.pk, to="end")


def test_the_inbox_counts_what_waits_for_this_lead(world):
    world.asks(world.robin)
    world.asks(world.dana)

    counts = {who.username: pending_to_decide(standing(who)) for who in (world.dana, world.lena, world.robin)}

    assert counts == {"dana": 1, "lena": 2, "robin": 0}


def test_only_finance_of_the_organisation_closes_months(world):
    closers = [
        who.username for who in (world.farah, world.dana, world.omar, world.robin) if standing(who).closes_months()
    ]

    assert closers == ["farah"]


def test_standing_is_two_queries_however_deep_the_tree(world, django_assert_num_queries):
    with django_assert_num_queries(2):
        stand = standing(world.lena)

    assert [team.name for team in stand.teams_with(Role.LEAD)] == ["Research", "Speech", "Vision"]
