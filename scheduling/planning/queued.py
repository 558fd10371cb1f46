"""The plan where the cluster's own queue admits (Kueue): who is handed to it, and what nodes its word asks for.

Nothing is placed here. What Kueue has admitted and no node holds yet counts as waiting work does elsewhere: a cut is
planned for it, a node is taken back or asked for. What Kueue still holds back by quota asks for no node.

Kueue knows units of resource names, each with its own number. Where cards of one model are asked for under several
names (slices, or whole cards of two capacity types), it cannot keep their sum; so Berth hands over no more of them
than the team's own grants and what may be borrowed beside them.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction as F
from uuid import UUID

from scheduling.planning import catalog
from scheduling.planning.actions import Note, Place, Queue
from scheduling.planning.draft import Answer, Draft
from scheduling.planning.facts import Lending, QueueFact, QueueRules, Reason, Snapshot, WorkloadFact
from scheduling.planning.shares import number, share_words

HANDED_OVER = "It is handed to Kueue, which admits it when its quota allows."


class QueuedDraft(Draft):
    """A draft that places nothing."""

    def __init__(self, snapshot: Snapshot, rules: QueueRules) -> None:
        super().__init__(snapshot)
        self._rules = rules
        self._lent: defaultdict[tuple[UUID, str], F] = defaultdict(F)  # held of a whole tree, by its top and model
        for quota in snapshot.quotas:
            for cards in quota.elsewhere.values():
                self._count(quota.team, quota.model, cards)
        for one in snapshot.workloads:
            if one.holds_quota:
                self._count(one.team, one.flavor.model, one.share)
            elif one.id in rules.facts:  # not yet on a node, and already on the way there
                self._take(one)

    def answer(self, need: WorkloadFact, behind: Sequence[WorkloadFact] = ()) -> Answer:
        fact = self._rules.facts.get(need.id)
        if fact is None:
            return self._not_yet(need) or Answer(Note(need.id, Reason.HANDED_OVER, HANDED_OVER), handed=True)
        if not fact.demands:
            return Answer(Note(need.id, fact.reason, fact.text))
        return self._on_its_way(need, fact, behind)

    def commit(self, need: WorkloadFact, answer: Answer) -> None:
        self._said.append(answer.said)
        if answer.space is not None:  # its share is counted since it was handed over
            self._give(need, answer, answer.space)
        elif answer.proposed is not None:
            self._propose(answer.proposed, answer.said, need)
        elif answer.handed:
            self._said.append(Queue(need.id, need.share))
            self._take(need)
        elif isinstance(answer.said, Note) and answer.said.reason is Reason.WAITING_FOR_CAPACITY:
            self._unserved.append(need)

    def over_quota(self, need: WorkloadFact) -> str:
        """Kueue's own to judge, but for models whose sum it cannot keep."""
        model = need.flavor.model
        own = self.ledger.refusal(need) if model in self._rules.mixed else ""
        if not own:
            return ""
        lending = self._rules.lending.get((need.team, model))
        if lending is None:
            return own
        return self._not_lent(need, lending)

    def _on_its_way(self, need: WorkloadFact, fact: QueueFact, behind: Sequence[WorkloadFact]) -> Answer:
        """Admitted, or about to be. Its share of the quota is counted already."""
        there = self._now(need) or self._taken_back(need) or self._in_a_cut(need, behind)
        found = there or self._on_a_new_node(need) or self._if_agreed(need, behind)
        if found is None:
            text = f"{fact.text} {self.words(need)}"
            return Answer(Note(need.id, Reason.WAITING_FOR_CAPACITY, text))
        if isinstance(found.said, Place):
            return replace(found, said=Note(need.id, fact.reason, fact.text))
        return found

    def _not_lent(self, need: WorkloadFact, lending: Lending) -> str:
        """Why it may not be borrowed, in a sentence; empty when it may."""
        model, title = need.flavor.model, catalog.title(need.flavor.model)
        above = self.ledger.above(need)
        if lending.limit is not None and above > lending.limit:
            return (
                f"This would take {share_words(above)} of {title} beyond its team's own, and the team may borrow "
                f"{number(lending.limit)}. It starts when some are given back, or ask your lead for a grant."
            )
        total, held = self._rules.trees.get((lending.tree, model), F(0)), self._lent[lending.tree, model]
        if held + need.share > total:
            return (
                f"Its team's own cards of {title} are held, and of all {number(total)} granted {number(held)} are "
                f"held or spoken for; this needs {number(need.share)}. It starts when enough is given back."
            )
        return ""

    def _take(self, need: WorkloadFact) -> None:
        self.ledger.take(need)
        self._count(need.team, need.flavor.model, need.share)

    def _count(self, team: UUID, model: str, share: F) -> None:
        if lending := self._rules.lending.get((team, model)):
            self._lent[lending.tree, model] += share
