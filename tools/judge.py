"""What checkers of others say of the running demo and of our files: `make judge`.

vnu and axe see every page in each role, the browser tells what it complains of, and schemathesis questions the API.
A finding is mended, or accepted with its reason in tests/judges/accepted.toml; an accepted finding that no longer
occurs has to go. Exit code 0: nothing to say; 1: findings; 2: a judge could not sit.

`make judge ARGS="--url http://127.0.0.1:8000"` judges a demo that runs already; `--only vnu,axe` calls some judges.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from portal.processes import CouldNotStart, free_port, spawn, stop, wait_until
from tools.judges import crawl, interface, markup, screen
from tools.judges.equipment import Equipment, prepare
from tools.judges.findings import Accepted, CouldNotJudge, Finding, read_accepted, verdict

ROOT = Path(__file__).resolve().parent.parent
ACCEPTED = ROOT / "tests" / "judges" / "accepted.toml"
ARTIFACTS = ROOT / "artifacts" / "judge"
JUDGES = ("links", markup.JUDGE, screen.AXE, screen.BROWSER, interface.JUDGE)
T = TypeVar("T")
DEMO_PATIENCE = 150  # seconds


def main(arguments: Sequence[str]) -> int:
    options = read_options(arguments)
    shutil.rmtree(ARTIFACTS, ignore_errors=True)
    ARTIFACTS.mkdir(parents=True)
    try:
        accepted = read_accepted(ACCEPTED)
        equipment = prepare()
        with demo(options.url) as base:
            found = sit(base, equipment, options.only)
    except (CouldNotJudge, CouldNotStart) as reason:
        print(f"The judges could not sit: {reason}", file=sys.stderr)
        return 2
    return tell(*verdict(found, accepted, options.only))


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make judge", description="What checkers of others say of the running demo.")
    parser.add_argument("--url", default="", help="a demo that runs already")
    parser.add_argument("--only", default=",".join(JUDGES), help=f"some of {','.join(JUDGES)}")
    options = parser.parse_args(arguments)
    options.url = options.url.rstrip("/")
    options.only = options.only.split(",")
    if unknown := set(options.only) - set(JUDGES):
        parser.error(f"no such judge: {', '.join(sorted(unknown))}; choose from {', '.join(JUDGES)}")
    return options


@contextmanager
def demo(url: str) -> Iterator[str]:
    """The address of a demo: the given one, or one of our own that ends with the block."""
    if url:
        yield url
        return
    port, log = free_port(), ARTIFACTS / "demo.log"
    with tempfile.TemporaryDirectory(prefix="berth") as folder:
        words = [sys.executable, "manage.py", "demo", "--port", str(port), "--folder", f"{folder}/demo"]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        process = spawn(words, log=log, environment=environment, dies_by=signal.SIGTERM, folder=ROOT)
        ready = f"ready http://127.0.0.1:{port}"
        try:
            wait_until(lambda: ready in log.read_text(), process, what="The demo", log=log, patience=DEMO_PATIENCE)
            yield f"http://127.0.0.1:{port}"
        finally:
            stop(process, by=signal.SIGINT, patience=20)


def sit(base: str, equipment: Equipment, only: Sequence[str]) -> list[Finding]:
    """All findings of the judges that were called, schemathesis last: it writes what it likes into the demo."""
    visitors = crawl.log_in_everybody(base)
    crawls = [timed(f"crawl as {visitor.role}", partial(crawl.crawl, visitor)) for visitor in visitors]
    pages = [page for theirs, _ in crawls for page in theirs] + crawl.strangers_pages(base)
    print(f"{len(pages)} pages in {len(visitors) + 1} roles", flush=True)
    found = [finding for _, broken in crawls for finding in broken if finding.judge in only]
    if markup.JUDGE in only:
        found += timed("vnu", lambda: markup.judge(equipment.vnu, pages, own_files(), ARTIFACTS / "pages", ROOT))
    if {screen.AXE, screen.BROWSER} & set(only):
        seen = timed("axe and browser", lambda: screen.judge(equipment.chromium, pages, visitors, base))
        found += [finding for finding in seen if finding.judge in only]
    if interface.JUDGE in only:
        found += timed("schemathesis", lambda: interface.judge(equipment.schemathesis, visitors, ARTIFACTS / "api"))
    return found


def own_files() -> list[Path]:
    """The styles and pictures that we wrote ourselves."""
    ours = [file for pattern in ("*.css", "*.svg") for file in (ROOT / "static").rglob(pattern)]
    return sorted(file for file in ours if "vendor" not in file.parts)


def timed(what: str, work: Callable[[], T]) -> T:
    started = time.monotonic()
    result = work()
    print(f"{what}: {time.monotonic() - started:.0f} s", flush=True)
    return result


def tell(open_ones: Sequence[Finding], stale: Sequence[Accepted]) -> int:
    for finding in open_ones:
        print(finding)
    for entry in stale:
        print(f"accepted, but found no more: {entry.judge}: {entry.where}: {entry.rule}")
    counts = f"{len(open_ones)} findings, {len(stale)} accepted ones that are gone"
    print(f"judges: {counts}; pages and reports are in {ARTIFACTS.relative_to(ROOT)}", flush=True)
    return 1 if open_ones or stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
