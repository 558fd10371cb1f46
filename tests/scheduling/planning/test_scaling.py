"""How many nodes a pool should have: stories of nodes that are bought, boot, stand empty and go."""

import pytest

from scheduling.planning.actions import Note, Place, Reopen, Resize, Withdraw
from scheduling.planning.facts import Phase, Reason, Snapshot
from scheduling.planning.plan import plan
from tests.scheduling.planning.builders import (
    A100,
    Piece,
    WorkloadBuilder,
    foreign,
    identity,
    look,
    node,
    pod,
    pool,
    workload,
)

ONE = pool("one").h100(1)  # nodes of one card
EIGHT = pool("eight").h100(8)


def resizes(picture: Snapshot) -> list[tuple[str, int, int, tuple[str, ...]]]:
    actions = plan(picture).actions
    return [(one.pool, one.before, one.after, one.drop) for one in actions if isinstance(one, Resize)]


def grown(*pieces: Piece) -> list[tuple[str, int, int]]:
    return [(name, before, after) for name, before, after, _ in resizes(look(*pieces))]


def crowd(count: int) -> list[WorkloadBuilder]:
    return [workload(f"w{number}") for number in range(count)]


GROWTH: dict[str, tuple[list[Piece], list[tuple[str, int, int]]]] = {
    "from zero": ([ONE, workload("w")], [("one", 0, 1)]),
    "nothing waits": ([ONE], []),
    "it fits on a node that is there": ([ONE.nodes(1, of=4), node("n1", "one").h100(1), workload("w")], []),
    "one for each": ([ONE, *crowd(3)], [("one", 0, 3)]),
    "eight on one node": ([EIGHT, *crowd(8)], [("eight", 0, 1)]),
    "nine on two": ([EIGHT, *crowd(9)], [("eight", 0, 2)]),
    "no more than its most": (
        [ONE.nodes(3, of=4), *[node(f"n{i}", "one").h100(1).cordoned() for i in range(3)], *crowd(9)],
        [("one", 3, 4)],
    ),
    "no more than its most, counting nodes that nobody asked for": (
        [ONE.nodes(2, of=4), *[node(f"n{i}", "one").h100(1).cordoned() for i in range(4)], *crowd(9)],
        [],
    ),
    "a node asked for and not there yet is not bought twice": ([ONE.nodes(1, of=4), workload("w")], []),
    "a node asked for serves one, another is bought for the second": ([ONE.nodes(1, of=4), *crowd(2)], [("one", 1, 2)]),
    "a node that is there without its cards is not bought twice": (
        [ONE.nodes(1, of=4), node("n1", "one").h100(1).booting(), workload("w")],
        [],
    ),
    "nor is one that is not ready yet": (
        [ONE.nodes(1, of=4), node("n1", "one").h100(1).booting().silent(1), workload("w")],
        [],
    ),
    "nor is one that shows its cards and may not be used yet": (
        [ONE.nodes(1, of=4), node("n1", "one").h100(1).having(usable_since=None).cordoned(), workload("w")],
        [],
    ),
    "a node that has not shown its cards for half an hour is not waited for": (
        [ONE.nodes(1, of=4), node("n1", "one").h100(1).booting(31), workload("w")],
        [("one", 1, 2)],
    ),
    "a broken node is not one that is coming": (
        [ONE.nodes(1, of=4), node("n1", "one").h100(1).silent(2), workload("w")],
        [("one", 1, 2)],
    ),
    "a node that was given back is not there": (
        [ONE.nodes(0, of=1), node("n1", "one").h100(1).dropped(), workload("w")],
        [("one", 0, 1)],
    ),
    "a node that was given back does not stand for the one that is coming": (
        [ONE.nodes(1, of=4), node("n1", "one").h100(1).dropped(), workload("w")],
        [],
    ),
    "nobody knows how many were asked for": ([ONE.nodes(None, of=4), workload("w")], []),
    "a pool of fixed size": ([ONE.fixed(), workload("w")], []),
    "another model": ([ONE, workload("w").whole(1, model=A100)], []),
    "another capacity type": ([ONE, workload("w").spot()], []),
    "too many cards for any node": ([ONE, workload("w").whole(2)], []),
    "too much memory for any node": ([ONE.host(8, 64), workload("w").beside(1, 65)], []),
    "the smallest node that will do": ([EIGHT, ONE, pool("two").h100(2), workload("w").whole(2)], [("two", 0, 1)]),
    "the second pool when the first is full": (
        [ONE.nodes(1, of=1), node("n1", "one").h100(1), EIGHT, workload("a").running_on("n1"), *crowd(1)],
        [("eight", 0, 1)],
    ),
    "what is stopped or pauses buys nothing": (
        [ONE, workload("w").having(approval_pending=True)],
        [],
    ),
    "a MIG node comes with the right slices": (
        [pool("mig").a100(1).mig("all-1g.5gb", "all-1g.5gb", "all-3g.20gb"), workload("w").slice("1g.5gb", model=A100)],
        [("mig", 0, 1)],
    ),
    "a MIG node comes and will be cut": (
        [
            pool("mig").a100(1).mig("all-1g.5gb", "all-1g.5gb", "all-3g.20gb"),
            workload("w").slice("3g.20gb", model=A100),
        ],
        [("mig", 0, 1)],
    ),
    "a MIG node that is coming may still be cut otherwise": (
        [
            pool("mig").a100(1).mig("all-1g.5gb", "all-1g.5gb", "all-3g.20gb").nodes(1, of=4),
            workload("w").slice("3g.20gb", model=A100),
        ],
        [],
    ),
    "but not to two things at once": (
        [
            pool("mig").a100(1).mig("all-1g.5gb", "all-1g.5gb", "all-3g.20gb").nodes(1, of=4),
            workload("w").slice("3g.20gb", model=A100),
            workload("v").slice("1g.5gb", model=A100),
        ],
        [("mig", 1, 2)],
    ),
    "seven slices on one MIG node": (
        [
            pool("mig").a100(1).mig("all-1g.5gb"),
            *[workload(f"w{i}").slice("1g.5gb", model=A100) for i in range(7)],
        ],
        [("mig", 0, 1)],
    ),
    "time-slices": ([pool("t").a10g(1).time_sliced(4), *[workload(f"w{i}").part(4) for i in range(5)]], [("t", 0, 2)]),
    "up to the least it keeps": ([ONE.nodes(0, of=4, least=2)], [("one", 0, 2)]),
    "the least and the waiting": ([ONE.nodes(0, of=4, least=2), *crowd(3)], [("one", 0, 3)]),
}


