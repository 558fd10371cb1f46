"""What each node has free, and which one is taken."""

from fractions import Fraction as F

import pytest

from scheduling.planning.facts import Phase, Snapshot
from scheduling.planning.packing import Fleet, Key, holds_cards, key_of, spaces_of, usable
from tests.scheduling.planning.builders import (
    A100,
    NodeBuilder,
    Piece,
    WorkloadBuilder,
    foreign,
    look,
    node,
    pod,
    pool,
    workload,
)

ONE = workload("next").whole(1)
SLICE = workload("next").slice("1g.10gb")

FREE: dict[str, tuple[list[Piece], WorkloadBuilder, int]] = {
    "an empty node": ([node("n1").h100(8)], ONE, 8),
    "pods of ours hold": ([node("n1").h100(8), workload("a").whole(3).running_on("n1")], ONE, 5),
    "pods of others hold too": ([node("n1").h100(8), foreign("x", "n1").holding(2)], ONE, 6),
    "a terminating pod still holds": ([node("n1").h100(8), foreign("x", "n1").holding(2).terminating(60)], ONE, 6),
    "a finished pod does not": ([node("n1").h100(8), foreign("x", "n1").holding(2).ended(0)], ONE, 8),
    "a refused pod does not": ([node("n1").h100(8), foreign("x", "n1").holding(2).refused()], ONE, 8),
    "what is placed and not seen yet holds": ([node("n1").h100(8), workload("a").whole(3).placed_on("n1")], ONE, 5),
    "what is placed and seen holds once": (
        [node("n1").h100(8), workload("a").whole(3).placed_on("n1"), pod("a", "n1").holding(3).pending()],
        ONE,
        5,
    ),
    "what is placed holds, whatever became of its last pod": (
        [node("n1").h100(8), workload("a").whole(3).placed_on("n1"), pod("a", "n1").holding(3).ended(1)],
        ONE,
        5,
    ),
    "a sick card cannot be given out": ([node("n1").h100(8).sick(1)], ONE, 7),
    "eight hold on seven: zero, not minus one": (
        [node("n1").h100(8).sick(1), *[workload(f"w{i}").running_on("n1") for i in range(8)]],
        ONE,
        0,
    ),
    "slices are counted by profile": ([node("n1").h100(8).mig("all-balanced")], SLICE, 16),
    "slices on a node cut alike are called nvidia.com/gpu": (
        [node("n1").h100(8).mig("all-1g.10gb", single=True), workload("a").slice("1g.10gb").running_on("n1")],
        SLICE,
        55,
    ),
    "a slice is no card, whatever it is called": ([node("n1").h100(8).mig("all-1g.10gb", single=True)], ONE, 0),
    "a card is no slice": ([node("n1").h100(8)], SLICE, 0),
    "with MIG switched off, cards are whole": ([node("n1").h100(8).mig("all-disabled")], ONE, 8),
    "an uncut node of a MIG pool waits to be cut": (
        [node("n1").h100(8).mig("all-disabled"), pool("h100").h100().mig("all-1g.10gb", "all-1g.10gb")],
        ONE,
        0,
    ),
    "unless the pool's layouts name it uncut": (
        [node("n1").h100(8).mig("all-disabled"), pool("h100").h100().mig("all-1g.10gb", "all-1g.10gb", "all-disabled")],
        ONE,
        8,
    ),
    "quarters by time": ([node("n1").a10g(4).time_sliced(4)], workload("next").part(4), 16),
    "a sick card takes its quarters along": ([node("n1").a10g(4).time_sliced(4).sick(1)], workload("next").part(4), 12),
    "halves are no quarters": ([node("n1").a10g(4).time_sliced(2)], workload("next").part(4), 0),
    "time-slices are no MPS shares": ([node("n1").a10g(4).mps(4)], workload("next").part(4), 0),
    "another model": ([node("n1").a100(8)], ONE, 0),
    "spot is not on demand": ([node("n1").h100(8).spot()], ONE, 0),
    "spot for spot": ([node("n1").h100(8).spot()], workload("next").whole(1).spot(), 8),
    "what stops holds until its pods are gone": (
        [node("n1").h100(8), workload("a").whole(2).in_phase(Phase.STOPPING, node="n1"), pod("a").holding(2)],
        ONE,
        6,
    ),
}


