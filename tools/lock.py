"""Makes the locks anew from the .in files: `make lock`. A lock holds names, versions and hashes, and no address."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ("requirements", "requirements-test", "requirements-dev", "requirements-judges")
OPTIONS = [
    "--universal",
    "--python-version=3.11",
    "--generate-hashes",
    "--no-header",
    "--no-emit-index-url",
    "--no-annotate",
]
ADDRESS = re.compile(r"://|--(extra-)?index|--find-links")


def main() -> int:
    for lock in LOCKS:
        target = ROOT / f"{lock}.txt"
        words: list[str | Path] = [
            ROOT / ".venv/bin/uv",
            "pip",
            "compile",
            "--quiet",
            *OPTIONS,
            f"{lock}.in",
            "--output-file",
            target.name,
        ]
        subprocess.run(words, cwd=ROOT, check=True)
        if found := ADDRESS.search(target.read_text(encoding="utf-8")):
            print(f"{target.name} holds an address ({found.group()}); a lock must not.", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
