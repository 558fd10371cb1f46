"""Every card-second in one bucket, and the buckets sum to the cards."""

from __future__ import annotations

from datetime import datetime
from datetime import timedelta as td
from fractions import Fraction as F
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.billing.balance import BUCKETS, CardInterval, Hold, PoolBalance, balance, imbalance
from tenants.billing.rating import Kind
from tests.tenants.billing.builders import at, cards

TEN, ELEVEN = at("2026-06-01 10:00"), at("2026-06-01 11:00")
HOUR = 3600


def hold(since: str, until: str, share: F | int = 1, *, node: str = "node-1", kind: Kind = Kind.USE) -> Hold:
    return Hold(node, F(share), kind, at(f"2026-06-01 {since}"), at(f"2026-06-01 {until}"))


def there(since: str, until: str, number: int = 1, **facts: Any) -> CardInterval:
    return cards(
        f"2026-06-01 {since}",
        f"2026-06-01 {until}",
        number,
        **{k: F(v) if k in BUCKETS else v for k, v in facts.items()},
    )


ALL_DAY = ("00:00", "23:59")
CASES: dict[str, tuple[list[CardInterval], list[Hold], dict[str, F | int]]] = {
    "an hour that nobody used": (
        [there(*ALL_DAY, 2)], [],
        {"present": 2 * HOUR, "unallocated": 2 * HOUR},
    ),
    "no cards and no holders": ([], [], {}),
    "a node that came at a quarter past": (
        [there("10:15", "23:59", 8)], [],
        {"present": 8 * 2700, "unallocated": 8 * 2700},
    ),
    "a slice in use beside a remainder that no profile can use": (
        [there(*ALL_DAY, stranded="1/8")], [hold(*ALL_DAY, F(1, 8))],
        {"present": HOUR, "used": 450, "stranded": 450, "unallocated": 2700},
    ),
    "a cold start of two minutes, then use": (
        [there(*ALL_DAY)], [hold("10:10", "10:12", kind=Kind.COLD_START), hold("10:12", "10:40")],
        {"present": HOUR, "cold_start": 120, "used": 28 * 60, "unallocated": 30 * 60},
    ),
    "a card that fell sick under a running workload counts as used": (
        [there(*ALL_DAY, 2, out_of_service=1)], [hold(*ALL_DAY, 2)],
        {"present": 2 * HOUR, "used": 2 * HOUR},
    ),
    "what is sick beside what is used is out of service": (
        [there(*ALL_DAY, 2, out_of_service=1)], [hold(*ALL_DAY, F(1, 2))],
        {"present": 2 * HOUR, "used": HOUR // 2, "out_of_service": HOUR, "unallocated": HOUR // 2},
    ),
    "foreign goes before out of service, and that before stranded": (
        [there(*ALL_DAY, 1, foreign="1/2", out_of_service="1/3", stranded="1/2")], [],
        {"present": HOUR, "foreign": HOUR // 2, "out_of_service": HOUR // 3, "stranded": HOUR // 6},
    ),
    "c7: two holders for a minute at the hand-over of one card": (
        [there(*ALL_DAY)], [hold("10:00", "10:31"), hold("10:30", "11:00")],
        {"present": HOUR, "used": HOUR + 60, "overlap": 60},
    ),
    "c7: an overlap on one node is not paid by another node's free cards": (
        [there(*ALL_DAY), there(*ALL_DAY, node="node-2")], [hold(*ALL_DAY), hold("10:00", "10:01")],
        {"present": 2 * HOUR, "used": HOUR + 60, "overlap": 60, "unallocated": HOUR},
    ),
    "a holder on a node that nobody has seen": (
        [], [hold("10:00", "10:30", node="ghost")],
        {"used": 1800, "overlap": 1800},
    ),
    "seven sevenths are one": (
        [there(*ALL_DAY)], [hold(*ALL_DAY, F(1, 7)) for _ in range(7)],
        {"present": HOUR, "used": HOUR},
    ),
    "a holder that ends before it starts holds nothing": (
        [there(*ALL_DAY)], [hold("10:30", "10:20")],
        {"present": HOUR, "unallocated": HOUR},
    ),
    "a node that was replaced by one of the same name": (
        [there("10:00", "10:20"), there("10:30", "11:00")], [hold("10:00", "10:20")],
        {"present": 3000, "used": 1200, "unallocated": 1800},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("cards_there", "holds", "expected"), CASES.values(), ids=CASES.keys())
def test_balance(cards_there: list[CardInterval], holds: list[Hold], expected: dict[str, F | int]) -> None:
    found = balance(TEN, ELEVEN, cards_there, holds)

    assert {name: getattr(found, name) for name in BUCKETS if getattr(found, name)} == expected
    assert imbalance(found) == ""


def test_a_balance_that_does_not_sum_refuses_to_exist() -> None:
    with pytest.raises(ValueError, match=r"The buckets hold 3000 card-seconds; the cards that were there gave 3600\."):
        PoolBalance(present=F(3600), used=F(3000))


def test_a_balance_below_zero_refuses_to_exist() -> None:
    with pytest.raises(ValueError, match=r"A bucket is below 0 card-seconds\."):
        PoolBalance(present=F(0), used=F(60), unallocated=F(-60))


def test_balances_add_up_bucket_by_bucket() -> None:
    one = PoolBalance(present=F(10), used=F(4), unallocated=F(6))
    other = PoolBalance(present=F(5), cold_start=F(7), overlap=F(2))

    assert one + other == PoolBalance(F(15), F(4), F(7), F(6), F(0), F(0), F(0), F(2))
    assert [one.of(kind) for kind in Kind] == [4, 0, 6, 0, 0, 0]


def test_only_use_and_cold_start_can_be_held() -> None:
    with pytest.raises(ValueError, match="not stranded"):
        balance(TEN, ELEVEN, [], [hold("10:00", "11:00", kind=Kind.STRANDED)])


minutes = st.integers(-10, 70)
parts = st.fractions(min_value=0, max_value=3, max_denominator=12)


@st.composite
def windows(draw: st.DrawFn) -> tuple[datetime, datetime]:
    return TEN + td(minutes=draw(minutes)), TEN + td(minutes=draw(minutes))


@st.composite
def intervals(draw: st.DrawFn) -> CardInterval:
    since, until = draw(windows())
    facts = {name: draw(parts) for name in ("out_of_service", "stranded", "foreign")}
    return cards(since, until, draw(st.integers(0, 4)), node=draw(st.sampled_from("ab")), **facts)


@st.composite
def holders(draw: st.DrawFn) -> Hold:
    kind = draw(st.sampled_from([Kind.USE, Kind.COLD_START]))
    return Hold(draw(st.sampled_from("abc")), draw(parts), kind, *draw(windows()))


facts = (st.lists(intervals(), max_size=5), st.lists(holders(), max_size=6))


@given(*facts)
def test_the_buckets_sum_whatever_the_facts_say(there: list[CardInterval], held: list[Hold]) -> None:
    found = balance(TEN, ELEVEN, there, held)

    inside = [(max(i.started_at, TEN), min(i.ended_at, ELEVEN), i.cards) for i in there]
    present = sum((F((until - since) // td(seconds=1)) * n for since, until, n in inside if until > since), F(0))
    assert found.present == present
    assert found.present + found.overlap == sum(found.of(kind) for kind in Kind)
    assert min(getattr(found, name) for name in BUCKETS) >= 0


@given(*facts, st.integers(1, 59))
def test_two_halves_of_an_hour_are_the_hour(there: list[CardInterval], held: list[Hold], minute: int) -> None:
    middle = TEN + td(minutes=minute)

    halves = balance(TEN, middle, there, held) + balance(middle, ELEVEN, there, held)

    assert halves == balance(TEN, ELEVEN, there, held)
