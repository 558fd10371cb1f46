"""Which node is cut to what, and when it comes back."""

import pytest

from scheduling.planning.actions import Cut, Note, Place, Reopen
from scheduling.planning.cutting import failed_cuts
from scheduling.planning.facts import Reason
from scheduling.planning.plan import plan
from tests.scheduling.planning.builders import (
    A100,
    NodeBuilder,
    Piece,
    WorkloadBuilder,
    foreign,
    identity,
    look,
    minutes_ago,
    node,
    pool,
    quota,
    workload,
)

LAYOUTS = ("all-1g.5gb", "all-2g.10gb", "all-3g.20gb", "all-balanced", "all-disabled")
POOL = pool("mig").a100(1).mig("all-1g.5gb", *LAYOUTS).fixed()


def host(name: str, layout: str = "all-1g.5gb") -> NodeBuilder:
    return node(name, "mig").a100(1).mig(layout)


def slice_of(name: str, profile: str, minutes: float = 10) -> WorkloadBuilder:
    return workload(name).slice(profile, model=A100).asked(minutes)


def cuts(*pieces: Piece, of: Piece = POOL) -> list[tuple[str, str, str]]:
    actions = plan(look(of, *pieces)).actions
    return [(action.node, action.before, action.after) for action in actions if isinstance(action, Cut)]


BIG = slice_of("big", "3g.20gb")
CHOICES: dict[str, tuple[list[Piece], list[tuple[str, str]]]] = {
    "what fits is placed, nothing is cut": ([host("n1", "all-3g.20gb"), BIG], []),
    "an empty node is cut for what fits nowhere": ([host("n1"), BIG], [("n1", "all-balanced")]),
    "two halves fill a card, so it is cut for two": (
        [host("n1"), BIG, slice_of("big too", "3g.20gb")],
        [("n1", "all-3g.20gb")],
    ),
    "whoever is first in line is served, even if others would fill more": (
        [host("n1"), slice_of("first", "2g.10gb", 30), BIG, slice_of("big too", "3g.20gb")],
        [("n1", "all-balanced")],
    ),
    "one cut serves several": (
        [host("n1"), host("n2"), BIG, slice_of("middle", "2g.10gb")],
        [("n1", "all-balanced")],
    ),
    "two nodes for three halves": (
        [host("n1"), host("n2"), *[slice_of(f"w{i}", "3g.20gb") for i in range(3)]],
        [("n1", "all-3g.20gb"), ("n2", "all-balanced")],
    ),
    "who fits on a present node does not sway the layout": (
        [host("n1", "all-2g.10gb"), host("n2"), BIG, *[slice_of(f"s{i}", "1g.5gb", 5) for i in range(2)]],
        [("n1", "all-3g.20gb")],
    ),
    "the least change among equals": (
        [host("n1"), host("n2", "all-2g.10gb"), BIG],
        [("n2", "all-3g.20gb")],
    ),
    "back to whole cards": ([host("n1"), workload("w").whole(1, model=A100)], [("n1", "all-disabled")]),
    "cards to slices": (
        [host("n1", "all-disabled"), BIG],
        [("n1", "all-3g.20gb")],
    ),
    "a node that holds a pod is left alone": (
        [host("n1"), slice_of("small", "1g.5gb").running_on("n1"), BIG],
        [],
    ),
    "a node that holds somebody else's pod is left alone": (
        [host("n1"), foreign("x", "n1").holding(1, "nvidia.com/mig-1g.5gb"), BIG],
        [],
    ),
    "a node that somebody's dying pod holds is left alone": (
        [host("n1"), foreign("x", "n1").holding(1, "nvidia.com/mig-1g.5gb").terminating(9), BIG],
        [],
    ),
    "a daemon without a card does not matter": (
        [host("n1"), foreign("exporter", "n1"), BIG],
        [("n1", "all-balanced")],
    ),
    "a node with something placed and not seen yet is left alone": (
        [host("n1"), slice_of("small", "1g.5gb").placed_on("n1"), BIG],
        [],
    ),
    "a node on which this very plan places something is left alone": (
        [host("n1"), slice_of("small", "1g.5gb", 30), BIG],
        [],
    ),
    "a cordoned node is left alone": ([host("n1").cordoned(), BIG], []),
    "a node that still boots is left alone": ([host("n1").booting(), BIG], []),
    "a leaving node is left alone": ([host("n1").leaving(), BIG], []),
    "a silent node is left alone": ([host("n1").silent(1), BIG], []),
    "a node whose last cut failed is left alone": ([host("n1").cutting("all-2g.10gb", "failed"), BIG], []),
    "what is being cut already will do": ([host("n1").cutting("all-balanced"), host("n2"), BIG], []),
    "what is being cut will not do for two": (
        [host("n1").cutting("all-balanced"), host("n2"), BIG, slice_of("big too", "3g.20gb")],
        [("n2", "all-balanced")],
    ),
    "another layout is being cut": (
        [host("n1").cutting("all-2g.10gb"), host("n2"), BIG],
        [("n2", "all-balanced")],
    ),
    "a node that refused it is not cut for it": (
        [host("n1"), BIG.having(shunned=frozenset({"n1"}))],
        [],
    ),
    "too little memory beside it": ([host("n1").host(96, 8), BIG], []),
    "no layout offers it": ([host("n1"), slice_of("all", "7g.40gb")], []),
    "nothing is cut for what may not start": (
        [
            host("n1"),
            BIG.having(approval_pending=True),
            slice_of("later", "3g.20gb").having(not_before=minutes_ago(-5)),
        ],
        [],
    ),
}


