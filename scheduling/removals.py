"""Removing a pod by force: the operator's last word on one that does not go.

The order is a row, written with the request; the cycle carries it out. The row names the pod by its uid, so that a
namesake made since is safe, and stays as the trace of who ordered what.
"""

import logging
from datetime import datetime

from django.db import transaction

from scheduling.announce import announce_on_commit, fleet_topic
from scheduling.changes import Step, move
from scheduling.models import Removal, Workload
from scheduling.planning.facts import Phase, Reason
from scheduling.planning.wording import instant
from scheduling.stuck import RISK, Stuck, stuck_of
from scheduling.wake import wake_cycle
from tenants.errors import Refused
from tenants.models import User

log = logging.getLogger(__name__)


@transaction.atomic
def remove_by_force(workload: Workload, *, by: User, now: datetime, sure: bool) -> list[Removal]:
    """Order the removal of every pod of the workload that does not go. Twice is the same as once."""
    row = Workload.objects.select_for_update().get(pk=workload.pk)
    pods = overdue(row, now)
    if not sure:
        raise Refused(f"Say that you are sure: {RISK}", field="sure")
    orders = [_order(row, pod, by=by, now=now) for pod in pods]
    fresh = [order for order, is_new in orders if is_new]
    if fresh:
        names = ", ".join(order.pod for order in fresh)
        text = f"{by} has had pod {names} removed by force. {RISK}"
        move(row, Step(Phase(row.phase), Reason(row.phase_reason), text, now), by=by)
        log.warning("pod %s of workload %s removed by force by %s at %s", names, row.pk, by.username, now)
    announce_on_commit(fleet_topic(), "fleet", workload=str(row.pk))
    wake_cycle(row.cluster_id)
    workload.refresh_from_db()
    return [order for order, _ in orders]


def overdue(workload: Workload, now: datetime) -> list[Stuck]:
    """Its pods that had their time; refuses with what there is instead."""
    pods = stuck_of(workload)
    found = [pod for pod in pods if pod.overdue(now)]
    if found:
        return found
    for pod in pods:
        if pod.since is not None and pod.overdue_at is not None:
            text = f"Pod {pod.name} was told to go at {instant(pod.since)} and may still do so by itself"
            raise Refused(f"{text}; it can be removed by force from {instant(pod.overdue_at)} on.")
    raise Refused(f"{workload.name} has no pod that does not go, so there is nothing to remove by force.")


def _order(workload: Workload, pod: Stuck, *, by: User, now: datetime) -> tuple[Removal, bool]:
    return Removal.objects.get_or_create(
        cluster_id=workload.cluster_id,
        pod_uid=pod.uid,
        defaults={
            "workload": workload,
            "node": pod.node,
            "namespace": pod.namespace,
            "pod": pod.name,
            "asked_at": now,
            "asked_by": by,
        },
    )
