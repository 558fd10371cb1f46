#!/usr/bin/env python3
"""Finds the browser that tests drive; `python3 tools/browser.py` installs it where that is possible."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",  # root, as in containers
    "--disable-quic",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
]


def find_browser() -> str | None:
    """The browser's path: BERTH_BROWSER, else Chromium from PATH; None where there is none."""
    wanted = os.environ.get("BERTH_BROWSER", "")
    return shutil.which(wanted) if wanted else next(filter(None, map(shutil.which, NAMES)), None)


def main() -> int:
    if not find_browser() and can_install():
        print("Installing Chromium …", flush=True)
        install("chromium")
    if find_browser():
        return 0
    print(
        "The browser tests need Chromium: `apt-get install chromium` (or set BERTH_BROWSER to its path).",
        file=sys.stderr,
    )
    return 1


def can_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(*packages: str) -> bool:
    """Install Debian packages; answers whether it worked. Asks nothing."""
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    steps = (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages])
    return all(
        subprocess.run(step, env=quiet, stdout=subprocess.DEVNULL, check=False).returncode == 0 for step in steps
    )


if __name__ == "__main__":
    sys.exit(main())
