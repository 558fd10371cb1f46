"""Whose turn it is, and how much each may still take."""

from fractions import Fraction as F

import pytest

from scheduling.planning.facts import Desired, Phase, QuotaFact, Sharing
from scheduling.planning.order import Ledger, in_line
from tests.scheduling.planning.builders import (
    A10G,
    NOW,
    WorkloadBuilder,
    identity,
    look,
    minutes_ago,
    node,
    quota,
    workload,
)

ROOM = {
    "nothing held": (quota(4), [], 1, F(4)),
    "a slice leaves seven eighths": (quota(1), [workload("a").slice("1g.10gb").running_on("n")], 1, F(7, 8)),
    "cards times their share": (quota(8), [workload("a").whole(3).running_on("n")], 1, F(5)),
    "a colleague's cards count": (quota(4), [workload("a").whole(3).by(2).running_on("n")], 1, F(1)),
    "another team's do not": (quota(4), [workload("a").whole(3).by(2, "speech").running_on("n")], 1, F(4)),
    "another model's do not": (quota(4), [workload("a").part(4).running_on("n")], 1, F(4)),
    "what waits or sleeps holds nothing": (
        quota(4),
        [workload("a").whole(2), workload("b").whole(2).in_phase(Phase.ASLEEP)],
        1,
        F(4),
    ),
    "what is placed, starting or stopping holds": (
        quota(4),
        [
            workload(phase).whole(1).in_phase(phase, node="n")
            for phase in (Phase.PLACED, Phase.STARTING, Phase.STOPPING)
        ],
        1,
        F(1),
    ),
    "what stops for longer than its grace holds nothing of it (Q11)": (
        quota(4),
        [workload("stuck").whole(3).in_phase(Phase.STOPPING)],
        1,
        F(4),
    ),
    "the own grant is used first": (quota(2, own={1: 3}), [workload("a").whole(2).running_on("n")], 1, F(3)),
    "the rest comes from the team": (quota(2, own={1: 3}), [workload("a").whole(4).running_on("n")], 1, F(1)),
    "nobody uses another's own grant": (quota(2, own={1: 3}), [workload("a").whole(2).running_on("n")], 2, F(2)),
    "an own grant stands when the team has used up its own": (
        quota(2, own={1: 1}),
        [workload("a").whole(2).by(2).running_on("n")],
        1,
        F(1),
    ),
    "lowered below use is no room, not less": (quota(4), [workload("a").whole(6).running_on("n")], 1, F(0)),
    "a team without a grant has no room": (quota(4, team="speech"), [], 1, F(0)),
}


@pytest.mark.parametrize(("line", "held", "member", "room"), ROOM.values(), ids=ROOM)
def test_room(line: QuotaFact, held: list[WorkloadBuilder], member: int, room: F) -> None:
    ledger = Ledger(look(node("n"), line, *held))

    assert ledger.room(workload("next").by(member).fact()) == room


def test_what_is_held_in_other_clusters_counts() -> None:
    elsewhere = QuotaFact(identity("team vision"), "h100-80gb", F(4), elsewhere={2: F(3)})

    assert Ledger(look(elsewhere)).room(workload("next").fact()) == 1


def test_what_is_taken_is_gone_at_once() -> None:
    ledger = Ledger(look(quota(4)))

    ledger.take(workload("a").whole(3).fact())

    assert ledger.room(workload("b").fact()) == 1


HELD = workload("a").whole(3)
REFUSALS = {
    "room enough": (quota(4), HELD.running_on("n"), workload("b").whole(1), ""),
    "full": (
        quota(4),
        workload("a").whole(4).running_on("n"),
        workload("b").slice("3g.40gb"),
        (
            "Vision holds 4 of 4 cards of H100 80GB; this needs 1/2. "
            "It starts when 1/2 card is given back, or ask your lead for more."
        ),
    ),
    "partly free, and an end is known": (
        quota(4),
        workload("a").whole(3).running_on("n").having(ends_at=minutes_ago(-30)),
        workload("b").whole(2),
        (
            "Vision holds 3 of 4 cards of H100 80GB; this needs 2. "
            "It starts when 1 card is given back (the next end is due at 2026-12-01 12:30 UTC), "
            "or ask your lead for more."
        ),
    ),
    "more than the grant": (
        quota(4),
        HELD,
        workload("b").whole(8),
        (
            "Vision holds 0 of 4 cards of H100 80GB; this needs 8. "
            "That is more than the 4 granted: ask your lead for a grant."
        ),
    ),
    "more than the team's, but not with one's own": (
        quota(2, own={1: 3}),
        workload("a").whole(3).running_on("n"),
        workload("b").whole(4),
        (
            "Vision holds 0 of 2 cards of H100 80GB, and you hold 3 of 3 of your own; this needs 4. "
            "It starts when 2 cards are given back, or ask your lead for more."
        ),
    ),
    "over quota": (
        quota(4),
        workload("a").whole(6).running_on("n"),
        workload("b").whole(1),
        (
            "Vision holds 6 of 4 cards of H100 80GB; this needs 1. "
            "It starts when 3 cards are given back, or ask your lead for more."
        ),
    ),
    "a grant of nothing": (
        quota(0),
        HELD,
        workload("b").whole(1),
        "Vision has been granted no cards of H100 80GB; this needs 1. Ask your lead for a grant.",
    ),
    "no grant at all": (
        quota(4, model=A10G),
        HELD,
        workload("b").whole(1),
        "Your team has been granted no cards of H100 80GB; this needs 1. Ask your lead for a grant.",
    ),
    "with a grant of one's own": (
        quota(2, own={1: 1}),
        workload("a").whole(3).running_on("n"),
        workload("b").whole(1),
        (
            "Vision holds 2 of 2 cards of H100 80GB, and you hold 1 of 1 of your own; this needs 1. "
            "It starts when 1 card is given back, or ask your lead for more."
        ),
    ),
}


@pytest.mark.parametrize(("line", "held", "wish", "words"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_has_the_rule_the_number_and_what_to_do(
    line: QuotaFact, held: WorkloadBuilder, wish: WorkloadBuilder, words: str
) -> None:
    assert Ledger(look(node("n"), line, held, plenty=False)).refusal(wish.fact()) == words


def test_a_quarter_by_time_counts_a_quarter() -> None:
    ledger = Ledger(look(quota(1, model=A10G)))
    for name in "abcd":
        assert ledger.refusal(workload(name).part(4).fact()) == ""
        ledger.take(workload(name).part(4).fact())

    assert ledger.refusal(workload("e").part(4, sharing=Sharing.MPS).fact()) != ""


def test_in_line_stand_priority_then_time_then_a_fixed_order() -> None:
    early, late = workload("early").asked(30), workload("late").asked(5)
    urgent, twin = workload("urgent").asked(1).having(priority=5), workload("twin").asked(30)
    line = [early, late, urgent, twin]

    names = [one.name for one in in_line(one.fact() for one in line)]
    backwards = [one.name for one in in_line(one.fact() for one in reversed(line))]

    assert names == backwards
    assert (names[0], set(names[1:3]), names[3]) == ("urgent", {"early", "twin"}, "late")


def test_only_what_waits_and_wants_to_run_stands_in_line() -> None:
    others = [
        workload("ends").wants(Desired.END),
        workload("sleeps").wants(Desired.SLEEP),
        workload("runs").running_on("n"),
        workload("asleep").in_phase(Phase.ASLEEP),
    ]

    assert in_line(one.fact() for one in others) == []
    assert look().now == NOW
