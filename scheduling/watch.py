"""Watching clusters from a worker: each cluster's port keeps its mirror in step, and wakes the cycle when it matters.

A hint like any other: if no thread lives, the periodic look still finds everything, by lists.
"""

import logging
import threading
import time
from dataclasses import dataclass, field

from django.db import close_old_connections

from scheduling.cluster.port import ClusterError
from scheduling.connect import listen
from scheduling.models import Cluster
from scheduling.wake import wake_cycle

NEW_CLUSTERS = 30.0  # seconds between two looks for clusters that were added
TOGETHER = 0.05  # seconds in which many changes are one

log = logging.getLogger(__name__)


@dataclass
class Watching:
    """All threads of one worker."""

    stop: threading.Event = field(default_factory=threading.Event)
    bells: dict[int, "Bell"] = field(default_factory=dict)

    def run(self) -> None:
        """Start watching every cluster; come back for new ones until told to stop."""
        while not self.stop.is_set():
            try:
                self.watch_all()
            except Exception:
                log.exception("Looking for clusters to watch failed; it is tried again.")
            self.stop.wait(NEW_CLUSTERS)

    def watch_all(self) -> None:
        """A port that watches already goes on; a row that leads elsewhere by now has a new one."""
        close_old_connections()
        for cluster in Cluster.objects.all():
            if cluster.pk not in self.bells:
                bell = self.bells[cluster.pk] = Bell(cluster.pk, self.stop)
                threading.Thread(target=bell.ring, name=f"bell-{cluster.name}", daemon=True).start()
            try:
                listen(cluster, self.bells[cluster.pk].pulled.set)
            except ClusterError as error:
                log.info("Cluster %s cannot be watched: %s", cluster.name, error)


@dataclass
class Bell:
    """Turns many rings into one wake-up."""

    cluster_id: int
    stop: threading.Event
    pulled: threading.Event = field(default_factory=threading.Event)

    def ring(self) -> None:
        while not self.stop.is_set():
            if not self.pulled.wait(timeout=1.0):
                continue
            time.sleep(TOGETHER)
            self.pulled.clear()
            close_old_connections()
            try:
                wake_cycle(self.cluster_id)
            except Exception:
                log.exception("The cycle of cluster %s was not woken; the next tick will look.", self.cluster_id)
