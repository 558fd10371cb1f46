"""The estate's dates hold on every day on which somebody may start the demo, and its names are known ones."""

from __future__ import annotations

from datetime import UTC, datetime
from datetime import timedelta as td
from zoneinfo import ZoneInfo

import pytest

from portal.demo import estate, habits, people
from scheduling.planning import catalog
from scheduling.planning.shares import flavors_of

ZONES = ("Europe/Berlin", "UTC", "America/St_Johns", "Asia/Kolkata", "Pacific/Auckland")
DAYS = [datetime(2026, 11, 1, 13, 7, tzinfo=UTC) + td(days=number) for number in range(800)]


@pytest.mark.parametrize("name", ZONES)
def test_the_history_begins_at_a_midnight_thirty_days_ago(name: str) -> None:
    zone = ZoneInfo(name)
    for now in DAYS:
        begins = estate.beginning(now, zone).astimezone(zone)
        assert (begins.hour, begins.minute, begins.second) == (0, 0, 0)
        assert (now.astimezone(zone).date() - begins.date()).days == 30


@pytest.mark.parametrize("name", ZONES)
def test_prices_change_within_the_history_and_within_a_month(name: str) -> None:
    zone = ZoneInfo(name)
    for now in DAYS:
        change = estate.price_change(now, zone)
        assert estate.beginning(now, zone) + td(days=5) < change < now - td(days=5)
        local = change.astimezone(zone)
        assert 8 <= local.day <= 22
        assert (local.hour, local.minute) == (0, 0)


def test_on_the_first_of_a_month_all_of_the_last_one_is_there() -> None:
    zone = ZoneInfo("Europe/Berlin")
    begins = estate.beginning(datetime(2026, 12, 1, 11, 46, tzinfo=UTC), zone)
    assert begins.astimezone(zone) == datetime(2026, 11, 1, tzinfo=zone)


def test_everything_that_is_offered_has_two_prices() -> None:
    for pool in estate.POOLS:
        for flavor in flavors_of(pool):
            before, after = (estate.price_of(flavor.sku, changed=changed) for changed in (False, True))
            assert before > after > 0


def test_people_ask_only_for_what_is_offered() -> None:
    offered = {flavor.sku for pool in estate.POOLS for flavor in flavors_of(pool)}
    wanted = {sku for habit in habits.HABITS for sku in (*habit.workspace, *(sku for sku, _ in habit.jobs))}
    assert wanted <= offered


def test_models_are_those_of_the_catalog() -> None:
    assert all(catalog.model(model) for _, model, _ in estate.GRANTS)
    assert all(catalog.model(pool.model) for pool in estate.POOLS)


def test_who_decides_is_a_lead_there_and_nobody_decides_the_own_request() -> None:
    for past in estate.REQUESTS:
        assert past.asked > past.decided > 0
        withdrawn = past.verdict == "withdrawn"
        assert (past.by == past.decided_by) == withdrawn
        assert withdrawn or (past.team, "lead") in people.person(past.decided_by).roles


def test_parents_come_before_children_and_everybody_belongs_to_a_known_team() -> None:
    known: set[str] = set()
    for team in people.TEAMS:
        assert team.parent in known or not team.parent
        known.add(team.slug)
    assert {team for fact in people.PEOPLE for team, _ in fact.roles} <= known


def test_the_four_are_four_and_known() -> None:
    assert [fact.username for fact, _ in people.four()] == ["robin", "dana", "farah", "omar"]
    with pytest.raises(LookupError, match="Nobody in the demo is called mallory"):
        people.person("mallory")
