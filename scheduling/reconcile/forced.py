"""Carrying out what the operator ordered: pods that do not go are removed by force, each by its uid."""

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial

from scheduling.cluster.port import ClusterError, ClusterPort, Observation, Ref
from scheduling.models import Cluster, Removal


def removals(
    cluster: Cluster, port: ClusterPort, seen: Observation, now: datetime
) -> Iterator[tuple[str, Callable[[], bool]]]:
    """Orders that stand, for a complete look; one whose pod is gone is done."""
    there = {pod.uid for pod in seen.pods}
    for row in Removal.objects.filter(cluster=cluster, done_at=None).select_related("workload"):
        if row.pod_uid in there:
            yield f"remove pod {row.pod} of {row.workload} by force", partial(_force, row, port)
        else:
            Removal.objects.filter(pk=row.pk, done_at=None).update(done_at=now, trouble="")


def _force(row: Removal, port: ClusterPort) -> bool:
    try:
        return port.remove_by_force(Ref("Pod", row.namespace, row.pod, row.pod_uid))
    except ClusterError as error:
        Removal.objects.filter(pk=row.pk).update(trouble=str(error)[:500])
        raise
