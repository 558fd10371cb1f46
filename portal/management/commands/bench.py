"""`bench NAME`: measures a bar beside a yardstick of the same run, so that figures of two machines compare."""

import json
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from portal.bench.bar import Bar, bar_of
from portal.demo.launcher import ROOT
from portal.management.console import DONE, FINDINGS, Console, CouldNot

PATIENCE = 300  # seconds for one story
YARDSTICK = "import django, decimal; django.setup(); sum(decimal.Decimal(i) for i in range(2_000_000))"


class Command(Console):
    help = (
        "Measure what was promised: story (start-up, the whole story, how fast an open page hears), "
        "cluster (reading a large one, calls, pace, and from a click to its pod; takes some minutes), "
        "planning (how full a fleet gets, what is lost when work leaves, how many slices find room; takes minutes, "
        "with --quick one)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", choices=sorted(BENCHES))
        parser.add_argument("--quick", action="store_true", help="planning: fewer seeds, and one load")
        parser.add_argument("--json", action="store_true")

    def work(self, **options: Any) -> int:
        bars = (
            planning(quick=True) if options["quick"] and options["name"] == "planning" else BENCHES[options["name"]]()
        )
        if options["json"]:
            self.print_json({"bars": [asdict(bar) for bar in bars]})
        else:
            rows = [[bar.name, f"{bar.value:.3g}", bar.words, f"{bar.ratio:.3g}", held(bar)] for bar in bars]
            self.print_table([["MEASURED", "VALUE", "BAR", "YARDSTICKS", "HOLDS"], *rows])
        return DONE if all(bar.holds for bar in bars) else FINDINGS


def story() -> list[Bar]:
    """The demo's whole story, as `demo --once` tells it; raises CouldNot when a step did not happen."""
    yardstick = timed_yardstick()
    words = [sys.executable, str(ROOT / "manage.py"), "demo", "--once", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE)
    try:
        told: Mapping[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise CouldNot(f"demo --once said nothing that can be read: {done.stderr.strip()[:300]}") from None
    if not told["ok"]:
        missed = next(step for step in told["steps"] if not step["ok"])
        raise CouldNot(f"The story did not happen: {missed['name']}: {missed['detail']}")
    figures = told["figures"]
    return [
        bar_of("first page after the demo's start", figures["first_page"], 60, yardstick),
        bar_of("demo --once", told["seconds"], 60, yardstick),
        bar_of("running on the open page after the cluster said so", figures["running_late"], 1, yardstick),
    ]


def cluster() -> list[Bar]:
    """What a cluster costs and how fast it is; raises CouldNot where something to measure with is missing."""
    from portal.bench.cluster import bars  # noqa: PLC0415  the bench of a checkout: tests and tools lie beside it

    return bars()


def planning(*, quick: bool = False) -> list[Bar]:
    """How well the planner does what can be counted: no cluster and no tables."""
    from portal.bench import planning, slices  # noqa: PLC0415  only where it is asked for

    return [*planning.bars(quick=quick), *slices.bars()]


def timed_yardstick() -> float:
    """Seconds that this machine takes, now, for a fixed piece of Python: starting Django and two million additions."""
    started = time.monotonic()
    environment = {"DJANGO_SETTINGS_MODULE": "portal.settings"}
    subprocess.run([sys.executable, "-c", YARDSTICK], cwd=ROOT, env=environment, check=True, timeout=PATIENCE)
    return time.monotonic() - started


def held(bar: Bar) -> str:
    return "yes" if bar.holds else "no"


BENCHES: Mapping[str, Callable[[], list[Bar]]] = {"cluster": cluster, "planning": planning, "story": story}
