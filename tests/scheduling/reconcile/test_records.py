"""Writing down what was seen: nodes, and the spans from which card-seconds are balanced."""

from dataclasses import replace
from fractions import Fraction as F

import pytest

from scheduling.cluster.port import Observation, PoolSize
from scheduling.models import CardSpan, Node, NodePool
from scheduling.planning.facts import DeviceFact, Isolation, PodFact, Problem
from scheduling.reconcile import records
from scheduling.snapshot import node_fact as stored
from tests.world import device_of, node_fact


def look(world, *nodes, pods=(), sizes=()):
    return Observation(world.now, tuple(nodes), tuple(pods), (), tuple(sizes), complete=True, problems=())


def fresh(world, name="train-1", pool="h100-train", **changes):
    return node_fact(name, world.pools[pool], **changes)


def pod(node, workload=None, units=1, resource="nvidia.com/gpu", phase="Running"):
    return PodFact(
        namespace="other",
        name="pod",
        uid="pod-uid",
        node=node,
        phase=phase,
        ready=True,
        workload=workload,
        requests={resource: units} if units else {},
        cpu_milli=100,
        memory_mib=100,
        created_at=None,
        running_since=None,
        finished_at=None,
        deleting_since=None,
    )


def spans():
    return [
        (span.node, span.cards, span.out_of_service, span.stranded, span.foreign, span.started_at, span.ended_at)
        for span in CardSpan.objects.order_by("started_at", "node")
    ]


def test_seeing_the_same_twice_writes_nothing(world):
    node = fresh(world)
    first = records.see_nodes(world.cluster, look(world, node), world.now)
    before = list(Node.objects.values()), list(CardSpan.objects.values())
    world.clock.advance(minutes=1)
    again = records.see_nodes(world.cluster, look(world, node), world.now)

    assert (first.changed, again.changed) == (True, False)
    assert (list(Node.objects.values()), list(CardSpan.objects.values())) == before


def test_a_node_that_is_gone_leaves_its_row_and_ends_its_span(world):
    records.see_nodes(world.cluster, look(world, fresh(world)), world.now)
    born = world.now
    world.clock.advance(hours=1)
    records.see_nodes(world.cluster, look(world), world.now)

    assert not Node.objects.exists()
    assert spans() == [("train-1", 8, 0, 0, 0, born, world.now)]


def test_a_sick_card_begins_a_new_span_where_the_old_one_ended(world):
    whole = fresh(world)
    born = world.now
    records.see_nodes(world.cluster, look(world, whole), born)
    later = world.clock.advance(minutes=7)
    records.see_nodes(world.cluster, look(world, replace(whole, sick_cards=1)), later)

    assert spans() == [("train-1", 8, 0, 0, 0, born, later), ("train-1", 8, 1, 0, 0, later, None)]


def test_a_namesake_with_another_uid_is_another_node(world):
    records.see_nodes(world.cluster, look(world, fresh(world)), world.now)
    first = Node.objects.get()
    world.clock.advance(minutes=30)
    records.see_nodes(world.cluster, look(world, fresh(world, uid="uid-reborn")), world.now)

    assert Node.objects.get().usable_since == world.now != first.usable_since
    assert CardSpan.objects.filter(ended_at=None).get().node_uid == "uid-reborn"


def test_emptiness_begins_when_the_node_could_be_used_not_when_it_came(world):
    """Z3: bought, not yet usable, and so not yet empty."""
    bare = fresh(world, devices=())
    records.see_nodes(world.cluster, look(world, bare), world.now)
    row = Node.objects.get()
    assert (row.usable_since, row.empty_since) == (None, None)

    world.clock.advance(minutes=2)
    records.see_nodes(
        world.cluster, look(world, replace(bare, devices=(device_of(world.pools["h100-train"]),))), world.now
    )
    row = Node.objects.get()
    assert (row.usable_since, row.empty_since) == (world.now, world.now)


HELD = {
    "nothing": ((), True),
    "a daemon that holds no card (Z5)": ((pod("train-1", units=0),), True),
    "a pod that has finished": ((pod("train-1", phase="Succeeded"),), True),
    "a pod on another node": ((pod("train-2"),), True),
    "somebody else's pod with a card": ((pod("train-1"),), False),
}


@pytest.mark.parametrize("case", HELD)
def test_a_node_is_empty_when_it_holds(world, case):
    pods, empty = HELD[case]
    records.see_nodes(world.cluster, look(world, fresh(world), pods=pods), world.now)

    assert (Node.objects.get().empty_since is not None) is empty


def test_what_others_hold_is_foreign(world):
    records.see_nodes(world.cluster, look(world, fresh(world), pods=[pod("train-1", units=3)]), world.now)

    assert Node.objects.get().foreign == {"other": {"nvidia.com/gpu": 3}}
    assert CardSpan.objects.get().foreign == 3


