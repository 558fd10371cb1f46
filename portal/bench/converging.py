"""Many workloads come to rest on an API server of the bench's own; then nothing happens; then many looks more.

A child of the bench: SERVER WORKLOADS NODES CARDS LOOKS; prints figures as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import urllib.request
from collections import Counter
from typing import Any

import django

TEAMS = 20
PATIENCE = 600.0
QUIET = 3.0  # seconds without a call before the quiet look; well under a bookmark's pace for the streams themselves
CHANGE_EVERY = 10  # looks
WARM = 500  # looks before threads and memory are first read


def main(server: str, workloads: int, nodes: int, cards: int, looks: int) -> dict[str, Any]:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    from django.core.management import call_command  # noqa: PLC0415

    call_command("migrate", interactive=False, verbosity=0)
    from portal.bench.tables import make_world, wait_in_line  # noqa: PLC0415  models exist only now
    from scheduling import wake  # noqa: PLC0415
    from tenants import clock  # noqa: PLC0415

    tasks: list[int] = []
    wake.send = lambda cluster_id: tasks.append(cluster_id)  # noqa: PLW0108
    world = make_world(now=clock.now(), teams=TEAMS, cards=max(1, nodes * cards // TEAMS), server=server)
    watch_it(world.cluster)
    rows = wait_in_line(world, workloads, now=clock.now())
    figures = converge(world, server, len(rows))
    figures |= quiet(world, server, tasks)
    return figures | (many_looks(world, looks) if looks else {})


def watch_it(cluster: Any) -> None:
    from scheduling.watch import Watching  # noqa: PLC0415

    Watching().watch_all()
    until(lambda: look(cluster) and seen_by_watch(cluster), "The mirror hears nothing.")


def converge(world: Any, server: str, count: int) -> dict[str, Any]:
    from scheduling.models import Workload  # noqa: PLC0415
    from scheduling.planning.facts import Phase  # noqa: PLC0415

    before, began = counts(server), time.monotonic()
    running = Workload.objects.filter(phase=Phase.RUNNING)
    until(lambda: look(world.cluster) and running.count() == count, "Not all run.")
    seconds = time.monotonic() - began
    asked = counts(server) - before
    writes = sum(number for what, number in asked.items() if what.startswith("writes"))
    reads = sum(number for what, number in asked.items() if what.startswith("reads"))
    return {"seconds": seconds, "writes": writes / count, "reads": reads / count, "asked": dict(asked)}


def quiet(world: Any, server: str, tasks: list[int]) -> dict[str, Any]:
    """A look with nothing changed, and a tick after it."""
    from scheduling.tasks import tick  # noqa: PLC0415

    until(lambda: not look(world.cluster).again, "It does not come to rest.")
    time.sleep(QUIET)
    tasks.clear()
    before, began = counts(server), time.monotonic()
    look(world.cluster)
    seconds = time.monotonic() - began
    tick()
    asked = counts(server) - before
    return {"quiet_calls": sum(asked.values()), "quiet_tasks": len(tasks), "quiet_seconds": seconds}


def many_looks(world: Any, looks: int) -> dict[str, Any]:
    """Somebody opens a workload and somebody ends one with every few looks."""
    figures: dict[str, Any] = {"looks": looks}
    began = time.monotonic()
    for number in range(WARM + looks):
        if number == WARM:
            figures |= {"threads_before": threading.active_count(), "memory_before": memory_mib()}
            began = time.monotonic()
        if number % CHANGE_EVERY == 0:
            change(world, number)
        look(world.cluster)
    figures |= {"threads_after": threading.active_count(), "memory_after": memory_mib()}
    return figures | {"looks_seconds": time.monotonic() - began}


def change(world: Any, number: int) -> None:
    from portal.bench.tables import wait_in_line  # noqa: PLC0415
    from scheduling.models import Workload  # noqa: PLC0415
    from scheduling.planning.facts import Phase  # noqa: PLC0415
    from scheduling.services import end_workload  # noqa: PLC0415
    from tenants import clock  # noqa: PLC0415

    wait_in_line(world, 1, now=clock.now(), name=f"more-{number}")
    if row := Workload.objects.filter(phase=Phase.RUNNING).order_by("asked_at").first():
        end_workload(row, by=row.owner, now=clock.now())


# Helpers


def look(cluster: Any) -> Any:
    from scheduling.reconcile.cycle import look_after  # noqa: PLC0415

    return look_after(cluster.pk)


def seen_by_watch(cluster: Any) -> bool:
    from scheduling.models import Cluster  # noqa: PLC0415

    return Cluster.objects.filter(pk=cluster.pk, heard_at__isnull=False).exists()


def counts(server: str) -> Counter[str]:
    with urllib.request.urlopen(f"{server}/counts", timeout=10) as answer:  # noqa: S310 (our own child)
        return Counter(json.load(answer))


def until(holds: Any, trouble: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(trouble)
        time.sleep(0.05)


def memory_mib() -> float:
    """Resident memory of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    found = main(sys.argv[1], *map(int, sys.argv[2:6]))
    print(json.dumps(found))
    sys.stdout.flush()
    os._exit(0)  # threads that watch have nothing to say any more
