"""The openb experiment and its contest with departures: ours beside FGD and best fit, on the same requests."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from typing import TypeVar

import numpy as np

from portal.bench.rivals import BestFit, Fgd
from portal.demo.launcher import ROOT
from portal.management.console import CouldNot
from scheduling.planning.board import Board, Judge
from scheduling.planning.hosts import Host, Hosts
from scheduling.planning.learner import Learner
from scheduling.planning.mix import Ask, Mix, mix_of
from scheduling.planning.replay import Placer, arrive, come_and_go, in_random_order, offered
from scheduling.planning.traces import read_hosts, read_pods

FOLDER = ROOT / "tests" / "data" / "openb"
Found = TypeVar("Found")
FIRST_SEED = 42
ARRIVED = 1.3

OURS = "worth"
RIVALS: Mapping[str, Callable[[Mix, Hosts], Judge]] = {"fgd": Fgd, "best-fit": BestFit}
POLICIES = (OURS, *RIVALS)


@dataclass(frozen=True, slots=True)
class Run:
    """One contest to be held: which policy, on which trace, by which seed."""

    policy: str
    trace: str
    seed: int
    load: float = 0.0  # of a contest with departures
    lifetimes: tuple[float, float] = (18.0, 14.0)  # warming up, measured


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Allocated cards in percent when as much as 100 and 130 % of the capacity had come."""

    at_100: float
    at_130: float
    per_second: float  # requests decided in a second of CPU


def arrivals(run: Run) -> Arrivals:
    """Knows the trace's own mix, and no request before it comes."""
    random = np.random.default_rng(run.seed)
    hosts = in_random_order(hosts_of(), random)
    asks = asks_of(run.trace)
    placer = placer_of(run.policy, usual(run.trace), hosts)
    stream = list(offered(asks, ARRIVED * hosts.capacity, random))
    started = time.process_time()
    found = arrive(placer, stream)
    seconds = time.process_time() - started
    return Arrivals(found.marks[100], found.marks[130], len(stream) / seconds)


def departures(run: Run) -> float:
    """Percent of the offered GPU time that was lost. Ours learns its mix while it runs; the others are told it."""
    random = np.random.default_rng(run.seed)
    hosts = in_random_order(hosts_of(), random)
    mix = usual(run.trace)
    placer = placer_of(run.policy, None if run.policy == OURS else mix, hosts)
    warm, measured = run.lifetimes
    return come_and_go(placer, mix, run.load, random, warm, measured).lost_percent


def placer_of(policy: str, mix: Mix | None, hosts: Hosts) -> Placer:
    """The policy at work; one that knows no mix begins by best fit, and a rival has to know one."""
    if policy == OURS:
        return Learner(hosts, mix)
    if mix is None:
        raise ValueError(f"{policy} has to be told a mix.")
    return Board(hosts, RIVALS[policy](mix, hosts))


def on_all_cores(work: Callable[[Run], Found], runs: Sequence[Run]) -> dict[Run, Found]:
    """Each run in a process of its own kind: it shares nothing, and uses one core."""
    hosts_of()  # a file that is missing is told once, here
    with ProcessPoolExecutor(cores(), mp_context=get_context("spawn")) as pool:
        return dict(zip(runs, pool.map(work, runs), strict=True))


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def hosts_of() -> tuple[Host, ...]:
    return tuple(read_hosts(_text("openb_node_list_gpu_node.csv"))[0])


@cache
def asks_of(trace: str) -> tuple[Ask, ...]:
    return tuple(pod.ask for pod in read_pods(_text(f"openb_pod_list_{trace}.csv"))[0])


def usual(trace: str) -> Mix:
    mix = mix_of((ask, 1.0) for ask in asks_of(trace))
    if mix is None:
        raise CouldNot(f"{trace}: there is no pod in it.")
    return mix


def _text(name: str) -> str:
    try:
        return (FOLDER / name).read_text(encoding="utf-8")
    except OSError as error:
        raise CouldNot(f"tests/data/openb/{name}: it cannot be read: {(error.strerror or '').lower()}.") from None
