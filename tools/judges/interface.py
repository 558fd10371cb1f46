"""Schemathesis asks the API everything that its own description allows, and more."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.judges.crawl import Visitor
from tools.judges.findings import CouldNotJudge, Finding, shape

JUDGE = "schemathesis"
SCHEMA = "/api/schema/"
CONFIG = Path(__file__).resolve().parents[2] / "tests" / "judges" / "schemathesis.toml"
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
    schema = folder / f"{visitor.role}.schema.json"
    schema.write_bytes(visitor.get(SCHEMA).body)
    options = [*OPTIONS, f"--url={visitor.base}", f"--report-json-path={report}"]
    words = [schemathesis, "--no-color", f"--config-file={CONFIG}", "run", str(schema), *options]
    environment = {**os.environ, **session(visitor)}
    with log.open("w", encoding="utf-8") as output:
        try:
            subprocess.run(
                words, cwd=folder, env=environment, stdout=output, stderr=output, check=False, timeout=PATIENCE
            )
        except subprocess.TimeoutExpired:
            raise CouldNotJudge(f"schemathesis did not end within {PATIENCE} s; see {log}.") from None
    if not report.exists():
        raise CouldNotJudge(f"schemathesis left no report; see {log}.")
    return findings(json.loads(report.read_text(encoding="utf-8")), f"as {visitor.role}; see {log.name}")


def session(visitor: Visitor) -> dict[str, str]:
    """What makes schemathesis this person; the configuration reads it."""
    return {
        "BERTH_SESSION": visitor.cookie("session").value or "",
        "BERTH_CSRF": visitor.cookie("csrf").value or "",
    }


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
