"""The arithmetic of grants, as tables and as properties."""

from datetime import UTC, datetime
from datetime import timedelta as td
from fractions import Fraction as F
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.quota import GrantLine, Quota, over, quota_at, room, tightest_room, used_of_team

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
VISION, SPEECH, RESEARCH = UUID(int=1), UUID(int=2), UUID(int=3)
ROBIN, KIM = 1, 2

ROOMS = {  #                                            granted own          held                     room
    "nothing granted is no room": (0, {}, {}, 0),
    "a whole quota is free": (4, {}, {}, 4),
    "seven slices leave an eighth": (1, {}, {ROBIN: F(7, 8)}, F(1, 8)),
    "what others hold is gone": (4, {}, {KIM: 3}, 1),
    "own grants come on top": (4, {ROBIN: 2}, {}, 6),
    "own grants are drawn first": (4, {ROBIN: 2}, {ROBIN: 2}, 4),
    "the rest is drawn from the team": (4, {ROBIN: 2}, {ROBIN: 3}, 3),
    "somebody else's own grant is not for me": (0, {KIM: 2}, {}, 0),
    "their own grant shields the team's part": (4, {KIM: 2}, {KIM: 3}, 3),
    "a lowered quota leaves no room, never less (Q6)": (4, {}, {KIM: 6}, 0),
    "a lowered quota leaves the own grant usable": (4, {ROBIN: 1}, {KIM: 6}, 1),
}


@pytest.mark.parametrize("case", ROOMS)
def test_room(case):
    granted, own, held, expected = ROOMS[case]
    quota = Quota(F(granted), {member: F(cards) for member, cards in own.items()})

    assert room(quota, {member: F(cards) for member, cards in held.items()}, ROBIN) == expected


def test_over_quota_is_what_the_team_holds_beyond_its_part():
    quota = Quota(F(4), {KIM: F(1)})

    assert over(quota, {KIM: F(3), ROBIN: F(4)}) == 2
    assert over(quota, {ROBIN: F(4)}) == 0


IN_FORCE = {  #                          starts     ends       at      in force
    "from its first instant": (0, None, 0, True),
    "not a second before": (0, None, -1, False),
    "open-ended holds on": (0, None, 10**6, True),
    "not at its end": (0, 60, 60, False),
    "a second before its end": (0, 60, 59, True),
    "ended as it began": (0, 0, 0, False),
}


@pytest.mark.parametrize("case", IN_FORCE)
def test_a_grant_is_in_force(case):
    starts, ends, at, expected = IN_FORCE[case]
    line = grant(VISION, 1, starts=starts, ends=ends)

    assert line.in_force(NOON + td(seconds=at)) is expected


def test_quota_adds_up_what_is_in_force_for_team_and_members():
    lines = [
        grant(VISION, 2),
        grant(VISION, F(1, 2)),
        grant(VISION, 1, member=ROBIN),
        grant(VISION, 9, starts=60),
        grant(SPEECH, 9),
        GrantLine(VISION, "a10g-24gb", F(9), NOON),
    ]

    assert quota_at(lines, VISION, "h100-80gb", NOON) == Quota(F(5, 2), {ROBIN: F(1)})
    assert quota_at(lines, VISION, "h100-80gb", NOON).total == F(7, 2)


LEFT = {  #                                       parent              children                    period    left
    "nothing given yet": ([(8, 0, None)], [], (0, None), 8),
    "what children have is gone": ([(8, 0, None)], [(3, 0, None), (2, 0, None)], (0, None), 3),
    "a child's grant that begins later counts": ([(8, 0, None)], [(5, 3600, None)], (0, None), 3),
    "not when the period is over by then": ([(8, 0, None)], [(5, 3600, None)], (0, 3600), 8),
    "a parent's grant that ends counts": ([(4, 0, None), (4, 0, 60)], [(3, 0, None)], (0, None), 1),
    "one that ends with the period does not": ([(4, 0, None), (4, 0, 60)], [(3, 0, None)], (0, 60), 5),
    "a parent without grants has nothing": ([], [], (0, None), 0),
    "given more than it has": ([(2, 0, None)], [(3, 0, None)], (0, None), -1),
}


@pytest.mark.parametrize("case", LEFT)
def test_the_tightest_room_of_a_parent(case):
    parent, children, (starts, ends), expected = LEFT[case]
    own = [grant(RESEARCH, amount, starts=begin, ends=end) for amount, begin, end in parent]
    given_away = [grant(VISION, amount, starts=begin, ends=end) for amount, begin, end in children]
    until = None if ends is None else NOON + td(seconds=ends)

    assert tightest_room(own, given_away, NOON + td(seconds=starts), until) == expected


cards = st.fractions(min_value=0, max_value=16, max_denominator=8)
by_member = st.dictionaries(st.integers(1, 4), cards, max_size=4)


@given(granted=cards, own=by_member, held=by_member, member=st.integers(1, 4))
def test_taking_the_whole_room_leaves_none_and_never_overdraws(granted, own, held, member):
    quota = Quota(granted, own)
    before = over(quota, held)
    taken = room(quota, held, member)
    after = {**held, member: held.get(member, F(0)) + taken}

    assert taken >= 0
    assert room(quota, after, member) == 0
    assert over(quota, after) == before


@given(own=by_member, held=by_member)
def test_the_teams_part_is_never_used_below_zero(own, held):
    assert 0 <= used_of_team(own, held) <= sum(held.values(), F(0))


def grant(
    team: UUID, amount: F | int, *, starts: int = 0, ends: int | None = None, member: int | None = None
) -> GrantLine:
    until = None if ends is None else NOON + td(seconds=ends)
    return GrantLine(team, "h100-80gb", F(amount), NOON + td(seconds=starts), until, member)
