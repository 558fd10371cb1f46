"""`python -m tests.integration.checker`: a child that looks at tables and cluster whenever a line comes in, and answers
with what does not hold: the invariants that follow every fault, and the findings of `manage.py consistency`."""

from __future__ import annotations

import json
import os
import sys

import django


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    for _ in sys.stdin:
        print(json.dumps(wrong()), flush=True)


def wrong() -> list[str]:
    from django.db import close_old_connections

    from portal.demo import estate
    from portal.management.commands.consistency import PATIENCE
    from scheduling.cluster.port import ClusterError
    from scheduling.connect import port_for
    from scheduling.consistency import Look, run_checks
    from scheduling.models import Cluster
    from tenants import clock
    from tests.faults.invariants import broken

    close_old_connections()
    try:
        with port_for(Cluster.objects.get(name=estate.CLUSTER)) as port:
            seen = port.observe(clock.now())
    except ClusterError as error:
        return [f"The cluster could not be seen: {error}"]
    look = Look(now=clock.now(), patience=PATIENCE * max(1.0, clock.rate()))
    findings = [found for found in run_checks(look) if not found.mere_note]
    return [*broken(seen), *(f"{found.check} {found.where}: {found.text}" for found in findings)]


if __name__ == "__main__":
    main()
