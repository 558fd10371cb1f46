"""Asking for quota and deciding about it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta as td
from fractions import Fraction as F
from typing import Any

import pytest

from tenants.models import Grant, QuotaRequest
from tests.portal.api.asking import Caller, rows
from tests.world import A10G, H100

Ask = Callable[[str], Caller]


def wanted(world: Any, **changes: Any) -> dict[str, Any]:
    return {"team": str(world.vision.pk), "model": H100, "amount": "1/2", "reason": "A deadline.", **changes}


def test_asking(world: Any, ask: Ask) -> None:
    answer = ask("robin").post("/quota-requests/", wanted(world, until="2027-01-01T00:00:00+01:00"))

    told = answer.body["request"]
    assert (answer.status, told["amount"], told["state"], told["title"]) == (201, "1/2", "pending", "H100 80GB")
    assert told["until"] == "2026-12-31T23:00:00Z"
    assert answer.body["effect"] is None, "the asker does not decide"
    assert answer.headers["Location"].endswith(f"/api/v1/quota-requests/{told['id']}/")
    assert QuotaRequest.objects.get().asked_by == world.robin


WRONG: dict[str, tuple[dict[str, Any], int, str]] = {
    "no cards": ({"amount": "0"}, 400, "amount"),
    "less than no cards": ({"amount": "-1"}, 400, "amount"),
    "cards as a number": ({"amount": 2}, 400, "amount"),
    "more cards than anybody has": ({"amount": "10001"}, 400, "amount"),
    "no reason": ({"reason": ""}, 400, "reason"),
    "a blank reason": ({"reason": " \n "}, 400, "reason"),
    "a NUL": ({"reason": "a\x00"}, 400, "reason"),
    "a model that nobody offers": ({"model": "v100-32gb"}, 404, "model"),
    "a model that is none": ({"model": "H100 <b>"}, 400, "model"),
    "the past": ({"until": "2026-12-01T07:59:59Z"}, 400, "until"),
    "no time": ({"until": "soon"}, 400, "until"),
    "a team of others": ({"team": "speech"}, 404, "team"),
    "for somebody else": ({"asked_by": 1}, 400, "asked_by"),
    "already approved": ({"state": "approved"}, 400, "state"),
}


@pytest.mark.parametrize("name", WRONG)
def test_asking_for_nonsense(world: Any, ask: Ask, name: str) -> None:
    changes, status, field = WRONG[name]
    if changes.get("team"):
        changes = {"team": str(world.speech.pk)}
    before = rows()

    answer = ask("robin").post("/quota-requests/", wanted(world, **changes))

    assert (answer.status, answer.field) == (status, field)
    assert rows() == before


SEEN = {"robin": 2, "dana": 2, "lena": 3, "omar": 3, "sasha": 1, "farah": 0}


@pytest.mark.parametrize("who", SEEN)
def test_who_sees_which_requests(world: Any, ask: Ask, who: str) -> None:
    world.asks(world.robin)
    world.asks(world.robin, model=A10G)
    world.asks(world.sasha, team=world.speech)

    assert ask(who).get("/quota-requests/").body["count"] == SEEN[who]


FOUND = {
    "state=pending": 2,
    "state=denied": 1,
    "asked_by=me": 1,
    "asked_by=others": 2,
    f"model={A10G}": 1,
    "team={team}": 3,
    "team={team}&state=pending&asked_by=me": 1,
}


@pytest.mark.parametrize("query", FOUND)
def test_requests_are_found(world: Any, ask: Ask, query: str) -> None:
    world.asks(world.dana)
    world.asks(world.robin, model=A10G)
    world.asks(world.robin, state="denied", decided_by=world.dana, decided_at=world.now)

    assert ask("dana").get(f"/quota-requests/?{query.format(team=world.vision.pk)}").body["count"] == FOUND[query]


def test_deciders_see_the_effect(world: Any, ask: Ask) -> None:
    request = world.asks(world.robin, 2)

    effect = ask("dana").get(f"/quota-requests/{request.pk}/").body["effect"]

    assert effect == {
        "granted_before": "16",
        "granted_after": "18",
        "own_before": "0",
        "own_after": "2",
        "parent_left_before": "24",
        "parent_left_after": "22",
        "possible": True,
    }
    assert ask("robin").get(f"/quota-requests/{request.pk}/").body["effect"] is None


def test_an_effect_that_is_not_possible(world: Any, ask: Ask) -> None:
    request = world.asks(world.robin, 25)

    effect = ask("dana").get(f"/quota-requests/{request.pk}/").body["effect"]

    assert (effect["possible"], effect["parent_left_after"]) == (False, "-1")


def test_approving(world: Any, ask: Ask) -> None:
    request = world.asks(world.robin, 2)

    answer = ask("dana").post(f"/quota-requests/{request.pk}/approve/", {"amount": "3/2", "note": "Until spring."})

    told = answer.body["request"]
    assert (answer.status, told["state"], told["offered_amount"], told["note"]) == (
        200,
        "approved",
        "3/2",
        "Until spring.",
    )
    assert told["decided_by"]["username"] == "dana"
    assert Grant.objects.get(request=request).amount == F(3, 2)


def test_approving_until_a_date(world: Any, ask: Ask) -> None:
    request = world.asks(world.robin, 2)

    ask("dana").post(f"/quota-requests/{request.pk}/approve/", {"until": "2026-12-31T00:00:00Z"})

    grant = Grant.objects.get(request=request)
    assert grant.ends_at is not None
    assert grant.ends_at.isoformat() == "2026-12-31T00:00:00+00:00"


def test_who_comes_second_is_told_who_was_first(world: Any, ask: Ask) -> None:
    request = world.asks(world.robin, 2)
    ask("dana").post(f"/quota-requests/{request.pk}/approve/")

    second = ask("lena").post(f"/quota-requests/{request.pk}/deny/", {"note": "No."})

    assert (second.status, second.text) == (409, "Already approved by Dana at 08:00:00 UTC.")
    assert Grant.objects.filter(request=request).count() == 1


def test_denying_ends_what_waited(world: Any, ask: Ask) -> None:
    request = world.asks(world.robin)
    workload = world.workload("notebook", quota_request=request)

    answer = ask("dana").post(f"/quota-requests/{request.pk}/deny/", {"note": "No cards left."})

    workload.refresh_from_db()
    assert (answer.body["request"]["state"], answer.body["request"]["note"]) == ("denied", "No cards left.")
    assert workload.desired == "end"


def test_an_offer_and_its_acceptance(world: Any, ask: Ask) -> None:
    request = world.asks(world.robin, 4)

    offered = ask("dana").post(
        f"/quota-requests/{request.pk}/counter/", {"amount": "1", "until": "2027-01-01T00:00:00Z"}
    )
    taken = ask("robin").post(f"/quota-requests/{request.pk}/accept/")

    assert (offered.body["request"]["state"], offered.body["request"]["offered_amount"]) == ("countered", "1")
    assert taken.body["request"]["state"] == "approved"
    grant = Grant.objects.get(request=request)
    assert (grant.amount, grant.made_by, grant.member) == (F(1), world.dana, world.robin)


def test_an_offer_whose_time_has_passed(world: Any, ask: Ask) -> None:
    offer = {"offered_amount": 1, "offered_until": world.now, "decided_by": world.dana, "decided_at": world.now}
    request = world.asks(world.robin, 4, state="countered", **offer)

    answer = ask("robin").post(f"/quota-requests/{request.pk}/accept/")

    assert (answer.status, answer.field) == (409, ""), "nothing that was sent is wrong"
    assert answer.text.startswith("The end lies in the past")


def test_withdrawing(world: Any, ask: Ask) -> None:
    request = world.asks(world.robin)

    assert ask("robin").post(f"/quota-requests/{request.pk}/withdraw/").body["request"]["state"] == "withdrawn"
    assert ask("robin").post(f"/quota-requests/{request.pk}/withdraw/").status == 409
    assert ask("dana").post(f"/quota-requests/{request.pk}/approve/").status == 409


STEPS: dict[str, dict[str, Any]] = {
    "approve": {},
    "deny": {"note": "No."},
    "counter": {"amount": "1"},
    "accept": {},
    "withdraw": {},
}
MAY: dict[str, dict[str, int]] = {  # who asks for the step on Robin's request: status
    "approve": {"dana": 200, "lena": 200, "robin": 403, "omar": 403, "farah": 404, "sasha": 404, "": 401},
    "deny": {"dana": 200, "lena": 200, "robin": 403, "omar": 403, "farah": 404, "sasha": 404, "": 401},
    "counter": {"dana": 200, "lena": 200, "robin": 403, "omar": 403, "farah": 404, "sasha": 404, "": 401},
    "accept": {"dana": 403, "lena": 403, "robin": 409, "omar": 403, "farah": 404, "sasha": 404, "": 401},
    "withdraw": {"dana": 403, "lena": 403, "robin": 200, "omar": 403, "farah": 404, "sasha": 404, "": 401},
}


@pytest.mark.parametrize(
    ("step", "who", "status"), [(step, *case) for step, cases in MAY.items() for case in cases.items()]
)
def test_who_may_take_which_step(world: Any, ask: Ask, step: str, who: str, status: int) -> None:
    request = world.asks(world.robin, 2)

    assert ask(who).post(f"/quota-requests/{request.pk}/{step}/", STEPS[step]).status == status

    request.refresh_from_db()
    assert (request.state == "pending") is (status != 200)


def test_nobody_decides_the_own_request(world: Any, ask: Ask) -> None:
    request = world.asks(world.dana, 2)

    answer = ask("dana").post(f"/quota-requests/{request.pk}/approve/")

    assert (answer.status, answer.text) == (403, "Nobody decides the own request; another lead has to.")
    assert not Grant.objects.filter(request=request).exists()


BAD_DECISIONS: dict[str, tuple[str, dict[str, Any], str]] = {
    "approve more than was asked": ("approve", {"amount": "3"}, "amount"),
    "approve nothing": ("approve", {"amount": "0"}, "amount"),
    "approve until yesterday": ("approve", {"until": "2026-11-30T08:00:00Z"}, "until"),
    "approve for somebody else": ("approve", {"member": 1}, "member"),
    "deny without a reason": ("deny", {}, "note"),
    "deny with a blank": ("deny", {"note": " "}, "note"),
    "deny in a novel": ("deny", {"note": "x" * 501}, "note"),
    "counter without an amount": ("counter", {}, "amount"),
    "counter with what was asked": ("counter", {"amount": "2"}, "amount"),
    "counter with more than there is": ("counter", {"amount": "9999"}, "amount"),
    "accept with words": ("accept", {"amount": "5"}, "amount"),
    "withdraw with words": ("withdraw", {"state": "approved"}, "state"),
}


@pytest.mark.parametrize("name", BAD_DECISIONS)
def test_a_bad_decision(world: Any, ask: Ask, name: str) -> None:
    step, body, field = BAD_DECISIONS[name]
    request = world.asks(world.robin, 2)
    before = rows()

    answer = ask("robin" if step in ("accept", "withdraw") else "dana").post(
        f"/quota-requests/{request.pk}/{step}/", body
    )

    request.refresh_from_db()
    assert (answer.status, answer.field) == (400, field)
    assert (request.state, rows()) == ("pending", before)


def test_a_parent_that_has_too_little_left(world: Any, ask: Ask) -> None:
    request = world.asks(world.robin, 30)

    answer = ask("dana").post(f"/quota-requests/{request.pk}/approve/")

    assert (answer.status, answer.field) == (400, "amount")
    assert answer.text.startswith("Research has 24 cards")


def test_a_date_of_a_request_is_half_open(world: Any, ask: Ask) -> None:
    answer = ask("robin").post("/quota-requests/", wanted(world, until=(world.now + td(seconds=1)).isoformat()))

    assert answer.status == 201
