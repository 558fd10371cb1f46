"""Waking a cluster's cycle after commit, by task name. A hint: losing it costs seconds, never a request.

And who is to be looked at without a hint: the tick asks `clusters_to_look_at`, so that a fleet in which nothing
happens costs no task at all.
"""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from datetime import timedelta as td

from celery import current_app
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError

from scheduling.models import Cluster

log = logging.getLogger(__name__)


def wake_cycle(cluster_id: int) -> None:
    """Ask for a look at the cluster once the present transaction is committed."""
    Cluster.objects.filter(pk=cluster_id).update(wanted_at=datetime.now(UTC))
    transaction.on_commit(lambda: send(cluster_id))


def wake_all() -> None:
    """Ask for a look at every cluster, as when a quota has changed."""
    for pk in Cluster.objects.values_list("pk", flat=True):
        wake_cycle(pk)


def clusters_to_look_at(now: datetime, wall: datetime) -> Iterator[int]:
    """Clusters that somebody wants looked at, that time alone asks for, or that were not looked at for too long.

    `now` is the tables' time, in which things are due; `wall` the wall clock's, in which looks are made and wished.
    """
    facts = ("pk", "due_at", "wanted_at", "looked_at", "failed_looks", "rest_until")
    for cluster in Cluster.objects.only(*facts):
        if is_due(cluster, now, wall):
            yield cluster.pk


def is_due(cluster: Cluster, now: datetime, wall: datetime) -> bool:
    looked_at = cluster.looked_at
    if cluster.rest_until is not None and cluster.rest_until > wall:
        return False
    if looked_at is None or (cluster.wanted_at is not None and cluster.wanted_at > looked_at):
        return True
    if cluster.due_at is not None and cluster.due_at <= now:
        return True
    return not looked_at <= wall < looked_at + patience(cluster.failed_looks)  # a clock that was set back counts too


def patience(failed_looks: int) -> td:
    """How long after a look the next one is made in any case: soon after trouble, then less and less often."""
    longest = td(seconds=settings.BERTH_LOOK_SECONDS)
    if not failed_looks:
        return longest
    return min(longest, td(seconds=settings.BERTH_TICK_SECONDS) * (1 << min(failed_looks - 1, 16)))


def send(cluster_id: int) -> None:
    _ring("scheduling.cycle", cluster_id)


def send_sample(cluster_id: int) -> None:
    """Ask for one sampling of the cluster; a bell that nobody heard in time is dropped, for the next one rings soon."""
    _ring("scheduling.sample_cluster", cluster_id, expires=max(3 * settings.BERTH_SAMPLE_SECONDS, 5.0))


def _ring(task: str, cluster_id: int, **options: float) -> None:
    try:
        current_app.send_task(task, args=[cluster_id], retry=False, ignore_result=True, **options)
    except OperationalError as error:
        log.warning("%s of cluster %s was not asked for; the next tick will: %s", task, cluster_id, error)
