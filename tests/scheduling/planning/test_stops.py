"""What goes, and why."""

from datetime import timedelta as td

import pytest

from scheduling.planning.actions import Sleep, Stop
from scheduling.planning.facts import Desired, Phase, Reason
from scheduling.planning.stops import stops
from tests.scheduling.planning.builders import (
    NOW,
    Piece,
    WorkloadBuilder,
    look,
    minutes_ago,
    node,
    statefulset,
    workload,
)


def quiet(minutes: float, limit: float | None = 90) -> WorkloadBuilder:
    """Running, and quiet for so many minutes."""
    limit_span = None if limit is None else td(minutes=limit)
    return workload("a").running_on("n1").having(idle_since=minutes_ago(minutes), idle_limit=limit_span)


def stopping(to: Phase) -> WorkloadBuilder:
    return workload("a").in_phase(Phase.STOPPING, node="n1").having(stopping_to=to)


CASES: dict[str, tuple[list[Piece], type[Stop] | type[Sleep] | None, Reason | None]] = {
    "nothing to do": ([workload("a").running_on("n1")], None, None),
    "its owner ended it": ([workload("a").running_on("n1").wants(Desired.END)], Stop, Reason.ASKED_TO_END),
    "ended before it started": ([workload("a").wants(Desired.END)], Stop, Reason.ASKED_TO_END),
    "ended while asleep": ([workload("a").in_phase(Phase.ASLEEP).wants(Desired.END)], Stop, Reason.ASKED_TO_END),
    "ended is ended": ([workload("a").in_phase(Phase.ENDED).wants(Desired.END)], None, None),
    "its time is up": ([workload("a").running_on("n1").having(ends_at=NOW)], Stop, Reason.TIME_IS_UP),
    "its time is not up": ([workload("a").running_on("n1").having(ends_at=minutes_ago(-1))], None, None),
    "its time is up while it sleeps": (
        [workload("a").in_phase(Phase.ASLEEP).having(ends_at=minutes_ago(1))],
        Stop,
        Reason.TIME_IS_UP,
    ),
    "its owner's word goes before its time": (
        [workload("a").wants(Desired.END).having(ends_at=minutes_ago(1))],
        Stop,
        Reason.ASKED_TO_END,
    ),
    "its owner put it to sleep": ([workload("a").running_on("n1").wants(Desired.SLEEP)], Sleep, Reason.ASKED_TO_SLEEP),
    "to sleep while it waits": ([workload("a").wants(Desired.SLEEP)], Sleep, Reason.ASKED_TO_SLEEP),
    "it sleeps already": ([workload("a").in_phase(Phase.ASLEEP).wants(Desired.SLEEP)], None, None),
    "a job does not sleep": ([workload("a").job().running_on("n1").wants(Desired.SLEEP)], None, None),
    "quiet for its limit": ([quiet(90)], Sleep, Reason.IDLE),
    "quiet for less": ([quiet(89)], None, None),
    "quiet without a limit": ([quiet(900, None)], None, None),
    "not known to be quiet": ([quiet(90).having(idle_since=None)], None, None),
    "a quiet job": ([quiet(900).job()], None, None),
    "quiet before it even runs": ([quiet(900).in_phase(Phase.STARTING, node="n1")], None, None),
    "stopping already": ([stopping(Phase.ENDED), statefulset("a")], None, None),
    "falling asleep already": ([stopping(Phase.ASLEEP), statefulset("a")], None, None),
    "ended while it fell asleep": (
        [stopping(Phase.ASLEEP).wants(Desired.END), statefulset("a").asleep()],
        Stop,
        Reason.ASKED_TO_END,
    ),
    "ended and going": ([stopping(Phase.ENDED).wants(Desired.END), statefulset("a").deleting()], None, None),
    "ended and gone": ([stopping(Phase.ENDED).wants(Desired.END)], None, None),
}


@pytest.mark.parametrize(("pieces", "kind", "reason"), CASES.values(), ids=CASES)
def test_what_goes(pieces: list[Piece], kind: type[Stop] | type[Sleep] | None, reason: Reason | None) -> None:
    found = stops(look(node("n1"), *pieces))

    assert [(type(one), one.reason) for one in found] == ([(kind, reason)] if kind else [])


def test_a_quiet_workspace_reads_both_numbers() -> None:
    found = stops(look(node("n1"), quiet(95)))

    assert found[0].text == "Quiet for 1 h 35 min, since 2026-12-01 10:25 UTC; it sleeps after 1 h 30 min."


def test_time_that_is_up_is_named() -> None:
    found = stops(look(node("n1"), workload("a").running_on("n1").having(ends_at=minutes_ago(2))))

    assert found[0].text == "Its time was up at 2026-12-01 11:58 UTC."
