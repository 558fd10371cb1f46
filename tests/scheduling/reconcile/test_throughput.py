"""Many at a time: few queries, calls beside each other, and each workload's own fate."""

import threading
from fractions import Fraction as F

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from scheduling.cluster.port import ClusterError
from scheduling.models import Placement, Workload
from scheduling.reconcile import chores, launch, putting
from scheduling.reconcile.chores import Chore, Done, TakenOver, parts, work_off
from scheduling.snapshot import held
from tests.scheduling.reconcile.test_faults import run
from tests.world import H100

WHOLE = "h100-80gb/whole"


def queries_of(act):
    with CaptureQueriesContext(connection) as found:
        act()
    return [query["sql"] for query in found.captured_queries]


def test_a_look_at_which_nothing_changed_costs_a_fixed_number_of_queries(harbour):
    run(harbour)
    harbour.turn(minutes=1)
    harbour.settle()
    few = len(queries_of(harbour.cycle))
    for number in range(5):
        run(harbour, f"more-{number}", WHOLE)
    for number in range(20):  # these wait, with a reason that was said before
        harbour.open(f"waits-{number}", WHOLE)
    harbour.turn(minutes=1)
    harbour.settle()

    many = queries_of(harbour.cycle)

    assert len(many) == few <= 25
    assert not [sql for sql in many if sql.startswith("INSERT")]
    assert {sql.split()[1] for sql in many if sql.startswith("UPDATE")} == {'"scheduling_cluster"'}


def test_many_places_are_taken_in_a_few_queries_and_none_beyond_the_quota(harbour):
    for number in range(6):
        harbour.open(f"job-{number}", WHOLE)
    one = harbour.open("late", WHOLE, by=harbour.robin)
    taken = queries_of(harbour.cycle)

    assert Placement.objects.count() == 7
    assert len(taken) < 60
    assert sum(cards for (_, model, _), cards in held().items() if model == H100) == F(7)
    assert harbour.read(one).phase == "placed"


def test_calls_run_beside_each_other_and_ask_no_tables(harbour, monkeypatch):
    """Two puts meet in the middle of their calls; neither could come first alone."""
    meet, threads = threading.Barrier(2, timeout=10), []
    put = launch.put_launch

    def met(*words):
        meet.wait()
        threads.append(threading.current_thread())
        return put(*words)

    monkeypatch.setattr(launch, "put_launch", met)
    rows = [harbour.open(f"two-{number}", WHOLE) for number in range(2)]
    harbour.cycle()

    assert len(set(threads)) == 2
    assert threading.current_thread() not in threads
    assert {harbour.read(row).phase for row in rows} == {"placed"}


def test_one_that_fails_stops_none_of_the_others(harbour, monkeypatch):
    put = launch.put_launch

    def odd(found, *words):
        if found.name == "odd":
            raise ClusterError("It is odd.", status=422, retry=False)
        return put(found, *words)

    monkeypatch.setattr(launch, "put_launch", odd)
    rows = [harbour.open(name, WHOLE) for name in ("a", "odd", "b", "c")]
    report = harbour.cycle()

    assert [harbour.read(row).phase for row in rows] == ["placed", "waiting", "placed", "placed"]
    assert len(report.actions) == 3
    assert ["It is odd." in failure for failure in report.failures] == [True]
    assert Placement.objects.filter(ended_at=None).count() == 3


def test_a_batch_that_breaks_blames_the_one_that_broke_it(harbour, monkeypatch):
    from scheduling.reconcile import reserve

    placed = reserve.placement_of

    def broken(row, *words):
        if row.name == "odd":
            raise KeyError("cpu")
        return placed(row, *words)

    monkeypatch.setattr(reserve, "placement_of", broken)
    rows = [harbour.open(name, WHOLE) for name in ("a", "odd", "b")]
    harbour.cycle()

    assert [harbour.read(row).phase for row in rows] == ["placed", "waiting", "placed"]
    assert harbour.read(rows[1]).failures == 1


class Dead:
    """A worker that dies when everything is reserved."""

    def __init__(self, *_):
        pass

    def conclude(self):
        pass


def test_while_one_batch_is_put_the_next_is_reserved(harbour, monkeypatch):
    """And whatever happens to the next, the one before is brought to its end."""
    monkeypatch.setattr(chores, "BATCH", 2)
    reserve, reserved = putting.reserve.reserve_all, []

    def fails_later(part, now):
        reserved.append(len(part))
        if len(reserved) == 2:
            raise OperationalError("the connection is gone")
        return reserve(part, now)

    monkeypatch.setattr(putting.reserve, "reserve_all", fails_later)
    for number in range(4):
        harbour.open(f"row-{number}", WHOLE)
    with pytest.raises(OperationalError):
        harbour.cycle()

    placed = Workload.objects.filter(phase="placed")
    assert reserved == [2, 2]
    assert {item.workload for item in harbour.port.observe(harbour.now).objects} == {row.pk for row in placed}
    assert set(placed.values_list("unfinished_puts", flat=True)) == {0}


def test_what_was_placed_and_not_put_is_put_again_several_at_a_time(harbour, monkeypatch):
    rows = [harbour.open(f"lost-{number}", WHOLE) for number in range(3)]
    with monkeypatch.context() as patch:
        patch.setattr(putting, "Puts", Dead)
        harbour.cycle()
    Workload.objects.update(unfinished_puts=0)
    harbour.turn(seconds=5)
    together, put = [], putting.put_together

    def counted(wanted, hands):
        together.append(len(wanted))
        put(wanted, hands)

    monkeypatch.setattr("scheduling.reconcile.repairs.put_together", counted)
    harbour.cycle()

    assert together == [3]
    assert {item.workload for item in harbour.port.observe(harbour.now).objects} >= {row.pk for row in rows}


# Chores


class Lasting:
    """A lease that holds for so many questions."""

    def __init__(self, times):
        self.times = times

    def prolong(self):
        self.times -= 1
        return self.times >= 0


def test_the_lease_is_asked_for_before_each_batch():
    batches = parts(range(chores.BATCH + 1), Lasting(1))

    assert len(next(batches)) == chores.BATCH
    with pytest.raises(TakenOver):
        next(batches)


def test_everything_is_told_in_its_order():
    done, after = Done(), []

    def refuse():
        raise ClusterError("No.")

    def keep(answer):
        after.append(answer)
        return True

    work_off(
        [
            Chore("a", lambda: 1, then=keep),
            Chore("b", refuse, failed=lambda fault: after.append(str(fault))),
            Chore("c", lambda: 1 // 0),
            Chore("d", lambda: 4, then=lambda _: False),
        ],
        done,
    )

    assert after == [1, "No."]
    assert done.actions == ["a"]
    assert done.failures[0] == "b: No."
    assert done.failures[1].startswith("c: This broke on what nobody foresaw (ZeroDivisionError")


def test_no_thread_is_left_behind():
    before = threading.active_count()
    work_off([Chore(number, lambda: None) for number in range(40)], Done())

    assert threading.active_count() == before
