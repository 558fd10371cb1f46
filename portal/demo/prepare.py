"""`python -m portal.demo.prepare FILE`: makes the demo's tables and fills them. The launcher's child.

The file says where the cluster is, on whose nodes the history plays. Both may still be on their way.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import django
from django.core.management import call_command

from portal.demo.place import Place, read_place

PATIENCE = 45.0  # seconds that the cluster has to come up


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("Usage: python -m portal.demo.prepare FILE", file=sys.stderr)
        return 2
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    call_command("migrate", interactive=False, verbosity=0)
    from portal.demo.seed import seed  # noqa: PLC0415 (models exist only now)
    from tenants import clock  # noqa: PLC0415
    from tenants.billing import house  # noqa: PLC0415

    place = wait_for(Path(arguments[0]))
    seed(clock.now().replace(microsecond=0), house.zone(), place)
    return 0


def wait_for(file: Path) -> Place:
    """Until somebody listens at the place that the file names. Raises TimeoutError."""
    deadline = time.monotonic() + PATIENCE
    while (place := read_place(file)) is None or not place.listens:
        if time.monotonic() > deadline:
            raise TimeoutError(f"The cluster of {file} did not come up within {PATIENCE:g} seconds.")
        time.sleep(0.05)
    return place


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
