"""Effects of requests, and who decides for a team."""

from __future__ import annotations

from datetime import timedelta as td
from fractions import Fraction as F
from typing import Any

import pytest

from tenants.models import Membership, Role, Team, User
from tenants.selectors import effect_of, effects_of, leads_of
from tests.world import A10G, H100, World


def test_the_effects_of_many_are_those_of_each(world: World, django_assert_num_queries: Any) -> None:
    world.grant(world.vision, H100, 1, member=world.robin)
    world.grant(world.speech, H100, 8, starts_at=world.now + td(days=1))
    requests = [
        world.asks(world.robin, 2),
        world.asks(world.dana, F(1, 2), model=A10G, until=world.now + td(hours=5)),
        world.asks(world.sasha, 40, team=world.speech),
        world.asks(world.farah, 3, team=world.organisation),
        world.asks(world.robin, 1, model="t4-16gb"),
    ]

    with django_assert_num_queries(3):
        found = effects_of(requests, world.now)

    assert found == {one.pk: effect_of(one, one.amount, one.until, world.now) for one in requests}


def test_no_requests_no_effects(world: World) -> None:
    assert effects_of([], world.now) == {}


def test_the_own_lead_decides_before_the_lead_above(world: World) -> None:
    assert leads_of(world.vision) == [world.dana, world.lena]
    assert leads_of(world.speech) == [world.lena]
    assert leads_of(world.organisation) == []


def test_a_lead_is_named_once_and_only_while_active(world: World) -> None:
    Membership.objects.create(team=world.research, user=world.dana, role=Role.LEAD, since=world.now)
    User.objects.filter(pk=world.lena.pk).update(is_active=False)

    assert leads_of(world.vision) == [world.dana]


@pytest.mark.parametrize("rows", [1, 20])
def test_leads_are_found_in_two_queries(world: World, django_assert_num_queries: Any, rows: int) -> None:
    below = world.vision
    for number in range(rows):
        below = Team.objects.create(slug=f"deep-{number}", name=f"Deep {number}", parent=below, created_at=world.now)

    with django_assert_num_queries(2):
        assert leads_of(below)[0] == world.dana
