"""`python -m tests.controlplane.serve FOLDER`: a real control plane with its machines played, as a process of its own.

For whoever wants one as a child: the demo, the benchmarks, tests with workers. When all is up, FOLDER/ready.json says
where it is and who may do what; it ends, with all that it has started, on TERM, on Ctrl-C, or with its parent.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NoReturn

from portal.demo.launcher import Stopped, stoppable
from portal.processes import CouldNotStart, die_with, last_words
from scheduling.cluster.simulated import Delays
from tests.controlplane import fleet, plane
from tests.controlplane.kueue import manager

READY = "ready.json"
WATCHABLE = Delays(  # seconds of the wall clock: a minute's patience is enough for all of it, and each step is seen
    node_provisioning=3,
    gpu_advertised=1,
    node_removal=1,
    image_pull=1,
    image_present=0.5,
    container_start=0.5,
    termination=0.5,
    mig_notice=0.5,
    mig_cut=3,
)
DELAYS = {"quick": fleet.QUICK, "watchable": WATCHABLE}
LOOK = 0.2  # seconds between two looks at the children


def main(arguments: list[str] | None = None) -> int:
    """0 when somebody ended it; 2, with a sentence, when it could not start or one of its programs ended."""
    options = parse(arguments)
    die_with(os.getppid(), signal.SIGTERM)
    os.umask(0o077)  # keys and tokens lie in the folder
    try:
        delays = DELAYS[options.delays] if options.fleet == "demo" else None
        with stoppable(), served(options.folder.resolve(), delays, options.kueue) as site:
            print(f"ready {site.plane.server}", flush=True)
            stay(site)
    except Stopped:
        return 0
    except (CouldNotStart, AssertionError) as trouble:
        print(f"control plane: {trouble}", file=sys.stderr)
        return 2


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.controlplane.serve", description=__doc__)
    parser.add_argument("folder", type=Path, help="for its logs, keys and ready.json")
    parser.add_argument("--fleet", choices=("demo", "none"), default="demo", help="whose machines are played")
    parser.add_argument("--delays", choices=DELAYS, default="quick", help="of its machines")
    parser.add_argument("--kueue", action="store_true", help="run Kueue beside it")
    return parser.parse_args(arguments)


@contextmanager
def served(folder: Path, delays: Delays | None, with_kueue: bool) -> Iterator[fleet.Site]:
    """The control plane while ready.json tells of it; without delays there are no machines. Raises CouldNotStart."""
    ready = folder / READY
    ready.unlink(missing_ok=True)
    with (
        fleet.running(folder) as site,
        manager.running(site.plane) if with_kueue else nullcontext(),
        fleet.played(site, "served", delays) if delays else nullcontext(),
    ):
        announce(ready, site)
        try:
            yield site
        finally:
            ready.unlink(missing_ok=True)


def announce(ready: Path, site: fleet.Site) -> None:
    """All at once: who waits for the file never reads half of it."""
    papers = site.plane.papers
    facts = {
        "server": site.plane.server,
        "token_file": site.plane.berth.token_file,
        "authority_file": str(papers.authority),
        "admin_certificate": str(papers.admin_certificate),
        "admin_key": str(papers.admin_key),
    }
    draft = ready.with_suffix(".draft")
    draft.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    draft.rename(ready)


def stay(site: fleet.Site) -> NoReturn:
    """Until somebody stops us (Stopped). Raises CouldNotStart when one of the programs ends."""
    while True:
        for name, process in site.plane.processes.items():
            if process.poll() is not None:
                raise CouldNotStart(
                    f"{name} ended with {process.returncode}. {last_words(plane.log_of(site.plane, name))}"
                )
        time.sleep(LOOK)


if __name__ == "__main__":
    sys.exit(main())