def fleet_of(picture: Snapshot, *, spread: tuple[str, ...] = ()) -> Fleet:
    spaces = spaces_of(picture)
    return Fleet((spaces[one.name] for one in picture.nodes if usable(one)), spread=spread)


def free(fleet: Fleet, need: WorkloadBuilder) -> int:
    return sum(stock.free for stock in fleet.stock(key_of(need.fact().flavor)).values())


@pytest.mark.parametrize(("pieces", "need", "units"), FREE.values(), ids=FREE)
def test_free(pieces: list[Piece], need: WorkloadBuilder, units: int) -> None:
    fleet = fleet_of(look(*pieces))

    assert free(fleet, need) == units
    assert (fleet.best(need.fact()) is not None) == (units > 0)


UNUSABLE = {
    "not ready": node("n1").silent(1),
    "cordoned": node("n1").cordoned(),
    "being cut": node("n1").mig("all-1g.10gb").cutting("all-3g.40gb"),
    "cut and not taken back yet": node("n1").mig("all-1g.10gb").having(cutting_to="all-1g.10gb"),
    "a cut that failed": node("n1").mig("all-1g.10gb").having(mig_state="failed"),
    "rebooting for a cut": node("n1").mig("all-1g.10gb").having(mig_state="rebooting"),
    "leaving": node("n1").leaving(),
    "leaving, though somebody uncordoned it": node("n1").having(leaving=True),
    "given back, though somebody uncordoned it": node("n1").having(dropped=True),
    "given back": node("n1").dropped(),
}


@pytest.mark.parametrize("host", UNUSABLE.values(), ids=UNUSABLE)
def test_nothing_is_placed_on_a_node_that_is(host: NodeBuilder) -> None:
    assert not usable(host.fact())


NARROW: dict[str, tuple[list[Piece], WorkloadBuilder]] = {
    "too few cards on any one node": ([node("n1").h100(4), node("n2").h100(4)], workload("next").whole(8)),
    "too little CPU": ([node("n1").host(8, 64)], ONE.beside(9, 1)),
    "too little memory": ([node("n1").host(8, 64)], workload("next").whole(1).beside(1, 65)),
    "CPU held by a foreign pod without cards": (
        [node("n1").host(8, 64), foreign("x", "n1").having(cpu_milli=5000)],
        workload("next").whole(1).beside(4, 1),
    ),
    "CPU held by what is placed and not seen yet": (
        [node("n1").host(8, 64), workload("a").whole(1).beside(6, 8).placed_on("n1")],
        workload("next").whole(1).beside(4, 1),
    ),
    "only on a node that refused it": ([node("n1")], workload("next").having(shunned=frozenset({"n1"}))),
}


@pytest.mark.parametrize(("pieces", "need"), NARROW.values(), ids=NARROW)
def test_it_does_not_fit(pieces: list[Piece], need: WorkloadBuilder) -> None:
    assert fleet_of(look(*pieces)).best(need.fact()) is None


def test_it_fits_to_the_last_mebibyte() -> None:
    picture = look(node("n1").host(8, 64), foreign("x", "n1").holding(1).having(cpu_milli=1000, memory_mib=1024))

    assert fleet_of(picture).best(workload("next").beside(7, 63).fact()) is not None


CHOICES: dict[str, tuple[list[Piece], WorkloadBuilder, str]] = {
    "the fullest that fits": (
        [node("n1"), node("n2"), node("n3"), workload("a").whole(6).running_on("n2")],
        workload("next").whole(2),
        "n2",
    ),
    "not the fullest when it does not fit": (
        [node("n1"), node("n2"), workload("a").whole(6).running_on("n2")],
        workload("next").whole(3),
        "n1",
    ),
    "of equals the first by name": ([node("n2"), node("n1")], ONE, "n1"),
    "the smaller node": ([node("n1").h100(8), node("n2").h100(2)], ONE, "n2"),
    "the node with fewer free slices of any kind": (
        [
            node("n1").mig("all-balanced"),
            node("n2").mig("all-balanced"),
            workload("a").slice("3g.40gb").running_on("n2"),
        ],
        SLICE,
        "n2",
    ),
    "in a pool that spreads, the emptiest": (
        [node("n1", "wide"), node("n2", "wide"), workload("a").whole(2).running_on("n1")],
        ONE,
        "n2",
    ),
    "a pool that packs goes before one that spreads": ([node("n1", "wide"), node("n2", "h100")], ONE, "n2"),
    "past a node that refused it": ([node("n1"), node("n2")], workload("next").having(shunned=frozenset({"n1"})), "n2"),
}