@pytest.mark.parametrize(("pieces", "expected"), CHOICES.values(), ids=CHOICES)
def test_cutting(pieces: list[Piece], expected: list[tuple[str, str]]) -> None:
    assert [(name, after) for name, _, after in cuts(*pieces)] == expected


def test_a_pool_without_layouts_is_never_cut() -> None:
    assert cuts(host("n1"), BIG, of=pool("mig").a100(1).mig("all-1g.5gb").fixed()) == []


def test_a_pool_of_whole_cards_is_never_cut_whatever_its_layouts() -> None:
    whole = pool("mig").a100(1).having(layouts=LAYOUTS).fixed()

    assert cuts(node("n1", "mig").a100(1), BIG, of=whole) == []


def test_a_node_of_no_pool_is_never_cut() -> None:
    assert cuts(node("n1", "").a100(1).mig("all-1g.5gb"), BIG) == []


def test_a_node_with_other_cards_than_its_pool_is_never_cut() -> None:
    assert cuts(node("n1", "mig").h100(1).mig("all-1g.10gb"), workload("w").slice("3g.40gb")) == []


def test_nothing_is_cut_for_who_has_no_quota() -> None:
    """Nor does such a one sway the choice of the layout."""
    rich = [slice_of(f"rich{i}", "2g.10gb", 30 - i) for i in range(2)]
    poor = slice_of("poor", "3g.20gb").by(2, "speech")

    assert cuts(host("n1"), *rich, poor) == [("n1", "all-1g.5gb", "all-balanced")]
    assert cuts(host("n1"), *rich, poor, quota(0, team="speech", model=A100)) == [("n1", "all-1g.5gb", "all-2g.10gb")]
    assert cuts(host("n1"), poor, quota(0, team="speech", model=A100)) == []


def test_whom_a_cut_will_serve_waits_for_it_and_is_told_so() -> None:
    third = slice_of("third", "3g.20gb", 5)
    actions = plan(look(POOL, host("n1"), BIG, slice_of("big too", "3g.20gb"), third)).actions

    notes = {action.workload: action for action in actions if isinstance(action, Note)}

    assert notes[identity("big")].reason is notes[identity("big too")].reason is Reason.WAITING_FOR_CUT
    assert notes[identity("big")].text == "Node n1 is being cut to all-3g.20gb for it; it starts when that is done."
    assert notes[identity("third")].reason is Reason.WAITING_FOR_CAPACITY
    cut = next(action for action in actions if isinstance(action, Cut))
    assert str(cut) == "cut node n1 from all-1g.5gb to all-3g.20gb: serves 2 waiting workloads, 1 card in all"


COMING_BACK: dict[str, tuple[NodeBuilder, bool]] = {
    "done and seen": (host("n1").cutting("all-3g.20gb", "success"), True),
    "still under way": (host("n1").cutting("all-3g.20gb", "pending"), False),
    "rebooting": (host("n1").cutting("all-3g.20gb", "rebooting"), False),
    "failed": (host("n1").cutting("all-3g.20gb", "failed"), False),
    "the success of the cut before, old devices": (
        host("n1").shows("all-1g.5gb").cutting("all-3g.20gb", "success"),
        False,
    ),
    "no devices yet": (host("n1").cutting("all-3g.20gb", "success").having(devices=()), False),
    "devices that cannot be given out yet": (host("n1").cutting("all-3g.20gb", "success").sick(1), False),
    "one sick card of two": (host("n1").a100(2).cutting("all-3g.20gb", "success").sick(1), True),
    "too few cards were cut": (
        host("n1").shows("all-3g.20gb").having(cards=2).cutting("all-3g.20gb", "success"),
        False,
    ),
    "switched off, and whole cards are there": (host("n1").cutting("all-disabled", "success"), True),
    "cut alike, called nvidia.com/gpu": (
        node("n1", "mig").a100(1).mig("all-1g.5gb", single=True).cutting("all-3g.20gb", "success"),
        True,
    ),
    "a layout that we do not know": (host("n1").cutting("five-small", "success"), False),
}


@pytest.mark.parametrize(("cutting", "opened"), COMING_BACK.values(), ids=COMING_BACK)
def test_a_node_comes_back_when_its_cut_is_really_there(cutting: NodeBuilder, opened: bool) -> None:
    actions = plan(look(POOL, cutting)).actions

    assert [action.node for action in actions if isinstance(action, Reopen)] == (["n1"] if opened else [])


def test_nothing_is_placed_on_it_before_it_is_back() -> None:
    actions = plan(look(POOL, host("n1").cutting("all-3g.20gb", "success"), BIG)).actions

    assert not [action for action in actions if isinstance(action, Place | Cut)]
    assert [action.reason for action in actions if isinstance(action, Note)] == [Reason.WAITING_FOR_CUT]


def test_a_cut_that_was_ordered_is_not_ordered_again() -> None:
    """The node is marked and cordoned; its label changes once it is seen to hold nothing."""
    ordered = host("n1").having(cutting_to="all-3g.20gb", schedulable=False)

    assert plan(look(POOL, ordered)).actions == ()
    assert cuts(ordered, BIG) == []


def test_a_failed_cut_tells_the_operator_what_to_do() -> None:
    hosts = [
        host("n4").cutting("all-3g.20gb"),
        host("n3").having(mig_state="failed"),  # somebody else's cut
        host("n2").cutting("all-3g.20gb", "failed"),
        host("n1"),
    ]

    problems = failed_cuts(one.fact() for one in hosts)

    assert [(one.where, one.field) for one in problems] == [("n2", "metadata.labels[nvidia.com/mig.config.state]")]
    assert "could not cut it to all-3g.20gb" in problems[0].text
    assert "set the label nvidia.com/mig.config anew" in problems[0].text
