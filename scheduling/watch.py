"""Watching clusters from a worker: a thread per cluster and kind that wakes the cycle when something changed there.

A hint like any other: if no thread lives, the periodic look still finds everything.
"""

import logging
import threading
import time
from dataclasses import dataclass, field

from django.db import DatabaseError, close_old_connections, connection

from scheduling.cluster.client import KubernetesPort
from scheduling.cluster.mirror import WATCHED, Watch
from scheduling.cluster.port import ClusterError
from scheduling.connect import kubernetes_port
from scheduling.models import Cluster
from scheduling.wake import wake_cycle

NEW_CLUSTERS = 30.0  # seconds between two looks for clusters that were added
TOGETHER = 0.05  # seconds in which many changes are one
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0

log = logging.getLogger(__name__)


@dataclass
class Watching:
    """All threads of one worker."""

    stop: threading.Event = field(default_factory=threading.Event)
    watched: set[int] = field(default_factory=set)

    def run(self) -> None:
        """Start watching every cluster; come back for new ones until told to stop."""
        while not self.stop.is_set():
            try:
                self._watch_new_ones()
            except Exception:
                log.exception("Looking for clusters to watch failed; it is tried again.")
            self.stop.wait(NEW_CLUSTERS)

    def _watch_new_ones(self) -> None:
        close_old_connections()
        for cluster in Cluster.objects.exclude(pk__in=self.watched):
            self.watched.add(cluster.pk)
            bell = Bell(cluster.pk, self.stop)
            for thread in (bell.ring, *(Ear(cluster.name, index, bell).listen for index in range(len(WATCHED)))):
                threading.Thread(target=thread, name=f"watch-{cluster.name}", daemon=True).start()


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


@dataclass
class Ear:
    """Listens to one kind of one cluster, and starts again, with growing pauses, when it hears nothing more.

    Each time it goes where the cluster's row leads by then; the stream of a port that the row has left is closed.
    """

    name: str
    index: int
    bell: Bell

    def listen(self) -> None:
        pause = FIRST_PAUSE
        while not self.bell.stop.is_set():
            if self._hear():
                pause = FIRST_PAUSE
            self.bell.stop.wait(pause)
            pause = min(LONGEST_PAUSE, pause * 2)

    def _hear(self) -> bool:
        """Listen until the stream ends. Whether it was worth it: who hangs up at once must not be run down."""
        began, rings = time.monotonic(), 0
        try:
            for _ in Watch(port_of(self.bell.cluster_id), WATCHED[self.index]).rings():
                rings += 1
                self.bell.pulled.set()
                if self.bell.stop.is_set():
                    break
        except ClusterError as error:
            log.info("Watching cluster %s was interrupted: %s", self.name, error)
        except (Cluster.DoesNotExist, DatabaseError) as fault:
            log.info("Where cluster %s is cannot be read: %s", self.name, fault)
        return rings > 1 or time.monotonic() - began > LONGEST_PAUSE


def port_of(cluster_id: int) -> KubernetesPort:
    """Where the cluster's row leads now. Who listens for minutes holds no connection to the database meanwhile."""
    try:
        return kubernetes_port(Cluster.objects.get(pk=cluster_id))
    finally:
        connection.close()
