"""`usage FILE`: who uses which card how much, by a DCGM exposition or a Prometheus answer."""

from argparse import ArgumentParser
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from portal.management.console import DONE, FINDINGS, Console, CouldNot, counted, read_file
from scheduling.telemetry.dcgm import Card, Dropped, Reading, Sample, read_any


class Command(Console):
    help = "Print the samples in the output of a DCGM exporter or of a Prometheus query; - reads standard input."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE|-")
        parser.add_argument("--json", action="store_true")

    def work(self, **options: Any) -> int:
        name, text = read_file(options["file"])
        reading = read_any(text)
        if options["json"]:
            self.print_json(as_json(reading))
        elif reading.cards:
            self.print_table(as_rows(reading.samples))
            self.stdout.write(in_total(reading))
        for dropped in reading.dropped:
            self.complain(sentence(name, dropped))
        if not reading.cards:
            empty = "it is empty" if not text.strip() else "no metric of a card (DCGM_FI_…) is in it"
            raise CouldNot(
                f"{name}: {empty}; give it what a DCGM exporter prints, or the answer of a Prometheus query."
            )
        return FINDINGS if reading.dropped else DONE


def sentence(name: str, dropped: Dropped) -> str:
    times = "once" if dropped.count == 1 else f"{dropped.count} times"
    return ": ".join(part for part in (name, dropped.metric, f"{dropped.reason} ({times}).") if part)


def as_json(reading: Reading) -> dict[str, Any]:
    """The keys that docs/commands.md promises."""
    return {
        "samples": [sample_as_json(sample) for sample in reading.samples],
        "cards": len(reading.cards),
        "boards": [asdict(card) for card in reading.cards],
        "dropped": [asdict(dropped) for dropped in reading.dropped],
        "unattributed": reading.unattributed,
    }


def sample_as_json(sample: Sample) -> dict[str, Any]:
    return {key: value for key, value in asdict(sample).items() if key != "divided"} | {"basis": basis(sample)}


def basis(sample: Sample) -> str:
    """What the numbers are of: the pod's own, or a shared card's that were divided."""
    if not sample.pod:
        return "nobody named"
    return f"card, shared by {sample.shared_by}" if sample.divided else "own"


def as_rows(samples: Iterable[Sample]) -> list[list[str]]:
    rows = [["HOST", "CARD", "SLICE", "POD", "BUSY", "MEMORY, MiB", "WATTS", "BASIS"]]
    for sample in samples:
        slice_ = f"{sample.profile} #{sample.gi}" if sample.gi else "-"
        pod = f"{sample.namespace}/{sample.pod}" if sample.pod else "-"
        rows.append([sample.host, sample.card, slice_, pod, busy(sample), memory(sample), watts(sample), basis(sample)])
    return rows


def busy(sample: Sample) -> str:
    return "unknown" if sample.busy is None else f"{sample.busy:.1%}"


def memory(sample: Sample) -> str:
    """Used of total; what is not said is a question mark, not a zero."""
    used, total = ("?" if value is None else str(value) for value in (sample.memory_used_mib, sample.memory_total_mib))
    return f"{used} of {total}"


def watts(sample: Sample) -> str:
    return "" if sample.watts is None else f"{sample.watts:.0f}"


def in_total(reading: Reading) -> str:
    nobody = f"; {counted(reading.unattributed, 'sample')} without a pod" if reading.unattributed else ""
    return f"{counted(len(reading.cards), 'card')}, {power(reading.cards)}{nobody}"


def power(cards: Iterable[Card]) -> str:
    known = [card.watts for card in cards if card.watts is not None]
    return f"{sum(known):.0f} W" if known else "power unknown"
