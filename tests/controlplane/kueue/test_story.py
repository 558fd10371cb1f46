"""Teams that queue, borrow and reclaim on the real Kueue: from the tables to bound pods and back."""

from __future__ import annotations

import time
from datetime import timedelta as td
from fractions import Fraction as F
from typing import Any

import pytest

from scheduling.cluster.kueue import VERSION
from scheduling.consistency import Look, tables_and_queues
from scheduling.models import Flavor, NodePool, Placement, Workload
from scheduling.planning.facts import Kind
from scheduling.services import Wish, end_workload, open_workload, sleep_workload, wake_workload
from tenants.billing.findings import Finding
from tenants.models import Grant, LendingLimit, Team, User
from tests.controlplane.harbour import Harbour
from tests.scheduling.conftest import H100

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(180)]

GROUP = "/apis/kueue.x-k8s.io/v1beta2"


@pytest.fixture
def two_and_two(queued_harbour: Harbour) -> Harbour:
    """Vision and Speech have two H100 each, and there are no others."""
    world = queued_harbour.world
    Grant.objects.filter(model=H100).delete()
    for team, cards in ((world.organisation, 4), (world.research, 4), (world.vision, 2), (world.speech, 2)):
        world.grant(team, H100, cards)
    queued_harbour.until(lambda: not queued_harbour.looks[-1].again, "queues of two and two")
    return queued_harbour


def ask(harbour: Harbour, team: Team, by: User, name: str, count: int = 1, **facts: Any) -> Workload:
    flavor = Flavor.objects.get(sku__startswith="h100-80gb/whole")
    wish = Wish(name=name, kind=Kind.WORKSPACE, flavor=flavor, count=count, submission=name, reason="A paper.", **facts)
    return open_workload(wish, team=team, by=by, now=harbour.world.now)


def running(harbour: Harbour, row: Workload) -> None:
    harbour.until(lambda: harbour.phase(row) == "running", f"{row.name} running")


def told(row: Workload) -> list[tuple[str, str, str]]:
    return list(row.transitions.order_by("version").values_list("after", "reason", "text"))


def reasons(row: Workload) -> list[str]:
    return [reason for _, reason, _ in told(row)]


def findings(harbour: Harbour) -> list[Finding]:
    return list(tables_and_queues(Look(harbour.world.now, td(minutes=10))))


def test_a_team_borrows_what_another_leaves_and_gives_it_back(two_and_two: Harbour) -> None:
    harbour, world = two_and_two, two_and_two.world
    own = ask(harbour, world.vision, world.robin, "own", count=2)
    running(harbour, own)
    then = int(time.time())
    harbour.seen(lambda: int(time.time()) > then, "a new second, as Kueue goes by whole ones")
    first, second = (ask(harbour, world.vision, world.robin, name) for name in ("first", "second"))
    running(harbour, first)
    running(harbour, second)
    harbour.until(lambda: "Borrowed" in reasons(second), "a word that it is borrowed")
    third = ask(harbour, world.vision, world.robin, "third")
    harbour.until(lambda: harbour.read(third).phase_reason == "WaitingForQuota", "no more to borrow")
    harbour.until(lambda: not findings(harbour), "tables that equal Kueue's own status")

    theirs = ask(harbour, world.speech, world.sasha, "theirs")
    running(harbour, theirs)

    harbour.until(lambda: "Requeued" in [*reasons(first), *reasons(second)], "the borrower in line again")
    pushed = next(row for row in (first, second) if "Preempted" in reasons(row))
    assert "that team has taken them back" in next(text for _, reason, text in told(pushed) if reason == "Preempted")
    assert harbour.phase(pushed) == "waiting"
    assert Placement.objects.get(workload=pushed).ended_at is not None
    assert harbour.phase(own) == "running"
    assert "Preempted" not in reasons(own)
    harbour.until(lambda: not findings(harbour), "tables that equal Kueue's own status")

    end_workload(harbour.read(theirs), by=world.sasha, now=world.now)
    running(harbour, pushed)

    assert Placement.objects.filter(workload=pushed).count() == 2
    assert harbour.failures() == []


def test_consistency_finds_what_tables_and_kueue_do_not_agree_on(two_and_two: Harbour) -> None:
    harbour, world = two_and_two, two_and_two.world
    row = ask(harbour, world.vision, world.robin, "notebook", count=2)
    running(harbour, row)
    harbour.until(lambda: not findings(harbour), "nothing to find")

    Placement.objects.filter(workload=row).update(ended_at=world.now)
    harbour.delete(f"{GROUP}/namespaces/team-speech/localqueues/berth")
    nominal = {"spec": {"cohortName": "elsewhere"}}
    harbour.patch(f"{GROUP}/clusterqueues/berth-research", nominal)

    found = harbour.seen(lambda: len(findings(harbour)) >= 3 and findings(harbour), "three findings")
    assert {(one.check, one.where) for one in found} == {
        ("missing-queue", "LocalQueue team-speech/berth"),
        ("drifted-queue", "ClusterQueue berth-research"),
        ("queue-use", f"berth-vision in {world.cluster.name}"),
    }
    use = next(one for one in found if one.check == "queue-use")
    assert "nvidia.com/gpu in berth-h100-80gb-whole-on-demand the tables count 0 held, and Kueue 2" in use.text

    harbour.until(lambda: {one.check for one in findings(harbour)} == {"queue-use"}, "queues that are put right")


