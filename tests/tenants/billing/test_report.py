"""A month in tables whose shown columns sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction as F
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.billing.rating import Kind
from tenants.billing.report import Cell, Row, Tables, tables

A, B, C = UUID(int=1), UUID(int=2), UUID(int=3)
NAMES = {A: "Vision", B: "Speech", C: "Robotics"}
MONTH = 30 * 86400


def used(team: UUID, micro: int, seconds: int = 3600, *, member: int = 1, model: str = "h100-80gb") -> Cell:
    return Cell(
        Kind.USE, team, NAMES[team], member, f"Person {member}", model, f"{model}/whole/on-demand", F(seconds), micro, 1
    )


def idle(kind: Kind, micro: int, seconds: int = 3600) -> Cell:
    return Cell(kind, None, "Platform", None, "", "h100-80gb", "h100-80gb/whole/on-demand", F(seconds), micro, 1)


def shown(rows: list[Row]) -> dict[str, str]:
    return {row.name: str(row.shown) for row in rows}


def test_three_equal_thirds_sum_to_the_shown_total() -> None:
    found = tables([used(A, 333_333), used(B, 333_333), used(C, 333_333)], teams=None, seconds=MONTH)

    assert str(found.charged.shown) == "1.00"
    assert sorted(shown(found.by_team).values()) == ["0.33", "0.33", "0.34"]
    assert found.charged.amount == Decimal("0.999999")


def test_the_flavors_of_a_model_sum_to_what_its_own_row_shows() -> None:
    """Each flavor has 0.333 and would be 0.33 or 0.34 by itself; the two models round to 0.67 and 0.33."""
    slices = [replace(used(A, 333_000), sku=f"h100-80gb/mig-{profile}/on-demand") for profile in ("1g", "2g")]

    found = tables([*slices, used(B, 333_000, model="a10g-24gb")], teams=None, seconds=MONTH)

    of_h100 = [row for row in found.by_flavor if row.name.startswith("h100")]
    model = next(row for row in found.by_model if row.name == "h100-80gb")
    assert sum(row.shown for row in of_h100) == model.shown
    assert sum(row.card_hours for row in of_h100) == model.card_hours
    assert sum(row.shown for row in found.by_flavor) == found.charged.shown


def test_the_platforms_lines_stand_beside_the_teams_and_sum_with_them() -> None:
    cells = [
        used(A, 1_234_000),
        idle(Kind.UNALLOCATED, 2_345_000),
        idle(Kind.STRANDED, 4_000),
        idle(Kind.COLD_START, 1_000),
    ]

    found = tables(cells, teams=None, seconds=MONTH)

    assert shown(found.platform) == {
        "Unallocated": "2.35", "Stranded": "0.00", "Cold start": "0.00", "Out of service": "0.00", "Foreign": "0.00",
    }  # fmt: skip
    assert found.overhead is not None
    assert [str(row.shown) for row in (found.charged, found.overhead, found.total)] == ["1.23", "2.35", "3.58"]


def test_a_viewer_sees_the_own_teams_only_and_the_same_figures() -> None:
    cells = [used(A, 333_333), used(B, 333_333), used(C, 333_334, member=2), idle(Kind.UNALLOCATED, 5_000_000)]
    everything = tables(cells, teams=None, seconds=MONTH)

    found = tables(cells, teams=[B, C], seconds=MONTH)

    assert set(shown(found.by_team)) == {"Speech", "Robotics"}
    assert shown(found.by_team).items() <= shown(everything.by_team).items()
    assert (found.overhead, found.platform, found.lines) == (None, [], 2)
    assert found.charged.shown == found.total.shown == sum(row.shown for row in found.by_team)
    assert [row.percent for row in found.by_team] == [Decimal("50.0"), Decimal("50.0")]


def test_one_row_for_one_team_whatever_it_was_called() -> None:
    later = Cell(
        Kind.USE, A, "Vision and Sound", 1, "Person 1", "a10g-24gb", "a10g-24gb/whole/spot", F(1), 1_000_000, 1
    )

    found = tables([used(A, 1_000_000), later], teams=None, seconds=MONTH)

    assert shown(found.by_team) == {"Vision and Sound": "2.00"}
    assert shown(found.by_model) == {"a10g-24gb": "1.00", "h100-80gb": "1.00"}


def test_dearest_first_then_by_name() -> None:
    found = tables([used(A, 1), used(B, 3_000_000), used(C, 1)], teams=None, seconds=MONTH)

    assert [row.name for row in found.by_team] == ["Speech", "Robotics", "Vision"]


def test_means_are_over_the_part_of_the_month_that_is_posted() -> None:
    found = tables([used(A, 1, seconds=86400), used(B, 1, seconds=43200)], teams=None, seconds=86400)

    assert {row.name: str(row.mean_cards) for row in found.by_team} == {"Vision": "1.00", "Speech": "0.50"}
    assert str(found.total.mean_cards) == "1.50"


def test_a_month_without_lines_is_all_zeros_without_signs_or_shares() -> None:
    found = tables([], teams=None, seconds=0)

    assert [str(found.total.shown), str(found.charged.card_hours), found.total.mean_cards] == ["0.00", "0.00", None]
    assert (found.by_team, found.by_person, [row.percent for row in found.platform]) == ([], [], [None] * 5)


amounts, durations = st.integers(0, 10**9), st.integers(1, 10**7)
uses = st.builds(
    used,
    st.sampled_from([A, B, C]),
    amounts,
    durations,
    member=st.integers(1, 4),
    model=st.sampled_from(["h100-80gb", "a10g-24gb"]),
)
idles = st.builds(idle, st.sampled_from([kind for kind in Kind if kind != Kind.USE]), amounts, durations)
COLUMNS: dict[str, Callable[[Row], Decimal | F | None]] = {
    "amounts, exact": lambda row: row.amount,
    "amounts, shown": lambda row: row.shown,
    "card-hours": lambda row: row.card_hours,
    "mean cards": lambda row: row.mean_cards,
    "card-seconds": lambda row: row.card_seconds,
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS.keys())
@given(
    used=st.lists(uses, max_size=12),
    others=st.lists(idles, max_size=6),
    view=st.none() | st.sets(st.sampled_from([A, B, C])),
)
def test_every_table_sums_to_its_total_in(
    column: Callable[[Row], Decimal | F | None], used: list[Cell], others: list[Cell], view: set[UUID] | None
) -> None:
    found = tables([*used, *others], teams=view, seconds=MONTH)

    for table in (found.by_team, found.by_person, found.by_model, found.by_flavor):
        if table:
            assert summed(column, table) == column(found.charged)
    if found.overhead is not None:
        assert summed(column, found.platform) == column(found.overhead)
        assert summed(column, [found.charged, found.overhead]) == column(found.total)
    assert percents_of(found) <= {Decimal("100.0")}


def summed(column: Callable[[Row], Decimal | F | None], rows: list[Row]) -> Decimal | F:
    values = [value for row in rows if (value := column(row)) is not None]
    return sum(values[1:], start=values[0])


def percents_of(found: Tables) -> set[Decimal]:
    every = (found.by_team, found.by_person, found.by_model, found.by_flavor, found.platform)
    return {
        sum((row.percent for row in rows if row.percent is not None), Decimal("0.0"))
        for rows in every
        if any(row.percent for row in rows)
    }
