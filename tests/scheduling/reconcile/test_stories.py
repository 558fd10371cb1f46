"""What happens to people's work, told through the cycle, the real adapter and the simulated cluster."""

from fractions import Fraction as F

import pytest

from scheduling import services, snapshot
from scheduling.cluster.port import Ref
from scheduling.models import Placement, Transition, Workload
from scheduling.reconcile import launch
from tenants.models import Grant


def steps(row):
    return list(Transition.objects.filter(workload=row).values_list("after", "reason"))


def phases(row):
    seen = [after for after, _ in steps(row)]
    return [phase for index, phase in enumerate(seen) if index == 0 or seen[index - 1] != phase]


def test_a_workspace_on_a_free_card_runs_and_its_meter_starts_with_the_container(harbour):
    row = harbour.open("notebook", "h100-80gb/whole")
    harbour.settle()
    harbour.pass_time(minutes=2, every=0.25)

    row = harbour.read(row)
    placement = Placement.objects.get(workload=row)
    assert phases(row) == ["waiting", "placed", "starting", "running"]
    assert placement.placed_at < placement.running_at <= row.first_ran_at
    assert (placement.share, placement.pool, placement.ended_at) == (1, "h100-train", None)


def test_a_quiet_cluster_is_left_alone(harbour):
    harbour.open("notebook", "h100-80gb/whole")
    harbour.pass_time(minutes=2, every=0.5)
    before = harbour.cluster.world.store.revision if hasattr(harbour.cluster.world.store, "revision") else None

    report = harbour.cycle()

    assert (list(report.actions), list(report.failures), report.again) == ([], [], False)
    if before is not None:
        assert harbour.cluster.world.store.revision == before


def test_a_pool_at_zero_wakes_and_goes_back_to_zero(harbour):
    row = harbour.open("burst", "a100-40gb/whole")
    harbour.settle()
    assert harbour.read(row).phase_reason == "WaitingForNode"
    harbour.pass_time(minutes=6, every=0.5)
    assert harbour.read(row).phase == "running"

    services.end_workload(harbour.read(row), by=harbour.robin, now=harbour.now)
    done = harbour.pass_time(minutes=25)

    assert harbour.read(row).phase == "ended"
    assert any("resize pool a100-burst" in line and "to 0" in line for line in done)
    harbour.pools["a100-burst"].refresh_from_db()
    assert harbour.pools["a100-burst"].wished_nodes == 0


def test_one_node_is_asked_for_once_however_late_its_cards_show(harbour):
    """Z1: Ready comes before the GPUs; no second node is bought meanwhile."""
    harbour.open("burst", "a100-40gb/whole")
    done = harbour.settle() + harbour.pass_time(minutes=5, every=0.25)

    assert [line for line in done if "resize" in line] == [line for line in done if "resize" in line][:1]


def test_a_card_is_cut_for_a_slice_that_nothing_offers(harbour):
    row = harbour.open("slice", "h100-80gb/mig-3g.40gb")
    done = harbour.settle() + harbour.pass_time(minutes=4, every=0.25)

    row = harbour.read(row)
    assert row.phase == "running", (row.phase_reason, row.phase_text, done)


def test_sleep_frees_the_quota_and_wake_passes_the_check_again(harbour):
    Grant.objects.filter(team=harbour.vision, model="a100-40gb").delete()
    harbour.grant(harbour.vision, "a100-40gb", 1)
    first = harbour.open("first", "a100-40gb/whole")
    harbour.pass_time(minutes=6, every=0.5)
    second = harbour.open("second", "a100-40gb/whole")
    harbour.settle()
    assert harbour.read(second).phase_reason == "WaitingForQuota"

    services.sleep_workload(harbour.read(first), by=harbour.robin, now=harbour.now)
    harbour.pass_time(minutes=3, every=0.5)
    assert harbour.read(first).phase == "asleep"
    assert harbour.read(second).phase == "running"

    services.wake_workload(harbour.read(first), by=harbour.robin, now=harbour.now)
    harbour.settle()
    assert (harbour.read(first).phase, harbour.read(first).phase_reason) == ("waiting", "WaitingForQuota")

    services.end_workload(harbour.read(second), by=harbour.robin, now=harbour.now)
    harbour.pass_time(minutes=3, every=0.5)
    assert harbour.read(first).phase == "running"
    assert Placement.objects.filter(workload=first).count() == 2


def test_a_job_ends_by_itself_with_its_exit_code(harbour):
    good = harbour.open("good", "h100-80gb/whole", kind="job", command="sleep 120")
    bad = harbour.open("bad", "h100-80gb/whole", kind="job", command="sleep 60; exit 3")
    harbour.pass_time(minutes=6, every=0.5)

    assert (harbour.read(good).phase, harbour.read(good).phase_reason) == ("ended", "Succeeded")
    assert (harbour.read(bad).phase, harbour.read(bad).phase_reason) == ("ended", "Failed")
    assert "exit code 3" in harbour.read(bad).phase_text
    placement = Placement.objects.get(workload=good)
    assert 119 <= (placement.ended_at - placement.running_at).total_seconds() <= 125


def test_what_is_removed_outside_ends_and_frees_its_quota(harbour):
    """Q1"""
    row = harbour.open("notebook", "h100-80gb/whole")
    harbour.pass_time(minutes=2, every=0.5)
    harbour.port.remove(launch.ref_of(harbour.read(row)))
    harbour.pass_time(minutes=2, every=0.5)

    assert (harbour.read(row).phase, harbour.read(row).phase_reason) == ("ended", "RemovedOutside")
    assert Placement.objects.get(workload=row).ended_at is not None


