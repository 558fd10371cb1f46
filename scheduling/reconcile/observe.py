"""Look: one picture of tables and cluster."""

from dataclasses import dataclass
from datetime import datetime

from scheduling import snapshot
from scheduling.cluster.port import ClusterPort, Observation
from scheduling.models import Cluster
from scheduling.planning.facts import Snapshot
from scheduling.reconcile import queueing, records, steps
from scheduling.reconcile.lease import Lease, LeaseLost


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen, the picture made of it, and whether anything is new."""

    seen: Observation
    snapshot: Snapshot
    changed: bool
    queue: queueing.Picture | None = None  # where the cluster queues with Kueue


def observe(cluster: Cluster, port: ClusterPort, now: datetime, ours: Lease | None = None) -> Look:
    """Ask the cluster, write down what is new, let phases follow, and make the planner's picture.

    An incomplete look writes nothing: what could not be read is unknown, not gone. Raises LeaseLost when the answer
    came so late that somebody else has taken over: an old picture would undo what they wrote.
    """
    seen = port.observe(now, ours.at_least if ours else None)
    if ours is not None and not ours.prolong():
        raise LeaseLost
    if ours is not None and seen.complete:
        ours.picture = port.picture()
    if not seen.complete:
        return Look(seen, snapshot.from_look(cluster, seen, seen.nodes, now), changed=False)
    queue = queueing.look_at(cluster, port, seen, now)
    moved = queueing.follow(cluster, seen, queue, now) if queue else 0
    moved += steps.follow(cluster, seen, now)  # first: whose meter ends here no longer pays for a card there
    nodes = records.see_nodes(cluster, seen, now)
    records.see_pools(cluster, seen.sizes, seen.problems)
    port.taken(seen)
    rules = queue.rules if queue else None
    picture = snapshot.from_look(cluster, seen, nodes.nodes, now, rules)
    return Look(seen, picture, changed=nodes.changed or moved > 0, queue=queue)
