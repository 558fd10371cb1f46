"""`plan --nodes F --pods F`: packs a fleet from files, and says what was placed, what was not, and why."""

import time
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from portal.bench.openb import POLICIES
from portal.management.console import DONE, FINDINGS, Console, counted
from portal.management.packing import Packed, pack, read_fleet


class Command(Console):
    help = "Pack the pods of a file onto the nodes of another: openb CSV files. See docs/commands.md."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--nodes", required=True, metavar="FILE|-")
        parser.add_argument("--pods", required=True, metavar="FILE|-")
        parser.add_argument("--policy", choices=sorted(POLICIES), default="worth")
        parser.add_argument("--seed", type=seed, help="shuffle nodes and pods by it; without one they come in order")
        parser.add_argument(
            "--arrivals", type=arrivals, help="go on drawing pods until so many times the capacity was asked for"
        )
        parser.add_argument("--json", action="store_true")

    def work(self, **options: Any) -> int:
        fleet = read_fleet(options["nodes"], options["pods"])
        for sentence in fleet.problems:
            self.complain(sentence)
        started = time.perf_counter()
        packed = pack(fleet, policy=options["policy"], seed=options["seed"], arrivals=options["arrivals"])
        told = as_json(packed, time.perf_counter() - started)
        if options["json"]:
            self.print_json(told)
        else:
            self.tell(told)
        return FINDINGS if fleet.problems or told["refused"] else DONE

    def tell(self, told: dict[str, Any]) -> None:
        self.stdout.write(
            f"{counted(told['placed'], 'pod')} placed; {told['gpu_allocated_pct']:g} % of the cards are in use, "
            f"and {100 * told['fragmentation']:.0f} % of the free ones are of no use to the usual pod."
        )
        for reason, number in told["refused"].items():
            self.stdout.write(f"{counted(number, 'pod')} refused: {reason}")
        for mark, percent in told["by_arrival_pct"].items():
            self.stdout.write(f"When {mark} % were asked for, {percent:g} % were in use.")
        self.stdout.write(f"{told['seconds']:g} s, {told['placements_per_second']:,.0f} placements a second.")


def as_json(packed: Packed, seconds: float) -> dict[str, Any]:
    """The keys that docs/commands.md promises."""
    found = packed.arrived
    return {
        "policy": packed.policy,
        "placed": found.placed,
        "refused": {str(reason): number for reason, number in sorted(found.refused.items())},
        "gpu_allocated_pct": round(found.allocated, 3),
        "by_arrival_pct": {str(mark): round(percent, 3) for mark, percent in found.marks.items()},
        "fragmentation": round(packed.fragmentation, 4),
        "seconds": round(seconds, 3),
        "placements_per_second": round(found.placed / seconds, 1) if seconds else 0.0,
    }


def seed(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ArgumentTypeError(f"{text[:40]!r} is not a whole number from 0 on")
    return int(text)


def arrivals(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found <= 100:
        raise ArgumentTypeError(f"{text[:40]!r} is not a number above 0 and up to 100")
    return found
