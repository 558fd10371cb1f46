"""One cycle per cluster at a time: a lease on the cluster's row, held by token, on the wall clock.

Whoever finds the lease taken leaves its wish behind (`wanted_at`), and the holder looks once more before it rests: a
wake-up that arrives in mid-cycle is never lost. While its process lives a holder prolongs the lease, however slow the
cluster is; one that was killed or paused loses it after HOLDS, and with it the right to write.

A look counts as broken from its begin until it has come to an end, so that one which kills its worker counts too.
Broken looks are followed by rests that double: a cluster that always breaks its look neither spins nor holds up others.
"""

import logging
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from datetime import timedelta as td
from typing import Any

from django.db import DatabaseError, connection
from django.db.models import Q

from scheduling.cluster.port import Picture
from scheduling.models import Cluster

HOLDS = td(seconds=20)
BEAT = HOLDS / 4
FIRST_REST, LONGEST_REST = td(seconds=1), td(minutes=10)

log = logging.getLogger(__name__)


class LeaseLost(Exception):
    """Somebody else looks after the cluster by now: what was seen is old, and nothing may be made of it."""


@dataclass(slots=True)
class Lease:
    """The right to act on one cluster, as long as `holds()` says so."""

    cluster_id: int
    token: str
    at_least: Picture | None = None  # what the last holder had seen and written: ours must not show less
    picture: Picture | None = None  # what we leave to the next; None: we saw nothing whole, so theirs stays
    _until: float = field(default_factory=lambda: time.monotonic() + HOLDS.total_seconds())

    def holds(self) -> bool:
        """Whether the lease is still ours; asked again before each action, so that a paused worker does no harm."""
        row = Cluster.objects.filter(pk=self.cluster_id, lease_token=self.token, lease_until__gt=_wall())
        return row.exists()

    def prolong(self) -> bool:
        asked = time.monotonic()
        row = Cluster.objects.filter(pk=self.cluster_id, lease_token=self.token, lease_until__gt=_wall())
        if not row.update(lease_until=_wall() + HOLDS):
            self._until = 0.0
            return False
        self._until = asked + HOLDS.total_seconds()
        return True

    def check(self) -> None:
        """Raises LeaseLost when the lease cannot be ours any more. Asks nobody, so it may stand before every call to
        the cluster: a worker that was asleep in the middle of an action does not finish it."""
        if time.monotonic() >= self._until:
            raise LeaseLost


@contextmanager
def lease(cluster_id: int) -> Iterator[Lease | None]:
    """The lease, or None when somebody else holds it or the cluster rests after broken looks."""
    token = uuid.uuid4().hex
    ours = _take(cluster_id, token)
    if ours is None:
        yield None
        return
    ended: dict[str, Any] = {}
    try:
        with _kept(ours):
            yield ours
        ended = {"broken_looks": 0, "rest_until": None}
    finally:
        mine = Cluster.objects.filter(pk=cluster_id, lease_token=token)
        ended |= {"picture": asdict(ours.picture)} if ours.picture else {}
        mine.update(lease_token="", lease_until=None, **ended)


def rest(broken_looks: int) -> td:
    """How long a cluster is left alone after so many broken looks in a row. One may be an accident."""
    return td(0) if broken_looks < 2 else min(LONGEST_REST, FIRST_REST * (1 << min(broken_looks - 1, 20)))


def wanted_since(cluster_id: int, started: datetime) -> bool:
    """Whether somebody asked for another look after `started` (wall clock)."""
    return Cluster.objects.filter(pk=cluster_id, wanted_at__gt=started).exists()


def _take(cluster_id: int, token: str) -> Lease | None:
    """Take the lease if nobody holds it. The look is written down as broken until it ends."""
    wall = _wall()
    before = Cluster.objects.filter(pk=cluster_id).values("broken_looks", "lease_token", "picture").first()
    if before is None:
        return None
    broken = before["broken_looks"]
    free = Q(lease_until=None) | Q(lease_until__lte=wall)
    rested = Q(rest_until=None) | Q(rest_until__lte=wall)
    row = Cluster.objects.filter(free, rested, pk=cluster_id, broken_looks=broken)
    pause = rest(broken + 1)
    facts = {"broken_looks": broken + 1, "rest_until": wall + pause if pause else None}
    if not row.update(lease_token=token, lease_until=wall + HOLDS, **facts):
        return None
    return Lease(cluster_id, token, _left_behind(before["picture"], torn=bool(before["lease_token"])))


def _left_behind(picture: dict[str, Any], *, torn: bool) -> Picture | None:
    """Who had the lease and did not give it back may have written more than it could say."""
    if not picture and not torn:
        return None
    return Picture(picture.get("by", ""), picture.get("identity", ""), picture.get("versions", {}), torn=torn)


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
