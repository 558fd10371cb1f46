"""`bench planning`, openb: which figures become which bars, and that ours beats its rivals as they were published."""

from __future__ import annotations

import pytest

from portal.bench import planning
from portal.bench.bar import Bar
from portal.bench.openb import Arrivals, Run, arrivals, departures, placer_of, usual
from portal.bench.planning import ALLOCATED, Effort, Lost
from scheduling.planning.hosts import Hosts


def told(bars: list[Bar]) -> list[tuple[float, float, bool]]:
    return [(bar.value, bar.bar, bar.holds) for bar in bars]


CASES = {
    "both marks hold": ((95.7, 95.9), [True, True]),
    "too empty when 100 % were asked for": ((95.69, 95.9), [False, True]),
    "too empty in the end": ((95.7, 95.89), [True, False]),
}


@pytest.mark.parametrize(("figures", "holds"), CASES.values(), ids=CASES)
def test_what_is_allocated_is_held_against_what_was_promised(figures: tuple[float, float], holds: list[bool]) -> None:
    runs = [Arrivals(*figures, 9_000.0)]
    bars = planning.allocated_bars("default", ALLOCATED["default"], runs, [Arrivals(95.2, 95.4, 9_000.0)])

    assert told(bars) == [(figures[0], 95.7, holds[0]), (figures[1], 95.9, holds[1])]
    assert [bar.yardstick for bar in bars] == [95.2, 95.4]


LOSSES = {  #                          ours  best fit  FGD   holds
    "a tenth and three tenths":        (0.03, 0.3, 0.1, [True, True]),
    "more than a tenth of best fit's": (0.031, 0.3, 0.2, [False, True]),
    "more than three tenths of FGD's": (0.031, 0.4, 0.1, [True, False]),
    "nobody loses anything":           (0.0, 0.0, 0.0, [True, True]),
    "only ours loses":                 (0.1, 0.0, 0.0, [False, False]),
}  # fmt: skip


@pytest.mark.parametrize(("ours", "best_fits", "fgds", "holds"), LOSSES.values(), ids=LOSSES)
def test_what_is_lost_is_held_against_both_rivals(
    ours: float, best_fits: float, fgds: float, holds: list[bool]
) -> None:
    bars = list(planning.lost_bars("default", Lost(0.9, 0.1, 0.3), ours, best_fits, fgds))

    assert [bar.holds for bar in bars] == holds
    assert [bar.words for bar in bars] == ["0.1 yardsticks", "0.3 yardsticks"]


def test_every_trace_is_measured_at_both_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "on_all_cores", lambda work, runs: dict.fromkeys(runs, 1.0))
    names = [bar.name for bar in planning.leaving(Effort(1, 1))]

    assert len(names) == len(set(names)) == 10
    for trace in ALLOCATED:
        assert any(f"{trace}, load 0.9" in name for name in names)
        assert any(f"{trace}, load 1 " in name for name in names)


def test_one_seed_of_the_hardest_trace_for_shares_beats_fgd() -> None:
    """The bench has ten seeds of four traces; this one tells at once when packing got worse."""
    ours, fgds = (arrivals(Run(policy, "gpushare40", 42)) for policy in ("worth", "fgd"))

    assert ours.at_130 > fgds.at_130 + 0.4
    assert 93.8 < fgds.at_130 < 94.5  # published: 94.15


def test_what_is_lost_with_departures_is_decided_by_the_seed() -> None:
    run = Run("best-fit", "default", 42, load=2.0, lifetimes=(1.0, 0.1))

    assert departures(run) == departures(run) > 0.0


def test_a_rival_has_to_be_told_a_mix() -> None:
    with pytest.raises(ValueError, match="fgd has to be told a mix"):
        placer_of("fgd", None, Hosts([]))
    assert placer_of("worth", None, Hosts([])).place(usual("default").asks[0]) is None
