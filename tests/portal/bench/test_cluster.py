"""`bench cluster`: which figures become which bars. The measuring itself is the bench's own business."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from portal.bench import cluster, ground
from portal.bench.bar import at_least, count_of, less_than
from portal.bench.clicking import figures_of
from portal.bench.ground import Ground
from portal.management.console import CouldNot
from portal.processes import CouldNotStart


class Told(Ground):
    """A ground on which every measurement says what the test wants."""

    def __init__(self, **told: Any) -> None:
        super().__init__(Path(), 0, "PostgreSQL", {}, ExitStack())
        self.told = told

    def api_server(self, nodes: int, cards: int) -> str:
        return f"http://127.0.0.1/{nodes}/{cards}"

    def control_plane(self, name: str, *words: str) -> Path:
        return Path(name)

    def end(self, name: str) -> None:
        pass

    def measure(self, module: str, *words: str) -> dict[str, Any]:
        found: dict[str, Any] = self.told.get(words[0], self.told)
        return found


CONVERGED = {"seconds": 60, "writes": 2.0, "reads": 0.1, "quiet_calls": 0, "quiet_tasks": 0}
CASES: dict[str, tuple[dict[str, Any], list[bool]]] = {
    "all as promised": ({}, [True] * 4),
    "a write too many": ({"writes": 3.01}, [False, True, True, True]),
    "a read too many": ({"reads": 1.5}, [True, False, True, True]),
    "a call in a quiet cycle": ({"quiet_calls": 1}, [True, True, False, True]),
    "a task in a quiet cycle": ({"quiet_tasks": 1}, [True, True, True, False]),
}


@pytest.mark.parametrize("case", CASES)
def test_converging(case: str) -> None:
    facts, holds = CASES[case]

    assert [bar.holds for bar in cluster.converging(Told(**CONVERGED | facts))] == holds


@pytest.mark.parametrize(("ours", "kueues", "holds"), [(126, 42, True), (125, 42, False)])
def test_admitting_is_measured_beside_kueue(ours: float, kueues: float, holds: bool) -> None:
    [bar] = cluster.admitting(Told(ours={"per_second": ours}, kueues={"per_second": kueues}))

    assert (bar.value, bar.yardstick, bar.bar, bar.holds) == (ours, kueues, 3, holds)
    assert "PostgreSQL" in bar.name


@pytest.mark.parametrize(
    ("after", "holds"), [((11, 100.0), [True, True]), ((12, 100.0), [False, True]), ((11, 111.0), [True, False])]
)
def test_looking_has_to_be_flat(after: tuple[int, float], holds: list[bool]) -> None:
    told = {"looks_seconds": 60, "threads_before": 11, "memory_before": 100.0}
    found = cluster.looking(Told(**told, threads_after=after[0], memory_after=after[1]))

    assert [bar.holds for bar in found] == holds


def test_percentiles_are_of_what_was_seen() -> None:
    assert figures_of([float(number) for number in range(101, 0, -1)]) == {
        "clicks": 101, "median": 51.0, "p99": 100.0, "longest": 101.0
    }  # fmt: skip


def test_a_bar_of_nothing_is_held_by_nothing_only() -> None:
    assert (count_of("calls", 0, 0).holds, count_of("calls", 1, 0).holds) == (True, False)
    assert count_of("writes", 2.0, 3).words == "3"
    assert at_least("rate", 3, 3, 1).words == less_than("memory", 1, 3, 1).words == "3 yardsticks"


def test_every_measurement_has_a_ground_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    grounds: list[Told] = []

    @contextmanager
    def fresh() -> Any:
        grounds.append(Told())
        yield grounds[-1]

    monkeypatch.setattr(cluster, "ground", fresh)
    monkeypatch.setattr(cluster.decoding, "bars", list)
    monkeypatch.setattr(cluster, "MEASUREMENTS", {name: lambda _: [count_of("x", 1, 1)] for name in "abc"})

    assert len(cluster.bars()) == len(grounds) == 3


def test_a_control_plane_that_is_not_built_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: Ground) -> Any:
        raise CouldNotStart("There is no kube-apiserver; run `make controlplane`.")

    monkeypatch.setattr(cluster, "ground", ExitStack)
    monkeypatch.setattr(cluster.decoding, "bars", list)
    monkeypatch.setattr(cluster, "MEASUREMENTS", {"admitting": missing})

    with pytest.raises(CouldNot, match="make controlplane"):
        cluster.bars()


def test_a_measurement_that_breaks_says_why(tmp_path: Path) -> None:
    with ExitStack() as ends, pytest.raises(CouldNot, match="converging ended with 1"):
        Ground(tmp_path, 0, "", {"PATH": ""}, ends).measure("portal.bench.converging")


def test_without_postgresql_the_embedded_default_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def nowhere(_: Path) -> Any:
        raise CouldNotStart("No PostgreSQL.")

    monkeypatch.setattr("tools.database.start_postgres", nowhere)

    assert ground.start_database(tmp_path, ExitStack()) == ({}, "SQLite")
