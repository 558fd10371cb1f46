"""What goes wrong in a cluster, and what its users see of it."""

from itertools import pairwise

import pytest

from scheduling import services
from scheduling.models import CardSpan, Node, Placement
from scheduling.reconcile import launch


def node_of(harbour, row):
    return Placement.objects.get(workload=row, ended_at=None).node


def pods_of(harbour, row):
    return [pod for pod in harbour.port.observe(harbour.now).pods if pod.workload == row.pk]


def run(harbour, name="notebook", flavor="h100-80gb/whole", **facts):
    row = harbour.open(name, flavor, **facts)
    harbour.pass_time(minutes=6, every=0.5)
    assert harbour.read(row).phase == "running", harbour.read(row).phase_text
    return row


def test_a_sick_card_under_a_full_node_is_no_negative_free_card(harbour):
    """S10: capacity 8, allocatable 7, eight running: free is 0, and a ninth waits."""
    full = harbour.open("full", "h100-80gb/whole", count=8)
    harbour.pass_time(minutes=2, every=0.5)
    harbour.cluster.faults.card_sick(node_of(harbour, full))
    harbour.pass_time(minutes=1, every=0.5)
    ninth = harbour.open("ninth", "h100-80gb/whole", count=8)
    harbour.settle()

    assert harbour.read(full).phase == "running"
    assert harbour.read(ninth).phase_reason == "WaitingForNode"
    assert CardSpan.objects.get(node=node_of(harbour, full), ended_at=None).out_of_service == 1


def test_a_vanished_node_sends_its_work_back_in_line(harbour):
    row = run(harbour, "burst", "a100-40gb/whole")
    first = Placement.objects.get(workload=row)
    harbour.cluster.faults.node_vanish(first.node)
    harbour.pass_time(minutes=14, every=0.5)

    placements = list(Placement.objects.filter(workload=row).order_by("placed_at"))
    assert harbour.read(row).phase == "running", (harbour.read(row).phase, harbour.read(row).phase_text)
    assert len(placements) == 2
    assert all(earlier.ended_at <= later.placed_at for earlier, later in pairwise(placements))
    assert len(pods_of(harbour, row)) == 1


def test_a_node_that_refuses_everything_is_shunned_and_failed_pods_do_not_pile_up(harbour):
    """R9"""
    name = Node.objects.get(pool__name="h100-train").name
    harbour.cluster.faults.refuse_admission(name, times=100)
    row = harbour.open("notebook", "h100-80gb/whole")
    most = 0
    for _ in range(60):
        harbour.pass_time(minutes=1)
        most = max(most, len(pods_of(harbour, row)))

    row = harbour.read(row)
    assert name in row.shunned
    assert most <= 2
    assert "refused it" in " ".join(row.transitions.values_list("text", flat=True))


def test_a_provider_without_stock_is_asked_once_and_says_why(harbour):
    """D44: no runaway scale-up."""
    harbour.cluster.faults.stockout("a100-burst", "the zone has no A100")
    row = harbour.open("burst", "a100-40gb/whole")
    done = harbour.settle() + harbour.pass_time(minutes=30)

    assert len([line for line in done if "resize pool a100-burst" in line]) == 1
    harbour.pools["a100-burst"].refresh_from_db()
    assert "the zone has no A100" in harbour.pools["a100-burst"].trouble
    assert harbour.read(row).phase == "waiting"


def test_a_cancelled_wish_leaves_no_busy_node_behind(harbour):
    """R7: cancelled between scale-up and pod."""
    row = harbour.open("burst", "a100-40gb/whole")
    harbour.pass_time(minutes=1)
    services.end_workload(harbour.read(row), by=harbour.robin, now=harbour.now)
    harbour.pass_time(minutes=40)

    assert not Placement.objects.filter(workload=row).exists()
    harbour.pools["a100-burst"].refresh_from_db()
    assert harbour.pools["a100-burst"].wished_nodes == 0
    assert not Node.objects.filter(pool__name="a100-burst").exists()


def test_a_reply_that_is_lost_makes_one_object(harbour):
    """D28: the server did the work and the answer never came."""
    row = harbour.open("notebook", "h100-80gb/whole")
    harbour.cluster.faults.lose_reply("PATCH", "statefulsets", times=2)
    harbour.pass_time(minutes=3, every=0.5)

    assert harbour.read(row).phase == "running"
    assert len(pods_of(harbour, row)) == 1
    assert Placement.objects.filter(workload=row).count() == 1


@pytest.mark.parametrize("status", [409, 429, 500, 503])
def test_a_server_that_says_no_for_a_while_is_asked_again(harbour, status):
    row = harbour.open("notebook", "h100-80gb/whole")
    harbour.cluster.faults.answer(status, "PATCH", "statefulsets", times=3)
    harbour.pass_time(minutes=4, every=0.5)

    assert harbour.read(row).phase == "running"
    assert len(pods_of(harbour, row)) == 1


def test_a_list_that_cannot_be_read_moves_nothing(harbour):
    row = run(harbour)
    harbour.cluster.faults.answer(500, "GET", "/api/v1/pods", times=1)
    report = harbour.cycle()

    assert harbour.read(row).phase == "running"
    assert report.problems
    assert Placement.objects.get(workload=row).ended_at is None


def test_an_image_that_is_not_there_says_so(harbour):
    row = harbour.open("notebook", "h100-80gb/whole", image="quay.io/does-not-exist/image:1")
    harbour.pass_time(minutes=3, every=0.5)

    row = harbour.read(row)
    assert (row.phase, row.phase_reason) == ("starting", "ImageUnavailable")
    services.end_workload(row, by=harbour.robin, now=harbour.now)
    harbour.pass_time(minutes=2, every=0.5)
    assert harbour.read(row).phase == "ended"


def test_pods_left_behind_by_a_deletion_outside_are_removed(harbour):
    """`kubectl delete --cascade=orphan`: the object goes, its pod would hold the card for good."""
    row = run(harbour)
    ref = launch.ref_of(harbour.read(row))
    path = f"/apis/apps/v1/namespaces/{ref.namespace}/statefulsets/{ref.name}"
    harbour.port._api.ask("DELETE", path, body={"propagationPolicy": "Orphan"})
    harbour.pass_time(minutes=3, every=0.5)

    assert harbour.read(row).phase == "ended"
    assert pods_of(harbour, row) == []
    assert Placement.objects.get(workload=row).ended_at is not None
