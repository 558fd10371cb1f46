"""What always breaks is tried less and less often, is told, and holds up nobody else."""

from contextlib import nullcontext
from datetime import UTC, datetime
from datetime import timedelta as td
from itertools import pairwise

import pytest
from django.db import OperationalError

from scheduling.cluster.port import Ref
from scheduling.models import Cluster, CycleReport, Placement, Workload
from scheduling.planning.facts import Phase
from scheduling.reconcile import cycle, launch, reserve
from scheduling.reconcile.fence import Fenced
from scheduling.reconcile.lease import LONGEST_REST, LeaseLost, lease, rest

WHOLE = "h100-80gb/whole"


class Killed(BaseException):
    """The worker is gone: nothing after this line happens, whatever is caught."""


@pytest.fixture
def breaks(monkeypatch):
    """Lets this function break for what is called poison, in its own way."""

    def arrange(module, name, fault):
        real = getattr(module, name)

        def broken(row, *others, **facts):
            if row.name == "poison":
                raise fault
            return real(row, *others, **facts)

        monkeypatch.setattr(module, name, broken)

    return arrange


@pytest.mark.parametrize(("module", "name"), [(launch, "put_launch"), (reserve, "placement_of")])
def test_a_workload_that_always_breaks_is_parked_and_the_others_go_on(harbour, breaks, module, name):
    poison = harbour.open("poison", WHOLE)
    sound = [harbour.open(f"sound-{number}", WHOLE) for number in range(2)]
    breaks(module, name, KeyError("cpu"))
    tried = []

    for _ in range(80):
        harbour.settle()
        row = harbour.read(poison)
        tried += [row.not_before] if row.not_before and row.not_before not in tried else []
        harbour.turn(minutes=1)

    row, pauses = harbour.read(poison), [after - before for before, after in pairwise(tried)]
    assert [harbour.read(row).phase for row in sound] == [Phase.RUNNING] * 2
    assert (row.phase, row.phase_reason, row.failures) == (Phase.ENDED, "Failed", 5)
    assert "KeyError: 'cpu'" in row.phase_text
    assert pauses == sorted(pauses)
    assert any("KeyError" in failure for report in CycleReport.objects.all() for failure in report.failures)
    assert not Placement.objects.filter(workload=poison, ended_at=None).exists()


def test_a_workload_that_kills_its_workers_is_parked_after_some_and_the_others_go_on(harbour, breaks):
    poison = harbour.open("poison", WHOLE)
    sound = [harbour.open(f"sound-{number}", WHOLE) for number in range(2)]
    breaks(launch, "put_launch", Killed())
    deaths = 0

    for _ in range(80):
        try:
            harbour.settle()
        except Killed:
            deaths += 1
            Workload.objects.filter(pk=poison.pk).update(unfinished_puts=deaths)  # a dead worker clears nothing
        harbour.turn(minutes=1)

    row = harbour.read(poison)
    assert [harbour.read(row).phase for row in sound] == [Phase.RUNNING] * 2
    assert (row.phase, deaths) == (Phase.ENDED, 6)
    assert row.phase_text == "6 workers in a row died while they put it into the cluster."


def test_a_put_that_comes_back_is_not_held_against_anybody(harbour):
    row = harbour.open("notebook", WHOLE)
    harbour.cluster.faults.answer(503, "PATCH", "statefulsets", times=4)
    for _ in range(8):
        harbour.settle()
        harbour.turn(minutes=1)

    row = harbour.read(row)
    assert (row.phase, row.unfinished_puts, row.failures) == (Phase.RUNNING, 0, 0)


def test_a_fault_of_the_tables_is_nobodys_poison(harbour, breaks):
    row = harbour.open("poison", WHOLE)
    breaks(reserve, "placement_of", OperationalError("the connection is gone"))

    with pytest.raises(OperationalError):
        harbour.settle()

    assert harbour.read(row).failures == 0


def test_a_cluster_that_always_breaks_its_look_rests_longer_and_longer_and_says_so(harbour, monkeypatch):
    monkeypatch.setattr(cycle, "port_for", lambda cluster: nullcontext(harbour.port))
    monkeypatch.setattr(cycle, "plan", lambda snapshot: 1 / 0)
    pk, rests = harbour.world.cluster.pk, []

    for _ in range(5):
        cycle.look_after(pk)
        cluster = Cluster.objects.get()
        rests.append(cluster.rest_until)
        assert cycle.look_after(pk) is None or cluster.rest_until is None
        Cluster.objects.update(rest_until=None)

    assert cluster.broken_looks == 6
    assert "ZeroDivisionError" in cluster.trouble
    assert "6th look in a row" in cluster.trouble
    monkeypatch.undo()
    monkeypatch.setattr(cycle, "port_for", lambda cluster: nullcontext(harbour.port))
    cycle.look_after(pk)
    cluster.refresh_from_db()
    assert (cluster.broken_looks, cluster.rest_until, cluster.trouble) == (0, None, "")


def test_rests_double_and_have_an_end():
    assert [rest(number) for number in (0, 1)] == [td(0)] * 2
    assert [rest(number).total_seconds() for number in (2, 3, 4)] == [2, 4, 8]
    assert rest(1000) == LONGEST_REST


def test_a_look_that_killed_its_worker_counts_as_broken(world):
    for _ in range(3):
        with pytest.raises(Killed), lease(world.cluster.pk):
            raise Killed
        Cluster.objects.update(rest_until=None)

    assert Cluster.objects.get().broken_looks == 3


def test_a_cluster_that_rests_is_left_alone(world):
    Cluster.objects.update(rest_until=datetime.now(UTC) + td(seconds=60))
    with lease(world.cluster.pk) as ours:
        assert ours is None


class Port:
    """Notes which verbs came through."""

    def __init__(self):
        self.asked = []

    def __getattr__(self, verb):
        return lambda *_, **__: self.asked.append(verb)


WRITES = {
    "put": ({},), "remove": (Ref("Job", "ns", "name"),), "scale": (Ref("StatefulSet", "ns", "name"), 0),
    "cut": ("node", "all-balanced"), "resize": ("pool", 1, ()),
}  # fmt: skip


def test_a_worker_that_woke_up_too_late_writes_nothing(world, monkeypatch):
    port = Port()
    with lease(world.cluster.pk) as ours:
        fenced = Fenced(port, ours)
        for verb, words in WRITES.items():
            getattr(fenced, verb)(*words)
        fenced.cordon("node", on=True, marks={})
        assert port.asked == [*WRITES, "cordon"]
        port.asked.clear()
        monkeypatch.setattr("scheduling.reconcile.lease.time.monotonic", lambda: float("inf"))
        for verb, words in WRITES.items():
            with pytest.raises(LeaseLost):
                getattr(fenced, verb)(*words)
        with pytest.raises(LeaseLost):
            fenced.cordon("node", on=True, marks={})
        fenced.metrics([])
        assert port.asked == ["metrics"]
