"""When time alone could change anything: the next instant at which the same picture would mean something else.

Whatever compares a fact with `now`, in this room or in the cycle's following of phases, has its instant here. An
instant too many costs one look; one that is missing would be found late, by the look that is made in any case.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from datetime import timedelta as td
from uuid import UUID

from scheduling.planning.coming import REGISTER_LIMIT, shows_cards
from scheduling.planning.endings import ARRIVAL_GRACE, STALE_GRACE, STOPPING_PATIENCE
from scheduling.planning.facts import CutRules, Desired, Kind, NodeFact, Phase, PodFact, Snapshot, WorkloadFact
from scheduling.planning.look import Look
from scheduling.planning.phases import current
from scheduling.planning.pods import LOST_AFTER
from scheduling.planning.rising import PODLESS_LIMIT, UNBOUND_GRACE, closed

SOON = td(microseconds=1)
COMING_UP = frozenset({Phase.PLACED, Phase.STARTING, Phase.RUNNING})


def next_due(snapshot: Snapshot) -> datetime | None:
    """The earliest instant after the picture's at which a plan or a phase could change by time alone; None: never."""
    return min((at for at in instants(snapshot) if at > snapshot.now), default=None)


def instants(snapshot: Snapshot) -> Iterator[datetime]:
    """Every instant, past ones too, at which a comparison with `now` turns."""
    if snapshot.quotas_change_at is not None:
        yield snapshot.quotas_change_at
    empty_after = {pool.name: pool.empty_after for pool in snapshot.pools}
    for node in snapshot.nodes:
        yield from _of_node(node, snapshot.empty_since.get(node.name), empty_after.get(node.pool))
    for look in _looks(snapshot):
        yield from _of_wishes(look.workload)
        yield from _of_phase(look)
        yield from _of_cuts(look.workload, snapshot.cutting)


def _looks(snapshot: Snapshot) -> Iterator[Look]:
    nodes = {node.name: node for node in snapshot.nodes}
    things = {thing.workload: thing for thing in snapshot.objects}
    pods = _by_workload(snapshot.pods)
    for workload in snapshot.workloads:
        thing, own = things.get(workload.id), tuple(pods.get(workload.id, ()))
        yield Look(workload, current(workload, thing), own, snapshot.now, nodes, snapshot.complete)


def _of_node(node: NodeFact, empty_since: datetime | None, empty_after: td | None) -> Iterator[datetime]:
    """It will not show its cards any more; it has been empty for long enough; it counts as lost."""
    if node.usable_since is None and node.created_at is not None and not shows_cards(node):
        yield node.created_at + REGISTER_LIMIT
    if node.usable_since is not None and empty_since is not None and empty_after is not None:
        yield max(empty_since, node.usable_since) + empty_after
    if not node.ready and node.not_ready_since is not None:
        yield node.not_ready_since + LOST_AFTER


def _of_wishes(workload: WorkloadFact) -> Iterator[datetime]:
    """Its pause is over; its time is up; it has been quiet for long enough."""
    if workload.phase is Phase.WAITING and workload.desired is Desired.RUN and workload.not_before is not None:
        yield workload.not_before
    if workload.ends_at is not None:
        yield workload.ends_at
    quiet, limit = workload.idle_since, workload.idle_limit
    if workload.kind is Kind.WORKSPACE and workload.phase is Phase.RUNNING and quiet is not None and limit is not None:
        yield quiet + limit


def _of_phase(look: Look) -> Iterator[datetime]:
    """The graces of what comes up and of what stops."""
    since = look.workload.phase_since
    if look.workload.phase is Phase.STOPPING and look.holding:
        yield since + STOPPING_PATIENCE
    if look.workload.phase is Phase.STOPPING and look.kept is not None:
        yield max(look.kept.finished_at or look.now, since) + STALE_GRACE
    if look.workload.phase not in COMING_UP:
        return
    pod = look.newest_live
    if pod is not None and not pod.node and pod.created_at is not None:
        node = (look.nodes or {}).get(look.workload.node)
        yield pod.created_at + (UNBOUND_GRACE if node is not None and closed(node) else PODLESS_LIMIT)
    if look.thing is None:
        yield from _of_absence(look.workload)
    elif not look.holding:
        yield since + STALE_GRACE  # the cluster is asked why there is no pod
        yield since + PODLESS_LIMIT
        yield from (pod.finished_at + PODLESS_LIMIT for pod in look.pods if pod.finished_at is not None)


def _of_cuts(workload: WorkloadFact, rules: CutRules) -> Iterator[datetime]:
    """It has waited so long that a cut for it is not weighed any more."""
    if workload.phase is Phase.WAITING and rules.usual.get((workload.flavor.model, workload.flavor.capacity)):
        yield workload.phase_since + rules.patience


def _of_absence(workload: WorkloadFact) -> Iterator[datetime]:
    """Its object has not been seen: it is put again, then counted as removed or lost."""
    if workload.phase is Phase.PLACED:
        yield workload.phase_since + SOON
        yield workload.phase_since + ARRIVAL_GRACE
    yield workload.phase_since + STALE_GRACE


def _by_workload(pods: Sequence[PodFact]) -> Mapping[UUID, list[PodFact]]:
    found: defaultdict[UUID, list[PodFact]] = defaultdict(list)
    for pod in pods:
        if pod.workload is not None:
            found[pod.workload].append(pod)
    return found
