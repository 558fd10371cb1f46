"""Where slices lie on a card, what is left usable, and which place is taken."""

from collections.abc import Mapping
from functools import reduce
from operator import or_

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.planning import catalog
from scheduling.planning.slices import Axis, Usefulness, axis, needed

CALM = settings(deadline=None, derandomize=True, max_examples=60)
MODELS = [one for one in catalog.models() if one.mig]


def memory(key: str = "h100-80gb") -> Axis:
    found = catalog.model(key)
    assert found is not None
    assert found.mig is not None
    return axis(found.mig)


def taken(**slices: int) -> int:
    """A mask of memory slices, as slices of so many at a start: taken(at0=4, at6=1)."""
    return sum(((1 << size) - 1) << int(start.removeprefix("at")) for start, size in slices.items())


PLAIN = ("1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
WAYS: dict[str, tuple[str, tuple[str, ...], int, int]] = {
    "nineteen, as the vendor counts them": ("h100-80gb", PLAIN, 19, 14),
    "with double memory": ("h100-80gb", (*PLAIN, "1g.20gb"), 78, 38),
    "a card of four slices": ("a30-24gb", ("1g.6gb", "2g.12gb", "4g.24gb"), 5, 4),
    "twelve memory slices in four parts": ("rtx-pro-6000-96gb", ("1g.24gb", "2g.48gb", "4g.96gb"), 5, 4),
    "media engines go to one of them only": ("a30-24gb", ("2g.12gb+me", "1g.6gb+me"), 6, 2),
}


@pytest.mark.parametrize(("key", "profiles", "placed", "sets"), WAYS.values(), ids=WAYS)
def test_a_card_can_be_filled_in_so_many_ways(key: str, profiles: tuple[str, ...], placed: int, sets: int) -> None:
    assert len(memory(key).fillings(profiles)) == placed
    assert len(memory(key).ways(profiles)) == sets


@pytest.mark.parametrize("model", MODELS, ids=lambda one: one.key)
def test_compute_slices_are_never_short_where_memory_is_not(model: catalog.Model) -> None:
    """So a mask of memory says all about what fits."""
    assert model.mig is not None
    compute = {one.name: one.compute_slices for one in model.mig.profiles}
    for way in axis(model.mig).ways(compute):
        assert sum(compute[name] * count for name, count in way.items()) <= model.mig.compute_slices


USABLE: dict[str, tuple[int, dict[str, int]]] = {
    "an empty card": (0, {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1}),
    "a small one in front leaves no place for four": (
        taken(at0=1),
        {"1g.10gb": 6, "1g.20gb": 3, "2g.20gb": 2, "3g.40gb": 1},
    ),
    "a small one at the end does": (
        taken(at6=1),
        {"1g.10gb": 6, "1g.20gb": 3, "2g.20gb": 3, "3g.40gb": 1, "4g.40gb": 1},
    ),
    "the last memory slice alone is stranded": (taken(at0=7), {}),
    "two halves fill it": (taken(at0=4, at4=4), {}),
}


@pytest.mark.parametrize(("held", "expected"), USABLE.values(), ids=USABLE)
def test_what_remains_usable(held: int, expected: dict[str, int]) -> None:
    card = memory()

    assert {name: count for name, count in card.usable(held).items() if name in card.base} == expected


FILLS: dict[str, tuple[int, dict[str, int], dict[str, int]]] = {
    "everything that is wanted": (0, {"3g.40gb": 1, "4g.40gb": 1}, {"3g.40gb": 1, "4g.40gb": 1}),
    "the most memory of it": (0, {"1g.10gb": 7, "3g.40gb": 2}, {"3g.40gb": 2}),
    "fewest places of equals": (0, {"7g.80gb": 1, "3g.40gb": 2}, {"7g.80gb": 1}),
    "what is free only": (taken(at0=4), {"4g.40gb": 1, "2g.20gb": 2}, {"2g.20gb": 1}),
    "nothing that the board does not have": (0, {"5g.50gb": 1}, {}),
    "no more than is wanted": (0, {"1g.10gb": 2}, {"1g.10gb": 2}),
}


@pytest.mark.parametrize(("held", "wanted", "expected"), FILLS.values(), ids=FILLS)
def test_the_best_that_a_card_can_do(held: int, wanted: dict[str, int], expected: dict[str, int]) -> None:
    spots = memory().fill(held, wanted)

    found = [spot.profile for spot in spots]
    assert {name: found.count(name) for name in set(found)} == expected
    assert sum(spot.mask for spot in spots) == reduce(or_, (spot.mask for spot in spots), 0)
    assert not any(spot.mask & held for spot in spots)


def alike(card: Axis) -> Mapping[str, int]:
    return dict.fromkeys(card.base, 1)


PLACES: dict[str, tuple[str, list[int], tuple[int, int]]] = {  # profile, states; state, start
    "the first small one leaves the place of a four in front, and of a double at the end": ("1g.10gb", [0], (0, 4)),
    "a three goes behind, so that a four fits in front": ("3g.40gb", [0], (0, 4)),
    "a four and a three share a card": ("4g.40gb", [0, taken(at4=4)], (taken(at4=4), 0)),
    "the fullest card of equals": ("2g.20gb", [taken(at4=4), taken(at2=2, at4=4), 0], (taken(at2=2, at4=4), 0)),
    "a double goes where no small one could": ("1g.20gb", [0, taken(at0=6)], (taken(at0=6), 6)),
    "a small one does not spoil the place of a double": ("1g.10gb", [taken(at0=6), taken(at0=5)], (taken(at0=5), 5)),
}


@pytest.mark.parametrize(("profile", "states", "expected"), PLACES.values(), ids=PLACES)
def test_the_place_by_which_most_stays_usable(profile: str, states: list[int], expected: tuple[int, int]) -> None:
    choice = Usefulness(memory(), alike(memory())).choose(profile, states)

    assert choice is not None
    assert (choice.taken, choice.spot.slot.start) == expected


def test_the_usual_mix_decides_where_room_is_kept() -> None:
    """Where fours are usual, their place stays free; where nobody asks for them, twos come first."""
    fours = Usefulness(memory(), {"4g.40gb": 9, "3g.40gb": 9, "2g.20gb": 1})
    halves = taken(at4=2)

    assert fours.value(taken(at0=1)) < fours.value(taken(at6=1))
    choice = fours.choose("2g.20gb", [0, halves])
    assert choice is not None
    assert (choice.taken, choice.spot.slot.start) != (0, 0)


def test_an_empty_card_is_worth_one_and_a_full_one_nothing() -> None:
    useful = Usefulness(memory(), alike(memory()))

    assert (useful.value(0), useful.value(taken(at0=8))) == (1, 0)


def test_nothing_seen_yet_is_no_trouble() -> None:
    assert Usefulness(memory(), {}).choose("7g.80gb", [0]) is not None


def test_a_profile_that_the_board_does_not_have_goes_nowhere() -> None:
    assert Usefulness(memory(), {}).choose("1g.5gb", [0]) is None


def test_how_many_cards_are_needed_at_least() -> None:
    wanted = {"3g.40gb": 10, "4g.40gb": 10, "1g.10gb": 14}

    assert needed(memory(), wanted).total == 12


@CALM
@given(st.sampled_from(MODELS), st.data())
def test_no_two_slices_overlap_whatever_comes_and_goes(model: catalog.Model, data: st.DataObject) -> None:
    """And each lies where its board allows it, and none is refused while some card has a place."""
    assert model.mig is not None
    card = axis(model.mig)
    useful = Usefulness(card, data.draw(st.dictionaries(st.sampled_from(sorted(card.spots)), st.integers(0, 9))))
    cards: list[list[tuple[str, int]]] = [[] for _ in range(3)]
    for profile, goes in data.draw(st.lists(st.tuples(st.sampled_from(sorted(card.spots)), st.integers(0, 8)))):
        states = [reduce(or_, (mask for _, mask in held), 0) for held in cards]
        choice = useful.choose(profile, states)
        assert (choice is None) == (not any(card.fits(profile, state) for state in states))
        if choice is not None:
            cards[states.index(choice.taken)].append((profile, choice.spot.mask))
        if goes < 3 and cards[goes]:
            cards[goes].pop(0)
        for held in cards:
            assert sum(mask for _, mask in held) == reduce(or_, (mask for _, mask in held), 0)
            profiles = [one for name, _ in held if (one := model.mig.profile(name))]
            assert catalog.legal_places(model.mig, profiles) is not None


@CALM
@given(st.sampled_from(MODELS), st.data())
def test_every_way_is_reachable_and_full(model: catalog.Model, data: st.DataObject) -> None:
    assert model.mig is not None
    card = axis(model.mig)
    held = 0
    for name in data.draw(st.lists(st.sampled_from(sorted(card.base)), max_size=3)):
        held |= next((spot.mask for spot in card.free(name, held)), 0)

    for way in card.fillings(card.base, held):
        filled = reduce(or_, (spot.mask for spot in way), held)
        assert filled.bit_count() == held.bit_count() + sum(spot.mask.bit_count() for spot in way)
        assert not any(card.fits(name, filled) for name in card.base)
