"""The operator's hand on a cluster: pausing its cycle, and letting it go on."""

import logging
from datetime import datetime

from django.db import transaction
from django.http import Http404

from scheduling.announce import announce_on_commit, fleet_topic
from scheduling.models import Cluster
from scheduling.wake import wake_cycle
from tenants.access import Standing
from tenants.errors import NotAllowed
from tenants.models import User

PAUSED = "The cluster is paused; nothing is done until the operator resumes it."  # why a look did nothing

log = logging.getLogger(__name__)


def access_cluster(stand: Standing, pk: int, *, to: str = "read") -> Cluster:
    """The cluster, which everybody may `read` and the operator may `steer`."""
    found = Cluster.objects.filter(pk=pk).first()
    if found is None:
        raise Http404("There is no such cluster.")
    if to == "steer" and not stand.is_operator:
        raise NotAllowed("Only the operator pauses a cluster.")
    return found


@transaction.atomic
def set_paused(cluster: Cluster, *, paused: bool, by: User, now: datetime) -> None:
    """A paused cluster is looked at, but nothing is placed, stopped, cut or resized there. What runs goes on."""
    changed = Cluster.objects.filter(pk=cluster.pk, paused=not paused).update(paused=paused)
    if not changed:
        return
    log.info("cluster %s %s by %s at %s", cluster, "paused" if paused else "resumed", by.username, now)
    announce_on_commit(fleet_topic(), "fleet", cluster=cluster.name)
    wake_cycle(cluster.pk)
