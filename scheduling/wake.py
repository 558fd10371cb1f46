"""Waking a cluster's cycle after commit, by task name. A hint: losing it costs seconds, never a request."""

import logging
from datetime import UTC, datetime

from celery import current_app
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


def send(cluster_id: int) -> None:
    try:
        current_app.send_task("scheduling.cycle", args=[cluster_id], retry=False, ignore_result=True)
    except OperationalError as error:
        log.warning("The cycle of cluster %s was not woken; the next tick will look: %s", cluster_id, error)
