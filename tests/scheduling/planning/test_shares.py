"""Flavors: their names, their words, and what a pool can offer."""

from fractions import Fraction as F

import pytest

from scheduling.planning import catalog
from scheduling.planning.facts import Capacity, Isolation, Sharing
from scheduling.planning.shares import (
    Sku,
    flavor_of,
    flavor_words,
    flavors_of,
    isolation_of,
    number,
    parse_sku,
    share_words,
    sku,
    unit_words,
)
from tests.scheduling.planning.builders import PoolBuilder, pool

WORDS = {
    "h100-80gb/mig-1g.10gb/on-demand": "1g.10gb slice of an H100: 10 GiB, isolated in hardware",
    "a100-80gb/mig-1g.10gb/on-demand": "1g.10gb slice of an A100 80GB: 10 GiB, isolated in hardware",
    "b200-180gb/mig-1g.23gb/on-demand": "1g.23gb slice of a B200: 23 GiB, isolated in hardware",
    "a100-40gb/whole/on-demand": "Whole A100 40GB: 40 GiB, isolated in hardware",
    "mi300x-192gb/whole/on-demand": "Whole MI300X 192GB: 192 GiB, isolated in hardware",
    "a10g-24gb/time-slice-4/on-demand": "Quarter of an A10G, time-sliced: 24 GiB shared by 4, no isolation",
    "v100-16gb/time-slice-2/on-demand": "Half of a V100 16GB, time-sliced: 16 GiB shared by 2, no isolation",
    "t4-16gb/time-slice-50/on-demand": "1/50 of a T4, time-sliced: 16 GiB shared by 50, no isolation",
    "t4-16gb/mps-8/on-demand": "Eighth of a T4, by MPS: 2 GiB, isolated by process: faults are shared",
    "rtx-4090-24gb/mps-2/on-demand": (
        "Half of a GeForce RTX 4090, by MPS: 12 GiB, isolated by process: faults are shared"
    ),
    "l4-24gb/whole/spot": ("Whole L4 24GB: 24 GiB, isolated in hardware (spot: may be taken back at short notice)"),
    "New-Card/whole/on-demand": ("Whole New-Card (a model that Berth does not know): 40 GiB, isolated in hardware"),
}


@pytest.mark.parametrize(("name", "words"), WORDS.items(), ids=WORDS)
def test_a_flavor_says_what_it_is_and_what_isolates_it(name: str, words: str) -> None:
    flavor = flavor_of(parse_sku(name), card_mib=40 * 1024)

    assert flavor is not None
    assert flavor.sku == name
    assert flavor_words(flavor, catalog.model(flavor.model)) == flavor_words(flavor) == words
    assert len(words) <= 160


def test_a_sku_is_built_from_its_parts() -> None:
    assert sku("h100-80gb", Sharing.MIG, "1g.10gb", 1, Capacity.ON_DEMAND) == "h100-80gb/mig-1g.10gb/on-demand"
    assert sku("h100-80gb", Sharing.MIG, "1g.10gb+me", 1, Capacity.SPOT) == "h100-80gb/mig-1g.10gb.me/spot"
    assert sku("a10g-24gb", Sharing.TIME_SLICE, "", 4, Capacity.SPOT) == "a10g-24gb/time-slice-4/spot"
    assert sku("h100-80gb", Sharing.WHOLE, "", 1, Capacity.ON_DEMAND) == "h100-80gb/whole/on-demand"


