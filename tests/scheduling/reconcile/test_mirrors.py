"""Several workers, each with a mirror of its own: none acts on less than another has seen and written (R5)."""

from contextlib import nullcontext
from datetime import UTC, datetime
from datetime import timedelta as td

import pytest

from scheduling import services
from scheduling.cluster.client import Connection, KubernetesPort
from scheduling.consistency import Look, stale_clusters
from scheduling.handover import complete_until
from scheduling.models import Cluster, Placement
from scheduling.reconcile import cycle
from tests.scheduling.cluster.test_mirror import until
from tests.scheduling.reconcile.test_faults import run

WATCHES, WATCHES_TOO, LISTS = range(3)


@pytest.fixture
def looks(harbour, monkeypatch):
    """`looks(n)` is a look of the n-th worker: two that watch the cluster, and one that lists."""
    ports = [KubernetesPort(Connection(harbour.world.cluster.server)) for _ in range(2)]
    for port in ports:
        port.watch(lambda: None)
        until(lambda port=port: port.observe(harbour.now).heard_at)
    ports.append(harbour.port)

    def look(number):
        monkeypatch.setattr(cycle, "port_for", lambda _: nullcontext(ports[number]))
        return cycle.look_after(harbour.world.cluster.pk)

    yield look
    for port in ports[:2]:
        port.close()


def live_pods(harbour):
    """Ours, as the cluster has them behind its door."""
    found = harbour.cluster.world.store.all("pods")
    ours = [pod for pod in found if "berth.portal/workload" in pod["metadata"]["labels"]]
    return [pod for pod in ours if pod["status"].get("phase") not in ("Succeeded", "Failed")]


def test_r5_a_second_worker_with_a_deaf_mirror_gives_out_no_card_twice(harbour, looks):
    """Its streams are open and say nothing: what the first has placed is not in its picture until it lists."""
    first = harbour.open("first", "h100-80gb/whole", count=8)
    harbour.cluster.faults.silence_watches()
    looks(WATCHES)
    services.end_workload(harbour.read(first), by=harbour.robin, now=harbour.now)
    second = harbour.open("second", "h100-80gb/whole", count=8)
    for turn in range(6):
        looks(turn % 2)
        harbour.turn(seconds=10)
        assert len(live_pods(harbour)) <= 1, "two pods for eight cards"

    assert Placement.objects.filter(workload=second).count() <= 1


def test_r5_a_worker_with_a_deaf_mirror_does_not_take_a_new_node_for_gone(harbour, looks):
    """Another lists, sees a node and places on it; a mirror that has not heard of it would give the place back."""
    harbour.cluster.faults.silence_watches("nodes")
    row = harbour.open("burst", "a100-40gb/whole")
    for _ in range(16):
        harbour.turn(minutes=0.5)
        looks(LISTS)
    assert harbour.read(row).phase == "running"

    for number in (WATCHES, WATCHES_TOO, LISTS, WATCHES):
        looks(number)

    assert harbour.read(row).phase == "running"
    assert Placement.objects.get(workload=row).ended_at is None


def test_after_a_death_in_the_middle_everything_is_listed(harbour, looks, monkeypatch):
    looks(WATCHES)
    past = datetime.now(UTC) - td(seconds=1)
    Cluster.objects.update(lease_token="a dead one's", lease_until=past, broken_looks=0, rest_until=None)
    asked = []
    observe = KubernetesPort.observe

    def noted(port, now, at_least=None):
        asked.append(at_least)
        return observe(port, now, at_least)

    monkeypatch.setattr(KubernetesPort, "observe", noted)

    looks(WATCHES)

    assert asked[0].torn


def test_an_hour_that_a_deaf_mirror_did_not_see_the_end_of_is_not_charged(harbour):
    """The mirror last heard anything two hours ago: the look is one of then, whatever the clock says now."""
    run(harbour)
    with KubernetesPort(Connection(harbour.world.cluster.server), silence=1e9) as port:
        port.watch(lambda: None)
        until(lambda: port.observe(harbour.now).heard_at)
        cycle.run_cycle(Cluster.objects.get(), port, harbour.now)
        before = Cluster.objects.get().seen_at
        harbour.cluster.faults.silence_watches()
        harbour.turn(hours=2)
        grow_old(port, td(hours=2))

        cycle.run_cycle(Cluster.objects.get(), port, harbour.now)

    cluster = Cluster.objects.get()
    assert cluster.seen_at - before < td(minutes=1)
    assert complete_until(cluster, harbour.now) <= before
    assert list(stale_clusters(Look(now=harbour.now, patience=td(minutes=15))))


def test_a_look_never_makes_the_cluster_be_seen_earlier(harbour):
    harbour.settle()
    seen_at = Cluster.objects.get().seen_at
    harbour.port.watch(lambda: None)
    until(lambda: harbour.port.observe(harbour.now).heard_at)
    grow_old(harbour.port, td(seconds=60))

    harbour.cycle()

    assert Cluster.objects.get().seen_at == seen_at
    assert Cluster.objects.get().heard_at < datetime.now(UTC) - td(seconds=50)


def grow_old(port, by):
    """As if the wall clock had gone on and nothing had been said."""
    for kept in port.mirror._kept.values():
        kept.heard_at = datetime.now(UTC) - by
