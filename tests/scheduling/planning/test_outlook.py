"""What the request form says before anybody submits."""

from fractions import Fraction as F

import pytest

from scheduling.planning.outlook import outlook, outlooks
from tests.scheduling.planning.builders import (
    A100,
    Piece,
    WorkloadBuilder,
    foreign,
    look,
    node,
    pool,
    quota,
    workload,
)

POOL = pool("h100").h100(8).nodes(1, of=1)
N1 = node("n1").h100(8)
SIX = workload("six").whole(6).running_on("n1").by(2, "speech")
WISH = workload("this request").asked(0)

CASES: dict[str, tuple[list[Piece], WorkloadBuilder, str, str, int, F]] = {
    "it starts now": (
        [POOL, N1, SIX, quota(4)],
        WISH.whole(2),
        "now",
        "Starts now: 2 whole cards of H100 80GB in pool h100, 2 free.",
        2,
        F(4),
    ),
    "it is more than is left": (
        [POOL, N1, quota(2)],
        WISH.whole(4),
        "lead",
        (
            "Vision holds 0 of 2 cards of H100 80GB; this needs 4. That is more than the 2 granted: "
            "ask your lead for a grant."
        ),
        8,
        F(2),
    ),
    "it wakes a node from zero": (
        [pool("h100").h100(8), quota(4)],
        WISH.whole(1),
        "waits",
        "Pool h100 would wake a node for it; it starts when that node shows its cards.",
        0,
        F(4),
    ),
    "it waits for capacity": (
        [POOL, N1, SIX, quota(4)],
        WISH.whole(3),
        "waits",
        (
            "It needs 3 whole cards of H100 80GB on one node with 4 CPU and 16 GiB of memory. "
            "Pool h100: 2 of 8 free, at most 2 on one node; it is at its most, 1 node. "
            "It starts when enough is given back."
        ),
        2,
        F(4),
    ),
    "who already waits goes first": (
        [POOL, N1, SIX, quota(4), workload("before").whole(2).by(2, "speech")],
        WISH.whole(1),
        "waits",
        (
            "It needs 1 whole card of H100 80GB with 4 CPU and 16 GiB of memory. "
            "Pool h100: 0 of 8 free; it is at its most, 1 node. It starts when enough is given back."
        ),
        0,
        F(4),
    ),
    "a colleague who waits takes the quota first": (
        [POOL, N1, quota(2), workload("before").whole(2).by(2)],
        WISH.whole(1),
        "lead",
        (
            "Vision holds 2 of 2 cards of H100 80GB; this needs 1. "
            "It starts when 1 card is given back, or ask your lead for more."
        ),
        6,
        F(0),
    ),
    "a node would be cut for it": (
        [
            pool("mig").a100(1).mig("all-1g.5gb", "all-3g.20gb").fixed(),
            node("m1", "mig").a100(1).mig("all-1g.5gb"),
            quota(1, model=A100),
        ],
        WISH.slice("3g.20gb", model=A100),
        "waits",
        "An empty node would be cut to all-3g.20gb for it; it starts when that is done.",
        0,
        F(1),
    ),
    "others hold cards too": (
        [POOL, N1, foreign("x", "n1").holding(8), quota(4)],
        WISH.whole(1),
        "waits",
        "0 of 8",
        0,
        F(4),
    ),
}


@pytest.mark.parametrize(("pieces", "wish", "kind", "text", "free", "left"), CASES.values(), ids=CASES)
def test_outlook(pieces: list[Piece], wish: WorkloadBuilder, kind: str, text: str, free: int, left: F) -> None:
    found = outlook(look(*pieces), wish.fact())

    assert (found.kind, found.free_units, found.quota_left) == (kind, free, left)
    assert text in found.text


def test_many_wishes_are_each_judged_as_if_alone() -> None:
    picture = look(POOL, N1, SIX, quota(4))
    wishes = [WISH.whole(count).fact() for count in (2, 2, 3, 1)]

    together = outlooks(picture, wishes)

    assert together == [outlook(picture, wish) for wish in wishes]
    assert [one.kind for one in together] == ["now", "now", "waits", "now"]


def test_a_cluster_that_cannot_be_read_promises_nothing() -> None:
    picture = look(POOL, N1, quota(4), complete=False)

    assert outlook(picture, WISH.whole(1).fact()).kind == "waits"
    assert "could not be read" in outlook(picture, WISH.whole(1).fact()).text
    assert outlook(picture, WISH.whole(5).fact()).kind == "lead"
