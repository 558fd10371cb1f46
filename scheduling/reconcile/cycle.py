"""A cycle reads like a day: look, think, doubt, act, say what happened."""

import logging
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from scheduling.cluster.port import ClusterError, ClusterPort
from scheduling.clusters import PAUSED
from scheduling.connect import port_for
from scheduling.models import Cluster
from scheduling.planning.cutting import failed_cuts
from scheduling.planning.due import next_due
from scheduling.planning.plan import plan
from scheduling.reconcile.apply import apply
from scheduling.reconcile.ceilings import write_ceilings
from scheduling.reconcile.chores import Done
from scheduling.reconcile.fence import Fenced
from scheduling.reconcile.guard import guard
from scheduling.reconcile.lease import Lease, LeaseLost, lease, wanted_since
from scheduling.reconcile.observe import Look, observe
from scheduling.reconcile.remember import Report, remember, remember_break, remember_failure
from scheduling.wake import send
from tenants import clock

MOST_LOOKS = 5  # in a row, before the next tick takes over

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Start:
    """When a look began, by both of this machine's clocks."""

    monotonic: float = field(default_factory=time.monotonic)
    wall: datetime = field(default_factory=lambda: datetime.now(UTC))


def run_cycle(cluster: Cluster, port: ClusterPort, now: datetime, ours: Lease | None = None) -> Report:
    started = Start()
    look = observe(cluster, port, now, ours)  # 1. Look: one picture of tables and cluster.
    wanted = plan(look.snapshot)  # 2. Think: no I/O.
    refusal = PAUSED if cluster.paused else ""
    refusal = refusal or (look.queue.trouble if look.queue else "")
    refusal = refusal or guard(wanted, look.snapshot)  # 3. Doubt: does this look like a mistake?
    barred = [] if refusal else write_ceilings(cluster, port, look)  # before what they have to let in
    done = Done() if refusal else apply(wanted, cluster, port, look, ours)  # 4. Act: every action may be repeated.
    done.failures[:0] = barred
    return remember(cluster, _report(look, done, refusal, started))  # 5. Say so.


def look_after(cluster_id: int) -> Report | None:
    """Run the cluster's cycle until nothing more is asked of it; None when somebody else is at it, or when it rests.

    A wish that arrives meanwhile, or an action whose effect is to be seen, brings another look. What nobody foresaw
    ends the look, is told to the operator, and is tried again after a pause that grows.
    """
    report, wanted = None, False
    for _ in range(MOST_LOOKS):
        try:
            with lease(cluster_id) as ours:
                if ours is None:
                    log.info("Cluster %s is looked after already, or rests; this bell was one too many.", cluster_id)
                    return report
                started = datetime.now(UTC)
                report = _one_look(Cluster.objects.get(pk=cluster_id), ours)
        except Exception as fault:
            log.exception("The look at cluster %s broke.", cluster_id)
            return remember_break(cluster_id, fault, clock.now())
        wanted = wanted_since(cluster_id, started)
        if not (report.again or wanted):
            return report
    if wanted:  # whoever wished found the lease taken and went away again
        send(cluster_id)
    return report


def _one_look(cluster: Cluster, ours: Lease) -> Report:
    now, began_at = time_at(cluster), datetime.now(UTC)
    try:
        with port_for(cluster) as port:
            try:
                return run_cycle(cluster, Fenced(port, ours), now, ours)
            finally:
                if ours.picture is not None:
                    ours.picture = port.picture()  # with what was written by now
    except LeaseLost:
        log.warning("A look at cluster %s took so long that another worker took over; it counts for nothing.", cluster)
        return Report(at=now)
    except ClusterError as error:
        log.warning("The look at cluster %s failed: %s", cluster.name, error)
        return remember_failure(cluster, str(error), clock.now(), began_at)


def time_at(cluster: Cluster) -> datetime:
    """Now, but never before the last look: a clock that was set back is waited out, or facts would land in hours that
    are charged already."""
    return max(clock.now(), cluster.seen_at or clock.now())


def _due_at(look: Look, done: Done) -> datetime | None:
    """When time alone asks for the next look: at once where something was begun, or where nobody watches."""
    if not look.seen.complete:
        return None
    if done.failures:
        return next_due(look.snapshot)
    unwatched = look.seen.heard_at is None or look.queue is not None  # nobody listens to Kueue
    return look.snapshot.now if done.again or unwatched else next_due(look.snapshot)


def _report(look: Look, done: Done, refusal: str, started: Start) -> Report:
    problems = [*look.seen.problems, *failed_cuts(look.snapshot.nodes)]
    return Report(
        at=look.snapshot.now,
        complete=look.seen.complete,
        age=look.seen.age,
        heard_at=look.seen.heard_at,
        actions=done.actions,
        failures=done.failures,
        refusal=refusal,
        problems=[f"{problem.where}: {problem.text}" for problem in problems],
        changed=look.changed,
        again=done.again and not done.failures,
        milliseconds=int((time.monotonic() - started.monotonic) * 1000),
        began_at=started.wall,
        due_at=_due_at(look, done),
    )
