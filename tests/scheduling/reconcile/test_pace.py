"""After a look the row says when the next one is due; ticks go by that alone."""

from dataclasses import replace
from datetime import UTC, datetime
from datetime import timedelta as td

import pytest
from django.db.models import Min

from scheduling import tasks, wake
from scheduling.cluster.client import KubernetesPort
from scheduling.models import Cluster, Node
from scheduling.reconcile import cycle
from scheduling.wake import is_due
from tests.scheduling.reconcile.test_faults import run


@pytest.fixture
def watched(monkeypatch):
    """As if the adapter answered from a mirror."""
    listed = KubernetesPort.observe

    def observe(self, now, at_least=None):
        return replace(listed(self, now, at_least), heard_at=datetime.now(UTC))

    monkeypatch.setattr(KubernetesPort, "observe", observe)


def asks_again(harbour, **later):
    cluster = Cluster.objects.get()
    return is_due(cluster, harbour.now + td(**later), cluster.looked_at + td(seconds=1))


def test_a_cluster_that_nobody_watches_is_looked_at_with_every_tick(harbour):
    harbour.settle()

    assert asks_again(harbour)


def test_a_watched_cluster_at_rest_is_not(harbour, watched):
    run(harbour)
    harbour.turn(minutes=30)
    harbour.settle()

    assert Cluster.objects.get().due_at is None
    assert not asks_again(harbour, days=300)


def test_empty_nodes_are_looked_at_when_the_first_of_them_may_go(harbour, watched):
    harbour.settle()
    first = Node.objects.aggregate(first=Min("empty_since"))["first"]

    assert Cluster.objects.get().due_at == first + td(minutes=15)


def test_a_failing_look_is_made_less_often_and_a_good_one_forgives(harbour, watched):
    harbour.settle()
    for expected in (1, 2, 3):
        harbour.cluster.faults.answer(500, "GET", "/api/v1/nodes", times=1)
        cycle.look_after(harbour.world.cluster.pk)
        cluster = Cluster.objects.get()
        assert (cluster.failed_looks, cluster.due_at) == (expected, None)
        assert not asks_again(harbour)

    cycle.look_after(harbour.world.cluster.pk)
    assert Cluster.objects.get().failed_looks == 0


def test_an_incomplete_look_is_trouble_too(harbour, watched):
    harbour.cluster.faults.answer(500, "GET", "/api/v1/pods", times=1)
    harbour.cycle()

    assert (Cluster.objects.get().failed_looks, Cluster.objects.get().due_at) == (1, None)


def test_a_look_that_begins_something_is_followed_by_another(harbour, watched):
    harbour.open("notebook", "h100-80gb/whole")
    assert harbour.cycle().again

    assert asks_again(harbour)


def test_a_wish_in_the_last_of_many_looks_is_handed_on(harbour, watched, monkeypatch):
    """Whoever wished found the lease taken and went away: his task will not come again."""
    sent = []
    monkeypatch.setattr(cycle, "send", sent.append)
    monkeypatch.setattr(cycle, "wanted_since", lambda *_: True)
    cycle.look_after(harbour.world.cluster.pk)

    assert sent == [harbour.world.cluster.pk]


def test_a_workspace_that_falls_quiet_wakes_the_cycle_that_has_to_know_its_limit(harbour, watched, monkeypatch):
    run(harbour)
    harbour.turn(minutes=12)
    harbour.sample()  # it computes for twenty minutes
    harbour.settle()
    sent = []
    monkeypatch.setattr(tasks, "send", sent.append)
    monkeypatch.setattr(wake, "send", sent.append)
    assert Cluster.objects.get().due_at is None
    harbour.turn(minutes=13)
    harbour.sample()
    tasks.tick()
    assert sent[-1] == harbour.world.cluster.pk

    harbour.settle()

    assert Cluster.objects.get().due_at == harbour.now + td(minutes=90)
