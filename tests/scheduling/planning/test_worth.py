"""What a card's free part is worth, what a placement costs, and a table that always says the same as a new one."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduling.planning.board import Board
from scheduling.planning.cardvalue import card_values, share_prices
from scheduling.planning.hosts import Host, Hosts, Seat
from scheduling.planning.learner import Learner
from scheduling.planning.mix import Ask, Mix, mix_of
from scheduling.planning.worth import State, Worth

CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, max_examples=60)

SHARE, HALF, ONE, TWO, EIGHT = (
    Ask(4_000, 8_000, 1, 300),
    Ask(4_000, 8_000, 1, 500, frozenset({"V100"})),
    Ask(8_000, 16_000, 1, 1000),
    Ask(16_000, 32_000, 2, 1000),
    Ask(64_000, 128_000, 8, 1000),
)
NO_CARD = Ask(6_000, 4_000, 0, 0)
KINDS = (SHARE, HALF, ONE, TWO, EIGHT, NO_CARD)
STRANGER = Ask(2_000, 1_000, 1, 410)
USUAL_MIX = Mix(KINDS, (0.4, 0.1, 0.3, 0.08, 0.02, 0.1))
FLEET = (
    *(Host(f"big-{number}", "G2", 8, 96_000, 390_000) for number in range(3)),
    *(Host(f"small-{number}", "V100", 2, 32_000, 120_000) for number in range(3)),
    Host("plain", "", 0, 64_000, 256_000),
)

VALUES = {  # sizes asked for, value of a card with so much free
    "nothing but halves": ({500: 1.0},              {499: 0.0, 500: 0.5, 999: 0.5, 1000: 1.0}),
    "thirds leave a rest of no use": ({333: 1.0},              {332: 0.0, 333: 1 / 3, 999: 1.0}),
    "of a size above a half only one fits": ({600: 1.0},              {599: 0.0, 600: 1.0, 999: 1.0}),
    "what fills the gap beside it is worth nothing": ({600: 9.0, 400: 1.0},   {400: 0.0, 600: 1.0}),
    "nobody asks for shares": ({},                      {0: 0.0, 999: 0.0, 1000: 1.0}),
}  # fmt: skip


@pytest.mark.parametrize(("shares", "expected"), VALUES.values(), ids=VALUES)
def test_a_card_is_worth_what_still_fits_on_it(shares: dict[int, float], expected: dict[int, float]) -> None:
    values = card_values(shares)
    assert {free: float(values[free]) for free in expected} == pytest.approx(expected)


@CALM
@given(st.dictionaries(st.integers(90, 999), st.floats(0.01, 1.0), max_size=7))
def test_no_set_of_shares_that_fits_a_card_is_worth_more_than_the_card(shares: dict[int, float]) -> None:
    values = card_values(shares)
    assert values[0] == 0.0
    assert values[1000] == 1.0
    assert (np.diff(values) >= 0).all()
    for number in range(1, 4):
        for sizes in combinations_with_replacement(sorted(shares), number):
            if sum(sizes) <= 1000:
                assert sum(values[size] for size in sizes) <= values[sum(sizes)] + 1e-6


@CALM
@given(
    st.lists(st.integers(201, 999), min_size=3, max_size=3, unique=True),
    st.lists(st.integers(1, 30), min_size=3, max_size=3),
)
def test_the_prices_are_the_best_of_all_corners(sizes: list[int], wanted: list[int]) -> None:
    """Three sizes: every corner of the prices that no card exceeds, found by solving three equations at a time."""
    patterns = [row for row in product(range(5), repeat=3) if sum(map(int.__mul__, row, sorted(sizes))) <= 1000]
    planes = np.array([*patterns[1:], *np.eye(3)])
    levels = np.array([1.0] * (len(patterns) - 1) + [0.0] * 3)
    chosen = np.array(list(combinations(range(len(planes)), 3)))
    solvable = chosen[abs(np.linalg.det(planes[chosen])) > 1e-9]
    corners = np.linalg.solve(planes[solvable], levels[solvable][..., None])[..., 0]
    allowed = corners[(corners >= -1e-9).all(axis=1) & (corners @ planes[:-3].T <= 1 + 1e-9).all(axis=1)]
    weights = np.array(wanted, dtype=float)

    assert share_prices(np.array(sorted(sizes)), weights) @ weights == pytest.approx((allowed @ weights).max())


def test_a_model_that_nobody_insists_on_costs_the_plain_price_however_full_the_fleet_is() -> None:
    wishes = mix_of([(SHARE, 0.5), (Ask(4_000, 8_000, 1, 1000, frozenset({"V100"})), 0.5)])
    table = board(wishes)
    empty = dict(zip(table.hosts.models, table.judge.prices(table.hosts), strict=True))
    while table.place(ONE) is not None:
        pass
    full = dict(zip(table.hosts.models, table.judge.prices(table.hosts), strict=True))
    assert empty["G2"] == full["G2"] == 1.0
    assert full["V100"] > empty["V100"] > 1.0


def board(mix: Mix | None = USUAL_MIX) -> Board:
    hosts = Hosts(FLEET)
    return Board(hosts, Worth(mix, hosts) if mix else None)


def test_shares_fill_one_card_before_they_open_another() -> None:
    table = board()
    seats = [table.place(SHARE) for _ in range(3)]
    assert len({(seat.host, seat.cards) for seat in seats}) == 1


def test_the_wishes_for_a_model_keep_others_off_its_cards() -> None:
    wishes = mix_of([(SHARE, 0.2), (Ask(4_000, 8_000, 1, 1000, frozenset({"V100"})), 0.8)])
    table = board(wishes)
    assert table.hosts.names[table.place(SHARE).host].startswith("big")


def test_a_whole_node_is_kept_for_who_needs_all_of_it() -> None:
    table = board()
    table.place(ONE)
    hosts = [table.hosts.names[table.place(ONE).host] for _ in range(5)]
    assert set(hosts) == {"small-0", "small-1", "small-2"}
    assert table.place(EIGHT) is not None


def test_without_a_mix_the_least_is_left_over() -> None:
    table = board(None)
    first = table.place(SHARE)
    assert table.hosts.names[first.host] == "small-0"
    assert table.place(Ask(1, 1, 1, 700)) == Seat(first.host, Ask(1, 1, 1, 700), first.cards)


def test_a_kind_that_the_mix_does_not_know_is_placed_by_best_fit() -> None:
    table = board()
    assert table.hosts.names[table.place(STRANGER).host] == "small-0"


def test_of_equal_hosts_the_first_is_taken() -> None:
    assert board().best(EIGHT).host == 0


@pytest.mark.parametrize("ask", [Ask(97_000, 1, 1, 1000), Ask(1, 1, 9, 1000), Ask(1, 1, 1, 1, frozenset({"T4"}))])
def test_what_fits_nowhere_is_placed_nowhere(ask: Ask) -> None:
    assert board().place(ask) is None
    assert board(mix_of([(ask, 1.0)])).place(ask) is None


def test_nothing_is_given_out_twice_or_given_back_twice() -> None:
    hosts = Hosts(FLEET)
    seat = Seat(0, Ask(1, 1, 1, 600), (0,))
    hosts.take(seat)
    with pytest.raises(ValueError, match="big-0 has no room"):
        hosts.take(seat)
    with pytest.raises(ValueError, match="big-0 has no memory"):
        hosts.take(Seat(0, Ask(1, 400_000, 0, 0), ()))
    hosts.give_back(seat)
    with pytest.raises(ValueError, match="nothing of that size is taken"):
        hosts.give_back(seat)


moves = st.lists(st.tuples(st.sampled_from([*KINDS, STRANGER]), st.integers(0, 3), st.integers(0, 99)), max_size=60)


@CALM
@given(moves)
def test_the_table_is_the_one_that_would_be_made_anew(course: list[tuple[Ask, int, int]]) -> None:
    table, seats = board(), []
    for ask, leave, which in course:
        if seats and leave == 0:
            table.release(seats.pop(which % len(seats)))
        elif (seat := table.place(ask)) is not None:
            seats.append(seat)
        check_sums(table.hosts, seats)
    same_tables(table, fresh(table))


@CALM
@given(moves, st.sampled_from(KINDS))
def test_to_place_and_release_changes_nothing(course: list[tuple[Ask, int, int]], ask: Ask) -> None:
    table = board()
    for other, _, _ in course:
        table.place(other)
    before = [part.copy() for part in (table.plain, table.priced, table.card)]
    seat = table.best(ask)
    if seat is not None:
        table.take(seat)
        table.release(seat)
    for old, new in zip(before, (table.plain, table.priced, table.card), strict=True):
        assert (old == new).all()


@CALM
@given(moves, st.sampled_from(KINDS))
def test_one_cost_is_the_cost_in_the_table(course: list[tuple[Ask, int, int]], ask: Ask) -> None:
    table = board()
    for other, _, _ in course:
        table.place(other)
    judge = Worth(USUAL_MIX, table.hosts)
    table.judge_by(judge)
    seat = table.best(ask)
    if seat is None or ask.cards == 0:
        return
    expected = table.costs(judge.asks.row[ask])[seat.host]
    before = State.of(table.hosts, seat.host)
    table.take(seat)
    assert judge.cost(before, State.of(table.hosts, seat.host)) == pytest.approx(expected)


def test_a_learner_packs_by_best_fit_until_it_knows_enough() -> None:
    learner = Learner(Hosts(FLEET), relearn=512)
    assert learner.board.judge is None
    for number in range(600):
        seat = learner.place(KINDS[number % 3])
        if seat is not None:
            learner.release(seat)
    assert set(learner.board.judge.asks.all) == set(KINDS[:3])


def fresh(table: Board) -> Board:
    found = Board(table.hosts, table.judge)
    found._price = table._price
    return found


def same_tables(one: Board, other: Board) -> None:
    for name in ("plain", "priced", "card"):
        assert (getattr(one, name) == getattr(other, name)).all(), name


def check_sums(hosts: Hosts, seats: list[Seat]) -> None:
    """No card holds more than it is, and everything adds up to the last MiB."""
    for number, host in enumerate(FLEET):
        here = [seat for seat in seats if seat.host == number]
        held = [sum(seat.ask.milli for seat in here if card in seat.cards) for card in range(host.cards)]
        assert max(held, default=0) <= 1000
        assert hosts.view(number).free.tolist() == [1000 - milli for milli in held]
        assert hosts.memory[number] == host.memory_mib - sum(seat.ask.memory_mib for seat in here) >= 0
        assert hosts.cpu[number] == host.cpu_milli - sum(seat.ask.cpu_milli for seat in here) >= 0
