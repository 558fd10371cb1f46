"""What a cut is weighed against, how it prints, and what a person says about it."""

from dataclasses import replace
from datetime import timedelta as td
from fractions import Fraction as F
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduling.planning import catalog
from scheduling.planning.actions import Cut, Note, Plan, Recut, Withdraw
from scheduling.planning.coming import Coming
from scheduling.planning.cutting import Cutter
from scheduling.planning.due import next_due
from scheduling.planning.facts import Capacity, CutRules, Reason, RefusedCut, Snapshot
from scheduling.planning.outlook import outlook
from scheduling.planning.packing import Fleet
from scheduling.planning.plan import plan
from tests.scheduling.planning.builders import (
    A100,
    NodeBuilder,
    Piece,
    WorkloadBuilder,
    identity,
    look,
    minutes_ago,
    node,
    pool,
    quota,
    workload,
)
from tests.scheduling.planning.test_properties import pictures
from tests.scheduling.planning.toy import check_answers, check_cuts, check_quota

LAYOUTS = ("all-1g.5gb", "all-2g.10gb", "all-3g.20gb", "all-balanced", "all-disabled", "cut-1x3g.20gb_1x4g.20gb")
POOL = pool("mig").a100(1).mig("all-1g.5gb", *LAYOUTS).fixed()
ASKING = CutRules(asks=frozenset({"mig"}))
USUAL = (A100, Capacity.ON_DEMAND)


def host(name: str, layout: str = "all-1g.5gb", cards: int = 1) -> NodeBuilder:
    return node(name, "mig").a100(cards).mig(layout)


def slice_of(name: str, profile: str, minutes: float = 10) -> WorkloadBuilder:
    wish = workload(name).slice(profile, model=A100).asked(minutes)
    return wish.having(phase_since=minutes_ago(minutes))


def planned(*pieces: Piece, rules: CutRules | None = None, of: Piece = POOL) -> Plan:
    return plan(replace(look(of, *pieces), cutting=rules or CutRules()))


def cuts(found: Plan) -> list[tuple[str, str]]:
    return [(one.node, one.after) for one in found.actions if isinstance(one, Cut)]


def usually(**rules: Any) -> CutRules:
    """Instances that are usually wanted at a time: usually(_3g=2) is two of 3g.20gb."""
    names = {"_1g": "1g.5gb", "_2g": "2g.10gb", "_3g": "3g.20gb", "_4g": "4g.20gb", "whole": ""}
    usual = {names[name]: F(load) for name, load in rules.items() if name in names}
    return CutRules(usual={USUAL: usual}, **{name: rule for name, rule in rules.items() if name not in names})


BIG, TOO = slice_of("big", "3g.20gb"), slice_of("big too", "3g.20gb", 5)


def test_a_cut_prints_as_a_diff() -> None:
    (told,) = planned(host("n1", cards=2), BIG, TOO, slice_of("third", "3g.20gb", 4)).recuts

    assert told.diff().splitlines() == [
        "node n1 of pool mig, 2 cards: all-1g.5gb -> all-3g.20gb",
        "- 14 x 1g.5gb",
        "+ 4 x 3g.20gb",
        "lets in: big, big too and third",
        "costs: 2 cards out of service for 5 min",
    ]
    assert (told.served, told.agreed) == (F(3, 2), True)


def test_it_says_what_would_usually_be_in_use_meanwhile_and_only_what_changes() -> None:
    (told,) = planned(host("n1", "all-balanced"), slice_of("w", "4g.20gb"), rules=usually(_1g=1, _3g=1)).recuts

    assert told.unmade == {"1g.5gb": 2, "2g.10gb": 1}
    assert told.made == {"4g.20gb": 1}
    assert told.lost is not None
    assert 0 < told.lost < 1
    assert str(told).endswith(" of them would usually be in use meanwhile")
    assert "\n" not in str(told)


def test_whole_cards_are_named_as_such() -> None:
    (told,) = planned(host("n1", "all-disabled"), BIG).recuts

    assert told.diff().splitlines()[1] == "- 1 whole card"


