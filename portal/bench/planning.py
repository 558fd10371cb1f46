"""What was promised of packing: fuller than the published best while requests come, and when they leave again too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import mean

from portal.bench.bar import BEST_FIT, FGD, Bar, loss_beside, no_less
from portal.bench.openb import FIRST_SEED, Arrivals, Run, arrivals, departures, on_all_cores

PER_SECOND = 5_000


@dataclass(frozen=True, slots=True)
class Allocated:
    """Percent of all cards that have to be in use when so much was asked for."""

    at_130: float
    at_100: float | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """How much may be lost with departures, as a part of what best fit and FGD lose; None: no matter."""

    load: float
    of_best_fit: float | None
    of_fgd: float | None


ALLOCATED = {
    "default": Allocated(95.9, 95.7),
    "gpushare40": Allocated(94.6),
    "gpuspec10": Allocated(95.8),
    "multigpu20": Allocated(96.2),
}
LOST = {
    "default": (Lost(0.9, 0.1, 0.3), Lost(1.0, 0.9, None)),
    "gpushare40": (Lost(0.9, None, 1.0), Lost(1.0, 0.9, None)),
    "gpuspec10": (Lost(0.9, None, 1.0), Lost(1.0, 0.9, None)),
    "multigpu20": (Lost(0.9, 0.1, 0.3), Lost(1.0, 0.9, None)),
}


@dataclass(frozen=True, slots=True)
class Effort:
    """How often everything is measured."""

    arrivals: int  # seeds
    departures: int  # seeds
    loads: tuple[float, ...] = (0.9, 1.0)


FULL = Effort(10, 2)
QUICK = Effort(2, 1, (0.9,))


def bars(*, quick: bool = False) -> list[Bar]:
    """All of them; raises CouldNot where there is no trace."""
    effort = QUICK if quick else FULL
    return [*arriving(effort), *leaving(effort)]


def arriving(effort: Effort) -> list[Bar]:
    """Arrivals only, on the four traces; FGD on the same requests is the yardstick."""
    runs = [
        Run(policy, trace, seed)
        for policy in ("worth", "fgd")
        for trace in ALLOCATED
        for seed in seeds(effort.arrivals)
    ]
    told = on_all_cores(arrivals, runs)
    found: list[Bar] = []
    for trace, least in ALLOCATED.items():
        ours, fgds = (
            [told[run] for run in runs if (run.policy, run.trace) == (policy, trace)] for policy in ("worth", "fgd")
        )
        found += allocated_bars(trace, least, ours, fgds)
    return [*found, speed_bar([told[run] for run in runs if run.policy == "worth"])]


def allocated_bars(trace: str, least: Allocated, ours: list[Arrivals], fgds: list[Arrivals]) -> list[Bar]:
    name = f"openb {trace}, mean of {len(ours)} seeds: % of cards allocated when {{}} % were asked for"
    at_130 = [mean(run.at_130 for run in runs) for runs in (ours, fgds)]
    found = [no_less(name.format(130), at_130[0], least.at_130, at_130[1])]
    if least.at_100 is not None:
        at_100 = [mean(run.at_100 for run in runs) for runs in (ours, fgds)]
        found.insert(0, no_less(name.format(100), at_100[0], least.at_100, at_100[1]))
    return found


def speed_bar(runs: list[Arrivals]) -> Bar:
    """The mean of all runs, each on a core of its own; the fastest is the yardstick."""
    best = max(run.per_second for run in runs)
    usual = mean(run.per_second for run in runs)
    return no_less("openb, requests decided in a second of one core, mean of all runs", usual, PER_SECOND, best)


def leaving(effort: Effort) -> list[Bar]:
    """With departures, beside best fit and FGD on the same arrivals and lifetimes."""
    policies = ("fgd", "worth", "best-fit")  # the longest first
    kinds = [(trace, lost) for trace, some in LOST.items() for lost in some if lost.load in effort.loads]
    runs = [
        Run(policy, trace, seed, lost.load)
        for policy in policies
        for trace, lost in kinds
        for seed in seeds(effort.departures)
    ]
    told = on_all_cores(departures, runs)
    found: list[Bar] = []
    for trace, lost in kinds:
        means = {
            policy: mean(told[run] for run in runs if (run.policy, run.trace, run.load) == (policy, trace, lost.load))
            for policy in policies
        }
        found += lost_bars(trace, lost, means["worth"], means["best-fit"], means["fgd"])
    return found


def lost_bars(trace: str, lost: Lost, ours: float, best_fits: float, fgds: float) -> Iterable[Bar]:
    name = f"openb {trace}, load {lost.load:g} with departures: % of GPU time lost"
    if lost.of_best_fit is not None:
        yield loss_beside(name + BEST_FIT, ours, lost.of_best_fit, best_fits)
    if lost.of_fgd is not None:
        yield loss_beside(name + FGD, ours, lost.of_fgd, fgds)


def seeds(count: int) -> range:
    return range(FIRST_SEED, FIRST_SEED + count)
