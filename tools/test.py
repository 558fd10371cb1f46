"""Runs every test: once on SQLite, then all that touch tables once more on PostgreSQL. `make test ARGS="-k quota"`.

Nothing is skipped in silence: a missing part or a skipped test fails the run. The last line is the sum of both runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tools import browser

ROOT = Path(__file__).resolve().parent.parent
SCREENSHOTS = ROOT / "artifacts" / "screenshots"
NOTHING_SELECTED = 5  # pytest's exit status


def main(arguments: list[str]) -> int:
    if browser.main():
        return 1
    total: Counter[str] = Counter()
    statuses = [run(database, arguments, total) for database in ("sqlite", "postgres")]
    failed = total["failed"] + total["error"]
    print(f"\nscreenshots: {SCREENSHOTS.relative_to(ROOT)} ({len(list(SCREENSHOTS.glob('**/*.png')))} pictures)")
    if total["skipped"]:
        print(f"{total['skipped']} tests were skipped; a skipped test proves nothing, so this run has failed.")
    print(f"{total['passed']} passed, {failed} failed, {total['skipped']} skipped", flush=True)
    return verdict(statuses, failed=failed + total["skipped"], ran=total["passed"])


def run(database: str, arguments: list[str], total: Counter[str]) -> int:
    """One run of pytest; adds its counts to `total` and answers its exit status."""
    print(f"\nTests on {database}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--database", database, *arguments]
        status = subprocess.run(
            words, cwd=ROOT, env={**os.environ, "BERTH_REPORT": str(report)}, check=False
        ).returncode
        if report.exists():
            total.update(json.loads(report.read_text(encoding="utf-8")))
    return status


def verdict(statuses: list[int], *, failed: int, ran: int) -> int:
    """0 only if tests ran, none failed, and each run ended well; a run may find nothing to do if the other did."""
    ended_well = all(status in (0, NOTHING_SELECTED) for status in statuses)
    return 0 if ended_well and ran and not failed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
