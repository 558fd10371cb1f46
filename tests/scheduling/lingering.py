"""A pod that does not go, written into its node's row as the cycle writes it."""

from __future__ import annotations

from datetime import datetime

from scheduling.models import Node, Workload


def linger(row: Workload, since: datetime | None, *, node: str = "train-1", units: int = 1, grace: int = 30) -> Node:
    """One pod of the workload was told to go at that time (None: nobody told it), and is still there."""
    found = Node.objects.get(name=node)
    pod = {
        "namespace": row.team.namespace,
        "name": f"{row.name}-0",
        "uid": f"uid-of-{row.name}",
        "workload": str(row.pk),
        "since": since.isoformat() if since else None,
        "grace": grace,
        "units": {"nvidia.com/gpu": units},
        "cpu_milli": 4000,
        "memory_mib": 16384,
    }
    found.lingering = [*found.lingering, pod]
    found.save()
    return found
