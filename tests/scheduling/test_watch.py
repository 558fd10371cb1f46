"""Which clusters a worker watches, and what a ring comes to."""

import threading

import pytest

from scheduling import watch
from scheduling.cluster.port import ClusterError
from scheduling.models import Cluster
from scheduling.watch import Bell, Watching
from tests.conftest import MORNING

pytestmark = pytest.mark.django_db


@pytest.fixture
def listened(monkeypatch):
    """The clusters that were listened to, in order; those in `deaf` cannot be."""
    names, deaf = [], set()

    def listen(cluster, ring):
        if cluster.name in deaf:
            raise ClusterError("nobody")
        names.append(cluster.name)

    monkeypatch.setattr(watch, "listen", listen)
    monkeypatch.setattr(threading.Thread, "start", lambda thread: None)
    monkeypatch.setattr(watch, "close_old_connections", lambda: None)
    return names, deaf


def add(name):
    Cluster.objects.create(name=name, server="https://127.0.0.1:1", created_at=MORNING)


def test_every_cluster_is_watched_and_each_round_comes_back_to_all(listened):
    """A port that watches already goes on; a row that leads elsewhere has a new port by then."""
    names, _ = listened
    add("one")
    watching = Watching()
    watching.watch_all()
    add("two")
    watching.watch_all()

    assert names == ["one", "one", "two"]
    assert len(watching.bells) == 2


def test_one_that_cannot_be_watched_does_not_keep_the_others_from_it(listened):
    names, deaf = listened
    add("one")
    add("two")
    deaf.add("one")

    Watching().watch_all()

    assert names == ["two"]


def test_many_rings_are_one_wake_up(monkeypatch):
    woken, stop = [], threading.Event()

    def wake(cluster_id):
        woken.append(cluster_id)
        stop.set()

    monkeypatch.setattr(watch, "wake_cycle", wake)
    monkeypatch.setattr(watch, "close_old_connections", lambda: None)
    monkeypatch.setattr(watch, "TOGETHER", 0.0)
    bell = Bell(7, stop)
    for _ in range(100):
        bell.pulled.set()

    bell.ring()

    assert woken == [7]
    assert not bell.pulled.is_set()