FEWEST: dict[str, tuple[list[Piece], list[tuple[str, str]]]] = {
    "one card rather than eight for one": ([host("n1", cards=8), host("n2"), BIG], [("n2", "all-balanced")]),
    "eight for many": (
        [host("n1", cards=8), *[slice_of(f"w{i}", "3g.20gb") for i in range(9)]],
        [("n1", "all-3g.20gb")],
    ),
    "small nodes that are filled rather than a large one that is not": (
        [host("n1", cards=8), host("n2"), BIG, TOO],
        [("n2", "all-3g.20gb")],
    ),
    "a three and a four share a card where a mixed layout is named": (
        [host("n1"), BIG, slice_of("four", "4g.20gb")],
        [("n1", "cut-1x3g.20gb_1x4g.20gb")],
    ),
}


@pytest.mark.parametrize(("pieces", "expected"), FEWEST.values(), ids=FEWEST)
def test_fewest_cards_are_changed(pieces: list[Piece], expected: list[tuple[str, str]]) -> None:
    assert cuts(planned(*pieces)) == expected


WEIGHED: dict[str, tuple[CutRules, list[Piece], list[tuple[str, str]]]] = {
    "nobody knows what is usual, so who waits is served": (CutRules(), [BIG], [("n1", "all-balanced")]),
    "what is usual decides between layouts that serve alike": (
        usually(_1g=1, _3g=3),
        [BIG],
        [("n1", "all-3g.20gb")],
    ),
    "a node whose slices are usually all in use is not cut for one that has only just come": (
        usually(_1g=40),
        [slice_of("new", "2g.10gb", 1)],
        [],
    ),
    "but it is for one who has waited long": (
        usually(_1g=40),
        [slice_of("old", "2g.10gb", 31)],
        [("n1", "all-balanced")],
    ),
    "a cut that takes very long": (usually(_1g=4, minutes=100_000), [BIG], []),
}


@pytest.mark.parametrize(("rules", "pieces", "expected"), WEIGHED.values(), ids=WEIGHED)
def test_a_cut_is_weighed(rules: CutRules, pieces: list[Piece], expected: list[tuple[str, str]]) -> None:
    assert cuts(planned(host("n1"), *pieces, rules=rules)) == expected


def test_whoever_is_weighed_against_what_is_usual_is_told_until_when() -> None:
    """And the node is not cut to something else meanwhile."""
    found = planned(host("n1", "all-2g.10gb"), slice_of("big", "3g.20gb", 10), rules=usually(_1g=40, _2g=9))

    assert cuts(found) == []
    ((reason, text),) = notes(found).values()
    assert reason is Reason.WAITING_FOR_CAPACITY
    assert "what is usually asked for needs it as it is; it is cut all the same at 2026-12-01 12:20 UTC" in text
    assert "no empty node" not in text


AHEAD: dict[str, tuple[CutRules, list[Piece], list[tuple[str, str]]]] = {
    "nothing is known": (CutRules(), [host("n1")], []),
    "threes are usual and there are none": (
        usually(_3g=2),
        [host("n1"), host("n2")],
        [("n1", "all-3g.20gb"), ("n2", "all-3g.20gb")],
    ),
    "only so many as are usual": (
        usually(_3g="1/2", _1g=6),
        [host("n1"), host("n2"), host("n3")],
        [("n1", "all-3g.20gb")],
    ),
    "threes are being cut already": (
        usually(_3g="1/10", _1g=1),
        [host("n1").cutting("all-3g.20gb"), host("n2")],
        [],
    ),
    "a small advantage moves nothing": (usually(_3g="1/50", _1g=7), [host("n1"), host("n2")], []),
    "whole cards are usual": (usually(whole=1), [host("n1")], [("n1", "all-disabled")]),
    "a node that holds a pod is left alone": (
        usually(_3g=2),
        [host("n1"), slice_of("w", "1g.5gb").running_on("n1")],
        [],
    ),
    "a node on which this plan places something is left alone": (
        usually(_3g=2),
        [host("n1"), slice_of("w", "1g.5gb")],
        [],
    ),
    "a node that may yet be cut for who waits is left alone": (
        usually(_1g=40, _2g=9),
        [host("n1", "all-2g.10gb"), slice_of("w", "3g.20gb", 1)],
        [],
    ),
    "but not for who may not start anyway": (
        usually(_3g=2),
        [host("n1"), slice_of("w", "2g.10gb").having(approval_pending=True)],
        [("n1", "all-3g.20gb")],
    ),
    "a cordoned node is left alone": (usually(_3g=2), [host("n1").cordoned()], []),
    "in a pool whose operator wants to be asked nothing is cut ahead": (
        usually(_3g=2, asks=frozenset({"mig"})),
        [host("n1")],
        [],
    ),
}