def test_a_denied_request_ends_its_workload_in_the_leads_words(harbour):
    row = harbour.open("big", "h100-80gb/whole", count=8, ask=F(4))
    harbour.settle()
    assert harbour.read(row).phase_reason == "WaitingForApproval"
    services.deny_request(row.quota_request, by=harbour.dana, now=harbour.now, note="Use the shared pool.")
    harbour.settle()

    row = harbour.read(row)
    assert (row.phase, row.phase_reason) == ("ended", "Denied")
    assert row.phase_text == "Dana denied the request: Use the shared pool."


def test_an_approved_request_lets_its_workload_start(harbour):
    Grant.objects.filter(team=harbour.vision, model="h100-80gb").delete()
    row = harbour.open("big", "h100-80gb/whole", count=2, ask=F(2))
    harbour.settle()
    services.approve_request(row.quota_request, by=harbour.dana, now=harbour.now)
    harbour.pass_time(minutes=2, every=0.5)

    assert harbour.read(row).phase == "running"


def test_a_worker_that_dies_before_the_put_loses_nothing(harbour, monkeypatch):
    row = harbour.open("notebook", "h100-80gb/whole")
    with monkeypatch.context() as patch:
        patch.setattr(launch, "put_launch", interrupted)
        with pytest.raises(KeyboardInterrupt):
            harbour.cycle()
    assert harbour.read(row).phase == "placed"
    harbour.pass_time(minutes=2, every=0.5)

    assert harbour.read(row).phase == "running"
    assert Placement.objects.filter(workload=row).count() == 1


def test_a_worker_that_dies_after_the_put_makes_no_second_one(harbour, monkeypatch):
    row = harbour.open("notebook", "h100-80gb/whole")
    put_launch = launch.put_launch

    def put_and_die(*args):
        put_launch(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(launch, "put_launch", put_and_die)
        with pytest.raises(KeyboardInterrupt):
            harbour.cycle()
    harbour.pass_time(minutes=2, every=0.5)

    assert harbour.read(row).phase == "running"
    ours = [pod for pod in harbour.port.observe(harbour.now).pods if pod.workload]
    assert len(ours) == 1


def test_an_object_of_somebody_else_under_our_name_is_left_alone(harbour):
    row = harbour.open("notebook", "h100-80gb/whole")
    name = launch.ref_of(harbour.read(row)).name
    labels = {"somebody": "else"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 0, "serviceName": name, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": name, "namespace": "team-vision"}
    foreign = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}
    api = harbour.port._api
    api.ask(
        "POST",
        "/api/v1/namespaces",
        body={
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "team-vision", "labels": {"app.kubernetes.io/managed-by": "berth"}},
        },
    )
    api.ask("POST", "/apis/apps/v1/namespaces/team-vision/statefulsets", body=foreign)
    report = harbour.cycle()

    assert any("not Berth's" in failure for failure in report.failures)
    assert harbour.read(row).phase == "waiting"
    assert harbour.port.remove(Ref("StatefulSet", "team-vision", name)) is False


def test_a_paused_cluster_is_looked_at_and_left_alone(harbour):
    harbour.cluster_row = None
    row = harbour.open("notebook", "h100-80gb/whole")
    type(harbour.world.cluster).objects.update(paused=True)
    report = harbour.cycle()

    assert "paused" in report.refusal
    assert harbour.read(row).phase == "waiting"


def interrupted(*_):
    raise KeyboardInterrupt


def test_a_workload_opened_in_mid_look_waits_for_the_next_one(harbour, monkeypatch):
    """What comes in after the line of workloads has been read must not end the look."""
    read = snapshot.facts_of

    def read_late(cluster, rows, placements):
        harbour.open("latecomer", "h100-80gb/whole")
        return read(cluster, rows, placements)

    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "facts_of", read_late)
        harbour.cycle()
    harbour.pass_time(minutes=2, every=0.5)

    assert phases(Workload.objects.get(name="latecomer"))[-1] == "running"


def test_a_wake_that_comes_while_it_still_stops_is_not_lost(harbour):
    row = harbour.open("notebook", "h100-80gb/whole")
    harbour.pass_time(minutes=3, every=0.5)
    services.sleep_workload(harbour.read(row), by=harbour.robin, now=harbour.now)
    harbour.cycle()
    assert harbour.read(row).phase == "stopping"
    harbour.turn(seconds=1)
    services.wake_workload(harbour.read(row), by=harbour.robin, now=harbour.now)
    harbour.pass_time(minutes=6, every=0.5)

    row = harbour.read(row)
    assert row.phase == "running", (row.phase, row.phase_text)
    assert Placement.objects.filter(workload=row).count() == 2


def test_the_same_refusal_is_written_down_once(harbour):
    cluster = type(harbour.world.cluster)
    cluster.objects.update(paused=True)
    for _ in range(3):
        harbour.turn(minutes=1)
        harbour.cycle()
    refused = harbour.world.cluster.reports.exclude(refusal="")

    assert refused.count() == 1
    cluster.objects.update(paused=False)
    harbour.cycle()
    assert cluster.objects.get().trouble == ""


def test_a_paused_cluster_finishes_nothing_that_was_begun_either(harbour, monkeypatch):
    row = harbour.open("notebook", "h100-80gb/whole")
    with monkeypatch.context() as patch:
        patch.setattr(launch, "put_launch", interrupted)
        with pytest.raises(KeyboardInterrupt):
            harbour.cycle()
    type(harbour.world.cluster).objects.update(paused=True)
    harbour.turn(minutes=1)
    harbour.cycle()
    assert harbour.port.observe(harbour.now).objects == ()

    type(harbour.world.cluster).objects.update(paused=False)
    harbour.pass_time(minutes=2, every=0.5)
    assert harbour.read(row).phase == "running"
