"""Faults of the API server, and hands in the cluster, on the simulation and on the real control plane alike.

Berth reaches the cluster through the fault proxy of tests/faults/; all others go past it. Numbered as in
docs/reliability.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduling import services
from scheduling.cluster import names
from scheduling.cluster.api import APPLY, path_of
from scheduling.models import CycleReport, Placement, Transition
from scheduling.reconcile import launch
from scheduling.reconcile.cycle import look_after
from tests.controlplane.fleet import close_down
from tests.controlplane.harbour import Harbour
from tests.faults.deeds import Answer, Lose, Reset
from tests.faults.proxy import Proxy
from tests.faults.stand import behind_a_proxy, comes_to_rest

WHOLE = "h100-80gb/whole"


@pytest.fixture
def road(harbour: Harbour) -> Iterator[Proxy]:
    with behind_a_proxy(harbour, int(os.environ.get("FAULTS_SEED", "28"))) as proxy:
        yield proxy
        comes_to_rest(harbour, proxy)


def ends(harbour: Harbour, row: Any) -> None:
    services.end_workload(harbour.read(row), by=harbour.robin, now=harbour.now)
    harbour.until(lambda: harbour.phase(row) == "ended", "ended")


# 28


@pytest.mark.parametrize("deed", [Lose(), Reset(after=1)], ids=["lost", "broken off"])
@pytest.mark.parametrize("kind", ["workspace", "job"])
def test_28_a_reply_that_never_came_makes_one_object(harbour: Harbour, road: Proxy, deed: Any, kind: str) -> None:
    road.on(deed, "POST" if kind == "job" else "PATCH", "statefulsets|jobs", times=2)  # a job is created
    row = harbour.run(flavor=WHOLE, kind=kind, command="sleep 100000")

    assert road.met()[type(deed).__name__.lower()] >= 1
    assert Placement.objects.filter(workload=row).count() == 1
    assert len(harbour.pods_of(row)) == 1
    assert len([one for one in harbour.port.observe(harbour.now).objects if one.workload == row.pk]) == 1


def test_28_a_reply_to_a_removal_that_never_came_removes_once(harbour: Harbour, road: Proxy) -> None:
    row = harbour.run()
    road.on(Lose(), "DELETE", "statefulsets", times=2)
    ends(harbour, row)

    assert harbour.there(harbour.object_path(row)) is None


# 29


def test_29_an_object_of_ours_that_is_there_already_is_taken_on(harbour: Harbour, road: Proxy) -> None:
    """The put was done, and nobody remembers."""
    road.on(Lose(), "PATCH", "statefulsets")
    row = harbour.open("notebook", WHOLE)
    harbour.until(lambda: harbour.there(harbour.object_path(row)), "its object")
    uid = harbour.document(harbour.object_path(row))["metadata"]["uid"]
    harbour.until(lambda: harbour.phase(row) == "running", "running")

    assert harbour.document(harbour.object_path(row))["metadata"]["uid"] == uid


def test_29_an_object_of_somebody_else_under_our_name_is_not_touched_and_it_is_said(
    harbour: Harbour, road: Proxy
) -> None:
    row = harbour.open("notebook", WHOLE)
    ref = launch.ref_of(harbour.read(row))
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ref.namespace, "labels": ours()}}
    apply(harbour, path_of("Namespace", "", ref.namespace), space)
    mine = {"app": "theirs"}
    template = {
        "metadata": {"labels": mine},
        "spec": {"containers": [{"name": "main", "image": "example.org/theirs:1"}]},
    }
    theirs = {
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": ref.name, "namespace": ref.namespace},
        "spec": {"replicas": 0, "serviceName": "x", "selector": {"matchLabels": mine}, "template": template},
    }  # fmt: skip
    apply(harbour, path_of("StatefulSet", ref.namespace, ref.name), theirs)
    before = harbour.document(harbour.object_path(row))
    harbour.until(lambda: "is not Berth's" in harbour.read(row).phase_text, "its owner is told")

    after = harbour.document(harbour.object_path(row))  # its own controller writes its status meanwhile
    assert (after["spec"], after["metadata"]["generation"]) == (before["spec"], before["metadata"]["generation"])
    assert names.FIELD_MANAGER not in {entry["manager"] for entry in after["metadata"].get("managedFields", [])}
    assert any("is not Berth's" in text for text in harbour.failures())
    harbour.delete(harbour.object_path(row))
    services.end_workload(harbour.read(row), by=harbour.robin, now=harbour.now)


def ours() -> dict[str, str]:
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    return {names.MANAGED_BY: names.MANAGER, names.TEAM: "vision", **levels}


def apply(harbour: Harbour, path: str, document: dict[str, Any]) -> None:
    harbour.door.ask("PATCH", path, query={"fieldManager": "somebody-else"}, body=document, content=APPLY)


# 30


def test_30_what_others_write_between_our_reading_and_our_writing_stays(harbour: Harbour, road: Proxy) -> None:
    row = harbour.run()
    name, path = harbour.node_of(row), harbour.object_path(row)
    note = {"metadata": {"annotations": {"example.org/note": "keep me"}}}
    harbour.patch(f"/api/v1/nodes/{name}", note)
    harbour.port.cordon(name, on=True, marks={names.LEAVING: "x"})
    harbour.port.cordon(name, on=False, marks={names.LEAVING: None})
    harbour.patch(path, note)
    services.sleep_workload(harbour.read(row), by=harbour.robin, now=harbour.now)
    harbour.until(lambda: harbour.phase(row) == "asleep", "asleep")
    services.wake_workload(harbour.read(row), by=harbour.robin, now=harbour.now)
    harbour.until(lambda: harbour.phase(row) == "running", "running again")

    for where in (f"/api/v1/nodes/{name}", path):
        assert harbour.document(where)["metadata"]["annotations"]["example.org/note"] == "keep me"


def test_30_a_conflict_is_looked_at_again_and_done_again(harbour: Harbour, road: Proxy) -> None:
    road.on(Answer(409, message="the object has been modified"), "PATCH", "statefulsets", times=2)
    road.on(Answer(409, message="the object has been modified"), "DELETE", times=2)
    row = harbour.run()
    ends(harbour, row)

    assert road.met()["answer"] == 4


# 34


def test_34_a_token_that_was_rotated_is_read_again_and_a_dead_one_makes_the_cluster_unreachable(
    real_harbour: Harbour, tmp_path: Path
) -> None:
    """On the real one only: the simulation takes any token."""
    with behind_a_proxy(real_harbour, 34) as road:
        rotate(real_harbour, road, tmp_path)
        comes_to_rest(real_harbour, road)


def rotate(harbour: Harbour, road: Proxy, tmp_path: Path) -> None:
    good = Path(harbour.world.cluster.token_file).read_text(encoding="utf-8")
    file = tmp_path / "token"
    file.write_text(good, encoding="utf-8")
    harbour.world.cluster.token_file = str(file)
    harbour.world.cluster.save()
    assert look_after(harbour.world.cluster.pk).complete

    file.write_text("not-the-token-of-anybody", encoding="utf-8")
    from scheduling.connect import forget_ports

    forget_ports()
    asked = len(road.history)
    for _ in range(12):
        look_after(harbour.world.cluster.pk)
    harbour.world.cluster.refresh_from_db()
    assert "401" in harbour.world.cluster.trouble
    assert len(road.history) - asked <= 8, "no hot loop"

    file.write_text(good, encoding="utf-8")
    harbour.turn(minutes=2)
    assert look_after(harbour.world.cluster.pk).complete
    harbour.world.cluster.refresh_from_db()
    assert harbour.world.cluster.trouble == ""


# 37


@pytest.mark.parametrize("kind", ["workspace", "job"])
def test_37_what_is_deleted_by_hand_ends_at_its_deletion(harbour: Harbour, road: Proxy, kind: str) -> None:
    row = harbour.run(kind=kind, command="sleep 100000")
    harbour.turn(seconds=20)  # an absence right after a beginning may be an old list's, and is waited out
    before = harbour.now
    harbour.delete(harbour.object_path(row))
    after = harbour.now
    harbour.until(lambda: harbour.phase(row) == "ended", "ended")

    row = harbour.read(row)
    assert row.phase_reason == "RemovedOutside"
    stopping = Transition.objects.filter(workload=row, after__in=["stopping", "ended"]).order_by("version").first()
    slack = 5.0 if harbour.real else 60.0  # until the next look; the simulation's pod has its grace
    assert (stopping.at - before).total_seconds() >= -21.0, (
        "Kubernetes tells whole seconds, of a clock 20 s behind ours"
    )
    assert (stopping.at - after).total_seconds() <= slack


# 38


def test_38_more_cards_by_hand_are_put_right_and_told(harbour: Harbour, road: Proxy) -> None:
    row = harbour.run()
    path, pod = harbour.object_path(row), harbour.pods_of(row)[0].uid
    grow(harbour, path, "8")
    harbour.until(lambda: cards_in(harbour, path) == "1", "put right")

    assert harbour.pods_of(row)[0].uid == pod, "what runs is not disturbed"
    told = Transition.objects.filter(workload=row, reason="ChangedOutside")
    assert [step.text for step in told] == [
        "It was changed to ask for 8 instead of 1 from outside of this portal. That was put right."
    ]
    assert any("put notebook right" in text for report in CycleReport.objects.all() for text in report.actions)


def test_38_a_pod_that_was_made_meanwhile_goes_too(harbour: Harbour, road: Proxy) -> None:
    row = harbour.run()
    path, old = harbour.object_path(row), harbour.pods_of(row)[0].uid
    grow(harbour, path, "2")
    harbour.delete(harbour.pod_path(row), gracePeriodSeconds=0)
    harbour.seen(lambda: [pod for pod in harbour.pods_of(row) if pod.uid != old], "a pod with two cards")
    harbour.until(lambda: [pod.requests for pod in harbour.pods_of(row)] == [{"nvidia.com/gpu": 1}], "one card again")
    harbour.until(lambda: harbour.phase(row) == "running", "running")

    assert Placement.objects.filter(workload=row).count() == 1


def test_38_a_slice_that_was_made_a_larger_one_is_put_right_and_told(harbour: Harbour, road: Proxy) -> None:
    """Of one unit as before. What another manager has set, an apply does not take away by leaving it out."""
    row = harbour.run(flavor="h100-80gb/mig-1g.10gb")
    path = harbour.object_path(row)
    document = harbour.document(path)
    for part in document["spec"]["template"]["spec"]["containers"][0]["resources"].values():
        part["nvidia.com/mig-3g.40gb"] = part.pop("nvidia.com/mig-1g.10gb")
    harbour.door.ask("PUT", path, query={"fieldManager": "kubectl-edit"}, body=document)

    harbour.until(lambda: Transition.objects.filter(workload=row, reason="ChangedOutside").exists(), "put right")
    (told,) = Transition.objects.filter(workload=row, reason="ChangedOutside").values_list("text", flat=True)
    assert "ask for 1 nvidia.com/mig-3g.40gb instead of 1 nvidia.com/mig-1g.10gb" in told
    (item,) = harbour.port.observe(harbour.now).objects
    assert item.requests == {"nvidia.com/mig-1g.10gb": 1}
    harbour.turn(minutes=5)
    harbour.settle()
    assert Transition.objects.filter(workload=row, reason="ChangedOutside").count() == 1, "and stays so"
    assert harbour.phase(row) == "running"


def test_38_more_pods_by_hand_are_put_right(harbour: Harbour, road: Proxy) -> None:
    row = harbour.run()
    path = harbour.object_path(row)
    harbour.patch(path, {"spec": {"replicas": 3}})
    harbour.until(lambda: harbour.document(path)["spec"]["replicas"] == 1, "put right")
    harbour.until(lambda: len(harbour.pods_of(row)) == 1, "one pod")

    assert harbour.phase(row) == "running"


def test_38_who_changes_it_again_and_again_does_not_wear_out_the_cluster(harbour: Harbour, road: Proxy) -> None:
    row = harbour.run()
    path = harbour.object_path(row)
    for _ in range(6):
        grow(harbour, path, "4")
        harbour.cycle()
    assert Transition.objects.filter(workload=row, reason="ChangedOutside").count() == 1
    harbour.turn(minutes=2)
    harbour.until(lambda: cards_in(harbour, path) == "1", "put right once more")


def grow(harbour: Harbour, path: str, cards: str) -> None:
    """As `kubectl edit` does it."""
    document = harbour.document(path)
    asks = document["spec"]["template"]["spec"]["containers"][0]["resources"]
    for part in ("requests", "limits"):
        if "nvidia.com/gpu" in asks.get(part, {}):
            asks[part]["nvidia.com/gpu"] = cards
    harbour.door.ask("PUT", path, query={"fieldManager": "kubectl-edit"}, body=document)


def cards_in(harbour: Harbour, path: str) -> str:
    asks = harbour.document(path)["spec"]["template"]["spec"]["containers"][0]["resources"]
    return str(asks["limits"]["nvidia.com/gpu"])


# 40


def test_40_a_namespace_that_is_being_deleted_is_waited_for_with_a_reason(harbour: Harbour, road: Proxy) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-vision", "labels": ours()}}
    apply(harbour, "/api/v1/namespaces/team-vision", space)
    held = "/api/v1/namespaces/team-vision/configmaps/held"
    document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "held", "finalizers": ["example.org/hold"]},
    }
    apply(harbour, held, document)
    harbour.delete(held)
    harbour.delete("/api/v1/namespaces/team-vision")
    row = harbour.open("notebook", WHOLE)
    harbour.until(lambda: "being deleted" in harbour.read(row).phase_text, "its owner is told")
    harbour.turn(minutes=1.2)
    harbour.until(lambda: harbour.phase(row) == "waiting", "its place is given back")

    assert "being deleted" in harbour.read(row).phase_text
    assert "It is tried again from" in harbour.read(row).phase_text
    asked = len(road.history)
    for _ in range(5):
        harbour.cycle()
    assert road.writes(asked) == [], "no error loop"
    release_namespace(harbour, held)
    harbour.turn(minutes=2)
    harbour.until(lambda: harbour.phase(row) == "running", "running")


def release_namespace(harbour: Harbour, held: str) -> None:
    harbour.patch(held, {"metadata": {"finalizers": None}})
    if harbour.real:  # at once; Kubernetes' own controller would take five seconds over it
        close_down(harbour.door, "team-vision")
    harbour.seen(lambda: harbour.there("/api/v1/namespaces/team-vision") is None, "the namespace gone")