OUT = {
    "a fit node": ({}, 0),
    "one sick card": ({"sick_cards": 1}, 1),
    "not ready": ({"ready": False, "schedulable": False}, 8),
    "cordoned by somebody": ({"schedulable": False}, 8),
    "cordoned by us to go": ({"schedulable": False, "leaving": True}, 0),
    "being cut": ({"cutting_to": "all-1g.10gb"}, 8),
    "more sick than there are": ({"sick_cards": 99}, 8),
}


@pytest.mark.parametrize("case", OUT)
def test_cards_out_of_service(world, case):
    changes, expected = OUT[case]

    assert records.out_of_service(fresh(world, **changes)) == expected


def slices(share, count):
    return DeviceFact("nvidia.com/mig-x", "x", share, Isolation.HARDWARE, count, count, 9_856)


STRANDED = {  #                        devices on 2 cards                      cards' worth
    "seven eighths leave an eighth each": ((slices(F(1, 8), 14),), F(1, 4)),
    "two halves leave nothing": ((slices(F(1, 2), 4),), F(0)),
    "a mixed cut": ((slices(F(1, 8), 4), slices(F(1, 4), 2), slices(F(1, 2), 2)), F(0)),
    "not cut yet is not stranded": ((), F(0)),
    "more than there is, as after a misreading": ((slices(F(1, 2), 6),), F(0)),
}


@pytest.mark.parametrize("case", STRANDED)
def test_stranded_remainders(world, case):
    devices, expected = STRANDED[case]

    assert records.stranded(fresh(world, "shared-1", "h100-shared", devices=devices)) == expected


def test_whole_cards_strand_nothing(world):
    assert records.stranded(fresh(world)) == 0


def test_a_pool_that_the_provider_does_not_name_is_unknown_not_zero(world):
    records.see_pools(world.cluster, [PoolSize("h100-train", 2, 1, "no capacity in zone")])
    train, shared = world.pools["h100-train"], world.pools["h100-shared"]
    train.refresh_from_db()
    shared.refresh_from_db()

    assert (train.wished_nodes, train.trouble) == (2, "no capacity in zone")
    assert (shared.wished_nodes, shared.trouble) == (None, "The provider does not know this pool.")


def test_where_the_cluster_does_not_know_the_providers_kind_each_pool_of_it_says_so(world):
    NodePool.objects.filter(name="h100-train").update(provider="static", trouble="")
    absent = Problem("MachineDeployment", "", "The kind is not there.")
    odd = Problem("MachineDeployment", "items[3]", "An odd one.")

    records.see_pools(world.cluster, [], [odd, absent])

    told = dict(world.cluster.pools.values_list("name", "trouble"))
    assert (told["h100-shared"], told["h100-train"]) == ("The kind is not there.", "")


def test_node_facts_come_back_as_they_were_written(world):
    node = fresh(world, "shared-1", "h100-shared")
    records.see_nodes(world.cluster, look(world, node), world.now)

    assert stored(Node.objects.get()) == replace(node, usable_since=world.now)


def test_only_nodes_that_are_said_to_have_changed_are_compared(world, django_assert_num_queries):
    nodes = [fresh(world, f"train-{number}") for number in range(1, 4)]
    records.see_nodes(world.cluster, look(world, *nodes), world.now)
    sick = [replace(node, sick_cards=1) for node in nodes]

    seen = records.see_nodes(world.cluster, look(world, *sick), world.now, changed=frozenset({"train-2"}))

    assert seen.changed
    assert [stored(row).sick_cards for row in Node.objects.order_by("name")] == [0, 1, 0]
    with django_assert_num_queries(4):  # a savepoint, what is known, who is paid for
        records.see_nodes(world.cluster, look(world, *sick), world.now, changed=frozenset())


def test_who_comes_or_goes_is_seen_whatever_is_said_to_have_changed(world):
    one, two = fresh(world, "train-1"), fresh(world, "train-2")
    records.see_nodes(world.cluster, look(world, one), world.now)
    world.clock.advance(minutes=1)

    records.see_nodes(world.cluster, look(world, two), world.now, changed=frozenset())

    assert [row.name for row in Node.objects.all()] == ["train-2"]
    assert [(span[0], span[-1]) for span in spans()] == [("train-1", world.now), ("train-2", None)]


def test_a_machine_that_was_changed_for_another_is_seen_whatever_is_said(world):
    records.see_nodes(world.cluster, look(world, fresh(world)), world.now)
    records.see_nodes(world.cluster, look(world, fresh(world, uid="uid-reborn")), world.now, changed=frozenset())

    assert Node.objects.get().uid == "uid-reborn"


def test_emptiness_is_told_of_those_that_did_not_change_too(world):
    one, two = fresh(world, "train-1"), fresh(world, "train-2")
    first = records.see_nodes(world.cluster, look(world, one, two), world.now)
    born = world.now
    world.clock.advance(minutes=1)
    held = [pod("train-2")]
    again = records.see_nodes(
        world.cluster, look(world, one, two, pods=held), world.now, changed=frozenset({"train-2"})
    )

    assert first.empty_since == {"train-1": born, "train-2": born}
    assert again.empty_since == {"train-1": born}
