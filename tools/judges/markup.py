"""The Nu Html Checker reads every page, our styles and our pictures."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tools.judges.crawl import Page
from tools.judges.findings import CouldNotJudge, Finding, shape

JUDGE = "vnu"
OPTIONS = ("--format", "json", "--stdout", "--exit-zero-always", "--also-check-css", "--also-check-svg")
PATIENCE = 180  # seconds
QUOTED = re.compile(r"“[^”]*\d[^”]*”")  # a quotation with a number in it differs from row to row


def judge(vnu: Sequence[str], pages: Sequence[Page], files: Sequence[Path], folder: Path, root: Path) -> list[Finding]:
    """Findings of the pages, which are written into `folder`, and of the files below `root`."""
    places = write_pages(pages, folder) | {file: str(file.relative_to(root)) for file in files}
    if not places:
        return []
    words = [*vnu, *OPTIONS, *map(str, places)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE)
    try:
        messages = json.loads(done.stdout)["messages"]
    except (ValueError, KeyError):
        raise CouldNotJudge(f"vnu ended with {done.returncode} and no answer: {done.stderr[-300:]}") from None
    return [finding(message, places) for message in messages]


def write_pages(pages: Sequence[Page], folder: Path) -> dict[Path, str]:
    """Write each page to a file of its own; answers the files with the shapes of their paths."""
    places: dict[Path, str] = {}
    for number, page in enumerate(pages):
        name = re.sub(r"[^a-z0-9]+", "-", page.path.lower()).strip("-")[:60] or "home"
        file = folder / page.role / f"{number:03}-{name}.html"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(page.body)
        places[file] = shape(page.path)
    return places


def finding(message: dict[str, Any], places: dict[Path, str]) -> Finding:
    file = Path(unquote(urlsplit(message.get("url", "")).path))
    line = f"line {message.get('lastLine', '?')}: {' '.join(message.get('extract', '').split())}"
    rule = QUOTED.sub("“…”", message["message"])
    return Finding(JUDGE, rule, places.get(file, file.name), f"{file.name}, {line}")