@pytest.mark.parametrize(("rules", "pieces", "expected"), AHEAD.values(), ids=AHEAD)
def test_empty_nodes_are_cut_ahead(rules: CutRules, pieces: list[Piece], expected: list[tuple[str, str]]) -> None:
    found = planned(*pieces, rules=rules)

    assert cuts(found) == expected
    assert [(told.node, told.after, told.lets_in) for told in found.recuts] == [(*one, ()) for one in expected]


def test_a_node_that_may_be_given_back_is_not_cut_ahead() -> None:
    growing = pool("mig").a100(1).mig("all-1g.5gb", *LAYOUTS).nodes(1, of=3)

    assert cuts(planned(host("n1"), of=growing, rules=usually(_3g=2))) == []
    kept = growing.nodes(1, of=3, least=1)
    assert cuts(planned(host("n1"), of=kept, rules=usually(_3g=2))) == [("n1", "all-3g.20gb")]


def test_a_cut_ahead_says_so() -> None:
    found = planned(host("n1"), rules=usually(_3g=2))

    assert str(found) == (
        "cut node n1 from all-1g.5gb to all-3g.20gb: carries more of what is usually asked for; nobody waits for it"
    )
    assert "lets in: nobody yet, what is usually asked for" in found.recuts[0].diff()


# --- A person is asked ---


def notes(found: Plan) -> dict[str, tuple[Reason, str]]:
    names = {identity(name): name for name in ("big", "big too", "third")}
    return {names[one.workload]: (one.reason, one.text) for one in found.actions if isinstance(one, Note)}


def test_a_pool_may_want_to_be_asked() -> None:
    found = planned(host("n1"), BIG, TOO, rules=ASKING)

    assert cuts(found) == []
    (told,) = found.proposals
    assert (told.node, told.after, told.lets_in) == ("n1", "all-3g.20gb", (identity("big"), identity("big too")))
    text = "An operator is asked whether node n1 may be cut to all-3g.20gb for it."
    assert notes(found) == {"big": (Reason.WAITING_FOR_CUT, text), "big too": (Reason.WAITING_FOR_CUT, text)}


def test_one_node_is_asked_about_once_and_the_next_one_for_who_does_not_fit() -> None:
    found = planned(host("n1"), host("n2"), BIG, TOO, slice_of("third", "3g.20gb", 4), rules=ASKING)

    assert [(told.node, told.names) for told in found.proposals] == [("n1", ("big", "big too")), ("n2", ("third",))]


def test_what_a_person_agreed_to_is_carried_out() -> None:
    rules = replace(ASKING, agreed=frozenset({("n1", "all-3g.20gb")}))

    found = planned(host("n1"), BIG, TOO, rules=rules)

    assert cuts(found) == [("n1", "all-3g.20gb")]
    assert found.proposals == ()


def test_agreed_is_one_node_and_one_layout_and_only_while_it_is_empty() -> None:
    rules = replace(ASKING, agreed=frozenset({("n1", "all-3g.20gb")}))
    busy = slice_of("small", "1g.5gb").running_on("n1")

    found = planned(host("n1"), host("n2"), busy, BIG, TOO, rules=rules)

    assert cuts(found) == []
    assert [told.node for told in found.proposals] == ["n2"]


