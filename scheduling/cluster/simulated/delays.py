"""How long things take in the simulated cluster. All in simulated seconds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta as td


@dataclass(frozen=True, slots=True)
class Delays:
    node_provisioning: float = 180  # from the wish for a machine to its Ready node
    gpu_advertised: float = 30  # from Ready to the first GPU in allocatable
    node_removal: float = 30  # from cordoning a leaving node to its end
    image_pull: float = 25  # the first time on a node
    image_present: float = 3  # every later time
    container_start: float = 5
    termination: float = 5  # how long a program takes to heed SIGTERM
    recreate: float = 10  # before a StatefulSet replaces a failed pod, or a Job its first one
    mig_notice: float = 1  # until the MIG manager has seen the label
    mig_cut: float = 40
    node_grace: float = 40  # from the last sign of a vanished node until its pods are collected

    def of(self, name: str) -> td:
        return td(seconds=float(getattr(self, name)))
