"""A plan in the making: the picture, what has been given out of it so far, and what is next for whom."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scheduling.planning.actions import Action, Note, Place, Recut, Reopen
from scheduling.planning.coming import Coming, cuts_of, nodes_of
from scheduling.planning.cutting import Cutter, Option, ahead_words, taken_back
from scheduling.planning.facts import NodeFact, PoolFact, Reason, Snapshot, WorkloadFact
from scheduling.planning.order import Ledger
from scheduling.planning.packing import Fleet, Space, key_of, lingering, spaces_of, usable
from scheduling.planning.scaling import Buyer, Order, Sizes
from scheduling.planning.waiting import (
    APPROVAL,
    Shortage,
    back_off_words,
    lingering_words,
    unknown_words,
    wrong_count,
)
from scheduling.planning.wording import instant

PUT_OFF = "an operator has put off the cut that would let it in, and is asked again when others wait for it too"
HELD_BACK = (
    "an empty node could be cut for it, but what is usually asked for needs it as it is; it is cut all the same {0}"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What becomes of one workload. `space` is where it goes, or will go once the rest has been done."""

    said: Place | Note
    space: Space | None = None
    reopened: bool = False
    coming: Coming | None = None
    cut: Option | None = None
    bought: PoolFact | None = None
    proposed: Option | None = None  # a cut for which a person has to be asked
    handed: bool = False  # to the cluster's own queue