@pytest.mark.parametrize(("pieces", "need", "name"), CHOICES.values(), ids=CHOICES)
def test_it_goes_to(pieces: list[Piece], need: WorkloadBuilder, name: str) -> None:
    best = fleet_of(look(*pieces), spread=("wide",)).best(need.fact())

    assert best is not None
    assert best.name == name


def test_what_is_taken_is_not_free_for_the_next() -> None:
    fleet = fleet_of(look(node("n1").h100(2), node("n2").h100(2)))

    names = []
    for number in range(5):
        need = workload(f"w{number}").whole(1).fact()
        if best := fleet.best(need):
            fleet.take(best, need)
            names.append(best.name)

    assert names == ["n1", "n1", "n2", "n2"]


def test_what_failed_once_is_tried_again_when_a_node_comes() -> None:
    fleet = fleet_of(look(node("n1").h100(2)))
    need = workload("big").whole(4).fact()
    assert fleet.best(need) is None

    fleet.add(spaces_of(look(node("n2").h100(8)))["n2"])

    best = fleet.best(need)
    assert best is not None
    assert best.name == "n2"


def test_a_refused_node_does_not_make_the_kind_hopeless_for_others() -> None:
    fleet = fleet_of(look(node("n1")))

    assert fleet.best(workload("burnt").having(shunned=frozenset({"n1"})).fact()) is None
    assert fleet.best(workload("other").fact()) is not None


def test_stock_is_told_by_pool() -> None:
    fleet = fleet_of(look(node("n1", "a"), node("n2", "a"), node("n3", "b"), workload("w").whole(6).running_on("n1")))
    key = Key("h100-80gb", workload("w").fact().flavor.capacity, workload("w").fact().flavor.sharing, "", 1)

    assert fleet.stock(key) == {"a": (10, 16, 8), "b": (8, 8, 8)}
    fleet.take(fleet.spaces["n3"], workload("all").whole(8).fact())
    assert fleet.stock(key) == {"a": (10, 16, 8), "b": (0, 8, 0)}


def test_a_device_that_offers_the_same_twice_counts_once() -> None:
    """A renamed time-slice leaves an empty nvidia.com/gpu behind."""
    fact = node("n1").a10g(2).time_sliced(4).fact()
    shared = fact.devices[0]
    renamed = [
        shared.__class__("nvidia.com/gpu", "", F(1, 4), shared.isolation, 0, 0, None),
        shared.__class__("nvidia.com/gpu.shared", "", F(1, 4), shared.isolation, 8, 8, None),
    ]
    for devices in (renamed, renamed[::-1]):
        picture = look(node("n1").a10g(2).time_sliced(4).having(devices=tuple(devices)))
        space = spaces_of(picture)["n1"]
        key = key_of(workload("w").part(4).fact().flavor)
        assert (space.free[key], space.resource[key]) == (8, "nvidia.com/gpu.shared")


@pytest.mark.parametrize(
    ("resource", "holds"),
    [
        ("nvidia.com/gpu", True),
        ("nvidia.com/gpu.shared", True),
        ("nvidia.com/mig-1g.10gb", True),
        ("amd.com/gpu", True),
        ("rdma/hca_shared_devices_a", False),
        ("nvidia.com/hostdev", False),
    ],
)
def test_only_cards_keep_a_node(resource: str, holds: bool) -> None:
    assert holds_cards(foreign("x", "n1").holding(1, resource).fact()) is holds
    assert not holds_cards(foreign("x", "n1").holding(0, resource).fact())


def test_a_workload_whose_device_was_cut_away_still_keeps_its_node() -> None:
    picture = look(
        node("n1", "a100").a100(1).mig("all-3g.20gb"), workload("w").slice("1g.5gb", model=A100).placed_on("n1")
    )

    assert spaces_of(picture)["n1"].busy
