"""Taking a pod out of the cluster whatever holds it: no grace, and no finalizer."""

from typing import Any

from scheduling.cluster import names
from scheduling.cluster.api import CONFLICT, MERGE, Api, document_in, path_of
from scheduling.cluster.port import ClusterError, Ref

GONE = {404, CONFLICT}  # it is not there, or a namesake is


def remove_by_force(api: Api, ref: Ref) -> bool:
    """True when the pod of this uid was there and ours. Raises a ClusterError."""
    if ref.kind != "Pod" or not ref.uid:
        raise ClusterError("Only a pod that is named by its uid is removed by force.", retry=False)
    path = path_of("Pod", ref.namespace, ref.name)
    try:
        there = document_in(api.ask("GET", path))["metadata"]
        if there.get("uid") != ref.uid or (there.get("labels") or {}).get(names.MANAGED_BY) != names.MANAGER:
            return False
        _delete(api, path, there)
    except ClusterError as error:
        if error.status in GONE:
            return False
        raise
    return True


def _delete(api: Api, path: str, there: dict[str, Any]) -> None:
    """First without a grace, then without what holds it: the uid in both, so that a namesake stays."""
    api.ask("DELETE", path, body={"gracePeriodSeconds": 0, "preconditions": {"uid": there["uid"]}})
    if there.get("finalizers"):
        api.ask("PATCH", path, body={"metadata": {"uid": there["uid"], "finalizers": None}}, content=MERGE)