def test_a_workspace_sleeps_and_wakes_and_keeps_its_home(queued_harbour: Harbour) -> None:
    harbour, world = queued_harbour, queued_harbour.world
    row = ask(harbour, world.vision, world.robin, "notebook", storage_gib=5)
    running(harbour, row)
    home = f"/api/v1/namespaces/team-vision/persistentvolumeclaims/home-notebook-{row.pk.hex[:8]}-0"
    uid = harbour.document(home)["metadata"]["uid"]

    sleep_workload(harbour.read(row), by=world.robin, now=world.now)
    harbour.until(lambda: harbour.phase(row) == "asleep", "asleep")
    assert harbour.there(harbour.object_path(row)) is None
    wake_workload(harbour.read(row), by=world.robin, now=world.now)
    running(harbour, row)

    assert harbour.document(home)["metadata"]["uid"] == uid
    assert Placement.objects.filter(workload=row).count() == 2
    end_workload(harbour.read(row), by=world.robin, now=world.now)
    harbour.until(lambda: harbour.phase(row) == "ended" and harbour.there(home) is None, "an end that leaves no home")


def test_a_pool_wakes_from_zero_for_what_kueue_has_admitted(queued_harbour: Harbour) -> None:
    harbour = queued_harbour
    assert harbour.node_names("a100-burst") == []

    row = harbour.open("train", "a100-40gb/whole", count=2)
    running(harbour, row)

    assert "WaitingForNode" in reasons(row)
    assert harbour.node_names("a100-burst") != []


def test_a_foreign_queue_of_our_name_is_never_touched(queued_harbour: Harbour) -> None:
    harbour, world = queued_harbour, queued_harbour.world
    spec = {"clusterQueue": "somebody-elses"}
    body = {"apiVersion": VERSION, "kind": "ClusterQueue", "metadata": {"name": "berth-new"}, "spec": {}}
    harbour.door.ask("POST", f"{GROUP}/clusterqueues", body=body)
    Team.objects.create(slug="new", name="New", parent=world.research, created_at=world.now)

    harbour.until(lambda: any("berth-new is there already" in text for text in harbour.failures()), "a refusal")

    found = harbour.document(f"{GROUP}/clusterqueues/berth-new")
    assert found["spec"].get("cohortName") is None
    assert spec not in found.values()


def test_a_queue_that_nobody_asks_for_any_more_goes_once_it_is_empty(queued_harbour: Harbour) -> None:
    harbour, world = queued_harbour, queued_harbour.world
    team = Team.objects.create(slug="brief", name="Brief", parent=world.research, created_at=world.now)
    path = f"{GROUP}/clusterqueues/berth-brief"
    harbour.until(lambda: harbour.there(path), "its queue")

    team.delete()

    harbour.until(lambda: harbour.there(path) is None, "no queue of a team that is gone")


def test_a_team_that_may_not_borrow_waits_with_kueues_own_words(two_and_two: Harbour) -> None:
    harbour, world = two_and_two, two_and_two.world
    NodePool.objects.filter(name="h100-mig").delete()  # so that Kueue alone keeps the sum of this model
    LendingLimit.objects.create(team=world.vision, model=H100, borrowing=F(0))
    own = ask(harbour, world.vision, world.robin, "own", count=2)
    running(harbour, own)

    more = ask(harbour, world.vision, world.robin, "more")

    harbour.until(lambda: "Kueue says:" in harbour.read(more).phase_text, "Kueue's own words")
    waiting = harbour.read(more)
    assert waiting.phase == "waiting"
    assert waiting.phase_reason in ("WaitingForQuota", "ExceedsMaxQuota")
    assert "insufficient" in waiting.phase_text
    end_workload(harbour.read(own), by=world.robin, now=world.now)
    running(harbour, more)


def test_an_operator_who_stops_a_queue_takes_its_work_out_and_may_let_it_go_on(two_and_two: Harbour) -> None:
    harbour, world = two_and_two, two_and_two.world
    row = ask(harbour, world.vision, world.robin, "notebook")
    running(harbour, row)
    queue = f"{GROUP}/clusterqueues/berth-vision"

    harbour.patch(queue, {"spec": {"stopPolicy": "HoldAndDrain"}})
    harbour.until(lambda: harbour.phase(row) == "waiting", "waiting")
    assert "QueueStopped" in reasons(row)
    assert Placement.objects.get(workload=row).ended_at is not None

    harbour.patch(queue, {"spec": {"stopPolicy": "None"}})
    running(harbour, row)
    assert harbour.document(queue)["spec"]["stopPolicy"] == "None"


def test_a_job_that_ends_is_charged_from_its_pod_to_its_end(queued_harbour: Harbour) -> None:
    harbour = queued_harbour
    row = harbour.open("train", "h100-80gb/whole", kind=Kind.JOB, command="sleep 2")

    harbour.until(lambda: harbour.phase(row) == "ended", "ended")

    placement = Placement.objects.get(workload=row)
    assert harbour.read(row).phase_reason == "Succeeded"
    assert placement.placed_at <= placement.running_at <= placement.ended_at
    assert placement.pod_uid != ""
    harbour.until(lambda: harbour.there(harbour.object_path(row)) is None, "nothing left")
    assert Placement.objects.filter(workload=row).count() == 1
