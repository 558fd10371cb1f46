"""Tables against the cluster as it is now."""

from uuid import uuid4

import pytest

from scheduling.cluster import names
from scheduling.cluster_checks import against_cluster
from scheduling.models import Cluster, Node, Placement, Workload


def checks(harbour):
    return [found.check for found in against_cluster(harbour.world.cluster, harbour.now)]


@pytest.fixture
def running(harbour):
    row = harbour.open("notebook", "h100-80gb/whole")
    harbour.pass_time(minutes=2, every=0.5)
    return row


def test_after_a_quiet_look_they_agree(harbour, running):
    assert checks(harbour) == []


def test_a_workload_on_its_way_disagrees_with_nothing(harbour):
    harbour.open("notebook", "h100-80gb/whole")
    for _ in range(12):
        harbour.turn(seconds=5)
        harbour.settle()
        assert checks(harbour) == []


def test_a_pod_that_vanished_behind_the_tables(harbour, running):
    placement = Placement.objects.get(workload=running)
    harbour.cluster.faults.node_vanish(placement.node)
    harbour.turn(minutes=2)

    assert sorted(checks(harbour)) == ["gone-node", "placement-without-pod"]


def test_a_node_that_the_tables_do_not_have(harbour):
    Node.objects.first().delete()

    assert checks(harbour) == ["unknown-node"]


def test_our_objects_without_a_row_are_told_and_left(harbour, running):
    """D25: the tables are older than the cluster."""
    Placement.objects.filter(workload=running).delete()
    running.transitions.all().delete()
    Workload.objects.filter(pk=running.pk).delete()
    before = harbour.port.observe(harbour.now)
    harbour.settle()

    assert checks(harbour) == ["object-without-workload", "pod-without-placement"]
    assert len(harbour.port.observe(harbour.now).pods) == len(before.pods)


def wears_our_labels(harbour, workload, node):
    labels = {names.MANAGED_BY: names.MANAGER, names.WORKLOAD: str(workload)}
    meta = {"name": "mine", "namespace": harbour.vision.namespace, "labels": labels}
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "example.org/miner:1"}]}
    harbour.cluster.world.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})


def test_a_pod_that_only_wears_our_labels_is_nobodys(harbour, running):
    wears_our_labels(harbour, uuid4(), Placement.objects.get().node)

    assert checks(harbour) == []


def test_nor_does_it_stand_in_for_one_that_is_not_there(harbour, running):
    elsewhere = Node.objects.exclude(name=Placement.objects.get().node).first().name
    Placement.objects.update(node=elsewhere)
    wears_our_labels(harbour, running.pk, elsewhere)

    assert checks(harbour) == ["placement-without-pod"]


def test_a_cluster_that_does_not_answer_is_a_finding(world):
    Cluster.objects.update(server="http://127.0.0.1:9")
    world.cluster.refresh_from_db()

    found = against_cluster(world.cluster, world.now)

    assert [one.check for one in found] == ["unreachable-cluster"]
    assert "does not answer" in found[0].text
