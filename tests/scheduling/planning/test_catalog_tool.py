"""The tool that writes the catalog's data from a file of facts."""

import json
from typing import Any

import pytest

from scheduling.planning.catalog import DATA
from tools import catalog as tool

BOARD = {
    "key": "A30-24GB",
    "total_compute_slices": 4,
    "total_memory_slices": 4,
    "all_balanced": {"1g.6gb": 2},
    "sources": ["a guide (2025; copy read as id 42)", "copy id 42", "a listing, driver 535, id 7"],
    "profiles": [
        {
            "name": "1g.6gb",
            "resource": "nvidia.com/mig-1g.6gb",
            "attributes": [],
            "compute_slices": 1,
            "memory_slices": 1,
            "max_instances": 4,
            "placements": [{"start": 0, "size": 1}, {"start": 1, "size": 1}],
            "memory_gib_listed": 5.81,
            "evidence": {"listing": "hw", "placements": "rule"},
        }
    ],
}


def test_a_board_keeps_geometry_evidence_and_public_sources() -> None:
    found = tool.board(BOARD)

    assert found["sources"] == ["a guide (2025)", "a listing, driver 535"]
    assert found["profiles"] == [
        {
            "name": "1g.6gb",
            "resource": "nvidia.com/mig-1g.6gb",
            "attributes": [],
            "compute_slices": 1,
            "memory_slices": 1,
            "max_instances": 4,
            "starts": [0, 1],
            "memory_mib": 5952,
            "multiprocessors": None,
            "listing": "hw",
            "placements": "rule",
        }
    ]


@pytest.mark.parametrize(("listed", "mib"), [(19.62, 20096), (9.75, 9984), (4.75, 4864), (None, None)])
def test_a_listing_rounded_to_two_digits_becomes_mebibytes(listed: float | None, mib: int | None) -> None:
    assert tool.mebibytes(listed) == mib


def test_a_board_that_the_facts_lack_is_an_error() -> None:
    with pytest.raises(KeyError):
        tool.catalog({"gpus": [BOARD], "evidence_grades": {}})


def test_the_file_is_as_the_tool_prints_it() -> None:
    text = DATA.read_text(encoding="utf-8")
    values: dict[str, Any] = json.loads(text)

    assert tool.printed(values) == text
    assert values["models"] == [tool.model(row) for row in tool.MODELS]


def test_it_asks_for_its_argument(capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main([]) == 2
    assert "usage" in capsys.readouterr().err
