"""Checks run beside the work that they check."""

from datetime import UTC, datetime
from datetime import timedelta as td

from scheduling.consistency import Look, found_twice
from tenants.billing.findings import Finding

LOOK = Look(now=datetime(2026, 12, 1, 8, 0, tzinfo=UTC), patience=td(minutes=15))


def telling(*answers):
    """A check that finds these things, one answer per call."""
    left = list(answers)
    return lambda look: iter(left.pop(0))


def finding(where, text="It differs."):
    return Finding("buckets", where, text)


def test_an_hour_that_was_posted_between_two_questions_is_no_finding():
    assert found_twice(telling([finding("20h")], []), LOOK) == []


def test_what_is_wrong_is_still_wrong_on_a_second_look_whatever_its_words():
    check = telling([finding("20h"), finding("21h", "And 3 more.")], [finding("21h", "And 4 more."), finding("22h")])

    assert found_twice(check, LOOK) == [finding("21h", "And 3 more.")]


def test_who_finds_nothing_is_asked_once():
    assert found_twice(telling([]), LOOK) == []
