"""Whose turn it is, and how much each may still take.

A member's own grants are used first, the rest is drawn from the team's (tenants.quota has the arithmetic). Held is
what is placed, starting, running or stopping, here and in other clusters; what sleeps holds nothing. What this plan
places, or orders a node or a cut for, is taken from the room at once, so that nobody behind can take it away.
"""

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction as F
from uuid import UUID

from scheduling.planning import catalog
from scheduling.planning.facts import Desired, Phase, QuotaFact, Snapshot, WorkloadFact
from scheduling.planning.shares import number, share_words
from scheduling.planning.wording import instant
from tenants.quota import Quota, over, room, used_of_team

Line = tuple[UUID, str]  # team and model


def in_line(workloads: Iterable[WorkloadFact]) -> list[WorkloadFact]:
    """What waits to run: by priority, then by who asked first. The id settles ties, so the order is always the same."""
    waiting = (one for one in workloads if one.phase is Phase.WAITING and one.desired is Desired.RUN)
    return sorted(waiting, key=lambda one: (-one.priority, one.asked_at, str(one.id)))


class Ledger:
    """Who holds how much of which model, with what this plan adds. A team without a grant has no room."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._quotas: dict[Line, QuotaFact] = {(quota.team, quota.model): quota for quota in snapshot.quotas}
        self._held: dict[Line, dict[int, F]] = defaultdict(dict)
        for line, quota in self._quotas.items():
            self._held[line] = dict(quota.elsewhere)
        self._holders: dict[Line, list[WorkloadFact]] = defaultdict(list)
        for workload in snapshot.workloads:
            if workload.holds_quota:
                self.take(workload)
                self._holders[_line(workload)].append(workload)

    def take(self, workload: WorkloadFact) -> None:
        """From now on this workload's share counts as held."""
        held = self._held[_line(workload)]
        held[workload.owner] = held.get(workload.owner, F(0)) + workload.share

    def room(self, workload: WorkloadFact) -> F:
        """Cards that its owner may still take of its model; never negative."""
        return room(self._quota(workload), self._held[_line(workload)], workload.owner)

    def above(self, workload: WorkloadFact) -> F:
        """Cards that its team would hold above its quota with this one, beyond what members have of their own."""
        held = self._held[_line(workload)]
        return over(self._quota(workload), held) + max(F(0), workload.share - self.room(workload))

    def refusal(self, workload: WorkloadFact) -> str:
        """Why the quota does not allow it now, with the numbers and what to do; empty when it does."""
        left = self.room(workload)
        if workload.share <= left:
            return ""
        return f"{self._standing(workload)}; this needs {number(workload.share)}. {self._advice(workload, left)}"

    def _standing(self, workload: WorkloadFact) -> str:
        quota = self._quota(workload)
        team, title = self._team(workload), catalog.title(workload.flavor.model)
        own = quota.own.get(workload.owner, F(0))
        if not quota.granted and not own:
            return f"{team} has been granted no cards of {title}"
        used = used_of_team(quota.own, self._held[_line(workload)])
        words = f"{team} holds {number(used)} of {share_words(quota.granted)} of {title}"
        mine = min(own, self._held[_line(workload)].get(workload.owner, F(0)))
        return f"{words}, and you hold {number(mine)} of {number(own)} of your own" if own else words

    def _advice(self, workload: WorkloadFact, left: F) -> str:
        quota = self._quota(workload)
        ceiling = quota.granted + quota.own.get(workload.owner, F(0))
        if not ceiling:
            return "Ask your lead for a grant."
        if workload.share > ceiling:
            return f"That is more than the {number(ceiling)} granted: ask your lead for a grant."
        missing = workload.share - left + over(quota, self._held[_line(workload)])
        given_back = f"{share_words(missing)} {'is' if missing <= 1 else 'are'} given back"
        return f"It starts when {given_back}{self._next_end(workload)}, or ask your lead for more."

    def _next_end(self, workload: WorkloadFact) -> str:
        ends = [one.ends_at for one in self._holders[_line(workload)] if one.ends_at is not None]
        return f" (the next end is due at {instant(min(ends))})" if ends else ""

    def _team(self, workload: WorkloadFact) -> str:
        fact = self._quotas.get(_line(workload))
        return (fact.team_name if fact else "") or "Your team"

    def _quota(self, workload: WorkloadFact) -> Quota:
        fact = self._quotas.get(_line(workload))
        return Quota(fact.granted, fact.own) if fact else Quota()


def _line(workload: WorkloadFact) -> Line:
    return workload.team, workload.flavor.model
