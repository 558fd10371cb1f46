"""Doubt: a correct plan from a wrong picture must not stop everybody's work."""

from datetime import UTC, datetime
from datetime import timedelta as td
from fractions import Fraction as F
from uuid import UUID

import pytest

from scheduling.planning.actions import Note, Plan, Resize, Sleep, Stop
from scheduling.planning.facts import (
    Capacity,
    Desired,
    FlavorFact,
    Kind,
    Phase,
    Reason,
    Sharing,
    Snapshot,
    WorkloadFact,
)
from scheduling.reconcile.guard import guard

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
WHOLE = FlavorFact("h100-80gb/whole/on-demand", "h100-80gb", Sharing.WHOLE, "", 1, F(1), 81_559, Capacity.ON_DEMAND)


def workload(number, *, desired=Desired.RUN, phase=Phase.RUNNING, ends_at=None):
    return WorkloadFact(
        id=UUID(int=number),
        name=f"w{number}",
        kind=Kind.WORKSPACE,
        team=UUID(int=0),
        owner=1,
        flavor=WHOLE,
        count=1,
        cpu_milli=1000,
        memory_mib=1024,
        desired=desired,
        phase=phase,
        asked_at=NOW,
        phase_since=NOW,
        pool="train",
        ends_at=ends_at,
    )


def picture(workloads, *, complete=True):
    return Snapshot(NOW, (), (), (), (), tuple(workloads), (), complete=complete)


def stops(count):
    return [Stop(UUID(int=number), Reason.REMOVED_OUTSIDE, "gone") for number in range(count)]


running = [workload(number) for number in range(30)]
DOUBTS = {  #                                                plan                picture                      doubt
    "nothing to do": ([], picture(running), ""),
    "nine of thirty": (stops(9), picture(running), ""),
    "ten of thirty are a third, not more": (stops(10), picture(running), ""),
    "eleven of thirty": (stops(11), picture(running), "stop 11 of 30"),
    "nine of nine are too few to doubt": (stops(9), picture(running[:9]), ""),
    "all of them": (stops(30), picture(running), "stop 30 of 30"),
    "asked for by their owners": (stops(30), picture([workload(n, desired=Desired.END) for n in range(30)]), ""),
    "their time is up": (stops(30), picture([workload(n, ends_at=NOW) for n in range(30)]), ""),
    "their time is up tomorrow": (
        stops(30), picture([workload(n, ends_at=NOW + td(days=1)) for n in range(30)]), "stop 30 of 30",
    ),
    "waiting ones hold nothing": (stops(30), picture([workload(n, phase=Phase.WAITING) for n in range(30)]), ""),
    "sleeps count as stops": ([Sleep(UUID(int=n), Reason.IDLE, "") for n in range(30)], picture(running), "stop 30"),
    "a pool emptied under load": ([Resize("train", 4, 0, (), "")], picture(running), "empty pool train"),
    "a pool that shrinks": ([Resize("train", 4, 1, (), "")], picture(running), ""),
    "another pool emptied": ([Resize("burst", 4, 0, (), "")], picture(running), ""),
    "a stop from an incomplete picture": (stops(1), picture(running, complete=False), "incomplete"),
    "a note from an incomplete picture": (
        [Note(UUID(int=1), Reason.WAITING_FOR_CAPACITY, "")], picture(running, complete=False), "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DOUBTS)
def test_guard(case):
    actions, snapshot, doubt = DOUBTS[case]
    text = guard(Plan.of(actions), snapshot)

    assert bool(text) is bool(doubt)
    assert doubt in text
