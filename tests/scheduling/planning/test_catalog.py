"""The models that we know, and the geometry of MIG."""

import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction as F

import pytest

from scheduling.planning import catalog
from scheduling.planning.catalog import MigBoard, Model, Profile, Slot
from scheduling.planning.slices import axis

SPELLINGS = {
    "GFD, whole": ("NVIDIA-H100-80GB-HBM3", "h100-80gb"),
    "GFD, PCIe": ("NVIDIA-A100-80GB-PCIe", "a100-80gb"),
    "GFD, cut alike": ("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "h100-80gb"),
    "GFD, cut alike with media engines": ("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb.me", "h100-80gb"),
    "GFD, cut and shared": ("NVIDIA-A100-SXM4-40GB-MIG-2g.10gb-SHARED", "a100-40gb"),
    "GFD, cut without media engines": (
        "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition-MIG-1g.24gb-me",
        "rtx-pro-6000-96gb",
    ),
    "GFD, a layout it cannot name": ("NVIDIA-H100-80GB-HBM3-MIG-INVALID", "h100-80gb"),
    "GFD, shared": ("NVIDIA-A10G-SHARED", "a10g-24gb"),
    "GFD, an older name": ("Tesla-T4", "t4-16gb"),
    "GFD, a namesake with more memory": ("Tesla-V100-SXM2-32GB", "v100-32gb"),
    "GFD, NVL is not SXM": ("NVIDIA-H100-NVL", "h100-94gb"),
    "GFD, Grace Hopper is named by its CPU's memory": ("NVIDIA-GH200-480GB", "gh200-96gb"),
    "GKE": ("nvidia-tesla-a100", "a100-40gb"),
    "GKE, newer": ("nvidia-h100-80gb", "h100-80gb"),
    "GKE, another network": ("nvidia-h100-mega-80gb", "h100-80gb"),
    "GKE, B200": ("nvidia-b200", "b200-180gb"),
    "AMD": ("AMD_Instinct_MI300X_OAM", "mi300x-192gb"),
    "DCGM": ("NVIDIA H100 80GB HBM3", "h100-80gb"),
    "DCGM, older": ("Tesla T4", "t4-16gb"),
    "our own key": ("l40s-48gb", "l40s-48gb"),
    "our own title": ("L40S 48GB", "l40s-48gb"),
    "spaces around it": (" NVIDIA-L4 ", "l4-24gb"),
}


@pytest.mark.parametrize(("spelling", "key"), SPELLINGS.values(), ids=SPELLINGS)
def test_a_product_is_found_by(spelling: str, key: str) -> None:
    found = catalog.find(spelling)

    assert found is not None
    assert found.key == key


@pytest.mark.parametrize("spelling", ["", "NVIDIA", "NVIDIA-H100", "NVIDIA-Z9000", "-SHARED", "-MIG-1g.10gb", "A100"])
def test_a_product_that_is_not_certain_is_unknown(spelling: str) -> None:
    assert catalog.find(spelling) is None


def test_no_spelling_names_two_models() -> None:
    spellings = Counter(
        spelling
        for raw in catalog._data()["models"]
        for spelling in {catalog._plain(text) for text in (*raw["products"], raw["key"])}
    )
    assert [spelling for spelling, times in spellings.items() if times > 1] == []


def test_models_have_titles_for_people() -> None:
    assert catalog.title("h100-80gb") == "H100 80GB"
    assert catalog.title("gb200-186gb") == "GB200 186GB"
    assert catalog.title("Some-New-Card") == "Some-New-Card"


def test_whole_cards_are_asked_for_by_the_vendors_name() -> None:
    resources = {one.key: one.resource for one in catalog.models()}
    assert resources["h100-80gb"] == "nvidia.com/gpu"
    assert resources["mi300x-192gb"] == "amd.com/gpu"


def boards() -> list[Model]:
    return [one for one in catalog.models() if one.mig]


def board(key: str) -> MigBoard:
    found = catalog.model(key)
    assert found is not None
    assert found.mig is not None
    return found.mig


def profiles(key: str, *names: str) -> list[Profile]:
    found = [board(key).profile(name) for name in names]
    assert None not in found
    return [one for one in found if one]


SHARES = {
    "an eighth of an H100": ("h100-80gb", "1g.10gb", F(1, 8)),
    "a quarter with one compute slice": ("h100-80gb", "1g.20gb", F(1, 4)),
    "half of an A100": ("a100-40gb", "3g.20gb", F(1, 2)),
    "all of it, though it has only seven compute slices": ("a100-40gb", "7g.40gb", F(1)),
    "a quarter of an A30": ("a30-24gb", "1g.6gb", F(1, 4)),
    "a quarter of twelve memory slices": ("rtx-pro-6000-96gb", "1g.24gb", F(1, 4)),
}


@pytest.mark.parametrize(("key", "name", "share"), SHARES.values(), ids=SHARES)
def test_a_slice_is_its_memory_over_the_cards(key: str, name: str, share: F) -> None:
    assert profiles(key, name)[0].share == share


def test_memory_of_a_slice_is_what_a_driver_reported() -> None:
    assert [one.memory_mib for one in profiles("h100-80gb", "1g.10gb", "2g.20gb", "3g.40gb")] == [9984, 20096, 40320]
    assert profiles("b300-269gb", "1g.34gb")[0].memory_mib is None


def test_processors_of_another_chip_on_the_same_board_are_not_known() -> None:
    assert profiles("h100-96gb", "1g.12gb")[0].multiprocessors == 16
    assert profiles("h20-96gb", "1g.12gb")[0].multiprocessors is None


def test_a_profile_is_found_with_plus_and_with_dot() -> None:
    assert board("h100-80gb").profile("1g.10gb+me") is board("h100-80gb").profile("1g.10gb.me") is not None
    assert board("h100-80gb").profile("1g.5gb") is None


@pytest.mark.parametrize("one", boards(), ids=lambda one: one.key)
def test_every_board_makes_sense(one: Model) -> None:
    mig = one.mig
    assert mig is not None
    for profile in mig.profiles:
        assert profile.resource == f"nvidia.com/mig-{catalog.dotted(profile.name)}"
        assert profile.grade in catalog.grades()
        assert len({place.start for place in profile.placements}) == len(profile.placements)
        assert all(place.start + place.size <= mig.memory_slices for place in profile.placements)
        assert catalog.legal_places(mig, [profile] * profile.max_instances)
        if profile.base:  # for the others a rule about engines binds, not the room
            assert catalog.legal_places(mig, [profile] * (profile.max_instances + 1)) is None
    assert catalog.legal_places(mig, [p for p in mig.profiles for _ in range(mig.balanced.get(p.name, 0))])
    assert mig.sources


LAYOUTS = {
    "seven slices leave an eighth": ("h100-80gb", "all-1g.10gb", {"1g.10gb": 7}, F(1, 8)),
    "two halves leave nothing": ("h100-80gb", "all-3g.40gb", {"3g.40gb": 2}, F(0)),
    "one 4g leaves half": ("h100-80gb", "all-4g.40gb", {"4g.40gb": 1}, F(1, 2)),
    "balanced uses all memory": ("a100-40gb", "all-balanced", {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}, F(0)),
    "three quarters of an A100": ("a100-40gb", "all-2g.10gb", {"2g.10gb": 3}, F(1, 4)),
    "an attribute with a dot": ("h100-80gb", "all-1g.10gb.me", {"1g.10gb+me": 1}, F(7, 8)),
    "an attribute with a plus": ("h100-80gb", "all-1g.10gb+me", {"1g.10gb+me": 1}, F(7, 8)),
    "switched off": ("h100-80gb", "all-disabled", {}, F(0)),
}


@pytest.mark.parametrize(("key", "name", "counts", "stranded"), LAYOUTS.values(), ids=LAYOUTS)
def test_a_layout(key: str, name: str, counts: dict[str, int], stranded: F) -> None:
    model = catalog.model(key)
    assert model is not None

    layout = catalog.layout(model, name)

    assert layout is not None
    assert (layout.counts, layout.stranded, layout.whole) == (counts, stranded, not counts)


def test_a_layout_of_several_profiles_is_named_by_what_it_makes() -> None:
    name = catalog.mixed_name({"4g.40gb": 1, "3g.40gb": 1})

    assert name == "cut-1x3g.40gb_1x4g.40gb"
    assert catalog.mixed_name({"1g.10gb+me": 1}) == "cut-1x1g.10gb.me"
    model = catalog.model("h100-80gb")
    assert model is not None
    assert catalog.layout(model, name) == catalog.Layout(name, {"3g.40gb": 1, "4g.40gb": 1}, F(0))


@pytest.mark.parametrize("one", boards(), ids=lambda one: one.key)
def test_every_way_to_fill_a_card_has_a_name_that_a_label_takes(one: Model) -> None:
    assert one.mig is not None
    for way in axis(one.mig).ways(axis(one.mig).spots):
        name = catalog.mixed_name(way)
        layout = catalog.layout(one, name)
        assert layout is not None
        assert layout.counts == way
        assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])", name)


