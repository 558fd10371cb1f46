"""The demo's past is plausible, and it is possible: no card twice, no quota exceeded, no second unaccounted for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from datetime import timedelta as td
from fractions import Fraction as F
from itertools import pairwise

import pytest

from portal.demo import habits, people
from portal.demo.fleet import Machine, stretches
from portal.demo.habits import Ask
from portal.demo.history import History, Past, Stay, held_at, write_history
from scheduling.planning.facts import Kind
from tests.portal.demo.past import NOW, ZONE, history_at, nodes, setting_at

MOMENTS = {
    "on the first of a month": NOW,
    "in the middle of a month": datetime(2026, 7, 15, 6, 30, tzinfo=UTC),
    "just after the clocks were set back": datetime(2026, 10, 26, 9, 0, tzinfo=UTC),
    "just after the clocks were set forward": datetime(2026, 3, 30, 9, 0, tzinfo=UTC),
    "in the night between two years": datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC),
    "at the end of February": datetime(2028, 2, 29, 23, 30, tzinfo=UTC),
}
moments = pytest.mark.parametrize("now", MOMENTS.values(), ids=MOMENTS.keys())


@moments
def test_no_unit_is_given_out_twice(now: datetime) -> None:
    history = history_at(now)
    for instant in instants(history):
        for (machine, sku), units in taken(history, instant).items():
            era = next(era for era in machine.eras if era.since <= instant < era.until)
            assert units <= next(offer.units for offer in era.offers if offer.sku == sku)


@moments
def test_no_more_cards_are_held_than_a_node_can_give(now: datetime) -> None:
    history = history_at(now)
    for instant in instants(history):
        for machine, cards in shares(history, instant).items():
            stretch = next(part for part in stretches(machine) if part.since <= instant < part.until)
            assert cards + stretch.out_of_service + stretch.stranded + stretch.foreign <= machine.cards


@moments
def test_no_team_holds_more_than_its_quota(now: datetime) -> None:
    history, quotas = history_at(now), setting_at(now).quotas
    for instant in instants(history):
        held: Counter[tuple[str, str]] = Counter()
        for past, _ in held_at(history, instant):
            held[past.team, past.sku.partition("/")[0]] += past.share  # type: ignore[assignment]
        assert all(cards <= quotas[key] for key, cards in held.items())


@moments
def test_every_stay_runs_in_its_order_within_the_history_and_its_nodes_life(now: datetime) -> None:
    setting = setting_at(now)
    for _, stay in stays(history_at(now)):
        assert setting.since <= stay.asked_at < stay.placed_at < stay.running_at <= stay.quiet_at <= stay.ended_at
        assert stay.running_at < stay.ended_at < setting.until
        assert stay.machine.since <= stay.placed_at
        assert stay.ended_at <= stay.machine.until


@moments
def test_a_stay_lies_within_one_cut_of_its_node(now: datetime) -> None:
    for past, stay in stays(history_at(now)):
        (era,) = [era for era in stay.machine.eras if era.since <= stay.placed_at < era.until]
        assert stay.ended_at <= era.until
        assert past.sku in {offer.sku for offer in era.offers}


def test_a_workspace_is_not_woken_while_it_still_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = setting_at(NOW)
    first = Ask(setting.since, "robin", "vision", Kind.WORKSPACE, "notes", habits.H100, 1, td(hours=8), last=False)
    asked = [first, replace(first, at=first.at + td(hours=3)), replace(first, at=first.at + td(hours=30))]
    monkeypatch.setattr("portal.demo.history.asks", lambda *_: asked)
    history = write_history(setting)
    assert [stay.asked_at for _, stay in stays(history)] == [asked[0].at, asked[2].at]
    assert history.dropped == 1


@moments
def test_the_stays_of_a_workload_follow_each_other(now: datetime) -> None:
    for past in history_at(now).workloads:
        assert past.stays
        assert all(earlier.ended_at < later.asked_at for earlier, later in pairwise(past.stays))
        assert len(past.stays) == 1 or past.kind is Kind.WORKSPACE


@moments
def test_every_second_of_a_node_is_told_once(now: datetime) -> None:
    setting = setting_at(now)
    for machine in setting.machines:
        parts = stretches(machine)
        assert (parts[0].since, parts[-1].until) == (machine.since, machine.until)
        assert all(earlier.until == later.since for earlier, later in pairwise(parts))


@moments
def test_the_nodes_of_today_were_there_all_the_time(now: datetime) -> None:
    setting = setting_at(now)
    there = {machine.uid for machine in setting.machines if (machine.since, machine.until) == (setting.since, now)}
    assert there == {node.uid for node in nodes()}


@moments
def test_everybody_has_a_workspace_that_sleeps(now: datetime) -> None:
    asleep = {past.owner for past in history_at(now).workloads if not past.ended}
    assert asleep == {habit.owner for habit in habits.HABITS}


def test_the_history_has_something_of_everything() -> None:
    history = history_at(NOW)
    pasts, found = history.workloads, list(stays(history))
    assert {past.team for past in pasts} == {"vision", "speech", "robotics", "language"}
    assert {past.owner for past in pasts} == {habit.owner for habit in habits.HABITS}
    assert {stay.machine.pool for _, stay in found} == {"h100-train", "h100-mig", "a10g-shared", "a100-burst"}
    assert any(stay.waited > td(minutes=10) for _, stay in found)
    assert any(stay.fails for _, stay in found)
    assert any(not past.ended for past in pasts)
    assert any(len(past.stays) > 3 for past in pasts)
    assert {part.stranded > 0 for machine in history.machines for part in stretches(machine)} == {True, False}
    assert any(part.out_of_service for machine in history.machines for part in stretches(machine))
    assert any(part.foreign for machine in history.machines for part in stretches(machine))


def test_it_reaches_over_thirty_days_and_up_to_now() -> None:
    found = [stay for _, stay in stays(history_at(NOW))]
    assert min(stay.placed_at for stay in found) < NOW - td(days=29)
    assert max(stay.ended_at for stay in found) > NOW - td(hours=2)


def test_people_work_by_day_and_rest_at_weekends() -> None:
    starts = [ask.at.astimezone(ZONE) for ask in habits.asks("meridian", NOW - td(days=28), NOW, ZONE)]
    by_day = Counter(at.weekday() for at in starts)
    workday = sum(by_day[day] for day in range(5)) / 5
    weekend = sum(by_day[day] for day in (5, 6)) / 2
    night = sum(1 for at in starts if at.hour < 6)
    assert weekend < workday / 2
    assert night < len(starts) / 50


def test_a_woken_node_is_there_for_its_work_only() -> None:
    history = history_at(NOW)
    woken = [machine for machine in history.machines if machine.pool == "a100-burst"]
    assert len(woken) > 3
    assert len({machine.name for machine in woken}) == len(woken)
    for machine in woken:
        (stay,) = [stay for _, stay in stays(history) if stay.machine is machine]
        assert td(minutes=3) < machine.since - stay.asked_at < td(minutes=4)
        assert machine.until - stay.ended_at <= td(minutes=20)


def test_a_node_is_out_of_service_while_it_is_cut() -> None:
    cut = next(machine for machine in setting_at(NOW).machines if machine.pool == "h100-mig")
    before, during, after = stretches(cut)[:3]
    assert (during.out_of_service, during.until - during.since) == (F(cut.cards), td(seconds=43))
    assert (before.out_of_service, after.out_of_service) == (F(0), F(0))
    assert before.stranded != after.stranded


def test_nobody_holds_a_sick_card() -> None:
    history = history_at(NOW)
    sick = next(machine for machine in history.machines if any(fault.out_of_service for fault in machine.faults))
    (fault,) = sick.faults
    assert all(cards <= sick.cards - 1 for cards in worst(history, sick, fault.since, fault.until))


def test_the_same_seed_tells_the_same_story_and_another_one_another() -> None:
    setting = setting_at(NOW)
    again, other = write_history(setting), write_history(replace(setting, seed="another"))
    assert outline(again) == outline(history_at(NOW))
    assert outline(other) != outline(again)


def test_the_habits_are_those_of_people_who_may_have_them() -> None:
    for habit in habits.HABITS:
        assert (habit.team, "researcher") in people.person(habit.owner).roles


def test_names_are_those_that_the_form_would_take() -> None:
    from scheduling.services import NAME

    assert [past.name for past in history_at(NOW).workloads if not NAME.fullmatch(past.name)] == []


def stays(history: History) -> Iterator[tuple[Past, Stay]]:
    return ((past, stay) for past in history.workloads for stay in past.stays)


def instants(history: History) -> list[datetime]:
    """Every instant at which somebody gets cards: only there can too much be held."""
    return sorted({stay.placed_at for _, stay in stays(history)})


def taken(history: History, instant: datetime) -> Counter[tuple[Machine, str]]:
    found: Counter[tuple[Machine, str]] = Counter()
    for past, stay in held_at(history, instant):
        found[stay.machine, past.sku] += past.count
    return found


def shares(history: History, instant: datetime) -> dict[Machine, F]:
    found: dict[Machine, F] = {}
    for past, stay in held_at(history, instant):
        found[stay.machine] = found.get(stay.machine, F(0)) + past.share
    return found


def worst(history: History, machine: Machine, since: datetime, until: datetime) -> list[F]:
    edges = [since, *(at for at in instants(history) if since <= at < until)]
    return [shares(history, at).get(machine, F(0)) for at in edges]


def outline(history: History) -> list[tuple[str, str, str, datetime, datetime]]:
    return [(past.owner, past.name, stay.machine.name, stay.placed_at, stay.ended_at) for past, stay in stays(history)]
