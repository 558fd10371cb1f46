"""One cycle per cluster at a time: a lease on the cluster's row, held by token, on the wall clock.

Whoever finds the lease taken leaves its wish behind (`wanted_at`), and the holder looks once more before it rests: a
wake-up that arrives in mid-cycle is never lost. While its process lives a holder prolongs the lease, however slow the
cluster is; one that was killed or paused loses it after HOLDS, and with it the right to write.
"""

import logging
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from datetime import timedelta as td

from django.db import DatabaseError, connection
from django.db.models import Q

from scheduling.models import Cluster

HOLDS = td(seconds=20)
BEAT = HOLDS / 4

log = logging.getLogger(__name__)


class LeaseLost(Exception):
    """Somebody else looks after the cluster by now: what was seen is old, and nothing may be made of it."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to act on one cluster, as long as `holds()` says so."""

    cluster_id: int
    token: str

    def holds(self) -> bool:
        """Whether the lease is still ours; asked again before each action, so that a paused worker does no harm."""
        row = Cluster.objects.filter(pk=self.cluster_id, lease_token=self.token, lease_until__gt=_wall())
        return row.exists()

    def prolong(self) -> bool:
        row = Cluster.objects.filter(pk=self.cluster_id, lease_token=self.token, lease_until__gt=_wall())
        return bool(row.update(lease_until=_wall() + HOLDS))


@contextmanager
def lease(cluster_id: int) -> Iterator[Lease | None]:
    """The lease, or None when somebody else holds it."""
    token = uuid.uuid4().hex
    free = Q(lease_until=None) | Q(lease_until__lte=_wall())
    taken = Cluster.objects.filter(free, pk=cluster_id).update(lease_token=token, lease_until=_wall() + HOLDS)
    if not taken:
        yield None
        return
    ours = Lease(cluster_id, token)
    try:
        with _kept(ours):
            yield ours
    finally:
        Cluster.objects.filter(pk=cluster_id, lease_token=token).update(lease_token="", lease_until=None)


def wanted_since(cluster_id: int, started: datetime) -> bool:
    """Whether somebody asked for another look after `started` (wall clock)."""
    return Cluster.objects.filter(pk=cluster_id, wanted_at__gt=started).exists()


@contextmanager
def _kept(ours: Lease) -> Iterator[None]:
    """A heartbeat beside the work, in a thread that ends with it."""
    over = threading.Event()
    heart = threading.Thread(target=_beat, args=(ours, over), name="lease", daemon=True)
    heart.start()
    try:
        yield
    finally:
        over.set()
        heart.join()


def _beat(ours: Lease, over: threading.Event) -> None:
    while not over.wait(BEAT.total_seconds()):
        try:
            ours.prolong()
        except DatabaseError as error:
            log.warning("The lease on cluster %d was not prolonged: %s", ours.cluster_id, error)
        finally:
            connection.close()  # this thread's own


def _wall() -> datetime:
    return datetime.now(UTC)