@pytest.mark.parametrize(("pieces", "expected"), GROWTH.values(), ids=GROWTH)
def test_growing(pieces: list[Piece], expected: list[tuple[str, int, int]]) -> None:
    assert grown(*pieces) == expected


def test_forty_wait_and_forty_are_bought_once() -> None:
    """Nodes are ready a minute and a half before they show their cards."""
    waiting = crowd(40)
    big = pool("one").h100(1).nodes(0, of=80)
    booting = [node(f"n{i}", "one").h100(1).booting(i % 3) for i in range(40)]

    assert grown(big, *waiting) == [("one", 0, 40)]
    assert grown(big.nodes(40, of=80), *waiting) == []
    assert grown(big.nodes(40, of=80), *booting[:17], *waiting) == []
    assert grown(big.nodes(40, of=80), *booting, *waiting) == []


def test_who_waits_for_a_node_is_told_so() -> None:
    actions = plan(look(ONE.nodes(1, of=2), node("n1", "one").h100(1).booting(), *crowd(3))).actions

    notes = sorted(action.text for action in actions if isinstance(action, Note))

    assert notes[0] == "A new node of pool one is asked for; it starts when that node shows its cards."
    assert notes[1].startswith("It needs 1 whole card of H100 80GB with 4 CPU and 16 GiB of memory.")
    assert "Pool one: no such node in service; it is at its most, 2 nodes." in notes[1]
    assert notes[2] == "Node n1 has joined and does not show its cards yet; it starts when it does."
    resize = next(action for action in actions if isinstance(action, Resize))
    assert str(resize) == "resize pool one from 1 to 2: 1 waiting workload will fit there and nowhere before"


# --- Down again ---

TWO = pool("one").h100(1).nodes(2, of=4)
N1, N2 = node("n1", "one").h100(1), node("n2", "one").h100(1)

