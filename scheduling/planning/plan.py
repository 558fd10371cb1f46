"""From a snapshot to a plan: what goes, who is next, where it fits, what to cut, how many nodes to ask for.

In line is: higher priority first, then who asked first. Each is tried in turn: within its quota? on a node that is
there? on one that is leaving? by a cut, under way or new? on a node that is coming, or a new one? Who cannot start
lets the others pass (a reservation for big work comes with fair shares); who has been promised a node or a cut keeps
the quota for it. Every workload that waits to run ends with exactly one Place or one Note.
"""

from scheduling.planning.actions import Note, Plan
from scheduling.planning.draft import Draft
from scheduling.planning.facts import Reason, Snapshot, WorkloadFact
from scheduling.planning.order import in_line
from scheduling.planning.queued import QueuedDraft
from scheduling.planning.stops import stops
from scheduling.planning.waiting import APPROVAL, UNREADABLE


def plan(snapshot: Snapshot) -> Plan:
    """What to do about this picture. From an incomplete one follow sentences only."""
    if not snapshot.complete:
        return Plan.of([_unread(need) for need in in_line(snapshot.workloads)])
    draft = drafted(snapshot)
    return Plan.of([*stops(snapshot), *draft.actions()], draft.recuts())


def drafted(snapshot: Snapshot) -> Draft:
    """The draft after everybody in line has had a turn."""
    draft = Draft(snapshot) if snapshot.queue is None else QueuedDraft(snapshot, snapshot.queue)
    gone = {action.workload for action in stops(snapshot)}
    line = [need for need in in_line(snapshot.workloads) if need.id not in gone]
    for position, need in enumerate(line):
        draft.commit(need, draft.answer(need, line[position + 1 :]))
    return draft


def _unread(need: WorkloadFact) -> Note:
    if need.approval_pending:
        return Note(need.id, Reason.WAITING_FOR_APPROVAL, APPROVAL)
    return Note(need.id, Reason.WAITING_FOR_CAPACITY, UNREADABLE)
