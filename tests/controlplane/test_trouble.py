"""On a cluster that lives by itself: late and killed workers, old pictures, pods that never come up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from scheduling import services
from scheduling.cluster.client import KubernetesPort
from scheduling.cluster.port import Observation
from scheduling.models import Cluster, Node, Placement, Workload
from scheduling.reconcile import launch
from scheduling.reconcile.cycle import look_after, run_cycle
from scheduling.snapshot import held
from tests.controlplane.harbour import Harbour

H100 = "h100-80gb"


class OldPictures:
    """A port whose looks show the past: what a stale list answers."""

    def __init__(self, port: KubernetesPort, seen: Observation) -> None:
        self.port, self.seen = port, seen

    def observe(self, now: datetime, at_least: Any = None) -> Observation:
        return replace(self.seen, at=now)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.port, name)


def objects_of(harbour: Harbour, row: Workload) -> list[str]:
    return [found.uid for found in harbour.port.observe(harbour.now).objects if found.workload == row.pk]


# R1, R3


def test_r1_a_worker_that_comes_late_with_its_put_makes_no_second_object(
    harbour: Harbour, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It slept before the put; another did its work meanwhile; then it wakes and goes on."""
    late: list[tuple[Any, ...]] = []

    def sleeps(*arguments: Any) -> None:
        late.append(arguments)
        raise KeyboardInterrupt

    row = harbour.open("notebook", "h100-80gb/whole")
    with monkeypatch.context() as patch:
        patch.setattr(launch, "put_launch", sleeps)
        with pytest.raises(KeyboardInterrupt):
            harbour.cycle()
    harbour.until(lambda: harbour.phase(row) == "running", "running by another worker's hand")
    before = objects_of(harbour, row), [pod.uid for pod in harbour.pods_of(row)]

    launch.put_launch(*late[0])
    harbour.settle()

    assert (objects_of(harbour, row), [pod.uid for pod in harbour.pods_of(row)]) == before
    assert len(before[0]) == len(before[1]) == 1
    assert Placement.objects.get(workload=row).ended_at is None


