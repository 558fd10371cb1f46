"""Reading a large cluster's nodes, beside what the Kubernetes client's own models take for it."""

import copy
import gc
import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from portal.bench.bar import Bar, bar_of, share_of
from portal.demo.launcher import ROOT
from portal.management.console import CouldNot
from scheduling.cluster.kept import Kept
from scheduling.cluster.sources import NODES, documents_in, read_page

NODES_READ = 5_000
CHANGES = 1_000
PAGE = 500  # as lists are asked for
RUNS = 3
PART = 1 / 20  # of the client's CPU, for the same bytes as typed documents
MOST_SECONDS = 200e-6  # from a line of the watch to the fact in the mirror
SAMPLES = ROOT / "tests" / "data" / "nodes" / "nodelist.json"


def bars() -> list[Bar]:
    """CPU seconds of this process. Raises CouldNot where there are no sample nodes."""
    samples = read_samples()
    pages = [page_of(samples, start) for start in range(0, NODES_READ, PAGE)]
    theirs = seconds_of(lambda: [theirs_of(page) for page in pages])
    documents = seconds_of(lambda: each(pages, lambda page: documents_in(page, NODES.document)))
    facts = seconds_of(lambda: [read_page(page, NODES) for page in pages])
    lines = list(changes_of(samples))
    line = seconds_of(lambda: each(lines, empty_kept().hear)) / len(lines)
    size = sum(map(len, pages)) / 2**20
    return [
        share_of(f"decoding {NODES_READ:,} GPU nodes of {size:.0f} MiB", documents, PART, theirs),
        share_of(f"reading {NODES_READ:,} GPU nodes into facts", facts, 1.0, theirs),
        bar_of("a line of the watch to the node's fact in the mirror", line, MOST_SECONDS, theirs / NODES_READ),
    ]


def seconds_of(work: Callable[[], object]) -> float:
    """The median of some runs, each on a tidy heap."""
    taken = []
    for _ in range(RUNS):
        gc.collect()
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return statistics.median(taken)


def theirs_of(page: bytes) -> Any:
    from kubernetes.client import ApiClient  # noqa: PLC0415  74 MB of modules, for this alone

    return ApiClient().deserialize(page.decode(), "V1NodeList", "application/json")


def empty_kept() -> Kept:
    return Kept(NODES, lambda _: None, threading.Condition(threading.RLock()))


def each(parts: list[bytes], work: Callable[[bytes], object]) -> None:
    """Documents are let go of as soon as they are facts, so none is kept here either."""
    for part in parts:
        work(part)


# Nodes


def read_samples() -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = json.loads(SAMPLES.read_bytes())["items"]
    except OSError as error:
        raise CouldNot(f"The sample nodes of {SAMPLES.relative_to(ROOT)} are not there: {error.strerror}.") from None
    return found


def page_of(samples: list[dict[str, Any]], start: int) -> bytes:
    items = [renamed(samples[number % len(samples)], number) for number in range(start, start + PAGE)]
    document = {"kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}
    return json.dumps(document, separators=(",", ":")).encode()


def changes_of(samples: list[dict[str, Any]]) -> Iterator[bytes]:
    for number in range(CHANGES):
        item = renamed(samples[number % len(samples)], number)
        yield json.dumps({"type": "MODIFIED", "object": item}, separators=(",", ":")).encode()


def renamed(sample: dict[str, Any], number: int) -> dict[str, Any]:
    """The same machine once more, under a name, a uid and a host name of its own."""
    node = copy.deepcopy(sample)
    name = f"node-{number:05}"
    uid = f"00000000-0000-4000-8000-{number:012}"
    node["metadata"] |= {"name": name, "uid": uid, "resourceVersion": str(number + 2)}
    node["metadata"].setdefault("labels", {})["kubernetes.io/hostname"] = name
    return node
