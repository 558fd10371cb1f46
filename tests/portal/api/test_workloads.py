"""Flavors, offers, and what runs: found, opened once, put to sleep, woken, ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta as td
from fractions import Fraction as F
from typing import Any
from uuid import uuid4

import pytest

from scheduling.cluster.port import ClusterError
from scheduling.models import Sample, Workload
from tenants.models import QuotaRequest
from tests.portal.api.asking import Caller, rows
from tests.world import A10G, H100

Ask = Callable[[str], Caller]


def wish(world: Any, **changes: Any) -> dict[str, Any]:
    plain = {"name": "train", "kind": "job", "team": str(world.vision.pk), "command": "python train.py"}
    return {**plain, "flavor": world.flavors["slice"].sku, **changes}


def test_flavors_and_their_prices(world: Any, ask: Ask) -> None:
    world.publish({"slice": "4.20"})

    found = {flavor["sku"]: flavor for flavor in ask("robin").get("/flavors/", model=H100).results}

    assert set(found) == {f"{H100}/mig-1g.10gb/on-demand", f"{H100}/whole/on-demand"}
    a_slice = found[f"{H100}/mig-1g.10gb/on-demand"]
    assert (a_slice["share"], a_slice["isolation"], a_slice["memory_mib"]) == ("1/8", "hardware", 9856)
    assert (a_slice["per_card_hour"], a_slice["currency"]) == ("4.200000", "EUR")
    assert found[f"{H100}/whole/on-demand"]["per_card_hour"] is None, "unpriced is not free"
    assert ask("robin").get("/flavors/", sharing="time-slice").results[0]["isolation"] == "none"


def test_offers_say_price_quota_and_outlook(world: Any, ask: Ask) -> None:
    world.publish()

    answer = ask("robin").get("/offers/", team=str(world.vision.pk), count=2)

    offers = {offer["flavor"]["sku"].split("/")[1]: offer for offer in answer.body["offers"]}
    assert answer.body["team"]["slug"] == "vision"
    assert (offers["whole"]["count"], offers["whole"]["per_hour"], offers["whole"]["starts"]) == (2, "8.400000", "now")
    assert (offers["mig-1g.10gb"]["count"], offers["mig-1g.10gb"]["quota_left"]) == (1, "16")
    assert offers["time-slice-4"]["starts"] == "waits"
    assert all(offer["text"].endswith(".") for offer in offers.values())


@pytest.mark.parametrize(
    ("who", "status"), [("robin", 200), ("dana", 200), ("sasha", 404), ("farah", 403), ("omar", 403)]
)
def test_offers_are_for_who_may_run_work_in_the_team(world: Any, ask: Ask, who: str, status: int) -> None:
    assert ask(who).get("/offers/", team=str(world.vision.pk)).status == status


LISTED = {  # query: names found, newest first
    "": ["c", "b", "a"],
    "phase=running": ["b"],
    "kind=job": ["c"],
    "owner=me": ["b", "a"],
    "owner=dana": ["c"],
    "owner=nobody": [],
    "search=A": ["a"],
    "search=%25": [],
    f"model={A10G}": ["c"],
    "ordering=name": ["a", "b", "c"],
    "ordering=asked_at": ["a", "b", "c"],
    "ordering=-name&page_size=1": ["c"],
    "page_size=2&page=2": ["a"],
    "team={team}": ["c", "b", "a"],
    "team={team}&kind=workspace&phase=waiting": ["a"],
}


@pytest.mark.parametrize("query", LISTED)
def test_workloads_are_found(world: Any, ask: Ask, query: str) -> None:
    world.workload("a", asked_at=world.now - td(hours=3))
    world.workload("b", asked_at=world.now - td(hours=2), phase="running")
    world.workload("c", asked_at=world.now - td(hours=1), by=world.dana, kind="job", flavor="quarter")
    world.workload("hidden", by=world.sasha, team=world.speech)

    answer = ask("robin").get(f"/workloads/?{query.format(team=world.vision.pk)}")

    assert [row["name"] for row in answer.results] == LISTED[query]


def test_pages_name_their_neighbours(world: Any, ask: Ask) -> None:
    for name in "abc":
        world.workload(name)

    page = ask("robin").get("/workloads/", page_size=1, page=2).body

    assert (page["count"], len(page["results"])) == (3, 1)
    assert page["next"].endswith("/api/v1/workloads/?page=3&page_size=1")
    assert page["previous"].endswith("/api/v1/workloads/?page_size=1")


def test_another_teams_workloads_are_not_there(world: Any, ask: Ask) -> None:
    theirs = world.workload("secret", by=world.sasha, team=world.speech, phase="running")

    for path in ("", "transitions/", "placements/", "samples/", "logs/"):
        answer = ask("robin").get(f"/workloads/{theirs.pk}/{path}")
        assert (answer.status, answer.text) == (404, "There is no such workload.")
    for step in ("sleep", "wake", "end"):
        assert ask("robin").post(f"/workloads/{theirs.pk}/{step}/").status == 404
    listed = ask("robin").get("/workloads/", team=str(world.speech.pk))
    assert (listed.status, listed.field) == (404, "team")
    unknown = ask("robin").get("/workloads/", team=str(uuid4()))
    assert unknown.body == listed.body, "an id that exists is not told from one that does not"


def test_a_workload_in_full(world: Any, ask: Ask) -> None:
    world.publish()
    workload = world.workload("notebook", phase="running", asked_at=world.now - td(hours=2))

    body = ask("robin").get(f"/workloads/{workload.pk}/").body

    assert (body["name"], body["kind"], body["phase"], body["share"]) == ("notebook", "workspace", "running", "1/8")
    assert (body["team"]["slug"], body["owner"]["username"], body["cluster"]) == ("vision", "robin", "harbour-1")
    assert body["cost"] == {
        "seconds": 7080,
        "card_seconds": "885",
        "amount": "1.032500",
        "currency": "EUR",
        "unpriced": "0",
    }


def test_opening_a_workload(world: Any, ask: Ask) -> None:
    answer = ask("robin").post("/workloads/", wish(world, hours=4, reason="A try."))

    row = Workload.objects.get()
    assert (answer.status, answer.body["id"], answer.body["phase"]) == (201, str(row.pk), "waiting")
    assert answer.headers["Location"].endswith(f"/api/v1/workloads/{row.pk}/")
    assert (row.owner, row.team, row.hours, row.reason, row.quota_request) == (
        world.robin,
        world.vision,
        4,
        "A try.",
        None,
    )
    assert row.transitions.get().by == world.robin


def test_opening_a_workload_that_waits_for_the_lead(world: Any, ask: Ask) -> None:
    until = "2027-01-01T00:00:00Z"
    answer = ask("robin").post("/workloads/", wish(world, reason="A deadline.", ask="1/8", ask_until=until))

    request = QuotaRequest.objects.get()
    assert answer.body["quota_request"] == str(request.pk)
    assert (request.amount, request.asked_by, request.model, request.state) == (F(1, 8), world.robin, H100, "pending")
    assert request.until is not None
    assert request.until.isoformat() == "2027-01-01T00:00:00+00:00"


WHO_RUNS = [("robin", 201), ("dana", 201), ("lena", 201), ("sasha", 404), ("farah", 403), ("omar", 403), ("", 401)]


@pytest.mark.parametrize(("who", "status"), WHO_RUNS)
def test_who_opens_workloads_in_a_team(world: Any, ask: Ask, who: str, status: int) -> None:
    before = rows()

    assert ask(who).post("/workloads/", wish(world)).status == status

    assert (rows() == before) is (status != 201)


RULES: dict[
    str, tuple[dict[str, Any], int, str, str]
] = {  # what a well-formed wish may still run into: status, field, text
    "two slices": ({"count": 2}, 400, "count", "A pod holds at most 1 MIG slice"),
    "more cards than a node has": ({"flavor": "whole", "count": 9}, 400, "count", "No node has 9 such cards"),
    "a job without a command": ({"command": ""}, 400, "command", "Say which command"),
    "a flavor that nobody knows": ({"flavor": "h100-80gb/mig-9g/spot"}, 404, "flavor", "There is no such flavor"),
    "a team that nobody knows": ({"team": "00000000-0000-4000-8000-000000000000"}, 404, "team", "There is no such"),
    "asking without a reason": ({"ask": "1"}, 400, "reason", "Say in a sentence"),
    "asking into the past": (
        {"ask": "1", "reason": "x", "ask_until": "2026-12-01T08:00:00Z"},
        400,
        "ask_until",
        "The end",
    ),
    "more memory than a node has": ({"memory_mib": 4_000_000}, 400, "cpu_milli", "No node of that kind"),
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_says_no(world: Any, ask: Ask, name: str) -> None:
    changes, status, field, text = RULES[name]
    if "flavor" in changes and changes["flavor"] in world.flavors:
        changes = {**changes, "flavor": world.flavors[changes["flavor"]].sku}
    before = rows()

    answer = ask("robin").post("/workloads/", wish(world, **changes))

    assert (answer.status, answer.field) == (status, field)
    assert answer.text.startswith(text)
    assert rows() == before


def test_a_flavor_that_is_no_longer_offered(world: Any, ask: Ask) -> None:
    world.flavors["slice"].offered = False
    world.flavors["slice"].save()

    answer = ask("robin").post("/workloads/", wish(world))

    assert (answer.status, answer.field) == (400, "flavor")


def test_the_same_submission_again_answers_with_the_first_workload(world: Any, ask: Ask) -> None:
    body, key = wish(world, ask="1/8", reason="x"), {"Idempotency-Key": "first-try"}

    first = ask("robin").post("/workloads/", body, **key)
    again = ask("robin").post("/workloads/", body, **key)

    assert (first.status, again.status) == (201, 200)
    assert again.body == first.body
    assert again.headers["Location"] == first.headers["Location"]
    assert (Workload.objects.count(), QuotaRequest.objects.count()) == (1, 1)


def test_without_a_key_each_request_is_a_submission(world: Any, ask: Ask) -> None:
    for _ in range(2):
        assert ask("robin").post("/workloads/", wish(world)).status == 201

    assert Workload.objects.count() == 2


OTHER_BODIES: dict[str, dict[str, Any]] = {
    "another name": {"name": "other"},
    "another kind": {"kind": "workspace"},
    "another command": {"command": "ls"},
    "another size": {"memory_mib": 2048},
    "another image": {"image": "example.org/other"},
    "another end": {"hours": 1},
    "another reason": {"reason": "Because."},
    "another amount asked": {"ask": "1"},
    "another flavor": {"flavor": "h100-80gb/whole/on-demand"},
    "another disk": {"storage_gib": 5},
}


@pytest.mark.parametrize("name", OTHER_BODIES)
def test_a_key_that_comes_with_another_body_is_refused(world: Any, ask: Ask, name: str) -> None:
    body, key = wish(world, reason="x", ask="1/8"), {"Idempotency-Key": "first-try"}
    ask("robin").post("/workloads/", body, **key)

    answer = ask("robin").post("/workloads/", {**body, **OTHER_BODIES[name]}, **key)

    assert (answer.status, answer.field) == (422, "Idempotency-Key")
    assert Workload.objects.count() == 1


def test_two_people_may_use_the_same_key(world: Any, ask: Ask) -> None:
    key = {"Idempotency-Key": "1"}

    assert ask("robin").post("/workloads/", wish(world), **key).status == 201
    assert ask("dana").post("/workloads/", wish(world), **key).status == 201


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 65, "schlüssel", "a\tb"])
def test_a_key_that_is_none(world: Any, ask: Ask, key: str) -> None:
    answer = ask("robin").post("/workloads/", wish(world), **{"Idempotency-Key": key})

    assert (answer.status, answer.field) == (400, "Idempotency-Key")
    assert not Workload.objects.exists()


STEPS = {  # phase before, step: status, desired after
    ("running", "sleep"): (200, "sleep"),
    ("asleep", "wake"): (200, "run"),
    ("running", "end"): (200, "end"),
    ("asleep", "end"): (200, "end"),
    ("waiting", "sleep"): (200, "sleep"),
    ("ended", "end"): (409, "run"),
    ("ended", "sleep"): (409, "run"),
    ("ended", "wake"): (409, "run"),
    ("running", "wake"): (409, "run"),
    ("asleep", "sleep"): (409, "run"),
}


@pytest.mark.parametrize(("phase", "step"), STEPS)
def test_a_step(world: Any, ask: Ask, phase: str, step: str) -> None:
    workload = world.workload("notebook", phase=phase)
    status, desired = STEPS[phase, step]

    answer = ask("robin").post(f"/workloads/{workload.pk}/{step}/")

    assert answer.status == status
    workload.refresh_from_db()
    assert (workload.desired, workload.phase) == (desired, phase)
    if status == 200:
        assert (answer.body["desired"], answer.body["phase"]) == (desired, phase)


def test_jobs_do_not_sleep(world: Any, ask: Ask) -> None:
    job = world.workload("train", kind="job", phase="running")

    answer = ask("robin").post(f"/workloads/{job.pk}/sleep/")

    assert (answer.status, answer.text) == (409, "Only workspaces sleep; a job runs to its end or is ended.")


@pytest.mark.parametrize(
    ("who", "status"), [("dana", 200), ("omar", 200), ("lena", 200), ("farah", 403), ("sasha", 404)]
)
def test_who_steers_somebodys_workload(world: Any, ask: Ask, who: str, status: int) -> None:
    workload = world.workload("notebook", phase="running")

    answer = ask(who).post(f"/workloads/{workload.pk}/sleep/")

    assert answer.status == status
    workload.refresh_from_db()
    assert workload.desired == ("sleep" if status == 200 else "run")


def test_a_step_takes_no_words(world: Any, ask: Ask) -> None:
    workload = world.workload("notebook", phase="running")

    answer = ask("robin").post(f"/workloads/{workload.pk}/end/", {"force": True})

    assert (answer.status, answer.field) == (400, "force")
    workload.refresh_from_db()
    assert workload.desired == "run"


def test_transitions_newest_first(world: Any, ask: Ask) -> None:
    workload = world.workload("notebook", phase="running")

    found = ask("robin").get(f"/workloads/{workload.pk}/transitions/").results

    assert [step["after"] for step in found] == ["running", "starting", "placed", "waiting"]
    assert (found[-1]["before"], found[-1]["by"]["username"], found[0]["by"]) == ("", "robin", None)


def test_placements(world: Any, ask: Ask) -> None:
    workload = world.workload("notebook", phase="running")

    (stay,) = ask("robin").get(f"/workloads/{workload.pk}/placements/").results

    assert (stay["node"], stay["pool"], stay["share"], stay["ended_at"]) == ("shared-1", "h100-shared", "1/8", None)


def test_samples_of_the_last_hour_oldest_first(world: Any, ask: Ask) -> None:
    workload = world.workload("notebook", phase="running", asked_at=world.now - td(hours=3))
    placement = workload.placements.get()
    for minutes, busy in ((61, 0.9), (59, 0.5), (1, None), (-1, 0.7)):
        Sample.objects.create(placement=placement, at=world.now - td(minutes=minutes), busy=busy, memory_used_mib=5)

    body = ask("robin").get(f"/workloads/{workload.pk}/samples/").body

    assert [(sample["busy"], sample["memory_used_mib"], sample["watts"]) for sample in body["samples"]] == [
        (0.5, 5, None),
        (None, 5, None),
    ]
    assert (body["since"], body["until"]) == ("2026-12-01T07:00:00Z", "2026-12-01T08:00:00Z")


class Talking:
    """A cluster whose pods have printed something hostile."""

    def logs(self, namespace: str, pod: str, *, lines: int) -> str:
        return f"{namespace}/{pod}: {lines} <script>\x1b[31m\x00"


class Silent:
    def logs(self, *_: Any, **__: Any) -> str:
        raise ClusterError("It did not answer within 5 s.")


def connect(monkeypatch: pytest.MonkeyPatch, port: Any) -> None:
    @contextmanager
    def port_for(_: Any) -> Iterator[Any]:
        yield port

    monkeypatch.setattr("scheduling.selectors.port_for", port_for)


def test_logs(world: Any, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, Talking())
    workload = world.workload("notebook", phase="running")

    body = ask("robin").get(f"/workloads/{workload.pk}/logs/", lines=7).body

    assert body == {"text": "team-vision/notebook-0: 7 <script>\x1b[31m\x00", "problem": ""}


def test_no_pod_no_logs(world: Any, ask: Ask) -> None:
    workload = world.workload("notebook", phase="asleep")

    body = ask("robin").get(f"/workloads/{workload.pk}/logs/").body

    assert (body["text"], body["problem"][:15]) == ("", "There is no pod")


def test_logs_of_a_cluster_that_is_away(world: Any, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, Silent())
    workload = world.workload("notebook", phase="running")

    answer = ask("robin").get(f"/workloads/{workload.pk}/logs/")

    assert (answer.status, answer.body["text"]) == (200, "")
    assert answer.body["problem"].endswith("It did not answer within 5 s.")


@pytest.mark.parametrize(("who", "status"), [("dana", 200), ("farah", 403), ("omar", 403), ("sasha", 404)])
def test_logs_are_for_the_owner_and_the_leads(
    world: Any, ask: Ask, monkeypatch: pytest.MonkeyPatch, who: str, status: int
) -> None:
    connect(monkeypatch, Talking())
    workload = world.workload("notebook", phase="running")

    assert ask(who).get(f"/workloads/{workload.pk}/logs/").status == status
