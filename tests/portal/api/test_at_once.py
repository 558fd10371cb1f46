"""Two people at the same instant: the database decides who was first, and the other one is told.

Threads with a connection each, on both databases; every story is told several times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction as F
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from django.db import connection

from scheduling.models import NodePool, Workload
from tenants.models import Grant, QuotaRequest
from tests.portal.api.asking import Answer, Caller
from tests.world import H100

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

TIMES = 4
Ask = Callable[[str], Caller]
Step = Callable[[], Answer]


@pytest.fixture(autouse=True)
def _no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody runs the cycle here: these stories are about the tables alone."""
    monkeypatch.setattr("scheduling.wake.current_app.send_task", lambda *_, **__: None)


def at_once(steps: Sequence[Step]) -> list[Answer]:
    """Take all steps at the same instant, each in a thread of its own; their answers in the order of the steps."""
    start = Barrier(len(steps))

    def take(step: Step) -> Answer:
        try:
            start.wait(timeout=10)
            return step()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(steps)) as threads:
        return list(threads.map(take, steps))


def post(caller: Caller, path: str, body: Any = None, **headers: str) -> Step:
    return partial(caller.post, path, body, **headers)


def statuses(answers: Sequence[Answer]) -> dict[int, int]:
    return dict(Counter(answer.status for answer in answers))


def test_two_leads_decide_the_same_request(world: Any, ask: Ask) -> None:
    for _ in range(TIMES):
        request = world.asks(world.robin, 1)
        address = f"/quota-requests/{request.pk}"

        answers = at_once(
            [post(ask("dana"), f"{address}/approve/"), post(ask("lena"), f"{address}/deny/", {"note": "No."})]
        )

        request.refresh_from_db()
        assert statuses(answers) == {200: 1, 409: 1}
        second = next(answer for answer in answers if answer.status == 409)
        first = "approved by Dana" if request.state == "approved" else "denied by Lena"
        assert second.text == f"Already {first} at 08:00:00 UTC."
        assert Grant.objects.filter(request=request).count() == (request.state == "approved")


def test_one_lead_with_two_tabs_grants_once(world: Any, ask: Ask) -> None:
    for _ in range(TIMES):
        request = world.asks(world.robin, 1)
        address = f"/quota-requests/{request.pk}/approve/"

        answers = at_once([post(ask("dana"), address), post(ask("dana"), address, {"amount": "1/2"})])

        assert statuses(answers) == {200: 1, 409: 1}
        assert Grant.objects.filter(request=request).count() == 1


def test_an_offer_is_taken_or_left_but_not_both(world: Any, ask: Ask) -> None:
    offer = {"state": "countered", "offered_amount": F(1), "decided_by": world.dana, "decided_at": world.now}
    for _ in range(TIMES):
        request = world.asks(world.robin, 2, **offer)
        address = f"/quota-requests/{request.pk}"

        answers = at_once([post(ask("robin"), f"{address}/accept/"), post(ask("robin"), f"{address}/withdraw/")])

        request.refresh_from_db()
        assert statuses(answers) == {200: 1, 409: 1}
        assert Grant.objects.filter(request=request).count() == (request.state == "approved")


def test_approvals_never_overshoot_what_the_parent_has_left(world: Any, ask: Ask) -> None:
    """Research has 24 cards left to give: of six requests for 10 cards each, from two teams, two can be approved."""
    requests = [world.asks(world.robin, 10) for _ in range(3)]
    requests += [world.asks(world.sasha, 10, team=world.speech) for _ in range(3)]

    answers = at_once([post(ask("lena"), f"/quota-requests/{request.pk}/approve/") for request in requests])

    assert statuses(answers) == {200: 2, 400: 4}
    refused = [answer for answer in answers if answer.status == 400]
    assert {answer.field for answer in refused} == {"amount"}
    assert all(answer.text.startswith("Research has 4 cards of h100-80gb left") for answer in refused)
    given = [grant.amount for grant in Grant.objects.filter(team__parent=world.research, model=H100)]
    assert sum(given) == 24 + 20
    assert QuotaRequest.objects.filter(state="pending").count() == 4


def test_a_double_click_is_one_workload(world: Any, ask: Ask) -> None:
    body = {"name": "train", "kind": "job", "team": str(world.vision.pk), "command": "ls", "ask": "1", "reason": "x"}
    body["flavor"] = world.flavors["slice"].sku
    for number in range(TIMES):
        key = {"Idempotency-Key": f"try-{number}"}

        answers = at_once([post(ask("robin"), "/workloads/", body, **key)] * 6)

        assert set(statuses(answers)) <= {200, 201}
        assert len({answer.body["id"] for answer in answers}) == 1
        assert Workload.objects.count() == QuotaRequest.objects.count() == number + 1


def test_one_key_with_two_bodies_is_one_workload(world: Any, ask: Ask) -> None:
    body = {"name": "train", "kind": "job", "team": str(world.vision.pk), "command": "ls"}
    body["flavor"] = world.flavors["slice"].sku
    for number in range(TIMES):
        key = {"Idempotency-Key": f"try-{number}"}
        other = {**body, "memory_mib": 2048}

        answers = at_once(
            [post(ask("robin"), "/workloads/", body, **key), post(ask("robin"), "/workloads/", other, **key)]
        )

        assert statuses(answers) == {201: 1, 422: 1}
        assert Workload.objects.count() == number + 1


def test_a_double_click_asks_once(world: Any, ask: Ask) -> None:
    body = {"team": str(world.vision.pk), "model": H100, "amount": "1/2", "reason": "A deadline."}

    answers = at_once([post(ask("robin"), "/quota-requests/", body)] * 4)

    assert statuses(answers) == {201: 4}
    assert QuotaRequest.objects.count() == 1


def test_a_grant_ends_once(world: Any, ask: Ask) -> None:
    for _ in range(TIMES):
        grant = world.grant(world.vision, H100, 1)

        answers = at_once([post(ask(who), f"/grants/{grant.pk}/end/") for who in ("dana", "lena", "omar")])

        assert statuses(answers) == {200: 1, 409: 2}


def test_two_rules_of_a_pool_never_contradict_each_other(world: Any, ask: Ask) -> None:
    pool, omar = world.pools["h100-shared"], ask("omar")
    address = f"/pools/{pool.pk}/"
    for _ in range(TIMES):
        NodePool.objects.filter(pk=pool.pk).update(min_nodes=0, max_nodes=3)

        answers = at_once(
            [partial(omar.patch, address, {"min_nodes": 3}), partial(omar.patch, address, {"max_nodes": 2})]
        )

        pool.refresh_from_db()
        assert statuses(answers) == {200: 1, 400: 1}
        assert (pool.min_nodes, pool.max_nodes) in [(3, 3), (0, 2)]


def test_sleep_and_end_at_once_end_in_the_end(world: Any, ask: Ask) -> None:
    for number in range(TIMES):
        workload = world.workload(f"notebook-{number}", phase="running")
        address = f"/workloads/{workload.pk}"

        answers = at_once([post(ask("robin"), f"{address}/sleep/"), post(ask("dana"), f"{address}/end/")])

        workload.refresh_from_db()
        assert set(statuses(answers)) <= {200, 409}
        assert workload.desired == "end"