def test_what_a_person_agreed_to_is_found_behind_a_node_that_is_alike() -> None:
    rules = replace(ASKING, agreed=frozenset({("n2", "all-3g.20gb")}))

    assert cuts(planned(host("n1"), host("n2"), BIG, TOO, rules=rules)) == [("n2", "all-3g.20gb")]


def refused(*names: str) -> CutRules:
    return replace(ASKING, refused=(RefusedCut("mig", frozenset(map(identity, names))),))


REFUSED: dict[str, tuple[CutRules, list[Piece], int]] = {
    "not now, and nothing has changed": (refused("big", "big too"), [BIG, TOO], 0),
    "one of them went away": (refused("big", "big too"), [BIG], 0),
    "another node would do as well": (refused("big", "big too"), [host("n2"), BIG, TOO], 0),
    "one more waits": (refused("big"), [BIG, TOO], 1),
    "others wait": (refused("big"), [TOO], 1),
    "it was another pool's": (replace(ASKING, refused=(RefusedCut("x", frozenset({identity("big")})),)), [BIG], 1),
}


@pytest.mark.parametrize(("rules", "pieces", "asked"), REFUSED.values(), ids=REFUSED)
def test_what_was_refused_stays_so_until_demand_changes(rules: CutRules, pieces: list[Piece], asked: int) -> None:
    found = planned(host("n1"), *pieces, rules=rules)

    assert len(found.proposals) == asked
    assert cuts(found) == []
    reasons = {reason for reason, _ in notes(found).values()}
    assert reasons == {Reason.WAITING_FOR_CUT if asked else Reason.WAITING_FOR_CAPACITY}


def test_whoever_waits_is_told_that_it_was_put_off() -> None:
    found = planned(host("n1"), BIG, rules=refused("big"))

    assert "an operator has put off the cut that would let it in" in notes(found)["big"][1]


def test_where_nobody_has_to_be_asked_is_taken_first() -> None:
    free = pool("free").a100(1).mig("all-1g.5gb", "all-balanced").fixed()

    found = planned(host("n1"), free, node("n9", "free").a100(1).mig("all-1g.5gb"), BIG, rules=ASKING)

    assert (cuts(found), found.proposals) == ([("n9", "all-balanced")], ())


def test_a_new_node_needs_no_question() -> None:
    growing = pool("mig").a100(1).mig("all-3g.20gb", *LAYOUTS).nodes(1, of=2)

    found = planned(host("n1"), BIG, of=growing, rules=ASKING)

    assert found.proposals == ()
    assert notes(found)["big"][0] is Reason.WAITING_FOR_NODE


def test_a_node_that_gets_work_in_the_same_plan_is_no_question() -> None:
    found = planned(host("n1"), BIG, slice_of("small", "1g.5gb", 1), rules=ASKING)

    assert found.proposals == ()


def test_a_node_is_not_given_back_while_somebody_is_asked_about_it() -> None:
    full = pool("mig").a100(1).mig("all-1g.5gb", *LAYOUTS).nodes(1, of=1)
    picture = replace(look(full, host("n1"), BIG, empty={"n1": 60}), cutting=ASKING)

    asked, put_off = plan(picture), plan(replace(picture, cutting=refused("big")))

    assert [told.node for told in asked.proposals] == ["n1"]
    assert [type(one) for one in asked.actions] == [Note]
    assert [one.node for one in put_off.actions if isinstance(one, Withdraw)] == ["n1"]


def test_the_request_form_says_that_somebody_would_be_asked() -> None:
    said = outlook(replace(look(POOL, host("n1"), quota(9, model=A100)), cutting=ASKING), BIG.fact())

    assert said.kind == "waits"
    assert said.text.startswith("An operator would be asked whether an empty node may be cut to all-balanced for it")


# --- Whatever the picture ---

CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, max_examples=60)
PROFILES = ["1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", ""]
rules_of_any_kind = st.builds(
    lambda usual, asks, minutes, agreed: CutRules(
        usual={USUAL: usual}, asks=asks, minutes=minutes, agreed=frozenset(agreed)
    ),
    st.dictionaries(st.sampled_from(PROFILES), st.fractions(0, 6, max_denominator=4)),
    st.sampled_from([frozenset(), frozenset({"mig"})]),
    st.integers(1, 60),
    st.lists(st.tuples(st.sampled_from(["n0", "n1"]), st.sampled_from(LAYOUTS)), max_size=2),
)


@CALM
@given(pictures(), rules_of_any_kind)
def test_no_plan_cuts_under_a_running_pod_or_to_what_is_illegal(picture: Snapshot, rules: CutRules) -> None:
    found = plan(replace(picture, cutting=rules))

    check_answers(picture, found)
    check_quota(picture, found)
    check_cuts(picture, found)
    allowed = {one.name: one.layouts for one in picture.pools}
    for told in found.recuts:
        assert told.after in allowed[told.pool]
        assert_legal(told, next(one for one in picture.nodes if one.name == told.node).model)
    asked = {told.node for told in found.proposals}
    assert not asked & {one.node for one in found.actions if isinstance(one, Cut)}


def assert_legal(told: Recut, model: str) -> None:
    known = catalog.model(model)
    assert known is not None
    assert known.mig is not None
    layout = catalog.layout(known, told.after)
    assert layout is not None
    wanted = [one for one in known.mig.profiles for _ in range(layout.counts.get(one.name, 0))]
    assert catalog.legal_places(known.mig, wanted) is not None


@CALM
@given(
    st.lists(st.tuples(st.sampled_from(LAYOUTS), st.integers(1, 4)), min_size=1, max_size=6),
    st.dictionaries(st.sampled_from(PROFILES), st.fractions(0, 9, max_denominator=4)),
    st.integers(1, 30),
)
def test_the_plan_of_an_applied_plan_is_empty(hosts: list[tuple[str, int]], usual: dict[str, F], minutes: int) -> None:
    """While the nodes are being cut, and when they are back."""
    rules = CutRules(usual={USUAL: usual}, minutes=minutes)
    nodes = {f"n{number}": host(f"n{number}", *one) for number, one in enumerate(hosts)}
    first = cuts(planned(*nodes.values(), rules=rules))

    under_way = nodes | {name: nodes[name].cutting(after) for name, after in first}
    assert cuts(planned(*under_way.values(), rules=rules)) == []
    back = nodes | {name: nodes[name].mig(after) for name, after in first}
    assert planned(*back.values(), rules=rules).actions == ()


def test_when_patience_ends_is_a_moment_at_which_to_look_again() -> None:
    wish = slice_of("new", "2g.10gb", 1)
    rules = usually(_1g=40)
    picture = replace(look(POOL, host("n1"), wish), cutting=rules)
    due = next_due(picture)

    assert due == wish.fact().phase_since + rules.patience
    assert cuts(plan(replace(picture, now=due - td(microseconds=1)))) == []
    assert cuts(plan(replace(picture, now=due))) == [("n1", "all-balanced")]


@CALM
@given(pictures(), rules_of_any_kind, st.floats(0, 1, exclude_max=True))
def test_before_that_time_cuts_nothing(picture: Snapshot, rules: CutRules, part: float) -> None:
    picture = replace(picture, cutting=rules)
    due = next_due(picture) or picture.now + td(days=9)
    later = replace(picture, now=picture.now + (due - picture.now) * part)

    assert cuts(plan(later)) == cuts(plan(picture))


def test_patience_is_counted_since_it_waits_not_since_it_was_first_asked_for() -> None:
    woken = slice_of("woken", "2g.10gb", 600).having(phase_since=minutes_ago(2))

    assert cuts(planned(host("n1"), woken, rules=usually(_1g=40))) == []


def test_a_node_without_cards_is_no_candidate() -> None:
    bare = replace(host("n1").fact(), cards=0)
    picture = replace(look(POOL, BIG), nodes=(bare,))

    cutter = Cutter(replace(picture, cutting=CutRules(patience=td(0))), Fleet(), Coming())

    assert cutter.best(BIG.fact(), []) is None
