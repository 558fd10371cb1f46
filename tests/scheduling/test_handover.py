"""From placements and cards to the ledger: complete hours, once, whatever goes wrong in between."""

from __future__ import annotations

from datetime import datetime
from datetime import timedelta as td
from decimal import Decimal
from fractions import Fraction as F
from time import perf_counter
from typing import Any

import pytest

from scheduling import handover
from scheduling.handover import complete_until, cost_so_far, hand_over, live_lines, so_far
from scheduling.models import CardSpan, Cluster
from tenants.billing import checks, selectors, services
from tenants.billing.models import Charge, Meter, PoolHour
from tenants.billing.rating import Kind
from tests.scheduling.past import LATE, NOON, POOL, Past, today

WHOLE = "h100-80gb/whole/on-demand"


@pytest.fixture
def past(world: Any) -> Past:
    return Past(world)


def sums() -> dict[str, Any]:
    found: dict[str, F] = {}
    for kind, share, seconds in Charge.objects.values_list("kind", "share", "seconds"):
        found[kind] = found.get(kind, F(0)) + share * seconds
    return found


def test_cold_start_is_the_platforms_and_use_the_teams(past: Past) -> None:
    past.cards("08:00")
    past.held("09:00:00", "09:01:30", "10:30:00", count=2)

    report = hand_over(LATE)

    assert (report.hours, report.findings) == (4, [])
    assert sums() == {"cold-start": 180, "use": 2 * 5310, "unallocated": 8 * 4 * 3600 - 180 - 2 * 5310}
    cold, use = Charge.objects.filter(kind=Kind.COLD_START).get(), Charge.objects.filter(kind=Kind.USE).first()
    assert use is not None
    assert (cold.team, cold.team_name, cold.workload_name, cold.member_name) == (None, "Platform", "w0", "")
    assert (use.team_name, use.member_name, use.sku, use.share, use.pool) == ("Vision", "Robin", WHOLE, F(2), POOL)
    assert checks.reconciliation("2026-12") == []


def test_only_hours_that_are_over_for_five_minutes_are_handed_over(past: Past) -> None:
    past.cards("08:30")
    past.seen(None)

    assert hand_over(today("09:04:59")).hours == 0
    assert hand_over(today("09:05:00")).hours == 1
    assert PoolHour.objects.get().present == 8 * 1800


def test_hours_since_the_last_look_wait_for_the_next_one(past: Past) -> None:
    past.cards("08:00")
    past.seen(today("10:03"))

    assert hand_over(NOON).hours == 1
    assert selectors.meters()["harbour-1"].until == today("09:00")

    past.seen(LATE)
    assert hand_over(LATE).hours == 3


def test_a_look_from_the_future_counts_as_now(past: Past) -> None:
    past.seen(NOON + td(hours=5))
    past.world.cluster.refresh_from_db()

    assert complete_until(past.world.cluster, NOON + td(minutes=10)) == NOON


def test_c1_handing_over_three_times_is_handing_over_once(past: Past) -> None:
    past.cards("08:00")
    past.held("08:10", "08:11", "11:59")

    counts = [(hand_over(LATE).charges, Charge.objects.count()) for _ in range(3)]

    assert counts == [(counts[0][0], counts[0][0]), (0, counts[0][0]), (0, counts[0][0])]


