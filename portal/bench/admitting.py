"""Work of many teams, admitted by Berth and written as objects on a real control plane, beside Kueue's own admission of
as many Jobs there. A child of the bench: ours|kueues READY WORKLOADS; prints figures as JSON."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import django

TEAMS = 20
NODES, CARDS = 10, 64
PATIENCE = 120.0
LOOK = 0.1  # seconds between two looks at what is written, as the yardstick looks


def main(whose: str, file: str, workloads: int) -> dict[str, Any]:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    from django.core.management import call_command  # noqa: PLC0415

    call_command("migrate", interactive=False, verbosity=0)
    from portal.bench.plane import machines, read_plane  # noqa: PLC0415  models exist only now
    from scheduling import wake  # noqa: PLC0415

    wake.send = lambda cluster_id: None  # noqa: ARG005
    plane = read_plane(Path(file))
    if whose == "kueues":
        return kueues(plane, workloads)
    with machines(plane, NODES, CARDS):
        return ours(plane, workloads)


def ours(plane: Any, workloads: int) -> dict[str, Any]:
    """Jobs a second, from the first look that finds them waiting until the API server has the last of them."""
    from portal.bench.converging import look, watch_it  # noqa: PLC0415
    from portal.bench.tables import make_world, wait_in_line  # noqa: PLC0415
    from scheduling.cluster.client import Session  # noqa: PLC0415
    from tenants import clock  # noqa: PLC0415

    world = make_world(
        now=clock.now(), teams=TEAMS, cards=-(-workloads // TEAMS), server=plane.server,
        token_file=plane.token_file, authority=plane.authority_file,
    )  # fmt: skip
    watch_it(world.cluster)
    wait_in_line(world, workloads, now=clock.now())
    with closing(Session(plane.admin)) as door:
        before, began, cpu = jobs_of(door), time.monotonic(), time.process_time()
        worker = threading.Thread(target=look, args=(world.cluster,), daemon=True)  # as a worker does: one task
        worker.start()
        while (written := jobs_of(door) - before) < workloads:
            if time.monotonic() - began > PATIENCE:
                raise TimeoutError(f"Only {written} of {workloads} were written.")
            time.sleep(LOOK)
        seconds = time.monotonic() - began
    return {"jobs": workloads, "seconds": seconds, "cpu": time.process_time() - cpu, "per_second": workloads / seconds}


def kueues(plane: Any, workloads: int) -> dict[str, Any]:
    """Kueue's Jobs a second, their creation included, as ours includes the writing."""
    from tests.controlplane.kueue.yardstick import admission  # noqa: PLC0415  the bench of a checkout

    found = admission(plane.admin, workloads, TEAMS, tidy=False)
    return {"per_second": found.per_second, "created_per_second": found.created_per_second}


def jobs_of(door: Any) -> int:
    """How many Jobs the server has; one page of nothing but their number."""
    found = json.loads(door.ask("GET", "/apis/batch/v1/jobs", query={"limit": 1}))
    return len(found["items"]) + int(found["metadata"].get("remainingItemCount", 0))


if __name__ == "__main__":
    result = main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    print(json.dumps(result))
    sys.stdout.flush()
    os._exit(0)  # threads that watch have nothing to say any more