def test_only_what_nobody_has_seen_is_inferred() -> None:
    assert {one.name for one in board("h100-80gb").profiles if one.inferred} == set()
    assert all(one.inferred for one in board("b300-269gb").profiles)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("h100-80gb", "cut-1x4g.40gb_1x3g.40gb"),  # not the name that it has
        ("h100-80gb", "cut-2x4g.40gb"),
        ("h100-80gb", "cut-01x4g.40gb"),
        ("h100-80gb", "cut-1x4g.40gb_1x4g.40gb"),
        ("h100-80gb", "cut-4g.40gb"),
        ("h100-80gb", "cut-"),
        ("a10g-24gb", "cut-1x1g.10gb"),
        ("h100-80gb", "all-1g.5gb"),
        ("h100-80gb", "all-enabled"),
        ("h100-80gb", "all-"),
        ("h100-80gb", "1g.10gb"),
        ("h100-80gb", ""),
        ("h100-80gb", "five-small-one-big"),
        ("a10g-24gb", "all-disabled"),
    ],
)
def test_a_layout_that_says_nothing_certain_is_none(key: str, name: str) -> None:
    model = catalog.model(key)
    assert model is not None
    assert catalog.layout(model, name) is None


FITTING = {
    "a three beside a four": ("a100-40gb", ["3g.20gb", "4g.20gb"]),
    "balanced in the awkward order": ("a100-40gb", ["1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"]),
    "six small and a double": ("a100-40gb", ["1g.5gb"] * 6 + ["1g.10gb"]),
    "three twos and a small one": ("h100-80gb", ["2g.20gb"] * 3 + ["1g.10gb"]),
    "nothing": ("a100-40gb", []),
}
IMPOSSIBLE = {
    "four twos": ("a100-40gb", ["2g.10gb"] * 4),
    "a three and three twos": ("a100-40gb", ["3g.20gb"] + ["2g.10gb"] * 3),
    "a four twice": ("a100-40gb", ["4g.20gb"] * 2),
    "a seven and a one": ("a100-40gb", ["7g.40gb", "1g.5gb"]),
    "eight small ones": ("a100-40gb", ["1g.5gb"] * 8),
    "room on the memory axis, but not at that start": ("a100-40gb", ["3g.20gb", "3g.20gb", "1g.5gb"]),
    "two that take the media engines": ("a30-24gb", ["1g.6gb+me", "2g.12gb+me"]),
}


