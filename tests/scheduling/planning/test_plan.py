"""The plan as a whole: order, sentences, and what a bad picture must never lead to."""

from dataclasses import replace

import pytest

from scheduling.planning.actions import Cut, Note, Place, Plan, Reopen, Resize, Sleep, Stop, Withdraw
from scheduling.planning.facts import Desired, Phase, Reason, Sharing
from scheduling.planning.plan import plan
from tests.scheduling.planning.builders import (
    A10G,
    A100,
    H100,
    Piece,
    WorkloadBuilder,
    foreign,
    identity,
    job,
    look,
    minutes_ago,
    node,
    pod,
    pool,
    quota,
    statefulset,
    workload,
)

POOL = pool("h100").h100(8).nodes(1, of=1)
N1 = node("n1").h100(8)
FULL = [workload(f"full{number}").whole(8).running_on(f"n{number}") for number in (1,)]


def notes(*pieces: Piece) -> dict[str, tuple[Reason, str]]:
    """What everybody who waits is told, by the name of the workload."""
    names = {
        identity(piece.facts["name"]): piece.facts["name"] for piece in pieces if isinstance(piece, WorkloadBuilder)
    }
    actions = plan(look(*pieces)).actions
    return {names[one.workload]: (one.reason, one.text) for one in actions if isinstance(one, Note)}


def places(*pieces: Piece) -> list[Place]:
    return [one for one in plan(look(*pieces)).actions if isinstance(one, Place)]


def test_what_fits_is_placed() -> None:
    found = places(POOL, N1, workload("a").whole(2))

    assert found == [Place(identity("a"), "n1", "h100", "nvidia.com/gpu", 2, workload("a").whole(2).fact().share)]


def test_a_slice_is_asked_for_by_the_name_that_its_node_uses() -> None:
    mixed = places(node("n1").mig("all-1g.10gb"), workload("a").slice("1g.10gb"))
    single = places(node("n1").mig("all-1g.10gb", single=True), workload("a").slice("1g.10gb"))

    assert [one.resource for one in (*mixed, *single)] == ["nvidia.com/mig-1g.10gb", "nvidia.com/gpu"]


