"""The plan where Kueue admits: who is handed over, what its word asks of nodes, what a pod means for a placement."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta as td
from fractions import Fraction as F
from typing import Any

import pytest

from scheduling.planning.actions import Cut, Note, Place, Queue, Reopen, Resize, Withdraw
from scheduling.planning.facts import (
    Desired,
    Lending,
    Phase,
    QueueFact,
    QueueRules,
    Reason,
    Snapshot,
    Standing,
    WorkloadFact,
)
from scheduling.planning.phases import observed
from scheduling.planning.plan import plan
from scheduling.planning.queued_phases import ended_unseen, fallen, lends, newly_bound
from tests.scheduling.planning.builders import (
    A100,
    H100,
    NOW,
    Piece,
    identity,
    job,
    look,
    minutes_ago,
    node,
    pod,
    pool,
    quota,
    workload,
)

ADMITTED = QueueFact(Standing.ADMITTED, Reason.ADMITTED, "Kueue has admitted it.")
RESERVED = QueueFact(Standing.RESERVED, Reason.WAITING_FOR_CHECK, "A check is open.")
PENDING = QueueFact(Standing.PENDING, Reason.WAITING_FOR_QUOTA, "The quota is held.")
BORROWED = replace(ADMITTED, borrowed=True, reason=Reason.BORROWED)
LEAVING = QueueFact(
    Standing.LEAVING, Reason.PREEMPTED, "It goes.", cause=Reason.PREEMPTED, cause_text="Its owner took the cards back."
)
REQUEUED = replace(LEAVING, standing=Standing.PENDING, reason=Reason.REQUEUED, text="In line again.")
INACTIVE = QueueFact(Standing.INACTIVE, Reason.DEACTIVATED, "Taken out.")
EIGHT = [pool("h100").h100(8).nodes(1, of=2), node("n1", "h100").h100(8)]
FROM_ZERO = pool("zero").cards(A100, 2)
TOP = identity("team vision")


def queued(*pieces: Piece, said: dict[str, QueueFact] | None = None, **rules: Any) -> Snapshot:
    facts = {identity(name): fact for name, fact in (said or {}).items()}
    return replace(look(*pieces, plenty="lending" not in rules), queue=QueueRules(facts, **rules))


def told(picture: Snapshot) -> dict[Any, Note]:
    return {one.workload: one for one in plan(picture).actions if isinstance(one, Note)}


def handed(picture: Snapshot) -> list[Any]:
    return [one.workload for one in plan(picture).actions if isinstance(one, Queue)]


def of_kind(picture: Snapshot, *kinds: type) -> list[Any]:
    return [one for one in plan(picture).actions if isinstance(one, kinds)]


def test_what_waits_is_handed_over_and_nothing_is_placed() -> None:
    picture = queued(*EIGHT, workload("a").asked(20), workload("b"))

    assert handed(picture) == [identity("a"), identity("b")]
    assert of_kind(picture, Place) == []
    assert told(picture)[identity("a")].reason is Reason.HANDED_OVER


def test_it_is_handed_over_whatever_its_quota_says_for_that_is_kueues_to_judge() -> None:
    held = workload("held").whole(2).running_on("n1")
    picture = queued(*EIGHT, held, workload("a").whole(2), quota(granted=2))

    assert handed(picture) == [identity("a")]


NOT_YET = {
    "a lead has to decide": (workload("w").having(approval_pending=True), Reason.WAITING_FOR_APPROVAL),
    "it pauses after a failure": (workload("w").having(not_before=NOW + td(minutes=1)), Reason.BACKING_OFF),
    "no pool has such cards": (workload("w").whole(model=A100), Reason.UNKNOWN_FLAVOR),
}


@pytest.mark.parametrize(("need", "reason"), NOT_YET.values(), ids=NOT_YET)
def test_what_may_not_start_is_not_handed_over(need: Any, reason: Reason) -> None:
    picture = queued(*EIGHT, need)

    assert handed(picture) == []
    assert told(picture)[identity("w")].reason is reason


def test_what_is_about_to_end_is_not_handed_over() -> None:
    assert handed(queued(*EIGHT, workload("w").wants(Desired.END))) == []


def test_what_is_in_the_queue_is_not_handed_over_again_and_says_what_kueue_says() -> None:
    picture = queued(*EIGHT, workload("w"), said={"w": PENDING})

    assert handed(picture) == []
    assert told(picture)[identity("w")] == Note(identity("w"), PENDING.reason, PENDING.text)


# Nodes


def test_a_pool_wakes_for_what_is_admitted_and_finds_no_node() -> None:
    picture = queued(FROM_ZERO, workload("w").whole(2, model=A100), said={"w": ADMITTED})

    assert [(one.pool, one.before, one.after) for one in of_kind(picture, Resize)] == [("zero", 0, 1)]
    assert told(picture)[identity("w")].reason is Reason.WAITING_FOR_NODE


def test_what_has_its_quota_set_aside_counts_too() -> None:
    assert of_kind(queued(FROM_ZERO, workload("w").whole(2, model=A100), said={"w": RESERVED}), Resize)


def test_what_kueue_holds_back_wakes_nothing() -> None:
    assert of_kind(queued(FROM_ZERO, workload("w").whole(2, model=A100), said={"w": PENDING}), Resize) == []


def test_no_node_is_bought_for_what_fits_on_one_that_is_there() -> None:
    picture = queued(*EIGHT, workload("w").whole(8), said={"w": ADMITTED})

    assert of_kind(picture, Resize, Place) == []
    assert told(picture)[identity("w")].reason is Reason.ADMITTED


def test_two_that_are_admitted_do_not_count_on_the_same_cards() -> None:
    picture = queued(*EIGHT, workload("a").whole(8), workload("b").whole(8), said={"a": ADMITTED, "b": ADMITTED})

    assert [(one.before, one.after) for one in of_kind(picture, Resize)] == [(1, 2)]


def test_a_node_is_cut_for_a_slice_that_is_admitted() -> None:
    cards = pool("mig").h100(2).mig("all-1g.10gb", "all-3g.40gb").nodes(1, of=1)
    picture = queued(
        cards, node("m1", "mig").h100(2).mig("all-1g.10gb"), workload("w").slice("3g.40gb"), said={"w": ADMITTED}
    )

    assert of_kind(picture, Cut)


def test_a_node_that_is_leaving_is_taken_back() -> None:
    leaving = node("n1", "h100").h100(8).leaving()
    picture = queued(pool("h100").h100(8).nodes(1, of=1), leaving, workload("w"), said={"w": ADMITTED})

    assert [one.node for one in of_kind(picture, Reopen)] == ["n1"]


def test_a_node_that_an_admitted_one_is_to_run_on_is_not_given_back() -> None:
    pieces = [pool("h100").h100(8).nodes(1, of=1), node("n1", "h100").h100(8), workload("w")]
    idle = {"n1": 600.0}
    without = replace(look(*pieces, empty=idle), queue=QueueRules({identity("w"): PENDING}))
    counted = replace(look(*pieces, empty=idle), queue=QueueRules({identity("w"): ADMITTED}))

    assert [one.node for one in of_kind(without, Withdraw)] == ["n1"]
    assert of_kind(counted, Withdraw) == []


# Models whose sum Kueue cannot keep


def mixed(*pieces: Piece, said: dict[str, QueueFact] | None = None, limit: F | None = None, tree: int = 4) -> Snapshot:
    rules = {
        "mixed": frozenset({H100}),
        "lending": {(TOP, H100): Lending(TOP, limit)},
        "trees": {(TOP, H100): F(tree)},
    }
    return queued(*EIGHT, *pieces, quota(granted=2), said=said, **rules)


HELD = workload("held").whole(2).running_on("n1")

MIXED = {  # picture -> handed over, a part of the sentence where it is not
    "within its team's own": (mixed(workload("w").whole(2)), True, ""),
    "borrowed, as long as the tree has some": (mixed(HELD, workload("w").whole(2)), True, ""),
    "not beyond the whole tree": (mixed(HELD, workload("w").whole(3)), False, "of all 4 granted 2 are held"),
    "what is in the queue counts as spoken for": (
        mixed(HELD, workload("first").whole(2).asked(20), workload("w"), said={"first": PENDING}),
        False,
        "4 are held or spoken for",
    ),
    "not beyond the team's limit": (mixed(HELD, workload("w"), limit=F(0)), False, "may borrow 0"),
    "up to the team's limit": (mixed(HELD, workload("w"), limit=F(1)), True, ""),
    "what was borrowed before counts towards the limit": (
        mixed(workload("held").whole(3).running_on("n1"), workload("w"), limit=F(1)),
        False,
        "This would take 2 cards",
    ),
}


@pytest.mark.parametrize(("picture", "goes", "part"), MIXED.values(), ids=MIXED)
def test_berth_keeps_the_sum_that_kueue_cannot_keep(picture: Snapshot, goes: bool, part: str) -> None:
    assert (identity("w") in handed(picture)) is goes
    note = told(picture)[identity("w")]
    assert note.reason is (Reason.HANDED_OVER if goes else Reason.WAITING_FOR_QUOTA)
    assert part in note.text


def test_two_in_one_look_do_not_share_the_same_room() -> None:
    picture = mixed(HELD, workload("a").whole(2).asked(20), workload("b").whole(2))

    assert handed(picture) == [identity("a")]


# Pods and placements

NODES = {"n1": node("n1").fact()}
JOB = job("w").having(queue="berth").fact()


def test_a_pod_is_new_once_it_has_a_node_and_no_placement() -> None:
    mine, unbound = pod("w").having(uid="new").fact(), pod("w", "").having(uid="unbound").fact()
    elsewhere = pod("w", "gone").having(uid="elsewhere").fact()

    assert newly_bound([mine, unbound, elsewhere], NODES, {"old"}) == mine
    assert newly_bound([mine], NODES, {"new"}) is None
    assert newly_bound([unbound, elsewhere], NODES, ()) is None
    assert newly_bound([pod("w").terminating(1).fact()], NODES, ()) is None


def test_a_pod_that_is_over_before_anybody_looked_is_still_metered() -> None:
    over = pod("w").ended(0).fact()

    assert newly_bound([over], NODES, ()) == over


RUNNING = workload("w").running_on("n1").fact()
POD = pod("w").having(uid="mine").fact()
GOING = pod("w").having(uid="mine").terminating(0.5).fact()
OTHER = pod("w").having(uid="other").fact()
FALLS = {  # Kueue's word, its pods -> where to and why; None: not Kueue's doing
    "all is well": (ADMITTED, [POD], None),
    "preempted, and its pod is being stopped": (LEAVING, [GOING], (Phase.RUNNING, Reason.PREEMPTED)),
    "preempted, and its pod is gone": (LEAVING, [], (Phase.WAITING, Reason.PREEMPTED)),
    "in line again before anybody looked": (REQUEUED, [], (Phase.WAITING, Reason.PREEMPTED)),
    "admitted again before anybody looked, with another pod": (ADMITTED, [OTHER], (Phase.WAITING, Reason.POD_LOST)),
    "its Job made another pod": (ADMITTED, [], (Phase.WAITING, Reason.POD_LOST)),
    "taken out of the queue": (INACTIVE, [], (Phase.WAITING, Reason.DEACTIVATED)),
    "its pod has failed by itself": (ADMITTED, [pod("w").having(uid="mine").ended(1).fact()], None),
    "nobody knows what Kueue says, and its pod runs": (None, [POD], None),
    "nobody knows what Kueue says, and its pod is gone": (None, [], (Phase.WAITING, Reason.POD_LOST)),
}


@pytest.mark.parametrize(("fact", "pods", "expected"), FALLS.values(), ids=FALLS)
def test_what_becomes_of_a_placement(fact: QueueFact | None, pods: list[Any], expected: Any) -> None:
    step = fallen(RUNNING, "mine", fact, JOB, pods, NODES, NOW)

    assert (step and (step.to, step.reason)) == expected


OTHERS = {
    "without a placement the common rules speak": (RUNNING, "", JOB),
    "what stops is carried on by others": (replace(RUNNING, phase=Phase.STOPPING), "mine", JOB),
    "its Job is complete": (RUNNING, "mine", replace(JOB, complete=True)),
    "its Job has failed": (RUNNING, "mine", replace(JOB, failed=True)),
    "its Job is being removed": (RUNNING, "mine", replace(JOB, deleting_since=NOW)),
    "its Job is gone": (RUNNING, "mine", None),
}


@pytest.mark.parametrize(("need", "uid", "thing"), OTHERS.values(), ids=OTHERS)
def test_where_the_common_rules_speak(need: WorkloadFact, uid: str, thing: Any) -> None:
    assert fallen(need, uid, LEAVING, thing, [], NODES, NOW) is None


def test_the_meter_stops_when_the_pod_is_gone_and_not_before() -> None:
    remark = fallen(RUNNING, "mine", LEAVING, JOB, [GOING], NODES, NOW)
    end = fallen(RUNNING, "mine", LEAVING, JOB, [], NODES, NOW)

    assert remark is not None
    assert "Its pod is being stopped" in remark.text
    assert end is not None
    assert end.at == NOW
    assert end.text == LEAVING.cause_text


def test_a_job_that_was_over_before_a_pod_was_seen_ends() -> None:
    waiting = workload("w").fact()
    done, given_up = replace(JOB, complete=True), replace(JOB, failed=True, reason="DeadlineExceeded")

    assert ended_unseen(waiting, done, NOW).reason is Reason.SUCCEEDED
    assert ended_unseen(waiting, given_up, NOW).reason is Reason.FAILED
    assert "DeadlineExceeded" in ended_unseen(waiting, given_up, NOW).text
    assert ended_unseen(waiting, JOB, NOW) is None
    assert ended_unseen(RUNNING, done, NOW) is None


def test_what_runs_says_that_it_is_borrowed_and_when_it_is_so_no_longer() -> None:
    plain, lent = replace(RUNNING, reason=Reason.RUNNING), replace(RUNNING, reason=Reason.BORROWED)

    assert lends(plain, BORROWED, NOW).reason is Reason.BORROWED
    assert lends(lent, BORROWED, NOW) is None
    assert lends(lent, ADMITTED, NOW).reason is Reason.RUNNING
    assert lends(plain, ADMITTED, NOW) is None
    assert lends(plain, None, NOW) is None


def test_one_job_stays_the_same_through_all_its_attempts() -> None:
    third = replace(RUNNING, attempt=3, phase_since=minutes_ago(30))
    handed_once = replace(JOB, generation=1)

    assert observed(third, handed_once, [POD], NOW, nodes=NODES) is None
    assert observed(third, replace(handed_once, queue=""), [POD], NOW, nodes=NODES) is not None