@pytest.mark.parametrize(("key", "names"), FITTING.values(), ids=FITTING)
def test_these_fit_on_one_card(key: str, names: list[str]) -> None:
    wanted = profiles(key, *names)

    places = catalog.legal_places(board(key), wanted)

    assert places is not None
    assert all(place in profile.placements for place, profile in zip(places, wanted, strict=True))
    taken = [unit for place in places for unit in range(place.start, place.start + place.size)]
    assert len(taken) == len(set(taken))


@pytest.mark.parametrize(("key", "names"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_these_do_not(key: str, names: list[str]) -> None:
    assert catalog.legal_places(board(key), profiles(key, *names)) is None


@pytest.mark.parametrize(("key", "placed", "sets"), [("a100-40gb", 19, 14), ("h100-80gb", 19, 14), ("a30-24gb", 5, 4)])
def test_a_card_can_be_filled_in_so_many_ways(key: str, placed: int, sets: int) -> None:
    """The vendor's own count for profiles without double memory: nineteen ways to fill an A100."""
    plain = [one for one in board(key).profiles if one.base and not is_double(one)]

    ways = set(fillings([(one, slot) for one in plain for slot in one.placements], board(key)))

    assert len(ways) == placed
    assert len({tuple(sorted(profile.name for profile, _ in way)) for way in ways}) == sets
    for way in ways:
        assert catalog.legal_places(board(key), [profile for profile, _ in way]) is not None


def is_double(profile: Profile) -> bool:
    return profile.compute_slices == 1 and profile.memory_slices == 2


Way = frozenset[tuple[Profile, Slot]]


def fillings(choices: list[tuple[Profile, Slot]], mig: MigBoard, way: Way = frozenset()) -> Iterator[Way]:
    """All ways to place instances such that no other could be added beside them."""
    taken = sum(slot.mask for _, slot in way)
    open_ones = [choice for choice in choices if not choice[1].mask & taken]
    if not open_ones:
        yield way
        return
    lowest = min(range(mig.memory_slices), key=lambda unit: (not any(c[1].mask >> unit & 1 for c in open_ones), unit))
    covering = [choice for choice in open_ones if choice[1].mask >> lowest & 1]
    for choice in covering:
        yield from fillings(open_ones, mig, way | {choice})
    passed_over = [choice for choice in open_ones if choice not in covering]
    for rest in fillings(passed_over, mig, way):
        if all(slot.mask & sum(placed.mask for _, placed in rest) for _, slot in covering):
            yield rest


def test_a_slot_covers_its_units() -> None:
    assert Slot(2, 2).mask == 0b1100
