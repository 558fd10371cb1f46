"""The one way a phase changes: a guarded update, a transition, and a word to the open pages after commit."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from scheduling import announce
from scheduling.models import Transition, Workload
from scheduling.planning.facts import Phase, Reason
from scheduling.planning.phases import MOVES
from tenants.models import User


@dataclass(frozen=True, slots=True)
class Step:
    """Where to, why, and since when."""

    to: Phase
    reason: Reason
    text: str
    at: datetime


@transaction.atomic
def move(workload: Workload, step: Step, *, by: User | None = None, **facts: Any) -> bool:
    """Take one step, if nobody was first; False when the row has moved on meanwhile.

    `facts` are further columns of the cycle to write with it. Raises ValueError for a step that MOVES does not allow.
    """
    before = Phase(workload.phase)
    if step.to != before and step.to not in MOVES[before]:
        raise ValueError(f"A workload does not go from {before} to {step.to}.")
    since = step.at if step.to != before else workload.phase_since
    ours = Workload.objects.filter(pk=workload.pk, phase=before, version=workload.version).update(
        phase=step.to,
        phase_since=since,
        phase_reason=step.reason,
        phase_text=step.text[:500],
        version=workload.version + 1,
        **facts,
    )
    if not ours:
        return False
    workload.refresh_from_db()
    record(workload, before, step, by=by)
    return True


def note(workload: Workload, reason: Reason, text: str, at: datetime) -> bool:
    """A new reason within the same phase; nothing is written when it is the old one."""
    if workload.phase_reason == reason and workload.phase_text == text[:500]:
        return False
    return move(workload, Step(Phase(workload.phase), reason, text, at))


def record(workload: Workload, before: Phase | None, step: Step, *, by: User | None = None) -> None:
    """Write the transition and tell the pages. For `move` and for the row's first transition only."""
    Transition.objects.create(
        workload=workload,
        version=workload.version,
        at=step.at,
        before=before or "",
        after=step.to,
        reason=step.reason,
        text=step.text[:500],
        by=by,
    )
    facts = {"workload": str(workload.pk), "phase": step.to, "version": workload.version}
    announce.announce_on_commit(announce.workload_topic(workload.pk), "phase", **facts)
    announce.announce_on_commit(announce.team_topic(workload.team_id), "phase", **facts)
