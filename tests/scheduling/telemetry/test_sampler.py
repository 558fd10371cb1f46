"""From an exporter's text to samples, meters, rollups and the idle clock."""

from datetime import timedelta as td

import pytest

from scheduling import tasks
from scheduling.cluster.port import Exposition
from scheduling.models import Sample, UsageHour
from scheduling.telemetry import sampler
from scheduling.telemetry.rollups import forget, mean_busy, roll_up
from scheduling.telemetry.sampler import silence


@pytest.fixture
def events(monkeypatch):
    told = []
    monkeypatch.setattr("scheduling.announce.send", told.extend)
    return told


def run(harbour, name="notebook", flavor="h100-80gb/whole"):
    row = harbour.open(name, flavor)
    harbour.pass_time(minutes=2, every=0.5)
    assert harbour.read(row).phase == "running"
    return harbour.read(row)


def test_a_running_workspace_is_sampled_and_its_page_told(harbour, events):
    row = run(harbour)
    events.clear()

    assert harbour.sample() == 1

    sample = Sample.objects.get()
    assert sample.placement.workload == row
    assert 0.2 < sample.busy <= 1
    assert 0 < sample.memory_used_mib < sample.memory_total_mib <= 81_559
    assert sample.watts > 50
    meter = next(event for event in events if event["what"] == "meter")
    assert (meter["topic"], meter["busy"], meter["idle_minutes"]) == (f"workload:{row.pk}", sample.busy, None)


def test_a_slice_is_sampled_as_a_slice(harbour):
    run(harbour, "slice", "h100-80gb/mig-2g.20gb")
    harbour.sample()

    sample = Sample.objects.get()
    assert 15_000 < sample.memory_total_mib < 21_000
    assert sample.busy is not None
    assert sample.watts is None  # a board's power is not a slice's


def test_sharers_of_a_card_are_told_apart(harbour):
    """Four cards, filled from the emptiest: the fifth comes to share one."""
    for name in ("one", "two", "three", "four", "five"):
        run(harbour, name, "a10g-24gb")
    harbour.sample()

    found = [sample.busy for sample in Sample.objects.all()]
    assert len(found) == 5
    assert all(0 < busy <= 1 for busy in found)
    assert sum(found) <= 4


def test_ninety_quiet_minutes_put_a_workspace_to_sleep_and_not_one_less(harbour):
    row = run(harbour)
    asleep_at = None
    for _ in range(140):
        harbour.turn(minutes=1)
        harbour.sample()
        harbour.settle()
        idle_since = harbour.read(row).idle_since
        if harbour.read(row).phase != "running":
            asleep_at = harbour.now
            break
    assert harbour.read(row).phase_reason == "Idle"
    assert (asleep_at - idle_since).total_seconds() == 90 * 60
    harbour.pass_time(minutes=2)
    assert harbour.read(row).phase == "asleep"


def test_without_metrics_nobody_is_idle(harbour, monkeypatch):
    row = run(harbour)
    silent = [Exposition("gke-berth-h100-train", None, "The exporter does not answer.")]
    monkeypatch.setattr("scheduling.cluster.client.KubernetesPort.metrics", lambda *_: silent)
    for _ in range(140):
        harbour.turn(minutes=1)
        harbour.sample()
    harbour.settle()

    assert harbour.read(row).phase == "running"
    assert harbour.read(row).idle_since is None
    assert set(Sample.objects.values_list("busy", flat=True)) == {None}


def test_where_nothing_can_be_read_the_operator_is_told_why_until_it_can(harbour, monkeypatch):
    run(harbour)
    closed = [Exposition("gke-berth-h100-train", None, "The cluster does not let us.")]
    with monkeypatch.context() as patch:
        patch.setattr("scheduling.cluster.client.KubernetesPort.metrics", lambda *_: closed)
        harbour.sample()
    harbour.world.cluster.refresh_from_db()
    assert harbour.world.cluster.meters_trouble == "The cluster does not let us."

    harbour.turn(minutes=1)
    harbour.sample()

    harbour.world.cluster.refresh_from_db()
    assert harbour.world.cluster.meters_trouble == ""


def test_one_node_that_answers_is_enough_to_say_nothing():
    answers, silent = Exposition("a", "", ""), Exposition("b", None, "It went away.")

    assert silence([silent, answers]) == ""
    assert silence([silent, silent]) == "It went away."
    assert silence([]) == ""


def test_a_woken_workspace_is_not_put_back_to_sleep_by_its_old_idleness(harbour):
    row = run(harbour)
    type(row).objects.filter(pk=row.pk).update(idle_since=harbour.now.replace(year=2020), desired="sleep")
    harbour.pass_time(minutes=2, every=0.5)
    assert harbour.read(row).phase == "asleep"
    type(row).objects.filter(pk=row.pk).update(desired="run", desired_at=harbour.now)
    harbour.pass_time(minutes=2, every=0.5)

    assert harbour.read(row).phase == "running"
    assert harbour.read(row).idle_since is None


def test_rollups_are_made_from_samples_and_twice_is_once(harbour):
    row = run(harbour)
    for _ in range(10):
        harbour.turn(minutes=1)
        harbour.sample()
    placement = row.placements.get()
    hours = list(UsageHour.objects.values())

    roll_up([placement.pk], harbour.now)

    assert list(UsageHour.objects.values()) == hours
    assert sum(hour["samples"] for hour in hours) == Sample.objects.count() == 10
    busy = [sample.busy for sample in Sample.objects.all()]
    assert sum(hour["busy_sum"] for hour in hours) == pytest.approx(sum(busy))
    assert mean_busy(placement.pk, harbour.now.replace(year=2020)) == pytest.approx(sum(busy) / 10)


def test_samples_are_kept_a_day_and_their_rollups_for_good(harbour):
    run(harbour)
    harbour.sample()
    harbour.world.clock.advance(hours=27)
    forget(harbour.now)

    assert not Sample.objects.exists()
    assert UsageHour.objects.count() == 1


def test_two_beats_sample_once(world, monkeypatch):
    asked = []

    def nothing_runs(cluster):
        asked.append(cluster)
        return []

    monkeypatch.setattr(sampler, "_running", nothing_runs)

    for _ in range(3):
        sampler.sample_cluster(world.cluster, world.now)

    assert len(asked) == 1


def test_a_cluster_that_hangs_holds_one_thread_and_no_other_cluster(world, monkeypatch):
    """D35: while one thread waits for its answer, the next bell for it is let go; others are sampled."""
    inside: list[int] = []

    def hangs(cluster, now):
        inside.append(sampler.sample_cluster(cluster, now))  # the next bell, while the first one still waits
        return 1

    monkeypatch.setattr(sampler, "_sample", hangs)

    assert sampler.sample_cluster(world.cluster, world.now) == 1
    assert inside == [0]
    monkeypatch.setattr(sampler, "SHORTEST", td(0))
    assert sampler.sample_cluster(world.cluster, world.now) == 1, "and is free again when it is over"


def test_each_cluster_on_which_something_runs_is_a_task_of_its_own(world, monkeypatch):
    rung: list[int] = []
    monkeypatch.setattr(tasks, "send_sample", rung.append)
    monkeypatch.setattr(tasks, "our_turn", lambda *_: True)
    tasks.sample()
    assert rung == []

    for name in ("a", "b"):
        world.workload(name, phase="running")
    tasks.sample()

    assert rung == [world.cluster.pk]
