"""Checks the documents: every link within the project leads to a file, and to a heading where it names one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+\s+(.*)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def main() -> int:
    complaints = [line for document in documents() for line in broken_links(document)]
    print("\n".join(complaints) or f"{len(documents())} documents, every link leads somewhere.")
    return 1 if complaints else 0


def documents() -> list[Path]:
    """The Markdown files that belong to the project."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in listed.split() if (ROOT / name).exists()]


def broken_links(document: Path) -> list[str]:
    prose = FENCE.sub("", document.read_text(encoding="utf-8"))
    targets = [first or second for first, second in LINK.findall(prose)]
    return [
        f"{document.relative_to(ROOT)}: nothing at {target}"
        for target in targets
        if "://" not in target and not target.startswith("mailto:") and not leads_somewhere(document, target)
    ]


def leads_somewhere(document: Path, target: str) -> bool:
    name, _, anchor = target.partition("#")
    file = document.parent / name if name else document
    if not file.exists():
        return False
    return not anchor or file.suffix != ".md" or anchor in anchors(file)


def anchors(file: Path) -> set[str]:
    """The anchors of a file's headings, as Git hosts make them: lower case, dashes, no punctuation."""
    headings = HEADING.findall(FENCE.sub("", file.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


if __name__ == "__main__":
    sys.exit(main())
