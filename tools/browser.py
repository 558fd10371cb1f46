"""Finds the browser that tests drive, and installs it where that is possible: `python -m tools.browser`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from portal.processes import package_folders

NAMES = ("chromium", "chromium-browser", "google-chrome")
PACKAGES = ("chromium", "fonts-dejavu-core", "libatomic1")
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
    if not is_ready() and can_install():
        print("Installing Chromium …", flush=True)
        install(*PACKAGES)
    if is_ready():
        return 0
    print(
        f"The browser tests need Chromium: `apt-get install {' '.join(PACKAGES)}` (or set BERTH_BROWSER to its path).",
        file=sys.stderr,
    )
    return 1


def is_ready() -> bool:
    return bool(find_browser()) and driver_runs()


def driver_runs() -> bool:
    """Whether Playwright's own program starts; on a bare machine it misses a library."""
    programs = [folder / "driver" / "node" for folder in package_folders("playwright")]
    return any(
        subprocess.run([program, "--version"], capture_output=True, check=False).returncode == 0 for program in programs
    )


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
