"""Celery entry points: bells, not bell-ringers.

A message carries at most a cluster's number. What a newer version sends beside it is passed over: the rows are the
truth, and a worker that is a version behind still does what it can.
"""

from datetime import UTC, datetime

from celery import shared_task
from django.conf import settings

from scheduling.handover import hand_over
from scheduling.models import Cluster
from scheduling.reconcile.cycle import look_after
from scheduling.telemetry.rollups import forget
from scheduling.telemetry.sampler import clusters_to_sample, sample_cluster
from scheduling.turns import our_turn
from scheduling.wake import clusters_to_look_at, send, send_sample
from tenants import clock


@shared_task(name="scheduling.tick")
def tick(*_newer: object, **_facts: object) -> None:
    """The periodic look is the truth; wake-ups are hints. Where nothing changed and nothing is due, nobody looks."""
    if not our_turn("scheduling.tick", settings.BERTH_TICK_SECONDS):
        return
    for pk in clusters_to_look_at(clock.now(), datetime.now(UTC)):
        send(pk)


@shared_task(name="scheduling.cycle")
def cycle(cluster_id: int, *_newer: object, **_facts: object) -> None:
    look_after(cluster_id)


@shared_task(name="scheduling.sample")
def sample(*_newer: object, **_facts: object) -> None:
    """One task for each cluster on which something runs: one that hangs holds up none of the others."""
    if not our_turn("scheduling.sample", settings.BERTH_SAMPLE_SECONDS):
        return
    for pk in clusters_to_sample():
        send_sample(pk)


@shared_task(name="scheduling.sample_cluster")
def sample_one(cluster_id: int, *_newer: object, **_facts: object) -> None:
    if cluster := Cluster.objects.filter(pk=cluster_id).first():
        sample_cluster(cluster, clock.now())


@shared_task(name="scheduling.rate")
def rate(*_newer: object, **_facts: object) -> None:
    """Hand finished hours over to the ledger, and let go of old samples."""
    if not our_turn("scheduling.rate", settings.BERTH_RATE_SECONDS):
        return
    hand_over(clock.now())
    forget(clock.now())
