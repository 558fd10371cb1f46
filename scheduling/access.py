"""Who may see and steer workloads; fetching and authorising in one step."""

from typing import Any

from django.db.models import QuerySet
from django.http import Http404

from scheduling.models import Workload
from tenants.access import Standing, as_uuid
from tenants.errors import NotAllowed
from tenants.models import Role


def workloads_for(stand: Standing) -> QuerySet[Workload]:
    """The workloads that the person may know of: those of the own teams; all for the operator."""
    found = Workload.objects.select_related("team", "owner", "flavor", "cluster")
    return found if stand.is_operator else found.filter(team__in=stand.readable())


def access_workload(stand: Standing, pk: Any, *, to: str = "read") -> Workload:
    """The workload, if the person may `read` it, `steer` it (owner, lead, operator), read `logs` (owner, lead) or
    `force` its pods out (operator)."""
    found = workloads_for(stand).filter(pk=as_uuid(pk)).first()
    if found is None:
        raise Http404("There is no such workload.")
    if to == "force" and not stand.is_operator:
        raise NotAllowed("Only the operator removes a pod by force.")
    if to in ("steer", "logs") and not _is_in_charge(stand, found, to):
        raise NotAllowed(f"Only {found.owner}, a lead of {found.team.name} or the operator may do this.")
    return found


def _is_in_charge(stand: Standing, workload: Workload, to: str) -> bool:
    if workload.owner_id == stand.user.pk and stand.roles.get(workload.team_id):
        return True
    return stand.has(Role.LEAD, workload.team_id) or (stand.is_operator and to == "steer")