def test_r3_a_worker_that_is_killed_after_its_put_makes_no_second_object(
    harbour: Harbour, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_launch = launch.put_launch

    def put_and_die(*arguments: Any) -> None:
        put_launch(*arguments)
        raise KeyboardInterrupt

    row = harbour.open("notebook", "h100-80gb/whole")
    with monkeypatch.context() as patch:
        patch.setattr(launch, "put_launch", put_and_die)
        with pytest.raises(KeyboardInterrupt):
            harbour.cycle()
    harbour.until(lambda: harbour.phase(row) == "running", "running")

    assert (len(objects_of(harbour, row)), len(harbour.pods_of(row))) == (1, 1)
    assert Placement.objects.filter(workload=row).count() == 1


# R5


def test_r5_old_pictures_make_no_second_pod_and_sell_no_card_twice(harbour: Harbour) -> None:
    """The list from before the put is answered twice more; then another wants the same cards."""
    old = OldPictures(harbour.port, harbour.port.observe(harbour.now))
    first = harbour.open("first", "h100-80gb/whole", count=5)
    harbour.cycle()
    second = harbour.open("second", "h100-80gb/whole", count=5)

    for _ in range(2):
        harbour.world.cluster.refresh_from_db()
        run_cycle(harbour.world.cluster, old, harbour.now)
    assert harbour.placement_node(second) != harbour.placement_node(first)
    harbour.until(lambda: harbour.phase(first) == "running", "the first running")

    assert (len(objects_of(harbour, first)), len(harbour.pods_of(first))) == (1, 1)
    assert Placement.objects.filter(workload=first).count() == 1
    assert harbour.placement_node(second) != harbour.placement_node(first)


def test_r5_an_old_picture_without_it_ends_nothing_that_runs(harbour: Harbour) -> None:
    old = OldPictures(harbour.port, harbour.port.observe(harbour.now))
    row = harbour.run()

    for _ in range(2):
        harbour.world.cluster.refresh_from_db()
        run_cycle(harbour.world.cluster, old, harbour.now)

    assert harbour.phase(row) != "ended", "what has only just come up is not gone because a list is old"
    harbour.until(lambda: harbour.phase(row) == "running", "still running")
    assert Placement.objects.filter(workload=row).count() == 1


# R7


def test_r7_cancelled_while_its_node_comes(harbour: Harbour) -> None:
    row = harbour.open("burst", "a100-40gb/whole")
    pool = harbour.pools["a100-burst"]
    harbour.until(lambda: wished(pool) == 1, "a node asked for")

    services.end_workload(harbour.read(row), by=harbour.robin, now=harbour.now)
    harbour.until(lambda: Node.objects.filter(pool=pool).exclude(usable_since=None).exists(), "the node there")
    harbour.turn(minutes=20)
    harbour.until(lambda: wished(pool) == 0 and not Node.objects.filter(pool=pool).exists(), "the pool at zero again")

    assert harbour.phase(row) == "ended"
    assert not Placement.objects.filter(workload=row).exists()
    assert harbour.pods_of(row) == []


def wished(pool: Any) -> int | None:
    pool.refresh_from_db()
    return pool.wished_nodes


# R9, Q2


@pytest.mark.parametrize("kind", ["workspace", "job"])
def test_r9_a_node_that_refuses_everything_sees_one_try_and_few_failed_pods(harbour: Harbour, kind: str) -> None:
    """Its pool has no other node, so it waits, and its owner reads the kubelet's words."""
    harbour.pools["h100-train"].max_nodes = 1
    harbour.pools["h100-train"].save()
    refuse(harbour, times=1000)
    row = harbour.open("notebook", "h100-80gb/whole", kind=kind, command="sleep 3600" if kind == "job" else "")
    harbour.until(lambda: harbour.read(row).shunned, "its node shunned")

    most = 0
    for _ in range(40):
        harbour.turn(minutes=2)
        harbour.cycle()
        harbour.wait()
        most = max(most, len(harbour.pods_of(row)))

    row = harbour.read(row)
    assert (row.phase, row.failures, row.shunned) == ("waiting", 1, harbour.node_names("h100-train"))
    assert Placement.objects.filter(workload=row).count() == 1
    assert most <= 2
    assert held() == {}
    said = " ".join(row.transitions.values_list("text", flat=True))
    assert "refused it" in said
    assert "Allocate failed due to a fault" in said, "the kubelet's own words"


def test_q2_a_pod_that_never_comes_up_holds_its_share_once(harbour: Harbour) -> None:
    row = harbour.open("notebook", "h100-80gb/whole", image="quay.io/does-not-exist/image:1")
    harbour.until(lambda: harbour.read(row).phase_reason == "ImageUnavailable", "its image missed")

    for _ in range(50):
        harbour.turn(seconds=30)
        harbour.cycle()

    assert held() == {(harbour.vision.pk, H100, harbour.robin.pk): 1}
    assert (len(objects_of(harbour, row)), len(harbour.pods_of(row))) == (1, 1)
    assert Placement.objects.filter(workload=row, ended_at=None).count() == 1


@pytest.mark.parametrize("trouble", ["refused", "unbound", "deleted"])
def test_q2_one_reservation_whatever_fails(harbour: Harbour, trouble: str) -> None:
    """At every look: at most one open placement and one live pod, and the quota held at most once."""
    row = harbour.open("notebook", "h100-80gb/whole")
    makers: dict[str, Callable[[], None]] = {
        "refused": lambda: refuse(harbour, times=1),
        "unbound": lambda: cordon_all(harbour, on=True),
        "deleted": lambda: delete_pod(harbour, row),
    }
    for _ in range(6):
        makers[trouble]()
        for _ in range(4):
            harbour.cycle()
            harbour.wait()
            assert sum(held().values()) <= 1
            assert Placement.objects.filter(workload=row, ended_at=None).count() <= 1
            assert len([pod for pod in harbour.pods_of(row) if pod.phase in ("Pending", "Running")]) <= 1
        harbour.turn(minutes=3)
    if trouble == "unbound":
        cordon_all(harbour, on=False)
    harbour.faults.clear()
    harbour.turn(minutes=31)
    harbour.until(lambda: harbour.phase(row) == "running", "running after all")

    assert sum(held().values()) == 1
    attempts = list(Placement.objects.filter(workload=row).order_by("attempt").values_list("attempt", flat=True))
    assert attempts == list(range(1, len(attempts) + 1)), "the attempts are its history"


def refuse(harbour: Harbour, *, times: int) -> None:
    """Every kubelet of the pool turns its next pods away."""
    for node in harbour.node_names("h100-train"):
        harbour.faults.refuse_admission(node, times=times)


def cordon_all(harbour: Harbour, *, on: bool) -> None:
    for node in harbour.node_names("h100-train"):
        harbour.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True if on else None}})


def delete_pod(harbour: Harbour, row: Workload) -> None:
    if harbour.pods_of(row):
        harbour.delete(harbour.pod_path(row))


# R10


def test_r10_many_looks_at_once_are_one_at_a_time(transactional_db: None, harbour: Harbour) -> None:
    """The tick was sent a hundred times: whoever finds somebody at work leaves."""
    rows = [harbour.open(f"w{index}", "h100-80gb/whole") for index in range(4)]
    found: list[object] = []
    lock = threading.Lock()

    def ticks() -> None:
        from django.db import connection

        for _ in range(10):
            report = look_after(harbour.world.cluster.pk)
            with lock:
                found.append(report)
        connection.close()

    threads = [threading.Thread(target=ticks) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    harbour.until(lambda: all(harbour.phase(row) == "running" for row in rows), "all running")

    assert any(report is None for report in found), "some found the lease taken"
    for row in rows:
        assert Placement.objects.filter(workload=row).count() == 1
        assert (len(objects_of(harbour, row)), len(harbour.pods_of(row))) == (1, 1)
        assert row.transitions.filter(before="waiting", after="placed").count() == 1
    assert Cluster.objects.get().lease_token == ""