WAITING: dict[str, tuple[list[Piece], Reason, str]] = {
    "its lead has yet to decide": (
        [POOL, N1, workload("a").having(approval_pending=True)],
        Reason.WAITING_FOR_APPROVAL,
        "It waits for your lead to decide on the quota request that came with it.",
    ),
    "it pauses after a failure": (
        [POOL, N1, workload("a").having(not_before=minutes_ago(-4), failures=2)],
        Reason.BACKING_OFF,
        "It pauses after 2 failures in a row and is not tried again until 2026-12-01 12:04 UTC.",
    ),
    "its quota is used up": (
        [POOL, N1, quota(2), workload("b").whole(2).running_on("n1"), workload("a")],
        Reason.WAITING_FOR_QUOTA,
        (
            "Vision holds 2 of 2 cards of H100 80GB; this needs 1. "
            "It starts when 1 card is given back, or ask your lead for more."
        ),
    ),
    "no pool has such a thing": (
        [POOL, N1, workload("a").slice("1g.10gb")],
        Reason.UNKNOWN_FLAVOR,
        (
            "No pool offers 1 slice 1g.10gb of H100 80GB on demand. "
            "Choose another flavor, or ask an operator for such a pool."
        ),
    ),
    "two shares of one card": (
        [
            pool("t").a10g(4).mps(4),
            node("n1", "t").a10g(4).mps(4),
            workload("a").part(4, sharing=Sharing.MPS).having(count=2),
        ],
        Reason.UNKNOWN_FLAVOR,
        "It asks for 2, but a container gets at most 1 MPS share. Ask for 1, or for whole cards.",
    ),
    "nothing at all": (
        [POOL, N1, workload("a").whole(0)],
        Reason.UNKNOWN_FLAVOR,
        "It asks for 0 units; ask for at least 1.",
    ),
    "the pool is full and cannot grow": (
        [POOL, N1, *FULL, workload("a")],
        Reason.WAITING_FOR_CAPACITY,
        (
            "It needs 1 whole card of H100 80GB with 4 CPU and 16 GiB of memory. "
            "Pool h100: 0 of 8 free; it is at its most, 1 node. It starts when enough is given back."
        ),
    ),
    "an end is known": (
        [POOL, N1, FULL[0].having(ends_at=minutes_ago(-45)), workload("a")],
        Reason.WAITING_FOR_CAPACITY,
        (
            "It needs 1 whole card of H100 80GB with 4 CPU and 16 GiB of memory. "
            "Pool h100: 0 of 8 free; it is at its most, 1 node. The next one is due to end at 2026-12-01 12:45 UTC."
        ),
    ),
    "never so many on one node": (
        [POOL.nodes(1, of=9), N1, workload("a").whole(16)],
        Reason.WAITING_FOR_CAPACITY,
        (
            "It needs 16 whole cards of H100 80GB on one node with 4 CPU and 16 GiB of memory. "
            "Pool h100: 8 of 8 free, at most 8 on one node; a node of it never has more than 8. "
            "It starts when enough is given back."
        ),
    ),
    "not so much CPU beside them": (
        [POOL.fixed().host(8, 64), N1.host(8, 64), workload("a").beside(9, 16).having(memory_mib=1000)],
        Reason.WAITING_FOR_CAPACITY,
        (
            "It needs 1 whole card of H100 80GB with 9 CPU and 1000 MiB of memory. "
            "Pool h100: 8 of 8 free, but not with that CPU and memory on the same node. "
            "It starts when enough is given back."
        ),
    ),
    "not even on a new node": (
        [POOL.nodes(1, of=2).host(8, 64), N1.host(8, 64), workload("a").beside(9, 16)],
        Reason.WAITING_FOR_CAPACITY,
        (
            "It needs 1 whole card of H100 80GB with 9 CPU and 16 GiB of memory. "
            "Pool h100: 8 of 8 free, but not with that CPU and memory on the same node; "
            "a new node of it would not hold this either. It starts when enough is given back."
        ),
    ),
    "the only node refused it": (
        [POOL, N1, workload("a").having(shunned=frozenset({"n1"}))],
        Reason.WAITING_FOR_CAPACITY,
        (
            "It needs 1 whole card of H100 80GB with 4 CPU and 16 GiB of memory. "
            "Pool h100: 8 of 8 free, but none with all of that on a node that has not refused it; "
            "it is at its most, 1 node. "
            "Node n1 refused it and is left out. It starts when enough is given back."
        ),
    ),
    "its pool's size is not known": (
        [POOL.nodes(None, of=4), workload("a")],
        Reason.WAITING_FOR_CAPACITY,
        (
            "It needs 1 whole card of H100 80GB with 4 CPU and 16 GiB of memory. Pool h100: no such node in service; "
            "how many nodes it has been asked for is not known, so it does not grow. "
            "It starts when enough is given back."
        ),
    ),
    "two pools are full": (
        [POOL, pool("other").h100(1).fixed(), N1, *FULL, workload("a")],
        Reason.WAITING_FOR_CAPACITY,
        (
            "It needs 1 whole card of H100 80GB with 4 CPU and 16 GiB of memory. Pool h100: 0 of 8 free; "
            "it is at its most, 1 node. Pool other: no such node in service. It starts when enough is given back."
        ),
    ),
    "four pools are full": (
        [POOL, *[pool(f"other{i}").h100(1).fixed() for i in range(3)], N1, *FULL, workload("a")],
        Reason.WAITING_FOR_CAPACITY,
        (
            "It needs 1 whole card of H100 80GB with 4 CPU and 16 GiB of memory. Pool h100: 0 of 8 free; "
            "it is at its most, 1 node. Pool other0: no such node in service. "
            "2 more pools cannot hold it now either. It starts when enough is given back."
        ),
    ),
    "nodes outside of pools": (
        [node("n1", "").h100(1).cordoned(), node("n2", "").h100(1), workload("b").running_on("n2"), workload("a")],
        Reason.WAITING_FOR_CAPACITY,
        (
            "It needs 1 whole card of H100 80GB with 4 CPU and 16 GiB of memory. "
            "Nodes outside of pools: 0 of 1 free. It starts when enough is given back."
        ),
    ),
    "its last pod still ends": (
        [POOL, N1, workload("a"), pod("a").terminating(1)],
        Reason.BACKING_OFF,
        "Its last pod a-0 on node n1 has not ended yet; it starts when that is gone.",
    ),
    "its last pod is held by a silent node": (
        [POOL, N1, node("n2").silent(9), workload("a"), pod("a", "n2").terminating(4)],
        Reason.NODE_LOST,
        (
            "Its last pod a-0 is still bound to node n2, which does not answer. "
            "It starts elsewhere when the node answers or an operator removes it."
        ),
    ),
    "its last job is still being removed": (
        [POOL, N1, workload("a").job(), job("a").deleting()],
        Reason.BACKING_OFF,
        "What is left of its last attempt is being removed; it starts when that is gone.",
    ),
}


