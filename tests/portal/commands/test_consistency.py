"""`consistency`: every kind of disagreement, made to happen, is found and explained."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta as td
from fractions import Fraction as F
from typing import Any

import pytest
from django.db import DatabaseError

from portal.management.commands import consistency
from scheduling.handover import hand_over
from scheduling.models import CardSpan, Cluster, Node, Placement, Workload
from tenants.billing.models import Meter, PoolHour
from tenants.models import Grant
from tests.portal.commands.running import run
from tests.scheduling.past import LATE, Past, today


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """No cluster stands behind this world; tests/scheduling/test_cluster_checks.py asks one."""
    monkeypatch.setattr("scheduling.consistency.against_cluster", lambda *_: [])


@pytest.fixture
def past(world: Any) -> Past:
    """Four hours with one stay in them, handed over; one workload runs at LATE."""
    world.clock.set(LATE)
    Node.objects.exclude(name="train-1").delete()
    made = Past(world)
    made.cards("08:00")
    made.held("09:00:00", "09:01:00", "10:31:00", count=2)
    running = made.held("11:58:00", "11:59:00")
    Workload.objects.filter(pk=running.workload_id).update(phase="running", phase_since=today("11:59"))
    Workload.objects.exclude(pk=running.workload_id).update(phase="ended", phase_since=today("10:31"))
    hand_over(LATE)
    return made


def test_a_world_in_order_has_no_findings(past: Past) -> None:
    outcome = run("consistency", "--json")

    assert (outcome.code, outcome.json["findings"], outcome.sentences) == (0, [], [])
    assert outcome.json["at"] == "2026-12-01T12:06:00+00:00"
    assert len(outcome.json["checks"]) == 12
    assert run("consistency").out.splitlines()[-1] == "12 checks, 0 findings, 0 notes."


def test_an_empty_installation_has_no_findings(db: None) -> None:
    assert run("consistency").code == 0


def first() -> Any:
    return Placement.objects.order_by("placed_at")[:1].get()


def change(row: Any, **facts: Any) -> None:
    row.__class__.objects.filter(pk=row.pk).update(**facts)


def hour(**facts: Any) -> None:
    PoolHour.objects.filter(hour=today("10:00")).update(**facts)


SPOILED: dict[str, tuple[Callable[[Past], Any], str, str]] = {
    "a cluster that nobody has seen for an hour": (
        lambda past: past.seen(LATE - td(hours=1)), "stale-cluster", "harbour-1: It was last seen 60 minutes ago.",
    ),
    "a cluster that cannot be seen, and why": (
        lambda past: Cluster.objects.update(seen_at=None, trouble="Connection refused."), "stale-cluster",
        "harbour-1: It was never seen. The last look failed: Connection refused.",
    ),
    "a placement that outlived its workload": (
        lambda past: Workload.objects.filter(phase="running").update(phase="ended"), "open-placement",
        "w1: It is ended, and its placement on train-1 since 2026-12-01 11:58 UTC has no end.",
    ),
    "a workload that holds nothing": (
        lambda past: Workload.objects.filter(phase="ended").update(phase="placed"), "holding-without-placement",
        "w0: It is placed since 2026-12-01 10:31 UTC and has no open placement.",
    ),
    "a node whose cards nobody counts": (
        lambda past: past.world.node("train-2", "h100-train"), "uncounted-cards",
        "train-2 of harbour-1: It has 8 cards as last seen, and the balance counts 0.",
    ),
    "cards of a node that is gone": (
        lambda past: Node.objects.all().delete(), "uncounted-cards",
        "train-1: The balance counts its 8 cards, and no such node was seen last.",
    ),
    "hours that were not handed over": (
        lambda past: past.seen(past.world.clock.set(today("15:20"))), "late-hours",
        "harbour-1: 3 hours from 2026-12-01 12:00 UTC not posted.",
    ),
    "facts from before the ledger begins": (
        lambda past: past.cards("06:00", "07:00", node_uid="older"), "facts-before-ledger",
        "harbour-1: There are facts from 2026-12-01 06:00 UTC on; the ledger begins 2026-12-01 08:00.",
    ),
    "a stay that was shortened after it was charged": (
        lambda past: change(first(), ended_at=today("10:00")), "charge-without-facts",
        "w0: 1860 s of use from 2026-12-01 10:00:00 UTC are charged; nothing held them.",
    ),
    "a stay that began earlier than it was charged": (
        lambda past: change(first(), placed_at=today("08:59"), running_at=today("08:59")), "missing-charge",
        "w0: 60 s of use from 2026-12-01 08:59:00 UTC are not in the ledger. And 1 more like it.",
    ),
    "a stay with another share than was charged": (
        lambda past: change(first(), share=F(1)), "differing-charge",
        "From 2026-12-01 09:00:00 UTC the ledger has 60 s of 2 cards, the facts have 60 s of 1. And 2 more like it.",
    ),
    "a stay that was charged and is gone": (
        lambda past: first().delete(), "charge-without-facts",
        "w0: 60 s of cold-start from 2026-12-01 09:00:00 UTC are charged; nothing held them. And 2 more like it.",
    ),
    "cards that were there and are in no hour": (
        lambda past: past.cards("10:00", "11:00", node="late", node_uid="late"), "differing-balance",
        "h100-train of harbour-1: The balance of the hour from 2026-12-01 10:00 UTC is not what the facts say.",
    ),
    "buckets that do not sum": (
        lambda past: hour(present="1"), "buckets",
        "in 2026-12-01 10h: The buckets hold 28800 card-seconds; the cards that were there gave 1.",
    ),
    "a bucket below zero": (
        lambda past: hour(stranded="-1"), "buckets",
        "h100-train of harbour-1 in 2026-12-01 10h: A bucket is below 0 card-seconds.",
    ),
    "lines that are not the bucket": (
        lambda past: hour(used="3719", unallocated="25081"), "lines-and-buckets",
        "h100-train of harbour-1 in 2026-12-01 10h: The lines of use sum to 3720 card-seconds, the bucket holds 3719.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "check", "sentence"), SPOILED.values(), ids=SPOILED.keys())
def test_it_finds(past: Past, spoil: Callable[[Past], Any], check: str, sentence: str) -> None:
    spoil(past)

    outcome = run("consistency", "--json")

    assert outcome.code == 1
    found = [f"{row['where']}: {row['text']}" for row in outcome.json["findings"] if row["check"] == check]
    assert any(text.endswith(sentence) for text in found), found
    assert sentence in run("consistency").out


def test_it_finds_what_was_held_beyond_the_cards_and_what_has_no_price(world: Any) -> None:
    past = Past(world)
    world.clock.set(LATE)
    Node.objects.exclude(name="train-1").delete()
    Node.objects.update(cards=1)
    past.cards("08:00", number=1)
    past.held("08:00", "08:00", "08:31")
    past.held("08:30", "08:30", "09:00", flavor=past.odd_flavor())
    Workload.objects.update(phase="ended")
    hand_over(LATE)

    outcome = run("consistency", "--json")

    assert [(row["check"], row["where"], row["text"]) for row in outcome.json["findings"]] == [
        (
            "overlap",
            "h100-train of harbour-1 in 2026-12-01 08h",
            "60 card-seconds were held beyond the 3600 that were there.",
        ),
        (
            "set-aside",
            "2026-12",
            "1 line of h100-80gb/odd/on-demand without a price; publish a rate card that covers it.",
        ),
    ]


def test_a_team_above_its_quota_is_a_note_and_no_fault(past: Past) -> None:
    Grant.objects.all().delete()

    outcome = run("consistency", "--json")

    assert (outcome.code, outcome.json["findings"]) == (
        0,
        [
            {
                "check": "above-quota",
                "where": "Vision",
                "text": "It holds 1 cards of h100-80gb with 0 granted: 1 too many.",
                "note": True,
            }
        ],
    )


def test_a_clock_that_runs_fast_is_given_more_patience(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    past.seen(LATE - td(minutes=30))
    assert run("consistency").code == 1

    monkeypatch.setattr("tenants.clock.rate", lambda: 60.0)

    assert run("consistency").code == 0


def test_it_looks_and_writes_nothing(past: Past, django_assert_max_num_queries: Any) -> None:
    before = list(Meter.objects.values()), list(CardSpan.objects.values())
    with django_assert_max_num_queries(40) as queries:
        run("consistency")

    assert {query["sql"].split()[0] for query in queries.captured_queries} <= {"SELECT", "DECLARE"}
    assert (list(Meter.objects.values()), list(CardSpan.objects.values())) == before


def test_tables_that_are_not_there_are_said_in_a_sentence(clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> None:
        raise DatabaseError("no such table: scheduling_cluster")

    monkeypatch.setattr(consistency, "run_checks", missing)

    outcome = run("consistency")

    assert outcome.code == 2
    assert " ".join(outcome.sentences) == (
        "The tables cannot be read: no such table: scheduling_cluster. Check DATABASE_URL or BERTH_FOLDER; "
        "`manage.py migrate` makes new tables."
    )