EMPTY: dict[str, tuple[list[Piece], dict[str, float], list[str]]] = {
    "empty for long enough": ([TWO, N1, N2], {"n1": 16, "n2": 15}, ["n1", "n2"]),
    "empty for less": ([TWO, N1, N2], {"n1": 14, "n2": 1}, []),
    "nobody knows since when": ([TWO, N1, N2], {}, []),
    "the clock starts when it was usable": ([TWO, N1.usable(14), N2.usable(16)], {"n1": 60, "n2": 60}, ["n2"]),
    "it was never seen usable": ([TWO, N1.having(usable_since=None), N2], {"n1": 60, "n2": 60}, ["n2"]),
    "down to the least it keeps, longest empty first": (
        [TWO.nodes(2, of=4, least=1), N1, N2],
        {"n1": 16, "n2": 17},
        ["n2"],
    ),
    "one that holds a pod stays": ([TWO, N1, N2, workload("w").running_on("n1")], {"n1": 60, "n2": 60}, ["n2"]),
    "one that holds another's card stays": ([TWO, N1, N2, foreign("x", "n1").holding(1)], {"n1": 60, "n2": 60}, ["n2"]),
    "daemons do not keep it": (
        [TWO, N1, N2, *[foreign(name, "n1").having(cpu_milli=100) for name in ("exporter", "cni", "logs")]],
        {"n1": 60, "n2": 60},
        ["n1", "n2"],
    ),
    "a finished pod does not keep it": ([TWO, N1, N2, pod("w", "n1").holding(1).ended(0)], {"n1": 60}, ["n1"]),
    "a dying pod does": ([TWO, N1, N2, pod("w", "n1").holding(1).terminating(9)], {"n1": 60}, []),
    "what is placed and not seen yet keeps it": ([TWO, N1, N2, workload("w").placed_on("n1")], {"n1": 60}, []),
    "what this plan places keeps it": ([TWO, N1, N2, workload("w")], {"n1": 60, "n2": 60}, ["n2"]),
    "a node that somebody else cordoned is theirs": ([TWO, N1.cordoned(), N2], {"n1": 60}, []),
    "a node being cut stays": ([TWO, N1.having(cutting_to="all-1g.10gb", schedulable=False), N2], {"n1": 60}, []),
    "a pool of fixed size keeps its nodes": ([TWO.fixed(), N1, N2], {"n1": 60, "n2": 60}, []),
    "nobody knows how many were asked for": ([TWO.nodes(None, of=4), N1, N2], {"n1": 60, "n2": 60}, []),
    "a node of no pool stays": ([TWO, node("n3", "")], {"n3": 60}, []),
    "a pool that grows gives nothing back": (
        [TWO, N1, N2.host(1, 1), workload("w"), workload("v")],
        {"n2": 60},
        [],
    ),
    "a node that never showed its cards goes too": ([TWO, N1.booting(45), N2], {}, ["n1"]),
    "but not at once": ([TWO, N1.booting(29), N2], {}, []),
}


@pytest.mark.parametrize(("pieces", "empty", "names"), EMPTY.values(), ids=EMPTY)
def test_withdrawing(pieces: list[Piece], empty: dict[str, float], names: list[str]) -> None:
    actions = plan(look(*pieces, empty=empty)).actions

    assert sorted(action.node for action in actions if isinstance(action, Withdraw)) == names
    assert not [action for action in actions if isinstance(action, Resize) and action.drop]


def test_a_withdrawal_says_since_when_it_was_empty() -> None:
    actions = plan(look(TWO, N1, N2, empty={"n1": 95})).actions

    assert [str(one) for one in actions] == [
        "withdraw node n1: nothing of ours has been on it since 2026-12-01 10:25 UTC, 1 h 35 min"
    ]


