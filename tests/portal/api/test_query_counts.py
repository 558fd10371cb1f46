"""Lists cost the same number of queries for two rows as for thirty."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta as td
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduling.models import CycleReport, Flavor, Sample
from tenants.billing.models import Charge, Statement
from tenants.models import Membership, Role, Team, User
from tests.portal.api.asking import Caller
from tests.world import H100, STEP

FEW, MANY = 2, 30
Make = Callable[[Any, int], None]


def workload(world: Any, number: int) -> None:
    world.workload(f"notebook-{number}", by=person(world, number), phase="running")


def request(world: Any, number: int) -> None:
    world.asks(person(world, number), state="denied", decided_by=world.dana, decided_at=world.now)


def pending(world: Any, number: int) -> None:
    world.asks(person(world, number))


def team(world: Any, number: int) -> None:
    made = Team.objects.create(slug=f"t{number}", name=f"T{number}", parent=world.vision, created_at=world.now)
    world.grant(made, H100, 1)
    world.grant(made, H100, 1, member=world.robin)
    world.workload(f"of-{number}", team=made, phase="running")


def grant(world: Any, number: int) -> None:
    world.grant(world.vision, H100, 1, member=person(world, number))


def flavor(world: Any, number: int) -> None:
    Flavor.objects.create(
        sku=f"x/{number}", model=H100, sharing="whole", share=1, memory_mib=1, capacity="spot", words="X"
    )


def node(world: Any, number: int) -> None:
    world.node(f"train-{number + 10}", "h100-train")
    CycleReport.objects.create(cluster=world.cluster, at=world.now)


def transition(world: Any, number: int) -> None:
    steps = world.vision.workloads.get(name="the-one").transitions
    steps.create(version=number + 100, at=world.now, after="running", reason="Running", by=person(world, number))


def placement(world: Any, number: int) -> None:
    row = world.vision.workloads.get(name="the-one")
    at = row.asked_at + td(minutes=number)
    world.placement(row, placed_at=at, running_at=at, ended_at=at + STEP)


def sample(world: Any, number: int) -> None:
    stay = world.vision.workloads.get(name="the-one").placements.first()
    Sample.objects.create(placement=stay, at=world.now - td(seconds=number), busy=0.5)


def month(world: Any, number: int) -> None:
    Statement.objects.create(
        period=f"20{number + 10}-01",
        zone="UTC",
        currency="EUR",
        state="closed",
        closed_by=person(world, number),
        closed_at=world.now,
        charged_micro=1,
        overhead_micro=1,
        lines=1,
        card_seconds=1,
    )


def line(world: Any, number: int) -> None:
    at = world.now - td(hours=number + 1)
    Charge.objects.create(
        key=f"use:{number}",
        period="2026-11",
        hour=at,
        kind="use",
        team=world.vision,
        team_name="Vision",
        member=person(world, number),
        member_name="X",
        cluster="harbour-1",
        model=H100,
        sku="x",
        share=1,
        started_at=at,
        ended_at=at + td(hours=1),
        seconds=3600,
        per_card_hour_micro=1,
        amount_micro=1,
        currency="EUR",
        posted_at=world.now,
    )


LISTS: dict[str, Make] = {
    "/workloads/": workload,
    "/quota-requests/": request,
    "/quota-requests/?state=pending": pending,
    "/teams/": team,
    "/me/": team,
    "/grants/": grant,
    "/flavors/": flavor,
    "/fleet/": node,
    "/workloads/{one}/": placement,
    "/workloads/{one}/transitions/": transition,
    "/workloads/{one}/placements/": placement,
    "/workloads/{one}/samples/": sample,
    "/chargeback/": month,
    "/chargeback/2026-11/": line,
    "/chargeback/2026-11/lines/": line,
}
ENOUGH = 16  # queries of the dearest list, session and person included


def person(world: Any, number: int) -> User:
    made, is_new = User.objects.get_or_create(username=f"p{number}", defaults={"first_name": f"P{number}"})
    if is_new:
        Membership.objects.create(team=world.vision, user=made, role=Role.RESEARCHER, since=world.now)
    return made


@pytest.mark.parametrize("path", LISTS)
def test_the_number_of_queries_does_not_grow(world: Any, ask: Callable[[str], Caller], path: str) -> None:
    one = world.workload("the-one", phase="running")
    address = path.format(one=one.pk) + ("&" if "?" in path else "?") + "page_size=200"
    address = address.removesuffix("?page_size=200") if not paged(path) else address
    make, caller = LISTS[path], ask("omar" if path == "/fleet/" else "dana")

    for number in range(FEW):
        make(world, number)
    few = queries(caller, address)
    for number in range(FEW, MANY):
        make(world, number)
    many = queries(caller, address)

    assert len(few) == len(many), "\n".join(many)
    assert len(many) <= ENOUGH, "\n".join(many)


def paged(path: str) -> bool:
    return path not in ("/me/", "/chargeback/2026-11/", "/workloads/{one}/", "/workloads/{one}/samples/")


def queries(caller: Caller, address: str) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        assert caller.get(address).status == 200
    return [query["sql"] for query in captured.captured_queries]


def test_offers_cost_the_same_however_many_flavors(world: Any, ask: Callable[[str], Caller]) -> None:
    address = f"/offers/?team={world.vision.pk}"
    few = queries(ask("robin"), address)

    for number in range(MANY):
        flavor(world, number)

    assert len(queries(ask("robin"), address)) == len(few)
