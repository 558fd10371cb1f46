"""The invariants hold in an orderly world, and each is broken by what it forbids."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta as td
from fractions import Fraction as F
from typing import Any
from uuid import uuid4

import pytest

from scheduling.cluster.port import Observation
from scheduling.models import CardSpan, Placement, Transition, Workload
from scheduling.planning.facts import ObjectFact, PodFact
from tests.faults.invariants import broken, most_at_once
from tests.world import World, node_fact

pytestmark = pytest.mark.django_db


def empty(world: World) -> Observation:
    nodes = (node_fact("train-1", world.pools["h100-train"]),)
    return Observation(world.now, nodes, (), (), (), complete=True, problems=())


def pod(row: Workload, count: int = 1, **facts: Any) -> PodFact:
    made = PodFact(
        namespace="team-vision", name=facts.pop("name", "a-0"), uid="", node="train-1", phase="Running", ready=True,
        workload=row.pk, requests={"nvidia.com/gpu": count}, cpu_milli=0, memory_mib=0, created_at=None,
        running_since=None, finished_at=None, deleting_since=None,
    )  # fmt: skip
    return replace(made, **facts)


def thing(row: Workload) -> ObjectFact:
    return ObjectFact(row.pk, "StatefulSet", "team-vision", "a", "", 1, 1, None)


def test_an_orderly_world_breaks_nothing(world):
    row = world.workload("a", flavor="whole", phase="running")
    seen = replace(empty(world), pods=(pod(row),), objects=(thing(row),))

    assert broken(seen) == []


def test_i1_more_given_out_than_there_is(world):
    for number in range(3):
        row = world.workload(f"w{number}", flavor="whole", phase="running", count=3)
        Placement.objects.filter(workload=row).update(node="train-1")
    CardSpan.objects.create(
        cluster=world.cluster, node="train-1", node_uid="u", model="h100-80gb", cards=8, out_of_service=F(0),
        stranded=F(0), foreign=F(0), started_at=world.now,
    )  # fmt: skip

    assert [text for text in broken() if "I1" in text] == [
        "I1: node train-1 has 8 cards, and 9 were given out at once."
    ]


def test_i1_pods_that_hold_more_than_the_node_has(world):
    row = world.workload("a", flavor="whole", phase="running")
    seen = replace(empty(world), pods=(pod(row, 9),), objects=(thing(row),))

    assert [text[:2] for text in broken(seen)] == ["I1"]


def test_i2_more_than_the_grants(world):
    for number in range(3):
        world.workload(f"w{number}", flavor="whole", phase="running", count=8)

    assert {text[:2] for text in broken()} == {"I2"}


def test_i3_two_objects_or_two_pods(world):
    row = world.workload("a", flavor="whole", phase="running")
    seen = replace(empty(world), pods=(pod(row), pod(row, name="b-0")), objects=(thing(row), thing(row)))

    assert [text[:2] for text in broken(seen)] == ["I3", "I3"]


def test_i4_orphans_on_either_side(world):
    row = world.workload("a", flavor="whole", phase="running")
    ended = world.workload("b", flavor="whole", phase="ended")
    nobody = replace(thing(row), workload=uuid4())
    seen = replace(empty(world), objects=(thing(ended), nobody))

    assert [text[:2] for text in broken(seen)] == ["I4", "I4", "I4"]


def test_i6_a_gap_a_forbidden_step_and_a_row_that_says_otherwise(world):
    gap, forbidden, other = (world.workload(name, phase="running") for name in ("gap", "forbidden", "other"))
    Transition.objects.filter(workload=gap, version=1).delete()
    Transition.objects.filter(workload=forbidden, version=1).update(after="ended")
    Transition.objects.filter(workload=forbidden, version=2).update(before="ended")
    Workload.objects.filter(pk=other.pk).update(phase="waiting")

    told = [text for text in broken() if text.startswith("I6")]
    assert {text.split()[1] for text in told} == {"gap", "forbidden", "other"}


def test_i6_time_does_not_run_backwards(world):
    row = world.workload("a", phase="running")
    Transition.objects.filter(workload=row, version=3).update(at=row.asked_at - td(hours=1))

    assert [text[:2] for text in broken()] == ["I6"]


def test_i9_attempts_and_pools_without_end(world):
    row = world.workload("a")
    Workload.objects.filter(pk=row.pk).update(attempt=1000)
    pool = world.pools["h100-train"]
    pool.wished_nodes = pool.max_nodes + 1
    pool.save()

    assert [text[:2] for text in broken()] == ["I9", "I9"]


def test_i10_a_step_without_words(world):
    row = world.workload("a", phase="running")
    Transition.objects.filter(workload=row, version=1).update(text="")

    assert broken() == ["I10: a has a step without words."]


def test_what_ends_makes_room_for_what_begins_then(world):
    now = world.now
    one = (now, now + td(hours=1), F(1, 2))
    after = (now + td(hours=1), now + td(hours=2), F(1, 2))

    assert most_at_once([one, after]) == F(1, 2)
    assert most_at_once([one, one, after]) == 1