def test_c1_a_run_that_is_killed_in_the_middle_goes_on_where_it_was(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    past.cards("00:00")
    past.held("00:10", "00:11", "11:59")
    monkeypatch.setattr(handover, "HOURS_AT_ONCE", 4)
    post, runs = services.post_hours, iter([False, True])

    def killed_in_the_second_part(*args: Any, **facts: Any) -> Any:
        if next(runs, False):
            raise KeyboardInterrupt
        return post(*args, **facts)

    monkeypatch.setattr(handover, "post_hours", killed_in_the_second_part)
    with pytest.raises(KeyboardInterrupt):
        hand_over(LATE)
    assert selectors.meters()["harbour-1"].until == today("04:00")

    hand_over(LATE)

    assert sums()["use"] == 11 * 3600 + 48 * 60
    assert checks.reconciliation("2026-12") == []


def test_a_card_that_was_never_run_on_is_all_cold_start(past: Past) -> None:
    past.cards("08:00")
    past.held("08:10", None, "08:20")

    hand_over(LATE)

    assert (sums()["cold-start"], "use" in sums()) == (600, False)


def test_an_open_placement_is_charged_hour_by_hour(past: Past) -> None:
    past.cards("08:00")
    past.held("08:58:30", "09:00:30")
    past.seen(today("09:30"))
    hand_over(today("09:30"))
    assert sums() == {"cold-start": 90, "unallocated": 8 * 3600 - 90}

    past.seen(LATE)
    hand_over(LATE)

    assert (sums()["cold-start"], sums()["use"]) == (120, 3 * 3600 - 30)
    assert list(Charge.objects.filter(kind=Kind.USE).values_list("seconds", flat=True)) == [3570, 3600, 3600]


def test_parts_of_seconds_are_floored_and_lose_nothing_between_neighbours(past: Past) -> None:
    past.cards("08:00")
    swap = today("08:30:00") + td(milliseconds=700)
    past.held("08:00", "08:00", ended_at=swap)
    past.held("08:30", None, placed_at=swap, running_at=swap)

    hand_over(today("09:30"))

    assert [line.seconds for line in Charge.objects.filter(kind=Kind.USE)] == [1800, 1800]


def test_c6_a_start_after_the_end_is_said_and_costs_nothing(past: Past) -> None:
    past.cards("08:00")
    past.held("08:10", "08:20:03", "08:20:00")

    report = hand_over(LATE)

    assert (sums()["cold-start"], "use" in sums()) == (600, False)
    assert [str(finding) for finding in report.findings] == [
        "harbour-1: w0 (use) ends 3 s before it starts, at 2026-12-01 08:20:03 UTC; it is counted as 0 s."
    ]


def test_c7_two_holders_for_a_minute_are_an_overlap_and_no_negative_remainder(past: Past) -> None:
    past.cards("08:00", number=1)
    past.held("08:00", "08:00", "08:31")
    past.held("08:30", "08:30", "09:00")

    hand_over(today("09:30"))

    row: Any = PoolHour.objects.get()
    assert (row.used, row.unallocated, row.overlap, row.present) == (3660, 0, 60, 3600)
    assert not Charge.objects.filter(kind=Kind.UNALLOCATED).exists()
    [finding] = checks.overlaps()
    assert finding.text == "60 card-seconds were held beyond the 3600 that were there."


def test_what_is_out_of_service_stranded_and_foreign_is_valued_and_nobodys(past: Past) -> None:
    past.cards("08:00", "09:00", out_of_service=F(1), stranded=F(1, 8), foreign=F(2))

    hand_over(today("09:30"))

    found = dict(Charge.objects.values_list("kind", "amount_micro"))
    # At 4.20 a card-hour: 1, 1/8, 2, and the remaining 39/8 cards.
    assert found == {"out-of-service": 4_200_000, "stranded": 525_000, "foreign": 8_400_000, "unallocated": 20_475_000}


def test_a_pool_at_zero_nodes_costs_nothing_and_has_no_balance(past: Past) -> None:
    past.cards("08:00", "08:30")

    hand_over(LATE)

    assert [(row.hour, row.present) for row in PoolHour.objects.all()] == [(today("08:00"), F(8 * 1800))]


def test_asleep_costs_nothing(past: Past) -> None:
    past.cards("08:00")
    slept = past.held("08:00", "08:00", "08:30")
    past.world.placement(slept.workload, placed_at=today("10:00"), running_at=today("10:00"), ended_at=today("10:10"))

    hand_over(LATE)

    assert sums()["use"] == 40 * 60


def test_a_flavor_without_a_price_is_set_aside_and_charged_once_it_has_one(past: Past) -> None:
    past.cards("08:00")
    past.held("08:00", "08:00", "09:00", flavor=past.odd_flavor())
    report = hand_over(today("09:30"))
    assert (report.set_aside, "use" in sums()) == (1, False)

    past.world.publish({"odd": "2.00"})
    report = hand_over(today("09:40"))

    assert report.repriced == 1
    assert Charge.objects.get(kind=Kind.USE).amount == 2


def test_a_placement_that_makes_no_sense_does_not_keep_the_others_from_being_charged(past: Past) -> None:
    past.cards("08:00")
    past.held("08:00", "08:00", "09:00", share=F(0))
    past.held("08:00", "08:00", "09:00")

    report = hand_over(today("09:30"))

    assert sums()["use"] == 3600
    assert [finding.check for finding in report.findings] == ["doubtful-facts"]
    assert "has to be above 0" in report.findings[0].text


def test_a_cluster_that_cannot_be_posted_does_not_keep_the_others_from_it(past: Past) -> None:
    past.cards("08:00")
    other = Cluster.objects.create(name="atoll-2", server="http://127.0.0.1:9", created_at=NOON, seen_at=NOON)
    past.cards("08:00", cluster=other, node_uid="uid-2")
    Meter.objects.create(cluster="atoll-2", since=today("05:00"), until=today("05:30"))

    report = hand_over(LATE)

    assert [(finding.check, finding.where) for finding in report.findings] == [("not-posted", "atoll-2")]
    assert selectors.meters()["harbour-1"].until == NOON


def test_a_cluster_that_nothing_is_known_of_has_no_hours(past: Past) -> None:
    assert hand_over(NOON).hours == 0
    assert Meter.objects.count() == 0


def test_a_new_name_of_a_team_or_a_person_is_on_new_lines_only(past: Past) -> None:
    past.cards("08:00")
    past.held("08:00", "08:00")
    past.seen(today("09:30"))
    hand_over(today("09:30"))
    past.world.vision.name = "Sight"
    past.world.vision.save(update_fields=["name"])
    past.seen(LATE)

    hand_over(LATE)

    names = Charge.objects.filter(kind=Kind.USE).values_list("team_name", flat=True)
    assert list(names) == ["Vision", "Sight", "Sight", "Sight"]
    assert checks.reconciliation("2026-12") == []


def test_the_cost_so_far_is_the_ledger_and_what_is_not_posted_yet(past: Past, django_assert_num_queries: Any) -> None:
    past.cards("08:00")
    row = past.held("09:00", "09:00", count=2)
    past.seen(today("11:30"))
    hand_over(today("11:30"))
    now = today("11:45:00") + td(milliseconds=900)

    with django_assert_num_queries(5):
        found: Any = cost_so_far(row.workload, now)

    # Two cards for 2 3/4 hours at 4.20.
    assert (found.seconds, found.card_seconds, found.amount, found.unpriced) == (9900, 19800, Decimal("23.1"), 0)
    assert Charge.objects.filter(kind=Kind.USE).count() == 2


def test_the_cost_so_far_says_what_has_no_price(past: Past) -> None:
    past.cards("08:00")
    row = past.held("09:00", "09:00", flavor=past.odd_flavor())
    past.seen(today("10:30"))
    hand_over(today("10:30"))

    found: Any = cost_so_far(row.workload, today("10:30"))

    assert (found.seconds, found.card_seconds, found.amount, found.unpriced) == (5400, 5400, 0, 5400)


def test_a_workload_that_has_not_run_has_cost_nothing(past: Past) -> None:
    waiting = past.world.workload("waiting")

    assert cost_so_far(waiting, NOON).amount == 0


def test_today_so_far_of_the_teams_in_view(past: Past, settings: Any, django_assert_num_queries: Any) -> None:
    settings.BERTH_ZONE = "Asia/Kolkata"
    past.cards("00:00")
    past.held("18:00", "18:00", "20:00")  # today begins at half past six there
    past.held("19:00", "19:00", None, by=past.world.sasha, team=past.world.speech)
    past.seen(today("19:20"))
    hand_over(today("19:20"))
    midnight, now = today("18:30"), today("20:30")

    with django_assert_num_queries(5):
        everybody = so_far(midnight, now)
    vision = so_far(midnight, now, teams=[past.world.vision.pk])

    assert (vision.seconds, vision.amount) == (5400, Decimal("6.3"))
    assert (everybody.seconds, everybody.amount) == (5400 + 5400, Decimal("12.6"))
    assert so_far(midnight, now, teams=[]).seconds == 0


def test_live_lines_are_cut_like_those_of_the_ledger(past: Past) -> None:
    past.cards("08:00")
    past.held("08:10", "08:20")

    lines = live_lines(today("10:07:30"))

    assert [line.piece.seconds for line in lines] == [2400, 3600, 450]
    past.seen(today("10:30"))
    hand_over(today("10:30"))
    assert [line.key for line in lines[:2]] == list(Charge.objects.filter(kind=Kind.USE).values_list("key", flat=True))


@pytest.mark.slow
def test_thirty_days_of_six_pools_are_handed_over_in_seconds(past: Past) -> None:
    since = NOON - td(days=30)
    fill(past, since, pools=6, placements=30)

    began = perf_counter()
    report = hand_over(LATE)
    took = perf_counter() - began

    assert (report.hours, report.findings, PoolHour.objects.count()) == (720, [], 6 * 720)
    assert sums_by_query() == 6 * 8 * 720 * 3600
    assert took < 20, f"{report.charges} lines took {took:.1f} s"


def fill(past: Past, since: datetime, *, pools: int, placements: int) -> None:
    """Nodes that stay, and stays of 20 hours each, one after another on each pool, at odd seconds."""
    for number in range(pools):
        node: dict[str, Any] = {"pool": f"pool-{number}", "node": f"node-{number}"}
        past.cards("08:00", node_uid=f"uid-{number}", **node)
        for turn in range(placements):
            began = since + td(days=turn, seconds=37 * number + turn)
            when: dict[str, Any] = {
                "placed_at": began,
                "running_at": began + td(seconds=50),
                "ended_at": began + td(hours=20, seconds=turn),
            }
            past.held("08:00", **when, **node)
    CardSpan.objects.update(started_at=since)


def sums_by_query() -> F:
    return sum((month.card_seconds for month in map(selectors.totals, ("2026-11", "2026-12"))), F(0))