class Draft:
    """`answer` looks and changes nothing; `commit` gives out what the answer takes; `actions` tells all of it."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.spaces = spaces_of(snapshot)
        self.nodes = {node.name: node for node in snapshot.nodes}
        spread = [pool.name for pool in snapshot.pools if pool.spread]
        self.fleet = Fleet((self.spaces[node.name] for node in snapshot.nodes if usable(node)), spread=spread)
        self.leaving = Fleet(self.spaces[node.name] for node in snapshot.nodes if _could_stay(node))
        self.cuts = cuts_of(snapshot, self.spaces)
        self.coming = nodes_of(snapshot)
        self.ledger = Ledger(snapshot)
        self.cutter = Cutter(snapshot, self.fleet, self.cuts)
        self.asked = Coming()  # what the nodes would offer about whose cut a person is asked
        self.buyer = Buyer(snapshot)
        self.shortage = Shortage(snapshot, self.fleet, self.buyer, self.spaces.values())
        self._lingering = lingering(snapshot)
        self._going = {thing.workload for thing in snapshot.objects if thing.deleting_since is not None}
        self._said: list[Action] = []
        self._unserved: list[WorkloadFact] = []
        self._recuts: list[Recut] = []
        self._questions: dict[str, Option] = {}  # by node
        self._wanted: set[str] = set()  # nodes that are cut or taken back, or asked about, so neither empty nor spare

    def answer(self, need: WorkloadFact, behind: Sequence[WorkloadFact] = ()) -> Answer:
        """What becomes of the next in line; `behind` is who waits after it."""
        there = self._not_yet(need) or self._now(need) or self._taken_back(need)
        found = there or self._in_a_cut(need, behind) or self._on_a_new_node(need) or self._if_agreed(need, behind)
        return found or _no(need, Reason.WAITING_FOR_CAPACITY, self.words(need))

    def words(self, need: WorkloadFact) -> str:
        """Why nothing helps it now."""
        if not self.cutter.could(need):
            return self.shortage.words(need)
        latest = instant(need.phase_since + self.snapshot.cutting.patience)
        return self.shortage.words(need, cuts=HELD_BACK.format(f"at {latest} at the latest"))

    def commit(self, need: WorkloadFact, answer: Answer) -> None:
        self._said.append(answer.said)
        if answer.space is not None:
            self.ledger.take(need)
            self._give(need, answer, answer.space)
        elif answer.proposed is not None:
            self._propose(answer.proposed, answer.said, need)
        elif isinstance(answer.said, Note) and answer.said.reason is Reason.WAITING_FOR_CAPACITY:
            self._unserved.append(need)

    def actions(self) -> list[Action]:
        """Everything but the stops."""
        found: list[Action] = [*self._said, *taken_back(self.snapshot.nodes)]
        for told in self.cutter.ahead(self._wanted, self._unserved):
            found.append(ahead_words(told))
            self._recuts.append(told)
            self._wanted.add(told.node)
        sizes = Sizes(self.snapshot, self.spaces, self._wanted)
        for pool in sorted(self.snapshot.pools, key=lambda pool: pool.name):
            found += sizes.resize(pool, self.buyer.orders.get(pool.name, Order()))
        return found

    def recuts(self) -> list[Recut]:
        """Cuts that are made, and cuts that a person is asked about, of nodes that this plan leaves empty."""
        empty = {name for name, space in self.fleet.spaces.items() if not space.busy}
        return [told for told in self._recuts if told.agreed or told.node in empty]

    # --- Looking: nothing below changes until the answer is committed ---

    def _not_yet(self, need: WorkloadFact) -> Answer | None:
        """Reasons that have nothing to do with what is free."""
        if need.approval_pending:
            return _no(need, Reason.WAITING_FOR_APPROVAL, APPROVAL)
        if need.not_before is not None and self.snapshot.now < need.not_before:
            return _no(need, Reason.BACKING_OFF, back_off_words(need))
        if words := wrong_count(need):
            return _no(need, Reason.UNKNOWN_FLAVOR, words)
        if not self.shortage.offered(need):
            return _no(need, Reason.UNKNOWN_FLAVOR, unknown_words(need))
        if need.id in self._lingering or need.id in self._going:
            pod = self._lingering.get(need.id)
            return _no(need, *lingering_words(pod, self.nodes.get(pod.node) if pod else None))
        if words := self.over_quota(need):
            return _no(need, Reason.WAITING_FOR_QUOTA, words)
        return None

    def over_quota(self, need: WorkloadFact) -> str:
        """Why its team may not hold it now, in a sentence; empty when it may."""
        return self.ledger.refusal(need)

    def _now(self, need: WorkloadFact) -> Answer | None:
        space = self.fleet.best(need)
        if space is None:
            return None
        resource = space.resource[key_of(need.flavor)]
        return Answer(Place(need.id, space.name, space.pool, resource, need.count, need.share), space)

    def _taken_back(self, need: WorkloadFact) -> Answer | None:
        """On a node that is withdrawn but not given back."""
        space = self.leaving.best(need)
        if space is None:
            return None
        text = f"Node {space.name} is taken back into service for it and is free at the next look."
        return Answer(Note(need.id, Reason.WAITING_FOR_NODE, text), space, reopened=True)

    def _in_a_cut(self, need: WorkloadFact, behind: Sequence[WorkloadFact]) -> Answer | None:
        """By a cut under way, or by a new one. A cut is quicker than a node that has yet to come."""
        if space := self.cuts.best(need):
            return Answer(Note(need.id, *self.cuts.why(space)), space, coming=self.cuts)
        option = self.cutter.best(need, self._rivals(need, behind))
        if option is None:
            return None
        text = f"Node {option.node.name} is being cut to {option.layout} for it; it starts when that is done."
        return Answer(Note(need.id, Reason.WAITING_FOR_CUT, text), option.space, cut=option)

    def _if_agreed(self, need: WorkloadFact, behind: Sequence[WorkloadFact]) -> Answer | None:
        """By a cut that a person has to agree to: only where nothing else helps."""
        if space := self.asked.best(need):
            return Answer(Note(need.id, *self.asked.why(space)), proposed=self._questions[space.name])
        option = self.cutter.proposal(need, self._rivals(need, behind))
        if option is None:
            return None
        if self.cutter.refused(option):
            return _no(need, Reason.WAITING_FOR_CAPACITY, self.shortage.words(need, cuts=PUT_OFF))
        text = f"An operator is asked whether node {option.node.name} may be cut to {option.layout} for it."
        return Answer(Note(need.id, Reason.WAITING_FOR_CUT, text), proposed=option)

    def _on_a_new_node(self, need: WorkloadFact) -> Answer | None:
        """On a node that is on its way, or on one more."""
        if space := self.coming.best(need):
            return Answer(Note(need.id, *self.coming.why(space)), space, coming=self.coming)
        found = self.buyer.best(need)
        if found is None:
            return None
        pool, space = found
        text = f"A new node of pool {pool.name} is asked for; it starts when that node shows its cards."
        return Answer(Note(need.id, Reason.WAITING_FOR_NODE, text), space, bought=pool)

    def _rivals(self, need: WorkloadFact, behind: Sequence[WorkloadFact]) -> Iterator[WorkloadFact]:
        """Who of those behind would want a slice of the same model, and may have one."""
        for one in behind:
            if one.flavor.model == need.flavor.model and self._not_yet(one) is None:
                yield one

    # --- Giving out ---

    def _give(self, need: WorkloadFact, answer: Answer, space: Space) -> None:
        if answer.reopened:
            self._reopen(space, need)
        elif answer.coming:
            answer.coming.take(space, need)
            self.buyer.count(space)
        elif answer.cut and isinstance(answer.said, Note):
            self._cut(answer.cut, answer.said, need)
        elif answer.bought and isinstance(answer.said, Note):
            self._buy(answer.bought, space, answer.said, need)
        else:  # on a node that is there
            self.fleet.take(space, need)

    def _reopen(self, space: Space, need: WorkloadFact) -> None:
        if space.name not in self._wanted:
            self._said.append(Reopen(space.name, "waiting work fits on it"))
        self._wanted.add(space.name)
        self.leaving.take(space, need)

    def _propose(self, option: Option, said: Place | Note, need: WorkloadFact) -> None:
        name = option.node.name
        if name not in self._questions and isinstance(said, Note):
            self._questions[name] = option
            self._recuts.append(self.cutter.told(option))
            self._wanted.add(name)
            self.cutter.propose(option)
            self.asked.expect(option.space, said.reason, said.text)
        self.asked.take(self.asked.fleet.spaces[name], need)

    def _cut(self, option: Option, said: Note, need: WorkloadFact) -> None:
        self._said.append(option.cut())
        self._recuts.append(self.cutter.told(option))
        self.cutter.made(option)
        self._wanted.add(option.node.name)
        self.fleet.drop(option.node.name)
        self.cuts.expect(option.space, said.reason, said.text)
        self.cuts.take(option.space, need)

    def _buy(self, pool: PoolFact, space: Space, said: Note, need: WorkloadFact) -> None:
        self.buyer.order(pool, space)
        self.buyer.count(space)
        self.coming.expect(space, said.reason, said.text)
        self.coming.take(space, need)


def _no(need: WorkloadFact, reason: Reason, text: str) -> Answer:
    return Answer(Note(need.id, reason, text))


def _could_stay(node: NodeFact) -> bool:
    """Withdrawn by us, not yet given back, and else in order as far as the node itself says."""
    return node.leaving and not node.dropped and node.ready and not node.cutting_to and not node.kept_away
