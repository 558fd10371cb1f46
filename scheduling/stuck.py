"""Pods that do not go, as the tables know them: who held what, since when, and what can be done about it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from datetime import timedelta as td
from uuid import UUID

from scheduling.models import Node, Workload
from scheduling.planning.endings import patience
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
    grace: td = td(0)  # that it was given to stop

    @property
    def overdue_at(self) -> datetime | None:
        """When it has had the time that it was given to go by itself; None: nobody has told it to go yet."""
        return self.since + patience(self.grace) if self.since else None

    def overdue(self, now: datetime) -> bool:
        return self.overdue_at is not None and now >= self.overdue_at


def stuck_words(pod: Stuck, *, known: bool) -> str:
    """Why a card is not free though nobody pays for it, and what to do. Names the pod only where it is `known`."""
    name = f"pod {pod.name}" if known else "a pod of another team"
    if not pod.units:
        return f"{name} has ended and holds no card, but a finalizer holds it; the operator can remove it by force"
    if pod.since is None or pod.overdue_at is None:
        return f"held by {name}, which nobody pays for; Berth removes it at its next look"
    told, then = instant(pod.since), instant(pod.overdue_at)
    return f"held by {name}, told to go at {told} and still there; the operator can remove it by force from {then} on"


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
            grace=td(seconds=pod.get("grace", 0)),
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
