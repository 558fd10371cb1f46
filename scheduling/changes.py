"""The one way a phase changes: a guarded update, a transition, and a word to the open pages after commit."""

from collections import defaultdict
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

MANY = 8  # steps, from which on they are written together
MOST_AT_ONCE = 200  # rows of one statement


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


def move_all(changes: Sequence[Change]) -> list[Workload]:
    """Take many steps, each if nobody was first: the rows that moved. A few queries, however many they are.

    Unlike `move` it does not read the rows again: what people wrote meanwhile is not in them.
    """
    if not changes:
        return []
    with transaction.atomic():
        moved = _written([replace(one, step=_in_order(one.row, one.step)) for one in changes])
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


def _written(changes: Sequence[Change]) -> list[tuple[Change, Phase]]:
    """Those that were still as we knew them, with the phases that they left, and are written.

    Under a lock on the rows, what `move` asks within its update is asked before. A row that somebody holds at this
    moment is left out: they are first, and nobody waits for anybody.
    """
    if len(changes) < MANY:
        befores = [(change, Phase(change.row.phase)) for change in changes]
        return [(change, before) for change, before in befores if _write(change.row, before, change.step, change.facts)]
    locked = Workload.objects.select_for_update(skip_locked=True).filter(pk__in=[change.row.pk for change in changes])
    found = {pk: (phase, version) for pk, phase, version in locked.values_list("pk", "phase", "version")}
    ours = [change for change in changes if found.get(change.row.pk) == (change.row.phase, change.row.version)]
    befores = [(change, Phase(change.row.phase)) for change in ours]
    by_columns: defaultdict[tuple[str, ...], list[Workload]] = defaultdict(list)
    for change, before in befores:
        columns = _columns(change.row, before, change.step, change.facts)
        _take_on(change.row, columns)
        by_columns[tuple(columns)].append(change.row)
    for names, rows in by_columns.items():
        Workload.objects.bulk_update(rows, names, batch_size=MOST_AT_ONCE)
    return befores


def _write(row: Workload, before: Phase, step: Step, facts: Mapping[str, Any]) -> bool:
    """The guarded update; the row in hand then says the same as the table."""
    columns = _columns(row, before, step, facts)
    if not Workload.objects.filter(pk=row.pk, phase=before, version=row.version).update(**columns):
        return False
    _take_on(row, columns)
    return True


def _columns(row: Workload, before: Phase, step: Step, facts: Mapping[str, Any]) -> dict[str, Any]:
    if step.to != before and step.to not in MOVES[before]:
        raise ValueError(f"A workload does not go from {before} to {step.to}.")
    return {
        "phase": step.to,
        "phase_since": step.at if step.to != before else row.phase_since,
        "phase_reason": step.reason,
        "phase_text": step.text[:500],
        "version": row.version + 1,
        **facts,
    }


def _take_on(row: Workload, columns: Mapping[str, Any]) -> None:
    for name, value in columns.items():
        setattr(row, name, value)


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
