"""W6 and Q11: what does not go. Its quota and meter end after the grace, its card is given out when the pod is gone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta as td
from typing import Any

import pytest

from scheduling import services, snapshot
from scheduling.models import CardSpan, Node, Removal, Workload
from scheduling.planning.facts import Snapshot
from scheduling.planning.packing import spaces_of
from scheduling.planning.pods import kept
from scheduling.removals import remove_by_force
from scheduling.snapshot import held
from scheduling.stuck import stuck_of
from tests.controlplane.harbour import Harbour

CARDS = 8  # of the only node of h100-train; its pool may have two
Hold = Callable[[Harbour, Workload], None]
PATIENCE = td(minutes=3)


def silent_node(harbour: Harbour, row: Workload) -> None:
    harbour.faults.node_not_ready(harbour.node_of(row))


def finalizer(harbour: Harbour, row: Workload) -> None:
    harbour.hold(harbour.pod_path(row))


def stuck(harbour: Harbour, hold: Hold = silent_node, ask: Any = services.end_workload) -> Workload:
    """A workload that was asked to end and whose pod stays, past its grace."""
    row = harbour.run("stuck", count=CARDS)
    hold(harbour, row)
    ask(harbour.read(row), by=harbour.robin, now=harbour.now)
    harbour.until(lambda: any(pod.deleting_since for pod in harbour.pods_of(row)), "its pod told to go")
    assert harbour.phase(row) == "stopping"
    if hold is finalizer:
        harbour.until(lambda: all(kept(pod) for pod in harbour.pods_of(row)), "its program ended")
    harbour.turn(minutes=PATIENCE.total_seconds() / 60)
    harbour.until(lambda: not held(), "its quota freed")
    return harbour.read(row)


def test_q11_quota_and_meter_end_and_the_card_is_not_sold_again(harbour: Harbour) -> None:
    row = stuck(harbour)

    placement = harbour.placement(row)
    assert row.phase == "stopping"
    assert "Its quota is free and it costs nothing more" in row.phase_text
    assert row.phase_since <= placement.ended_at <= harbour.now
    node = Node.objects.get(name=placement.node)
    assert [pod.name for pod in stuck_of(row)] == [placement.pod]
    assert CardSpan.objects.get(node=node.name, ended_at=None).out_of_service == CARDS
    other = harbour.open("other", "h100-80gb/whole", count=1)
    harbour.until(lambda: harbour.read(other).phase_reason != "Submitted", "the other looked at")
    assert harbour.placement_node(other) != node.name
    picture = snapshot.from_tables(harbour.world.cluster, harbour.now)
    assert free_on(picture, node.name) == 0


def test_q11_when_the_node_comes_back_its_card_is_given_out_again(harbour: Harbour) -> None:
    row = stuck(harbour)
    ended_at = harbour.placement(row).ended_at
    other = harbour.open("other", "h100-80gb/whole", count=CARDS)

    harbour.faults.node_ready(harbour.node_of(row))
    harbour.until(lambda: harbour.phase(row) == "ended", "the stuck one ended")
    harbour.until(lambda: harbour.phase(other) == "running", "the other on its cards")

    assert harbour.placement(row).ended_at == ended_at, "nothing is charged for the time in between"
    assert not Node.objects.exclude(lingering=[]).exists()


def test_q11_work_of_a_lost_node_waits_for_its_last_pod_or_the_operators_word(harbour: Harbour) -> None:
    """It must never run twice: the node may only be cut off from the network."""
    row = harbour.run()
    node = harbour.node_of(row)
    harbour.faults.node_not_ready(node)
    harbour.until(lambda: not harbour.node_ready(node), "the node not ready")
    harbour.turn(minutes=6)
    harbour.until(lambda: harbour.phase(row) == "waiting", "given up there")

    assert held() == {}
    assert harbour.placement(row).ended_at is not None
    harbour.until(lambda: [pod.node for pod in stuck_of(row)] == [node], "its last pod told to go")
    assert "still bound to node" in harbour.read(row).phase_text
    harbour.turn(minutes=3)
    harbour.until(lambda: all(pod.overdue(harbour.now) for pod in stuck_of(row)), "its last pod overdue")
    remove_by_force(harbour.read(row), by=harbour.omar, now=harbour.now, sure=True)
    harbour.until(lambda: harbour.phase(row) == "running", "running elsewhere")

    assert harbour.node_of(row) != node
    assert len(harbour.pods_of(row)) == 1


@pytest.mark.parametrize("hold", [silent_node, finalizer])
def test_w6_the_operator_removes_it_by_force(harbour: Harbour, hold: Hold) -> None:
    row = stuck(harbour, hold)
    uid = stuck_of(row)[0].uid

    remove_by_force(row, by=harbour.omar, now=harbour.now, sure=True)
    harbour.until(lambda: harbour.phase(row) == "ended", "ended by force")

    assert harbour.pods_of(row) == []
    removal = Removal.objects.get()
    harbour.until(lambda: Removal.objects.get().done_at is not None, "the order done")
    assert (removal.pod_uid, removal.asked_by, removal.trouble) == (uid, harbour.omar, "")
    assert harbour.read(row).transitions.filter(by=harbour.omar, text__contains="by force").count() == 1
    assert any("by force" in text for look in harbour.looks for text in look.actions)
    assert not Node.objects.exclude(lingering=[]).exists()


def test_w6_what_a_finalizer_holds_stays_stopping_and_cannot_wake_until_it_is_gone(harbour: Harbour) -> None:
    """Its program has ended, so its card is free; but no second pod of its name can be made."""
    row = stuck(harbour, finalizer, services.sleep_workload)
    placement = harbour.placement(row)
    assert row.phase == "stopping"
    assert "a finalizer holds its pod" in row.phase_text
    assert placement.ended_at < harbour.now - td(minutes=2), "paid until its program ended"
    assert CardSpan.objects.get(node=placement.node, ended_at=None).out_of_service == 0
    services.wake_workload(row, by=harbour.robin, now=harbour.now)
    harbour.settle()
    assert harbour.phase(row) == "stopping"

    harbour.release(harbour.pod_path(row))
    harbour.until(lambda: harbour.phase(row) == "running", "awake again")

    assert len(harbour.pods_of(row)) == 1


def test_w6_the_order_is_for_this_pod_and_for_no_namesake(harbour: Harbour) -> None:
    """The pod goes by itself before the cycle comes, and its successor of the same name lives on."""
    row = harbour.run("notebook")
    pod = harbour.pods_of(row)[0]
    Removal.objects.create(
        cluster=harbour.world.cluster, workload=row, node=pod.node, namespace=pod.namespace, pod=pod.name,
        pod_uid="of-an-earlier-one", asked_at=harbour.now, asked_by=harbour.omar,
    )  # fmt: skip

    harbour.until(lambda: Removal.objects.get().done_at is not None, "the order done")

    assert [one.uid for one in harbour.pods_of(row)] == [pod.uid]


def free_on(picture: Snapshot, node: str) -> int:
    """Cards of the node that the request form counts as free."""
    return sum(spaces_of(picture)[node].free.values())