LEAVING: dict[str, tuple[list[Piece], list[tuple[str, int, int, tuple[str, ...]]], list[str]]] = {
    "still empty at the next look: given back": ([TWO, N1.leaving(), N2], [("one", 2, 1, ("n1",))], []),
    "two at once": ([TWO, N1.leaving(), N2.leaving()], [("one", 2, 0, ("n1", "n2"))], []),
    "given back already: not asked again": ([TWO.nodes(1, of=4), N1.dropped(), N2], [], []),
    "given back already, and the mark was lost": ([TWO.nodes(1, of=4), N1.leaving(), N2], [], []),
    "a pod landed on it: it stays": ([TWO, N1.leaving(), N2, workload("w").running_on("n1")], [], ["n1"]),
    "somebody's pod landed on it: it stays": ([TWO, N1.leaving(), N2, foreign("x", "n1").holding(1)], [], ["n1"]),
    "something was placed there just before": ([TWO, N1.leaving(), N2, workload("w").placed_on("n1")], [], ["n1"]),
    "waiting work fits on it: it stays": (
        [TWO, N1.leaving(), N2, workload("a").running_on("n2"), workload("w")],
        [],
        ["n1"],
    ),
    "waiting work fits elsewhere: it goes": ([TWO, N1.leaving(), N2, workload("w")], [("one", 2, 1, ("n1",))], []),
    "given back already, so a new one is bought": (
        [TWO.nodes(1, of=4), N1.dropped(), N2, workload("a").running_on("n2"), workload("w")],
        [("one", 1, 2, ())],
        [],
    ),
    "the least was raised meanwhile": ([TWO.nodes(2, of=4, least=2), N1.leaving(), N2], [], ["n1"]),
    "the least was raised, one of two may go": (
        [TWO.nodes(2, of=4, least=1), N1.leaving(), N2.leaving()],
        [("one", 2, 1, ("n2",))],
        ["n1"],
    ),
    "its pool is not resized any more": ([TWO.fixed(), N1.leaving(), N2], [], ["n1"]),
    "nobody knows how many were asked for: it waits": ([TWO.nodes(None, of=4), N1.leaving(), N2], [], []),
    "a silent node that leaves is not taken back for waiting work": (
        [TWO, N1.leaving().silent(1), N2, workload("a").running_on("n2"), workload("w")],
        [("one", 2, 3, ())],
        [],
    ),
}


@pytest.mark.parametrize(("pieces", "sizes", "reopened"), LEAVING.values(), ids=LEAVING)
def test_leaving(pieces: list[Piece], sizes: list[tuple[str, int, int, tuple[str, ...]]], reopened: list[str]) -> None:
    picture = look(*pieces, empty={"n1": 20, "n2": 20})

    assert resizes(picture) == sizes
    assert sorted(one.node for one in plan(picture).actions if isinstance(one, Reopen)) == reopened


def test_nothing_is_placed_on_a_node_before_it_is_taken_back() -> None:
    actions = plan(look(TWO.nodes(1, of=4), N1.leaving(), workload("w"), workload("v"))).actions

    assert not [one for one in actions if isinstance(one, Place)]
    notes = {one.workload: one for one in actions if isinstance(one, Note)}
    assert {one.reason for one in notes.values()} == {Reason.WAITING_FOR_NODE}
    assert len([one for one in actions if isinstance(one, Reopen)]) == 1
    texts = sorted(one.text for one in notes.values())
    assert texts[1] == "Node n1 is taken back into service for it and is free at the next look."
    assert texts[0].startswith("A new node of pool one is asked for")


def test_cancelled_while_its_node_boots_the_pool_goes_back_to_its_least() -> None:
    """The node still comes, is seen empty, is withdrawn, and goes."""
    asked = TWO.nodes(1, of=4)

    assert resizes(look(asked)) == []
    assert resizes(look(asked, N1.booting(2))) == []
    seen = look(asked, N1.usable(16), empty={"n1": 16})
    assert [str(one).split(":")[0] for one in plan(seen).actions] == ["withdraw node n1"]
    assert resizes(look(asked, N1.leaving(), empty={"n1": 17})) == [("one", 1, 0, ("n1",))]


def test_a_workload_in_any_phase_but_waiting_buys_nothing() -> None:
    others = [workload(phase).in_phase(phase) for phase in Phase if phase is not Phase.WAITING]

    assert grown(ONE, *others) == []


def test_notes_name_everybody_who_waits() -> None:
    picture = look(ONE.nodes(0, of=2), *crowd(5))

    notes = [one.workload for one in plan(picture).actions if isinstance(one, Note)]

    assert sorted(notes, key=str) == sorted((identity(f"w{i}") for i in range(5)), key=str)
