"""What would become of a wish that nobody has sent yet: the planner's own answer, read instead of carried out."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction as F
from typing import Literal

from scheduling.planning.actions import Place
from scheduling.planning.draft import Answer
from scheduling.planning.facts import Reason, Snapshot, WorkloadFact
from scheduling.planning.packing import key_of
from scheduling.planning.plan import drafted
from scheduling.planning.shares import unit_words
from scheduling.planning.waiting import UNREADABLE


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the request form says before anybody submits."""

    kind: Literal["now", "waits", "lead"]
    text: str
    free_units: int  # of the flavor, on all nodes, after everybody who already waits has had a turn
    quota_left: F  # cards that the owner may still take of this model


def outlook(snapshot: Snapshot, candidate: WorkloadFact) -> Outlook:
    """Does the candidate start now, wait, or need the lead? It comes last in line, behind all who already wait."""
    return outlooks(snapshot, [candidate])[0]


def outlooks(snapshot: Snapshot, candidates: Iterable[WorkloadFact]) -> list[Outlook]:
    """One outlook each, as if each alone were asked for; the line is planned once."""
    draft = drafted(snapshot)
    found = []
    for candidate in candidates:
        answer = draft.answer(candidate)
        stock = draft.fleet.stock(key_of(candidate.flavor))
        free = sum(one.free for one in stock.values())
        text = _text(answer, candidate, free)
        kind = _kind(answer)
        if kind != "lead" and not snapshot.complete:
            kind, text = "waits", UNREADABLE
        found.append(Outlook(kind, text, free, draft.ledger.room(candidate)))
    return found


def _kind(answer: Answer) -> Literal["now", "waits", "lead"]:
    if isinstance(answer.said, Place):
        return "now"
    lead = answer.said.reason in (Reason.WAITING_FOR_QUOTA, Reason.WAITING_FOR_APPROVAL)
    return "lead" if lead else "waits"


def _text(answer: Answer, candidate: WorkloadFact, free: int) -> str:
    if answer.cut is not None:
        return f"An empty node would be cut to {answer.cut.layout} for it; it starts when that is done."
    if answer.proposed is not None:
        layout = answer.proposed.layout
        return f"An operator would be asked whether an empty node may be cut to {layout} for it; it starts after that."
    if answer.bought is not None:
        return f"Pool {answer.bought.name} would wake a node for it; it starts when that node shows its cards."
    if not isinstance(answer.said, Place):
        return answer.said.text
    pool = f" in pool {answer.said.pool}" if answer.said.pool else ""
    return f"Starts now: {unit_words(candidate.flavor, candidate.count)}{pool}, {free} free."