def test_a_sku_comes_apart_again() -> None:
    assert parse_sku("a10g-24gb/mps-4/spot") == Sku("a10g-24gb", Sharing.MPS, "", 4, Capacity.SPOT)
    assert parse_sku("h100-80gb/mig-1g.10gb/on-demand") == Sku("h100-80gb", Sharing.MIG, "1g.10gb")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no sku"),
        ("h100-80gb", "is no sku"),
        ("h100-80gb//on-demand", "is no sku"),
        ("a/b/c/d", "is no sku"),
        ("h100-80gb/whole/reserved", "a sku ends in on-demand or spot"),
        ("h100-80gb/half/spot", "names the kind “half”"),
        ("h100-80gb/mps-1/spot", "from N = 2"),
        ("h100-80gb/time-slice-0/spot", "from N = 2"),
        ("h100-80gb/time-slice-4x/spot", "names the kind"),
    ],
)
def test_what_is_no_sku_is_refused_in_a_sentence(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_sku(text)


def test_a_slice_that_the_board_does_not_have_is_no_flavor() -> None:
    assert flavor_of(parse_sku("h100-80gb/mig-1g.5gb/on-demand")) is None
    assert flavor_of(parse_sku("a10g-24gb/mig-1g.5gb/on-demand")) is None


def test_an_unknown_card_without_known_memory_is_no_flavor() -> None:
    assert flavor_of(parse_sku("New-Card/whole/on-demand")) is None


def test_a_slice_that_no_driver_reported_has_the_memory_of_its_name() -> None:
    flavor = flavor_of(parse_sku("b300-269gb/mig-1g.34gb/on-demand"))

    assert flavor is not None
    assert flavor.memory_mib == 34 * 1024


OFFERS: dict[str, tuple[PoolBuilder, list[tuple[str, F]]]] = {
    "whole cards": (pool("p").h100(), [("h100-80gb/whole/on-demand", F(1))]),
    "time-slices on spot": (pool("p").a10g().time_sliced(4).spot(), [("a10g-24gb/time-slice-4/spot", F(1, 4))]),
    "MPS shares": (pool("p").a10g().mps(2), [("a10g-24gb/mps-2/on-demand", F(1, 2))]),
    "one layout and no cuts": (pool("p").h100().mig("all-1g.10gb"), [("h100-80gb/mig-1g.10gb/on-demand", F(1, 8))]),
    "all layouts, each slice once, biggest first": (
        pool("p").a100().mig("all-1g.5gb", "all-1g.5gb", "all-balanced", "all-disabled"),
        [
            ("a100-40gb/whole/on-demand", F(1)),
            ("a100-40gb/mig-3g.20gb/on-demand", F(1, 2)),
            ("a100-40gb/mig-2g.10gb/on-demand", F(1, 4)),
            ("a100-40gb/mig-1g.5gb/on-demand", F(1, 8)),
        ],
    ),
    "profiles with media engines are not offered": (pool("p").h100().mig("all-1g.10gb.me"), []),
    "uncut at first, to be cut: no whole cards": (
        pool("p").h100().mig("all-disabled", "all-3g.40gb"),
        [("h100-80gb/mig-3g.40gb/on-demand", F(1, 2))],
    ),
    "a layout of another board": (pool("p").h100().mig("all-1g.5gb"), []),
    "slices of a card that has none": (pool("p").a10g().mig("all-1g.5gb"), []),
    "slices of a card that nobody knows": (pool("p").cards("New-Card", 4).mig("all-1g.5gb"), []),
    "an unknown card of unknown memory": (pool("p").cards("New-Card", 4), []),
}


@pytest.mark.parametrize(("of", "offers"), OFFERS.values(), ids=OFFERS)
def test_a_pool_offers(of: PoolBuilder, offers: list[tuple[str, F]]) -> None:
    assert [(flavor.sku, flavor.share) for flavor in flavors_of(of.fact())] == offers


def test_an_unknown_card_is_offered_whole_with_the_memory_that_its_node_reports() -> None:
    found = flavors_of(pool("p").cards("New-Card", 4).fact(), card_mib=49152)

    assert [(flavor.sku, flavor.memory_mib) for flavor in found] == [("New-Card/whole/on-demand", 49152)]


def test_isolation() -> None:
    assert [isolation_of(one) for one in ("whole", "mig", "mps", "time-slice")] == [
        Isolation.HARDWARE,
        Isolation.HARDWARE,
        Isolation.PROCESS,
        Isolation.NONE,
    ]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (F(1, 8), "1/8 card"),
        (F(1), "1 card"),
        (F(2), "2 cards"),
        (F(7, 2), "3 1/2 cards"),
        (F(0), "0 cards"),
        (F(9, 8), "1 1/8 cards"),
    ],
)
def test_shares_in_words(value: F, words: str) -> None:
    assert share_words(value) == words


def test_a_negative_number_keeps_its_sign_in_front() -> None:
    assert number(F(-7, 2)) == "-3 1/2"


@pytest.mark.parametrize(
    ("name", "count", "words"),
    [
        ("h100-80gb/whole/on-demand", 1, "1 whole card of H100 80GB"),
        ("h100-80gb/whole/on-demand", 8, "8 whole cards of H100 80GB"),
        ("h100-80gb/mig-1g.10gb/on-demand", 1, "1 slice 1g.10gb of H100 80GB"),
        ("a10g-24gb/time-slice-4/spot", 1, "1 time-slice (1/4 card) of A10G 24GB"),
        ("a10g-24gb/mps-4/spot", 2, "2 MPS shares (1/4 card) of A10G 24GB"),
    ],
)
def test_units_in_words(name: str, count: int, words: str) -> None:
    flavor = flavor_of(parse_sku(name))
    assert flavor is not None
    assert unit_words(flavor, count) == words
