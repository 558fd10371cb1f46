"""Which looks count: not one that came too late, not one that lacks a list, and none in the past."""

from contextlib import nullcontext
from datetime import timedelta as td

import pytest

from scheduling import services
from scheduling.consistency import Look, stale_clusters
from scheduling.models import Cluster, CycleReport, Node, Placement, Transition
from scheduling.reconcile import cycle
from tests.scheduling.reconcile.test_faults import run


class Overtaken:
    """An adapter that sleeps so long in its look that another worker takes over."""

    def __init__(self, port):
        self.port = port

    def observe(self, now, at_least=None):
        Cluster.objects.update(lease_token="another")
        return self.port.observe(now, at_least)


@pytest.fixture
def through(monkeypatch):
    """Lets `look_after` see the cluster through this adapter."""

    def see(port):
        monkeypatch.setattr(cycle, "port_for", lambda cluster: nullcontext(port))

    return see


def written():
    tables = (Node, Placement, Transition, CycleReport)
    return [list(table.objects.order_by("pk").values()) for table in tables]


def test_a_picture_that_came_too_late_is_not_written_down(harbour, through):
    """A worker that was paused past its lease and goes on: nodes that are new by now would count as gone."""
    harbour.open("notebook", "h100-80gb/whole")
    harbour.cluster.faults.node_vanish(Node.objects.get(pool__name="h100-train").name)
    before, seen_at = written(), Cluster.objects.get().seen_at
    harbour.turn(minutes=1)
    through(Overtaken(harbour.port))

    report = cycle.look_after(harbour.world.cluster.pk)

    assert (report.actions, written()) == ((), before)
    assert Cluster.objects.get().seen_at == seen_at
    assert Cluster.objects.get().lease_token == "another"


def test_a_look_that_lacks_a_list_is_no_sight_of_the_cluster(harbour):
    """Hours that end meanwhile wait: whether the pods still ran is not known."""
    run(harbour)
    seen_at = Cluster.objects.get().seen_at
    harbour.turn(minutes=1)
    harbour.cluster.faults.answer(500, "GET", "/api/v1/pods", times=1)
    harbour.cycle()

    cluster = Cluster.objects.get()
    assert cluster.seen_at == seen_at
    assert cluster.trouble.startswith("Pod: ")
    harbour.settle()
    cluster.refresh_from_db()
    assert (cluster.seen_at, cluster.trouble) == (harbour.now, "")


def test_a_clock_that_was_set_back_is_waited_out(harbour, through):
    """What is placed now must not lie in an hour that is charged already."""
    seen_at = Cluster.objects.get().seen_at
    harbour.world.clock.advance(minutes=-50)
    row = harbour.open("notebook", "h100-80gb/whole")
    through(harbour.port)

    cycle.look_after(harbour.world.cluster.pk)

    assert Placement.objects.get(workload=row).placed_at == seen_at
    assert Cluster.objects.get().seen_at == seen_at
    [finding] = stale_clusters(Look(now=harbour.now, patience=td(minutes=15)))
    assert finding.check == "clock-set-back"


def test_a_wake_under_a_clock_that_was_set_back_counts(harbour):
    row = run(harbour)
    services.sleep_workload(harbour.read(row), by=harbour.robin, now=harbour.now)
    harbour.pass_time(minutes=3, every=0.5)
    assert harbour.read(row).phase == "asleep"
    services.wake_workload(harbour.read(row), by=harbour.robin, now=harbour.now - td(minutes=50))
    harbour.settle()

    assert harbour.read(row).phase in ("placed", "starting")


def test_a_clock_that_goes_on_is_followed(harbour):
    harbour.turn(minutes=3)

    assert cycle.time_at(Cluster.objects.get()) == harbour.now == Cluster.objects.get().seen_at + td(minutes=3)
