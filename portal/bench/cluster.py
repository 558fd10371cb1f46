"""What was promised of clusters: many workloads on few calls, nothing where nothing changes, and at what pace."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from portal.bench import decoding
from portal.bench.bar import Bar, at_least, count_of, less_than
from portal.bench.ground import Ground, ground
from portal.demo.launcher import WORKER, answers
from portal.management.console import CouldNot
from portal.processes import CouldNotStart, wait_until

CONVERGING, CONVERGING_NODES = 10_000, 1_250
LOOKS, LOOKED_AT, LOOKED_AT_NODES = 5_000, 40, 10
CARDS = 8
MOST_WRITES, MOST_READS = 3, 1
ADMITTED, TIMES_KUEUE = 600, 3
PER_SECOND, SECONDS = 20, 15
MEDIAN, P99 = 1.0, 2.0  # seconds
FLAT = 1.1  # of what it was
QUICK = {"BERTH_TICK_SECONDS": "1", "BERTH_WATCH": "true"}


def bars() -> list[Bar]:
    """All of them. Each measurement has a fresh ground. Raises CouldNot where something to measure with is missing."""
    found = decoding.bars()
    for measure in MEASUREMENTS.values():
        with ground() as place:
            try:
                found += measure(place)
            except CouldNotStart as trouble:
                raise CouldNot(str(trouble)) from None
    return found


def converging(place: Ground) -> list[Bar]:
    """10,000 workloads on an API server of the bench's own, which answers in a millisecond."""
    server = place.api_server(CONVERGING_NODES, CARDS)
    words = map(str, (CONVERGING, CONVERGING_NODES, CARDS, 0))
    told = place.measure("portal.bench.converging", server, *words)
    what = f"{CONVERGING:,} workloads run ({told['seconds']:.0f} s, {place.database})"
    return [
        count_of(f"{what}: writes each", told["writes"], MOST_WRITES),
        count_of(f"{what}: reads each", told["reads"], MOST_READS),
        count_of("a cycle with nothing changed: API calls beyond watches", told["quiet_calls"], 0),
        count_of("a tick with nothing changed: tasks", told["quiet_tasks"], 0),
    ]


def looking(place: Ground) -> list[Bar]:
    """5,000 looks, with a workload opened and one ended at every tenth: threads and memory stay flat."""
    server = place.api_server(LOOKED_AT_NODES, CARDS)
    words = map(str, (LOOKED_AT, LOOKED_AT_NODES, CARDS, LOOKS))
    told = place.measure("portal.bench.converging", server, *words)
    each = f"after {LOOKS:,} reconciles of {told['looks_seconds'] / LOOKS * 1000:.0f} ms"
    return [
        less_than(f"{each}: threads", told["threads_after"], 1.0, told["threads_before"]),
        less_than(f"{each}: resident MiB", told["memory_after"], FLAT, told["memory_before"]),
    ]


def admitting(place: Ground) -> list[Bar]:
    """Ours on a control plane without Kueue, then Kueue's on a fresh one: neither works through the other's remains."""
    ours = place.measure("portal.bench.admitting", "ours", str(place.control_plane("ours")), str(ADMITTED))
    place.end("ours")
    file = place.control_plane("kueue", "--kueue")
    kueues = place.measure("portal.bench.admitting", "kueues", str(file), str(ADMITTED))
    name = f"{ADMITTED} workloads of 20 teams admitted and written, a second ({place.database})"
    return [at_least(name, ours["per_second"], TIMES_KUEUE, kueues["per_second"])]


def clicking(place: Ground) -> list[Bar]:
    """The whole stack: uvicorn, a worker with its beat, the message server, and a real control plane."""
    file = place.control_plane("plane")
    place.environment |= QUICK
    place.manage("migrate", "--no-input")
    portal = ["-m", "uvicorn", "portal.asgi:application", "--host", "127.0.0.1", "--port", str(place.port)]
    process = place.start("portal", *portal, "--no-access-log", "--log-level", "warning")
    place.start("worker", "-m", "celery", "-A", "portal", "worker", "-B", *WORKER)
    url = f"http://127.0.0.1:{place.port}"
    wait_until(lambda: answers(f"{url}/ready"), process, what="The portal", log=place.log("portal"), patience=60)
    told = place.measure("portal.bench.clicking", str(file), url, str(PER_SECOND), str(SECONDS))
    what = f"click to pod created at {PER_SECOND} requests a second for {SECONDS} s"
    return [count_of(f"{what}: median", told["median"], MEDIAN), count_of(f"{what}: p99", told["p99"], P99)]


MEASUREMENTS: Mapping[str, Callable[[Ground], list[Bar]]] = {
    "converging": converging,
    "looking": looking,
    "admitting": admitting,
    "clicking": clicking,
}
