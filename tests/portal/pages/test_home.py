from __future__ import annotations

import re
from datetime import timedelta as td
from fractions import Fraction as F

from scheduling.models import Cluster, NodePool
from tests.portal.pages.reading import as_person, look
from tests.scheduling.lingering import linger
from tests.world import World


def test_a_researcher_sees_own_workloads_quota_and_what_could_start(world: World) -> None:
    world.publish()
    world.workload("notebook", phase="running")
    world.workload("hers", by=world.dana, phase="running")

    words = look(as_person(world.robin), "/").words

    assert "Hello, Robin" in words
    assert "Your workloads" in words
    assert "notebook" in words
    assert "hers" not in words
    assert "H100 80GB 15¾ left for you" in words
    assert "You could start now" in words
    assert "1g.10gb slice of an H100" in words
    assert "of 10 cards held" in words


def test_somebody_new_is_shown_the_way(world: World) -> None:
    words = look(as_person(world.robin), "/").words

    assert "Nothing runs or waits. Ask for a GPU" in words


def test_a_lead_sees_what_waits_for_a_decision_and_the_teams_work(world: World) -> None:
    world.asks(world.robin)
    world.workload("notebook", phase="running")

    words = look(as_person(world.dana), "/").words

    assert "Waits for your decision" in words
    assert "Robin asks for 2 cards of H100 80GB in Vision" in words
    assert "The team’s workloads" in words
    assert "Approvals 1 to decide" in words


def test_an_offer_waits_for_its_asker(world: World) -> None:
    world.asks(
        world.robin, 4, state="countered", decided_by=world.dana, decided_at=world.now, offered_amount=F(1),
        offered_until=world.now + td(days=7),
    )  # fmt: skip

    assert "Dana offers you 1 card of H100 80GB until 8 Dec" in look(as_person(world.robin), "/").words
    assert "offers you" not in look(as_person(world.sasha), "/").words


def test_over_quota_is_said(world: World) -> None:
    for number in range(3):
        world.workload(f"w{number}", flavor="whole", phase="running")
    type(world.grant(world.vision, "h100-80gb", 1)).objects.filter(team=world.vision, model="h100-80gb").update(
        amount=F(1)
    )

    assert "3/2 over by 1" in look(as_person(world.robin), "/").words


def test_the_operator_reads_of_trouble_at_once(world: World) -> None:
    Cluster.objects.update(paused=True, trouble="Half of it did not answer.")
    NodePool.objects.filter(name="a10g-burst").update(trouble="No capacity.")
    world.workload("unlucky", failures=3)

    words = look(as_person(world.omar), "/").words

    assert "harbour-1 is paused." in words
    assert "Half of it did not answer." in words
    assert "Pool a10g-burst: No capacity." in words
    assert "1 workload failed to start and is tried again." in words


def test_a_pod_is_trouble_once_it_had_its_time_to_go(world: World) -> None:
    linger(world.workload("stuck", flavor="whole", phase="ended"), world.now - td(minutes=5))
    linger(world.workload("saving", flavor="whole", phase="ended"), world.now - td(minutes=5), grace=600)

    words = look(as_person(world.omar), "/").words

    assert "Node train-1: held by pod stuck-0, told to go at" in words
    assert "saving-0" not in words


def test_the_menu_has_only_what_the_person_may_open(world: World) -> None:
    menus = {
        "robin": ["/", "/workloads/", "/quotas/", "/fleet/"],
        "dana": ["/", "/workloads/", "/quotas/", "/approvals/", "/fleet/", "/chargeback/"],
        "farah": ["/", "/workloads/", "/quotas/", "/fleet/", "/chargeback/"],
        "omar": ["/", "/workloads/", "/quotas/", "/approvals/", "/fleet/", "/chargeback/"],
    }
    for name, addresses in menus.items():
        page = look(as_person(getattr(world, name)), "/")
        words = page.html.partition('<nav class="nav"')[2].partition("</nav>")[0]
        assert [link for link in re.findall('href="(/[^"]*)"', words) if not link.startswith("/static/")] == addresses


def test_the_numbers_of_the_menu_can_be_fetched_anew(world: World) -> None:
    client = as_person(world.dana)
    world.asks(world.robin)

    part = look(client, "/menu/?at=/approvals/", **{"HX-Request": "true"})

    assert "<html" not in part.html
    assert "Approvals 1 to decide" in part.words
    assert 'href="/approvals/" aria-current="page"' in part.html
    assert f"team:{world.vision.pk}" in part.html


def test_the_clock_comes_with_the_menu_and_takes_its_old_place(world: World) -> None:
    client = as_person(world.robin)
    world.workload("notebook", phase="running", flavor="slice")

    part = look(client, "/menu/?at=/", **{"HX-Request": "true"})
    whole = look(client, "/")

    assert '<div id="time" class="contents" data-hx-swap-oob="true">' in part.html
    assert '<div class="person" id="person" data-hx-swap-oob="true">' in part.html
    assert "holds ⅛ card now" in part.words
    assert "swap-oob" not in whole.html
    assert whole.html.count('id="time"') == whole.html.count('id="person"') == 1


def test_roles_are_named_at_their_highest_team(world: World) -> None:
    assert "Lead of Research" in look(as_person(world.lena), "/").words
    assert "Lead of Speech" not in look(as_person(world.lena), "/").words
    assert "Finance of Meridian" in look(as_person(world.farah), "/").words
