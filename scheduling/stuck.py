"""Pods that do not go, as the tables know them: who held what, since when, and what can be done about it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from scheduling.models import Node, Workload
from scheduling.planning.endings import STOPPING_PATIENCE
from scheduling.planning.wording import instant
from tenants.access import Standing

RISK = (
    "On a node that does not answer its container may still run, and write to its storage, after another has taken its "
    "card; a finalizer's work stays undone."
)


@dataclass(frozen=True, slots=True)
class Stuck:
    """One pod that holds cards though nobody pays for it any more."""

    node: str
    namespace: str
    name: str
    uid: str
    workload: UUID
    since: datetime | None  # since when it is to go; None: nobody has told it yet
    units: Mapping[str, int]
    cpu_milli: int
    memory_mib: int

    def overdue(self, now: datetime) -> bool:
        """Whether it had the time that a pod needs to go by itself."""
        return self.since is not None and now >= self.since + STOPPING_PATIENCE


def stuck_words(pod: Stuck, *, known: bool) -> str:
    """Why a card is not free though nobody pays for it, and what to do. Names the pod only where it is `known`."""
    name = f"pod {pod.name}" if known else "a pod of another team"
    if not pod.units:
        return f"{name} has ended and holds no card, but a finalizer holds it; the operator can remove it by force"
    if pod.since is None:
        return f"held by {name}, which nobody pays for; Berth removes it at its next look"
    return f"held by {name}, told to go at {instant(pod.since)} and still there; the operator can remove it by force"


def may_know(pod: Stuck, stand: Standing, behind: Mapping[UUID, Workload]) -> bool:
    """A pod's name tells the workload's, which is its team's business and the operator's."""
    workload = behind.get(pod.workload)
    return stand.is_operator or (workload is not None and stand.may_read(workload.team_id))


def stuck_on(row: Node) -> list[Stuck]:
    """The pods that do not go on one node."""
    return [
        Stuck(
            node=row.name,
            namespace=pod["namespace"],
            name=pod["name"],
            uid=pod["uid"],
            workload=UUID(pod["workload"]),
            since=datetime.fromisoformat(pod["since"]) if pod["since"] else None,
            units=pod["units"],
            cpu_milli=pod["cpu_milli"],
            memory_mib=pod["memory_mib"],
        )
        for pod in row.lingering or ()
    ]


def stuck_of(workload: Workload) -> list[Stuck]:
    """The pods of one workload that do not go. One query."""
    rows = Node.objects.filter(cluster=workload.cluster_id).exclude(lingering=[]).exclude(lingering={})
    return [pod for row in rows for pod in stuck_on(row) if pod.workload == workload.pk]


def workloads_behind(rows: Iterable[Node]) -> Mapping[UUID, Workload]:
    """Whose the pods are that do not go. One query, and none where there are none."""
    keys = {pod.workload for row in rows for pod in stuck_on(row)}
    if not keys:
        return {}
    return Workload.objects.select_related("team", "owner").in_bulk(list(keys))
