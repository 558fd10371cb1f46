"""The one way a phase changes: a guarded update, a transition, and a word to the open pages after commit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    before, step = Phase(workload.phase), _in_order(workload, step)
    if not _write(workload, before, step, facts):
        return False
    workload.refresh_from_db()
    record(workload, before, step, by=by)
    return True


@dataclass(frozen=True, slots=True)
class Change:
    """One row's step among many, with further columns of the cycle to write."""

    row: Workload
    step: Step
    facts: Mapping[str, Any] = field(default_factory=dict)


@transaction.atomic
def move_all(changes: Sequence[Change]) -> list[Workload]:
    """Take many steps, each if nobody was first: the rows that moved. One guarded update each, the rest together.

    Unlike `move` it does not read the rows again: what people wrote meanwhile is not in them.
    """
    moved = [(replace(one, step=_in_order(one.row, one.step)), Phase(one.row.phase)) for one in changes]
    moved = [(change, before) for change, before in moved if _write(change.row, before, change.step, change.facts)]
    Transition.objects.bulk_create([_transition(change.row, before, change.step) for change, before in moved])
    _tell([change.row for change, _ in moved])
    return [change.row for change, _ in moved]


def note(workload: Workload, reason: Reason, text: str, at: datetime) -> bool:
    """A new reason within the same phase; nothing is written when it is the old one."""
    if workload.phase_reason == reason and workload.phase_text == text[:500]:
        return False
    return move(workload, Step(Phase(workload.phase), reason, text, at))


def record(workload: Workload, before: Phase | None, step: Step, *, by: User | None = None) -> None:
    """Write the transition and tell the pages. For `move` and for the row's first transition only."""
    _transition(workload, before, step, by).save(force_insert=True)
    _tell([workload])


def _in_order(row: Workload, step: Step) -> Step:
    """No step lies before the last one: a look has one time, at its begin, and somebody may have asked meanwhile."""
    late = step.to != row.phase and step.at < row.phase_since
    return replace(step, at=row.phase_since) if late else step


def _write(row: Workload, before: Phase, step: Step, facts: Mapping[str, Any]) -> bool:
    """The guarded update; the row in hand then says the same as the table."""
    if step.to != before and step.to not in MOVES[before]:
        raise ValueError(f"A workload does not go from {before} to {step.to}.")
    written = {
        "phase": step.to,
        "phase_since": step.at if step.to != before else row.phase_since,
        "phase_reason": step.reason,
        "phase_text": step.text[:500],
        "version": row.version + 1,
        **facts,
    }
    if not Workload.objects.filter(pk=row.pk, phase=before, version=row.version).update(**written):
        return False
    for name, value in written.items():
        setattr(row, name, value)
    return True


def _transition(row: Workload, before: Phase | None, step: Step, by: User | None = None) -> Transition:
    return Transition(
        workload=row,
        version=row.version,
        at=step.at,
        before=before or "",
        after=step.to,
        reason=step.reason,
        text=step.text[:500],
        by=by,
    )


def _tell(rows: Sequence[Workload]) -> None:
    """Every page that shows one of them, in one message after commit."""
    events = []
    for row in rows:
        facts = {"what": "phase", "workload": str(row.pk), "phase": row.phase, "version": row.version}
        topics = (announce.workload_topic(row.pk), announce.team_topic(row.team_id))
        events += [{"topic": topic, **facts} for topic in topics]
    if events:
        transaction.on_commit(lambda: announce.send(events))
