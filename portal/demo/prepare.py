"""`python -m portal.demo.prepare http://127.0.0.1:PORT`: makes the demo's tables and fills them. The launcher's child.

The address is that of the simulated cluster, whose nodes the history plays on. It may still be starting.
"""

from __future__ import annotations

import os
import sys
import time

import django
from django.core.management import call_command

from portal.demo.launcher import listens

PATIENCE = 20.0  # seconds that the cluster has to come up


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("Usage: python -m portal.demo.prepare URL", file=sys.stderr)
        return 2
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    call_command("migrate", interactive=False, verbosity=0)
    from portal.demo.seed import seed  # noqa: PLC0415 (models exist only now)
    from tenants import clock  # noqa: PLC0415
    from tenants.billing import house  # noqa: PLC0415

    wait_for(arguments[0])
    seed(clock.now().replace(microsecond=0), house.zone(), arguments[0])
    return 0


def wait_for(server: str) -> None:
    """Until somebody listens at the address. Raises TimeoutError."""
    deadline = time.monotonic() + PATIENCE
    while not listens(int(server.rpartition(":")[2])):
        if time.monotonic() > deadline:
            raise TimeoutError(f"The cluster at {server} did not come up within {PATIENCE:g} seconds.")
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