@pytest.mark.parametrize(("pieces", "reason", "text"), WAITING.values(), ids=WAITING)
def test_it_waits_and_its_owner_reads_why(pieces: list[Piece], reason: Reason, text: str) -> None:
    assert notes(*pieces)["a"] == (reason, text)
    assert len(text) <= 500


STARTING: dict[str, list[Piece]] = {
    "its pause is over": [POOL, N1, workload("a").having(not_before=look().now)],
    "its last pod has finished": [POOL, N1, workload("a"), pod("a").ended(1)],
    "its last pod went with its node": [POOL, N1, workload("a"), pod("a", "gone").terminating(9)],
    "its object sleeps": [POOL, N1, workload("a"), statefulset("a").asleep()],
    "a node that refused it has a neighbour": [POOL, N1, node("n2"), workload("a").having(shunned=frozenset({"n1"}))],
}


@pytest.mark.parametrize("pieces", STARTING.values(), ids=STARTING)
def test_it_starts(pieces: list[Piece]) -> None:
    assert [one.workload for one in places(*pieces)] == [identity("a")]


def test_what_is_offered_only_by_a_node_without_a_pool_is_known() -> None:
    assert [
        one.node for one in places(node("n1", "").cards("New-Card", 2), workload("a").whole(1, model="New-Card"))
    ] == ["n1"]


def test_the_last_free_card_goes_to_who_asked_first() -> None:
    late, early = workload("late").asked(1), workload("early").asked(2)
    found = places(POOL, N1, workload("seven").whole(7).running_on("n1"), late, early)

    assert [one.workload for one in found] == [identity("early")]


def test_small_work_passes_big_work_that_cannot_start() -> None:
    pieces: list[Piece] = [
        POOL,
        N1,
        workload("seven").whole(7).running_on("n1"),
        workload("big").whole(8).asked(60),
        workload("small"),
    ]

    assert [one.workload for one in places(*pieces)] == [identity("small")]
    assert notes(*pieces)["big"][0] is Reason.WAITING_FOR_CAPACITY


def test_what_is_promised_to_the_first_keeps_its_quota() -> None:
    """A node is bought for the first; the second may not take the quota meanwhile and leave the node idle."""
    first, second = workload("first").whole(1, model=H100).asked(60), workload("second").whole(1)
    pieces: list[Piece] = [pool("h100").h100(1).nodes(0, of=1), quota(1), first, second]

    told = notes(*pieces)

    assert told["first"][0] is Reason.WAITING_FOR_NODE
    assert told["second"][0] is Reason.WAITING_FOR_QUOTA


def test_who_only_waits_for_capacity_keeps_nothing_from_others() -> None:
    first = workload("first").whole(8).asked(60)
    pieces: list[Piece] = [
        POOL,
        N1,
        workload("seven").whole(1).running_on("n1").by(2, "speech"),
        quota(8),
        first,
        workload("second"),
    ]

    assert [one.workload for one in places(*pieces)] == [identity("second")]


def test_a_colleague_without_quota_does_not_block_a_team_with_it() -> None:
    pieces: list[Piece] = [
        POOL,
        N1,
        quota(0),
        quota(1, team="speech"),
        workload("poor").asked(60),
        workload("rich").by(2, "speech"),
    ]

    assert [one.workload for one in places(*pieces)] == [identity("rich")]


def test_lowering_a_quota_below_use_stops_nobody() -> None:
    picture = look(POOL, N1, quota(4), workload("a").whole(6).running_on("n1"), workload("b"))

    actions = plan(picture).actions

    assert [type(one) for one in actions] == [Note]
    assert "Vision holds 6 of 4 cards" in str(actions[0])


def test_waking_passes_the_quota_again() -> None:
    """Asleep holds nothing; who took the quota meanwhile keeps it."""
    asleep = workload("a").in_phase(Phase.ASLEEP)
    awake = workload("a").having(attempt=1, reason=Reason.WOKEN)
    other = workload("b").running_on("n1")

    assert places(POOL, N1, quota(1), asleep, workload("b"))[0].workload == identity("b")
    assert notes(POOL, N1, quota(1), awake, other)["a"][0] is Reason.WAITING_FOR_QUOTA


