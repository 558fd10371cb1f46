"""Celery entry points: bells, not bell-ringers."""

from celery import shared_task

from scheduling.handover import hand_over
from scheduling.models import Cluster
from scheduling.reconcile.cycle import look_after
from scheduling.telemetry.rollups import forget
from scheduling.telemetry.sampler import sample_cluster
from scheduling.wake import send
from tenants import clock


@shared_task(name="scheduling.tick")
def tick() -> None:
    """The periodic look is the truth; wake-ups are hints."""
    for pk in Cluster.objects.values_list("pk", flat=True):
        send(pk)


@shared_task(name="scheduling.cycle")
def cycle(cluster_id: int) -> None:
    look_after(cluster_id)


@shared_task(name="scheduling.sample")
def sample() -> None:
    for cluster in Cluster.objects.all():
        sample_cluster(cluster, clock.now())


@shared_task(name="scheduling.rate")
def rate() -> None:
    """Hand finished hours over to the ledger, and let go of old samples."""
    hand_over(clock.now())
    forget(clock.now())
