"""The month and its lines, cut to what each person may see; and closing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from tenants.billing.models import Statement
from tests.portal.api.asking import Caller
from tests.tenants.billing.builders import SLICE, at
from tests.tenants.billing.conftest import MAY, PRICES, Ledger

Ask = Callable[[str], Caller]
JUNE = "/chargeback/2026-06/"


@pytest.fixture
def june(world: Any, clock: Any) -> Ledger:
    """June 2026: Robin held a card for two hours, Sasha a slice for a day; of eight cards the rest was free."""
    ledger = Ledger(world)
    ledger.publish(PRICES, MAY)
    day = ("2026-06-10 00:00", "2026-06-11 00:00")
    ledger.june(ledger.robin("2026-06-01 08:00", "2026-06-01 10:00"), ledger.sasha(*day, sku=SLICE))
    clock.set(at("2026-07-03 09:00"))
    return ledger


def test_the_months(world: Any, ask: Ask, june: Ledger) -> None:
    (month,) = ask("farah").get("/chargeback/").results

    assert (month["period"], month["state"], month["zone"], month["currency"]) == ("2026-06", "draft", "UTC", "EUR")
    assert (month["charged"], month["closed_by"]) == (None, None)


def test_finance_sees_everything(world: Any, ask: Ask, june: Ledger) -> None:
    body = ask("farah").get(JUNE).body

    tables = body["tables"]
    assert [(row["name"], row["amount"]) for row in tables["by_team"]] == [
        ("Speech", "105.600000"),
        ("Vision", "8.000000"),
    ]
    assert tables["charged"]["amount"] == "113.600000"
    assert [row["key"] for row in tables["platform"]][:2] == ["unallocated", "stranded"]
    assert tables["by_team"][1]["key"] == str(world.vision.pk)
    assert tables["by_team"][1]["card_seconds"] == "7200"
    assert (body["since"], body["until"]) == ("2026-06-01T00:00:00Z", "2026-07-01T00:00:00Z")


def test_a_lead_sees_the_own_teams_only(world: Any, ask: Ask, june: Ledger) -> None:
    answer = ask("dana").get(JUNE)
    lines = ask("dana").get(f"{JUNE}lines/")

    tables = answer.body["tables"]
    assert [row["name"] for row in tables["by_team"]] == ["Vision"]
    assert (tables["overhead"], tables["platform"], tables["total"]["amount"]) == (None, [], "8.000000")
    assert {line["team_name"] for line in lines.results} == {"Vision"}
    assert "Speech" not in str(answer.body)
    assert "Sasha" not in str(lines.body)


@pytest.mark.parametrize(
    ("who", "status"), [("", 401), ("robin", 403), ("dana", 200), ("lena", 200), ("farah", 200), ("omar", 200)]
)
def test_who_sees_charges(ask: Ask, june: Ledger, who: str, status: int) -> None:
    for path in ("/chargeback/", JUNE, f"{JUNE}lines/"):
        assert ask(who).get(path).status == status


def test_a_line(world: Any, ask: Ask, june: Ledger) -> None:
    line = ask("dana").get(f"{JUNE}lines/").results[0]

    assert (line["kind"], line["team"], line["member"]) == ("use", str(world.vision.pk), world.robin.pk)
    assert (line["started_at"], line["ended_at"]) == ("2026-06-01T08:00:00Z", "2026-06-01T09:00:00Z")
    assert (line["seconds"], line["share"], line["card_seconds"]) == (3600, "1", "3600")
    assert (line["per_card_hour"], line["amount"], line["currency"]) == ("4.000000", "4.000000", "EUR")


FOUND = {
    "": 746,
    "kind=use": 26,
    "kind=unallocated": 720,
    "kind=stranded": 0,
    "team={vision}": 2,
    "member={robin}": 2,
    f"sku={SLICE}": 24,
    f"workload={UUID(int=2)}": 24,
    "pool=train&kind=use": 26,
    "cluster=nowhere": 0,
    "model=h100-80gb&kind=use": 26,
    "since=2026-06-10T12:00:00Z&kind=use": 12,
    "until=2026-06-01T09:00:00Z&kind=use": 1,
    "since=2026-06-10T00:00:00Z&until=2026-06-10T01:00:00Z&kind=use": 1,
}


@pytest.mark.parametrize("query", FOUND)
def test_lines_are_found(world: Any, ask: Ask, june: Ledger, query: str) -> None:
    wanted = query.format(vision=world.vision.pk, robin=world.robin.pk)

    assert ask("farah").get(f"{JUNE}lines/?{wanted}").body["count"] == FOUND[query]


def test_another_teams_lines_are_not_there(world: Any, ask: Ask, june: Ledger) -> None:
    for team in (world.speech.pk, UUID(int=7)):
        assert ask("dana").get(f"{JUNE}lines/", team=str(team)).status == 404
    theirs = ask("dana").get(f"{JUNE}lines/", member=world.sasha.pk)
    assert (theirs.status, theirs.body["count"]) == (200, 0)


def test_a_month_without_lines_is_empty(ask: Ask, june: Ledger) -> None:
    body = ask("farah").get("/chargeback/2031-01/").body

    assert (body["tables"]["total"]["amount"], body["tables"]["lines"]) == ("0.000000", 0)


def test_closing(ask: Ask, june: Ledger) -> None:
    closed = ask("farah").post(f"{JUNE}close/")
    again = ask("farah").post(f"{JUNE}close/")

    assert (closed.status, closed.body["is_closed"], closed.body["closed_by"]) == (200, True, "Farah")
    assert (again.status, again.text) == (409, "Farah closed 2026-06 on 03 July 2026 at 09:00 UTC.")
    (month,) = ask("farah").get("/chargeback/").results
    assert (month["state"], month["charged"], month["closed_by"]["username"]) == ("closed", "113.600000", "farah")
    (seen_by_dana,) = ask("dana").get("/chargeback/").results
    assert (seen_by_dana["charged"], seen_by_dana["overhead"]) == (None, None), "the sum of all teams is not hers"


@pytest.mark.parametrize(("who", "status"), [("", 401), ("robin", 403), ("dana", 403), ("lena", 403), ("omar", 403)])
def test_who_closes_a_month(ask: Ask, june: Ledger, who: str, status: int) -> None:
    assert ask(who).post(f"{JUNE}close/").status == status

    assert Statement.objects.get().state == "draft"


REFUSED = {
    "2026-07": "July 2026 ends on 01 August 2026",
    "2026-05": "Nothing was posted for May 2026",
    "2031-01": "January",
}


@pytest.mark.parametrize("month", REFUSED)
def test_a_month_that_cannot_be_closed(ask: Ask, june: Ledger, month: str) -> None:
    answer = ask("farah").post(f"/chargeback/{month}/close/")

    assert answer.status == 409
    assert answer.text.startswith(REFUSED[month])


def test_closing_takes_no_words(ask: Ask, june: Ledger) -> None:
    assert ask("farah").post(f"{JUNE}close/", {"charged": "0"}).status == 400