def test_a_ninth_does_not_start_on_seven_healthy_cards() -> None:
    eight = [workload(f"w{number}").running_on("n1") for number in range(8)]

    assert places(POOL, N1.sick(1), *eight, workload("ninth")) == []


def test_a_terminating_pod_keeps_the_card_even_when_the_quota_is_free() -> None:
    pieces: list[Piece] = [POOL, N1.h100(1), quota(1), foreign("old", "n1").holding(1).terminating(60), workload("a")]

    assert notes(*pieces)["a"][0] is Reason.WAITING_FOR_CAPACITY


def test_one_attempt_however_often_it_is_looked_at() -> None:
    placed = workload("a").placed_on("n1", 20)

    assert plan(look(POOL, N1, placed, statefulset("a"))).actions == ()
    assert plan(look(POOL, N1, placed, statefulset("a"), pod("a").pending().holding(1))).actions == ()


def test_what_its_owner_ends_while_waiting_is_not_placed() -> None:
    actions = plan(
        look(POOL, N1, workload("a").wants(Desired.END), workload("b").having(ends_at=minutes_ago(1)))
    ).actions

    assert sorted(str(one.reason) for one in actions if isinstance(one, Stop)) == ["AskedToEnd", "TimeIsUp"]
    assert not [one for one in actions if isinstance(one, Place | Note)]


def test_from_an_incomplete_picture_follow_sentences_only() -> None:
    busy: list[Piece] = [
        POOL.nodes(2, of=4),
        N1,
        node("n2").leaving(),
        workload("ends").running_on("n1").wants(Desired.END),
        workload("quiet").in_phase(Phase.STOPPING, node="n1"),
        workload("fits"),
        workload("pending").having(approval_pending=True),
    ]
    assert {type(one) for one in plan(look(*busy)).actions} >= {Stop, Place, Resize}

    actions = plan(look(*busy, complete=False)).actions

    assert {type(one) for one in actions} == {Note}
    texts = {one.workload: one.text for one in actions if isinstance(one, Note)}
    assert texts[identity("fits")] == "The cluster could not be read completely, so nothing is started in this look."
    assert texts[identity("pending")].startswith("It waits for your lead")
    assert len(texts) == 2


def test_stops_come_before_cuts_before_places_before_sizes_before_sentences() -> None:
    picture = look(
        POOL,
        N1,
        workload("ends").whole(1).running_on("n1").wants(Desired.END),
        workload("quiet").running_on("n1").wants(Desired.SLEEP),
        workload("fits"),
        pool("mig").a100(1).mig("all-1g.5gb", "all-3g.20gb").fixed(),
        node("m1", "mig").a100(1).mig("all-1g.5gb"),
        workload("half").slice("3g.20gb", model=A100),
        pool("small").a10g(1).time_sliced(4),
        workload("quarter").part(4, model=A10G),
        pool("old").cards("l4-24gb", 1).nodes(2, of=2),
        node("o1", "old").cards("l4-24gb", 1),
        node("o2", "old").cards("l4-24gb", 1).leaving(),
        workload("lands").whole(1, model="l4-24gb").running_on("o2"),
        empty={"o1": 60},
    )

    kinds = [type(one) for one in plan(picture).actions]

    assert kinds == [Stop, Sleep, Reopen, Cut, Place, Withdraw, Resize, Note, Note]


def test_nothing_to_do_says_so() -> None:
    assert str(plan(look())) == "nothing to do"
    assert plan(look(POOL, N1)) == Plan(())


def test_the_same_facts_in_another_order_make_the_same_plan() -> None:
    picture = look(
        POOL.nodes(3, of=4),
        pool("mig").a100(1).mig("all-1g.5gb", "all-3g.20gb", "all-balanced").nodes(2, of=4),
        N1,
        node("n2"),
        node("m1", "mig").a100(1).mig("all-1g.5gb"),
        node("m2", "mig").a100(1).mig("all-1g.5gb"),
        *[workload(f"w{number}").whole(1 + number % 4) for number in range(9)],
        *[workload(f"s{number}").slice("3g.20gb", model=A100) for number in range(5)],
    )
    backwards = replace(
        picture,
        pools=picture.pools[::-1],
        nodes=picture.nodes[::-1],
        pods=picture.pods[::-1],
        workloads=picture.workloads[::-1],
        quotas=picture.quotas[::-1],
    )

    assert plan(picture) == plan(backwards)
