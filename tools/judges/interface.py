"""Schemathesis asks the API everything that its own description allows, and more."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.judges.crawl import Visitor
from tools.judges.findings import CouldNotJudge, Finding, shape

JUDGE = "schemathesis"
SCHEMA = "/api/schema/"
PATIENCE = 150  # seconds for one person
OPTIONS = (
    "--checks=all",
    "--phases=examples,coverage,fuzzing,stateful",
    "--max-examples=15",
    "--seed=1",
    "--continue-on-failure",
    "--no-shrink",
    "--request-timeout=20",
    "--report=json",
)


def judge(schemathesis: str, visitors: Sequence[Visitor], folder: Path) -> list[Finding]:
    """Findings for each person's session; reports and logs go to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    return [finding for visitor in visitors for finding in question(schemathesis, visitor, folder)]


def question(schemathesis: str, visitor: Visitor, folder: Path) -> list[Finding]:
    report, log = folder / f"{visitor.role}.json", folder / f"{visitor.role}.log"
    report.unlink(missing_ok=True)
    options = [*OPTIONS, f"--report-json-path={report}", *session(visitor)]
    words = [schemathesis, "--no-color", "run", f"{visitor.base}{SCHEMA}?format=json", *options]
    with log.open("w", encoding="utf-8") as output:
        try:
            subprocess.run(words, cwd=folder, stdout=output, stderr=output, check=False, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise CouldNotJudge(f"schemathesis did not end within {PATIENCE} s; see {log}.") from None
    if not report.exists():
        raise CouldNotJudge(f"schemathesis left no report; see {log}.")
    return findings(json.loads(report.read_text(encoding="utf-8")), f"as {visitor.role}; see {log.name}")


def session(visitor: Visitor) -> list[str]:
    """Headers that make schemathesis this person."""
    ours, token = visitor.cookie("session"), visitor.cookie("csrf")
    cookies = f"Cookie: {ours.name}={ours.value}; {token.name}={token.value}"
    return ["-H", cookies, "-H", f"X-CSRFToken: {token.value}"]


def findings(report: dict[str, Any], example: str) -> list[Finding]:
    """Failures by operation, and whatever kept schemathesis from testing at all."""
    if not report["operations"]["tested"]:
        raise CouldNotJudge("schemathesis tested no operation.")
    failed = [
        Finding(JUDGE, f"{failure['code']} {failure['title']}", shape(operation), example)
        for failure in report["failures"]
        for operation in failure["operations"]
    ]
    return failed + [Finding(JUDGE, "an error", "the run", str(error)[:300]) for error in report["errors"]]
