"""What holds for every address of the pages."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urldefrag, urljoin

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern

from tests.portal.pages.addresses import everything, furnished, path_of
from tests.portal.pages.reading import Seen, as_person, look
from tests.world import World

OPEN = {"login", "logout"}
ACTIONS = {
    "logout", "sleep-workload", "wake-workload", "end-workload", "force-workload", "ask-quota", "accept-offer",
    "withdraw-request", "end-grant", "approve-request", "deny-request", "counter-request", "pause-cluster",
    "resume-cluster", "pace", "close-month",
}  # fmt: skip
PEOPLE = ("robin", "dana", "lena", "farah", "omar", "sasha")
WRITES = ("INSERT", "UPDATE", "DELETE")
each_address = pytest.mark.parametrize("pattern", everything(), ids=lambda pattern: str(pattern.name))


@each_address
def test_nobody_gets_in_without_logging_in(world: World, client: Client, pattern: URLPattern) -> None:
    path = path_of(pattern, furnished(world))
    if pattern.name in OPEN:
        return

    answer = client.get(path)

    if pattern.name in ACTIONS:
        answer = client.post(path)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/login/?next=")


@each_address
def test_what_changes_the_world_is_no_link(world: World, pattern: URLPattern) -> None:
    """GET every address as everybody: 405 for actions, and nothing is ever written (A4)."""
    path = path_of(pattern, furnished(world))
    for name in PEOPLE:
        client = as_person(getattr(world, name))
        with CaptureQueriesContext(connection) as queries:
            answer = client.get(path)
        assert answer.status_code == 405 if pattern.name in ACTIONS else answer.status_code in (200, 302, 403, 404)
        assert [query["sql"] for query in queries if query["sql"].lstrip().startswith(WRITES)] == []


@each_address
def test_every_page_is_a_whole_and_sound_document(world: World, pattern: URLPattern) -> None:
    path = path_of(pattern, furnished(world))
    if pattern.name in ACTIONS:
        return
    for name in PEOPLE:
        response = as_person(getattr(world, name)).get(path, follow=True)
        if response["Content-Type"].startswith("text/html"):
            check_document(Seen(response.status_code, response.content.decode()))


def check_document(page: Seen) -> None:
    assert page.html.startswith("<!doctype html>")
    assert page.headings.count("h1") == 1
    assert page.unclosed == []
    assert [name for name, count in page.ids.items() if count > 1] == []
    assert "main" in page.ids
    unnamed = [found for found in page.controls if found.get("id") not in page.labelled and "aria-label" not in found]
    assert unnamed == []
    assert " style=" not in page.html


def test_an_open_page_is_led_away_when_its_session_is_over(world: World, client: Client) -> None:
    answer = client.get("/workloads/", headers={"HX-Request": "true"})

    assert answer["HX-Redirect"] == "/login/"


@pytest.mark.parametrize("path", ["/", "/workloads/", "/quotas/", "/fleet/"])
def test_a_refreshed_part_is_no_whole_page(world: World, path: str) -> None:
    world.workload("notebook", phase="running")

    part = look(as_person(world.robin), path, **{"HX-Request": "true"})

    assert part.status == 200
    assert "<html" not in part.html
    assert "data-refresh" in part.html


def test_a_post_without_a_token_changes_nothing(world: World) -> None:
    row = world.workload("notebook", phase="running")
    client = Client(enforce_csrf_checks=True)
    client.force_login(world.robin)

    answer = client.post(f"/workloads/{row.pk}/end/")

    row.refresh_from_db()
    assert answer.status_code == 403
    assert row.desired == "run"
    assert "send that again" in answer.content.decode()


def test_what_is_not_there_says_so_to_everybody(world: World, client: Client) -> None:
    for who, words in ((client, "There is nothing here"), (as_person(world.robin), "There is nothing here")):
        page = look(who, "/no-such-page/")
        assert page.status == 404
        assert words in page.words
        assert ("live.js" in page.html) == (who is not client)


@pytest.mark.parametrize("name", PEOPLE)
def test_no_page_links_to_what_the_person_may_not_open(world: World, name: str) -> None:
    furnished(world)
    client = as_person(getattr(world, name))
    waiting, seen = ["/"], {"/"}
    while waiting:
        path = waiting.pop()
        answer = client.get(path, follow=True)
        assert answer.status_code == 200, path
        if not answer["Content-Type"].startswith("text/html"):
            continue
        for link in Seen(answer.status_code, answer.content.decode()).links:
            target = urldefrag(urljoin(path, link)).url
            if target.startswith("/") and not target.startswith("/static/") and target not in seen:
                seen.add(target)
                waiting.append(target)


HOSTILE = '<script>alert(1)</script> " onmouseover="x'


@pytest.mark.parametrize("path", ["/", "/workloads/", "/quotas/", "/approvals/", "/fleet/", "/workloads/new/"])
def test_hostile_names_are_shown_as_text(world: World, path: str) -> None:
    """T5: names of teams, people, workloads, flavors, nodes and reasons reach every list."""
    spoil(world)
    person = world.dana if path == "/approvals/" else world.robin

    page = look(as_person(person), path)

    assert page.status == 200
    assert "<script>alert" not in page.html
    assert 'onmouseover="x' not in page.html.replace("&quot;", "'")
    assert "<script>alert(1)</script>" in page.words


def spoil(world: World) -> None:
    for team in (world.vision, world.research):
        team.name = HOSTILE
        team.save()
    world.robin.first_name = world.dana.first_name = HOSTILE
    world.robin.save()
    world.dana.save()
    world.flavors["slice"].words = f"{HOSTILE}: {HOSTILE}"
    world.flavors["slice"].save()
    row = world.workload("w", phase="waiting", reason=HOSTILE, phase_text=HOSTILE)
    type(row).objects.filter(pk=row.pk).update(name=HOSTILE)
    world.asks(world.robin, reason=HOSTILE, waits_for_it=HOSTILE)
    world.pools["h100-train"].trouble = HOSTILE
    world.pools["h100-train"].save()
    world.cluster.trouble = HOSTILE
    world.cluster.save()


Grow = Callable[[World, int], None]


def more_workloads(world: World, count: int) -> None:
    for number in range(count):
        world.workload(f"w{number}", by=world.robin if number % 2 else world.dana, phase="running")


def more_requests(world: World, count: int) -> None:
    for number in range(count):
        world.asks(world.robin if number % 2 else world.lena, reason=f"Reason {number}")
        world.asks(world.robin, state="denied", decided_by=world.dana, decided_at=world.now, note="No.")


def more_grants(world: World, count: int) -> None:
    for number in range(count):
        world.grant(world.vision, "h100-80gb", 1, member=world.robin if number % 2 else None)


def more_nodes(world: World, count: int) -> None:
    for number in range(count):
        world.node(f"extra-{number}", "h100-train")


QUERY_COUNTS: dict[str, tuple[str, str, Grow]] = {
    "workloads": ("robin", "/workloads/?phase=all", more_workloads),
    "home": ("dana", "/", more_workloads),
    "approvals": ("dana", "/approvals/", more_requests),
    "quotas, by grants": ("dana", "/quotas/", more_grants),
    "quotas, by requests": ("robin", "/quotas/", more_requests),
    "fleet, by nodes": ("omar", "/fleet/", more_nodes),
    "fleet, by workloads": ("omar", "/fleet/", more_workloads),
    "one pool": ("omar", "/fleet/pools/{pool}/", more_nodes),
}


@pytest.mark.parametrize("case", QUERY_COUNTS)
def test_a_list_costs_as_many_queries_with_two_rows_as_with_thirty(world: World, case: str) -> None:
    name, path, grow = QUERY_COUNTS[case]
    path = path.format(pool=world.pools["h100-train"].pk)
    client = as_person(getattr(world, name))
    grow(world, 2)
    few = queries_of(client, path)
    clear(world, grow)
    grow(world, 30)

    assert queries_of(client, path) == few


def clear(world: World, grow: Grow) -> None:
    """Names are unique: what is there already goes first, where it can."""
    if grow is more_nodes:
        world.pools["h100-train"].nodes.filter(name__startswith="extra").delete()
    if grow is more_workloads:
        from scheduling.models import Workload

        for number, row in enumerate(Workload.objects.all()):
            Workload.objects.filter(pk=row.pk).update(submission=f"old-{number}")


def queries_of(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(path)
    assert answer.status_code == 200
    return len(queries)
