"""Pods that hold a card though nobody pays for it: seen, counted as out of service, and not offered."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta as td
from fractions import Fraction as F
from typing import Any

import pytest

from scheduling import snapshot
from scheduling.models import CardSpan, Node, Workload
from scheduling.planning.facts import Kind, PodFact
from scheduling.planning.outlook import outlook
from scheduling.planning.wording import instant
from scheduling.reconcile import records
from scheduling.stuck import stuck_of, stuck_on, stuck_words
from tests.scheduling.reconcile.test_records import fresh, look, pod
from tests.world import World


def pod_of(row: Workload, world: World, **changes: Any) -> PodFact:
    facts = {"name": f"{row.name}-0", "uid": f"uid-of-{row.name}", "deleting_since": world.now - td(minutes=5)}
    return replace(pod("train-1", row.pk), **facts | changes)


def seen(world: World, *pods: PodFact, **changes: Any) -> Node:
    records.see_nodes(world.cluster, look(world, fresh(world, **changes), pods=pods), world.now)
    return Node.objects.get(name="train-1")


def out(node: str = "train-1") -> F:
    return CardSpan.objects.get(node=node, ended_at=None).out_of_service


def test_a_pod_whose_meter_has_ended_lingers_with_its_name_and_since_when(world: World) -> None:
    row = world.workload("stuck", flavor="whole", phase="ended")

    (found,) = stuck_on(seen(world, pod_of(row, world)))

    assert (found.name, found.uid, found.workload, found.node) == ("stuck-0", "uid-of-stuck", row.pk, "train-1")
    assert (found.since, found.units) == (world.now - td(minutes=5), {"nvidia.com/gpu": 1})
    assert stuck_of(row) == [found]
    assert out() == 1


@pytest.mark.parametrize(("grace", "minutes"), [(td(seconds=30), 2), (td(hours=1), 61)])
def test_it_is_overdue_when_it_had_the_time_that_it_was_given(world: World, grace: td, minutes: int) -> None:
    row = world.workload("saving", flavor="whole", phase="ended")
    (found,) = stuck_on(seen(world, pod_of(row, world, grace=grace, deleting_since=world.now)))
    then = world.now + td(minutes=minutes)

    assert [found.overdue(then - td(seconds=1)), found.overdue(then)] == [False, True]
    assert f"can remove it by force from {instant(then)} on" in stuck_words(found, known=True)


NOT_LINGERING = {
    "it is paid for": ("running", {}),
    "it is paid for while it still stops": ("stopping", {}),
    "it has finished": ("ended", {"phase": "Succeeded", "deleting_since": None}),
    "it holds no card": ("ended", {"requests": {}}),
    "it is somebody else's": ("ended", {"workload": None}),
}


@pytest.mark.parametrize(("phase", "changes"), NOT_LINGERING.values(), ids=NOT_LINGERING)
def test_what_does_not_linger(world: World, phase: str, changes: Any) -> None:
    row = world.workload("w", flavor="whole", phase=phase)

    node = seen(world, pod_of(row, world, **changes))

    assert (node.lingering, out()) == ([], 0)


def test_what_has_ended_and_is_not_let_go_holds_no_card_but_is_told(world: World) -> None:
    row = world.workload("kept", flavor="whole", phase="ended")

    (found,) = stuck_on(seen(world, pod_of(row, world, phase="Succeeded")))

    assert (found.name, found.units, out()) == ("kept-0", {}, 0)
    assert "has ended and holds no card" in stuck_words(found, known=True)


def test_paid_for_elsewhere_is_not_paid_for_here(world: World) -> None:
    """Its next attempt runs on another node while the pod of the last one still stands here."""
    row = world.workload("moved", flavor="whole", phase="waiting")
    world.placement(row, node="train-2")

    assert [one.name for one in stuck_on(seen(world, pod_of(row, world)))] == ["moved-0"]


def test_a_slice_is_its_share_and_a_sick_node_is_out_whole(world: World) -> None:
    row = world.workload("slice", phase="ended")
    stuck = pod_of(row, world, node="shared-1", requests={"nvidia.com/mig-1g.10gb": 2})
    node = fresh(world, "shared-1", "h100-shared")

    records.see_nodes(world.cluster, look(world, node, pods=[stuck]), world.now)
    assert out("shared-1") == F(2, 8)
    world.clock.advance(minutes=1)
    records.see_nodes(world.cluster, look(world, replace(node, ready=False), pods=[stuck]), world.now)
    assert out("shared-1") == 2


def test_it_is_never_more_than_the_cards_that_are_there(world: World) -> None:
    rows = [world.workload(f"w{index}", flavor="whole", phase="ended") for index in range(9)]

    seen(world, *(pod_of(row, world) for row in rows))

    assert out() == 8


def test_when_it_is_gone_the_card_is_back(world: World) -> None:
    row = world.workload("stuck", flavor="whole", phase="ended")
    seen(world, pod_of(row, world))
    world.clock.advance(minutes=1)

    assert (seen(world).lingering, out()) == ([], 0)


def test_the_outlook_does_not_count_it_as_free(world: World) -> None:
    """U1's question, asked while a pod does not go: eight cards, of which it holds one."""
    row = world.workload("stuck", flavor="whole", phase="ended")
    seen(world, pod_of(row, world))
    flavor, sizes = world.flavors["whole"], type("Sizes", (), {"cpu_milli": 100, "memory_mib": 100})

    picture = snapshot.from_tables(world.cluster, world.now)
    asked = [
        outlook(picture, snapshot.candidate(flavor, world.vision, world.robin, Kind.JOB, count, sizes, world.now))
        for count in (7, 8)
    ]

    assert [one.free_units for one in asked] == [7, 7]
    assert [one.kind for one in asked] == ["now", "waits"]
