"""The boards, and the law by which MIG instances are laid out."""

import pytest

from scheduling.cluster.simulated.hardware import BOARDS, lay_out

H100 = BOARDS["NVIDIA-H100-80GB-HBM3"]
CARDS = [board for board in BOARDS.values() if board.can_mig]

LAYOUTS: dict[str, tuple[list[str], list[tuple[str, int, int]] | None]] = {
    "nothing": ([], []),
    "seven ones": (["1g.10gb"] * 7, [("1g.10gb", start, 7 + start) for start in range(7)]),
    "eight ones": (["1g.10gb"] * 8, None),
    "balanced": (
        ["3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"],
        [("2g.20gb", 0, 3), ("1g.10gb", 2, 9), ("1g.10gb", 3, 10), ("3g.40gb", 4, 2)],
    ),
    "two threes fill the card": (["3g.40gb"] * 2, [("3g.40gb", 0, 1), ("3g.40gb", 4, 2)]),
    "two threes and a one": (["3g.40gb", "3g.40gb", "1g.10gb"], None),
    "a four and a three": (["4g.40gb", "3g.40gb"], [("4g.40gb", 0, 1), ("3g.40gb", 4, 2)]),
    "two fours": (["4g.40gb"] * 2, None),
    "a seven": (["7g.80gb"], [("7g.80gb", 0, 0)]),
    "a seven and a one": (["7g.80gb", "1g.10gb"], None),
    "three twos and a one": (
        ["2g.20gb"] * 3 + ["1g.10gb"],
        [("2g.20gb", 0, 3), ("2g.20gb", 2, 4), ("2g.20gb", 4, 5), ("1g.10gb", 6, 13)],
    ),
    "four twos": (["2g.20gb"] * 4, None),
    "one media slice": (["1g.10gb+me"], [("1g.10gb+me", 0, 7)]),
    "two media slices": (["1g.10gb+me"] * 2, None),
    "four ones of double memory": (
        ["1g.20gb"] * 4,
        [("1g.20gb", start, 3 + start // 2) for start in (0, 2, 4, 6)],
    ),
}


@pytest.mark.parametrize(("names", "expected"), LAYOUTS.values(), ids=LAYOUTS)
def test_layouts(names: list[str], expected: list[tuple[str, int, int]] | None) -> None:
    laid = lay_out([H100.by_name[name] for name in names])

    found = (
        None if laid is None else sorted(((one.profile.name, one.start, one.gi) for one in laid), key=lambda x: x[1])
    )
    assert found == expected


@pytest.mark.parametrize("board", CARDS, ids=lambda board: board.product)
def test_every_profile_fits_as_often_as_it_says_and_no_more(board: object) -> None:
    for profile in board.profiles:  # type: ignore[attr-defined]
        assert lay_out([profile] * profile.most) is not None
        assert lay_out([profile] * (profile.most + 1)) is None


@pytest.mark.parametrize("board", CARDS, ids=lambda board: board.product)
def test_every_balanced_layout_is_legal(board: object) -> None:
    assert lay_out([board.by_name[name] for name in board.balanced]) is not None  # type: ignore[attr-defined]


@pytest.mark.parametrize("board", CARDS, ids=lambda board: board.product)
def test_instance_ids_of_one_layout_differ(board: object) -> None:
    for names in (board.balanced, [board.profiles[0].name] * 7):  # type: ignore[attr-defined]
        laid = lay_out([board.by_name[name] for name in names])  # type: ignore[attr-defined]
        assert laid is not None
        assert len({one.gi for one in laid}) == len(laid)


def test_the_slices_of_an_h100_have_the_sizes_that_its_labels_show() -> None:
    sizes = {name: (H100.by_name[name].memory_mib, H100.by_name[name].multiprocessors) for name in H100.by_name}

    assert sizes["1g.10gb"] == (9984, 16)
    assert sizes["2g.20gb"] == (20096, 32)
    assert sizes["3g.40gb"] == (40320, 60)


def test_a_plus_is_a_dot_in_resources() -> None:
    assert H100.by_name["1g.10gb.me"] is H100.by_name["1g.10gb+me"]


def test_the_names_of_the_other_boards() -> None:
    names = {
        product: [profile.name for profile in BOARDS[product].profiles if "+" not in profile.name]
        for product in ("NVIDIA-A100-SXM4-40GB", "NVIDIA-H100-NVL", "NVIDIA-H200", "NVIDIA-B200")
    }

    assert names == {
        "NVIDIA-A100-SXM4-40GB": ["1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"],
        "NVIDIA-H100-NVL": ["1g.12gb", "1g.24gb", "2g.24gb", "3g.47gb", "4g.47gb", "7g.94gb"],
        "NVIDIA-H200": ["1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"],
        "NVIDIA-B200": ["1g.23gb", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"],
    }
