"""When time alone could change anything: exact instants in a table, and the promise for any picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from datetime import timedelta as td

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduling.planning.actions import Note
from scheduling.planning.due import next_due
from scheduling.planning.facts import Phase, Reason, Snapshot
from scheduling.planning.phases import moves
from scheduling.planning.plan import plan
from tests.scheduling.planning.builders import (
    NOW,
    Piece,
    PodBuilder,
    ThingBuilder,
    WorkloadBuilder,
    foreign,
    job,
    look,
    minutes_ago,
    node,
    pod,
    pool,
    statefulset,
    workload,
)
from tests.scheduling.planning.test_properties import CALM, pictures

TICK = td(microseconds=1)
HOST = node("n1")
H100S = pool("h100").h100(8).nodes(1, of=4, least=1)


def meaning(picture: Snapshot) -> tuple[object, ...]:
    """All that follows from a picture. Sentences that say for how long are left out of what is done anyway."""
    planned = [
        action if isinstance(action, Note) else replace(action, text="") if hasattr(action, "text") else action
        for action in plan(picture).actions
    ]
    followed = [(move.workload, move.to, move.reason) for move in moves(picture)]
    return tuple(planned), tuple(followed)


def at(picture: Snapshot, instant: datetime) -> Snapshot:
    return replace(picture, now=instant)


@dataclass
class Case:
    """What is seen, and after how long it means something else."""

    pieces: Sequence[Piece]
    after: td | None
    empty: dict[str, float] = field(default_factory=dict)

    def picture(self) -> Snapshot:
        return look(*self.pieces, empty=self.empty)


def coming(phase: Phase, minutes: float, *things: Piece, reason: Reason | None = None) -> list[Piece]:
    return [HOST, H100S, workload("a").in_phase(phase, minutes, node="n1").having(reason=reason), *things]


def quiet(minutes: float) -> WorkloadBuilder:
    return workload("a").running_on("n1").having(idle_since=minutes_ago(minutes), idle_limit=td(minutes=90))


def put(thing: ThingBuilder) -> ThingBuilder:
    return thing.having(generation=1)


def unbound(minutes: float) -> PodBuilder:
    return pod("a", "").pending().having(created_at=minutes_ago(minutes))


CASES = {
    "an empty fleet is never due": Case([], None),
    "what runs is never due": Case([HOST, H100S, workload("a").running_on("n1"), put(statefulset("a"))], None),
    "a pause ends": Case([HOST, H100S, workload("a").having(not_before=NOW + td(seconds=40))], td(seconds=40)),
    "asked-for time is up": Case(
        [HOST, H100S, workload("a").running_on("n1").having(ends_at=NOW + td(minutes=7)), put(statefulset("a"))],
        td(minutes=7),
    ),
    "a quiet workspace sleeps": Case([HOST, H100S, quiet(70), put(statefulset("a"))], td(minutes=20)),
    "one that sleeps at once is not due": Case([HOST, H100S, quiet(90), put(statefulset("a"))], None),
    "a node that never shows its cards": Case(
        [
            node("n1").booting(10),
            pool("h100").h100(8).nodes(1, of=1),
            workload("a").whole(1),
        ],
        td(minutes=20),
    ),
    "an empty node may go": Case([HOST, pool("h100").h100(8).nodes(1, of=4)], td(minutes=5), {"n1": 10.0}),
    "emptiness counts from when it was usable": Case(
        [node("n1").usable(2), pool("h100").h100(8).nodes(1, of=4)], td(minutes=13), {"n1": 10.0}
    ),
    "a silent node is lost": Case(
        [node("n1").silent(3), H100S, workload("a").running_on("n1"), put(statefulset("a"))], td(minutes=2)
    ),
    "a put that nobody saw": Case(coming(Phase.PLACED, 0.5), td(seconds=30)),
    "an object that vanished": Case(coming(Phase.STARTING, 0.1), td(seconds=9)),
    "an object of the attempt before": Case(
        [HOST, H100S, workload("a").in_phase(Phase.STARTING, 0.1, node="n1").having(attempt=2), put(statefulset("a"))],
        td(seconds=9),
    ),
    "no pod is made": Case(coming(Phase.STARTING, 4, put(statefulset("a"))), td(minutes=6)),
    "its pod is not bound, as its node is closed": Case(
        [node("n1").cordoned(), *coming(Phase.STARTING, 4, put(statefulset("a")), unbound(0.1))[1:]],
        td(seconds=9),
    ),
    "its pod has not been bound for long": Case(
        coming(Phase.STARTING, 4, put(statefulset("a")), unbound(4)), td(minutes=6)
    ),
    "a job's pod ended and nobody says more": Case(
        [HOST, H100S, workload("a").job().running_on("n1"), put(job("a")), pod("a").ended(0, minutes=7)],
        td(minutes=3),
    ),
    "a pod does not go": Case(
        [
            HOST,
            H100S,
            workload("a").in_phase(Phase.STOPPING, 0.5, node="n1").having(stopping_to=Phase.ENDED),
            pod("a").terminating(0.5),
        ],
        td(seconds=90),
    ),
    "a pod that was given ten minutes to stop does not go": Case(
        [
            HOST,
            H100S,
            workload("a")
            .in_phase(Phase.STOPPING, 2.5, node="n1")
            .having(stopping_to=Phase.ENDED, grace=td(minutes=10)),
            pod("a").terminating(2.5),
        ],
        td(minutes=8.5),
    ),
    "a finalizer holds a pod that has ended": Case(
        [
            HOST,
            H100S,
            workload("a").in_phase(Phase.STOPPING, 0.5, node="n1").having(stopping_to=Phase.ENDED),
            pod("a").ended(0, minutes=0.1).terminating(0.5),
        ],
        td(seconds=9),
    ),
    "the first of several counts": Case(
        [HOST, H100S, quiet(70).having(ends_at=NOW + td(minutes=7)), put(statefulset("a"))], td(minutes=7)
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_due_when_something_changes_and_not_before(case: str) -> None:
    picture, after = CASES[case].picture(), CASES[case].after
    due = next_due(picture)

    assert due == (None if after is None else NOW + after)
    if due is not None:
        assert meaning(at(picture, due - TICK)) == meaning(picture)
        assert meaning(at(picture, due)) != meaning(picture)


def test_a_grant_that_begins_or_ends_is_due() -> None:
    picture = replace(look(HOST, H100S), quotas_change_at=NOW + td(hours=2))

    assert next_due(picture) == NOW + td(hours=2)


def test_what_was_placed_at_this_very_instant_is_put_again_if_the_next_look_does_not_find_it() -> None:
    assert next_due(look(*coming(Phase.PLACED, 0))) == NOW + TICK


def test_what_is_past_is_not_due_again() -> None:
    picture = look(*coming(Phase.STARTING, 60, put(statefulset("a"))), foreign("x", "n1"))

    assert next_due(picture) is None


@st.composite
def moments(draw: st.DrawFn) -> Snapshot:
    """Any picture, with workloads in every phase and with clocks of every kind running."""
    picture = draw(pictures())
    hosts = [fact.name for fact in picture.nodes] or ["gone"]
    minutes = st.sampled_from([0.0, 0.1, 0.5, 1.5, 3.0, 9.5, 20.0])
    pieces: list[Piece] = []
    for number in range(draw(st.integers(0, 5))):
        name, phase = f"m{number}", draw(st.sampled_from([*Phase]))
        who = workload(name).in_phase(phase, draw(minutes), node=draw(st.sampled_from(hosts)))
        who = who.job() if draw(st.booleans()) else who
        clocks = {
            "not_before": NOW + td(minutes=draw(minutes)),
            "ends_at": NOW + td(minutes=draw(minutes)),
            "idle_since": minutes_ago(draw(minutes)),
            "reason": draw(st.sampled_from([Reason.CREATING, Reason.IDLE, Reason.PLACED])),
            "attempt": draw(st.integers(0, 2)),
            "grace": td(minutes=draw(minutes)),
        }
        chosen = draw(st.sets(st.sampled_from(sorted(clocks))))
        who = who.having(idle_limit=td(minutes=10), **{key: clocks[key] for key in chosen})
        pieces += [who, *draw(traces(name, hosts))]
    more = look(*pieces)
    return replace(
        picture,
        workloads=(*picture.workloads, *more.workloads),
        pods=(*picture.pods, *more.pods),
        objects=(*picture.objects, *more.objects),
        complete=draw(st.sampled_from([True, True, True, False])),
    )


@st.composite
def traces(draw: st.DrawFn, name: str, hosts: list[str]) -> list[Piece]:
    """What the cluster shows of a workload: perhaps its object, perhaps a pod in any state."""
    found: list[Piece] = []
    if draw(st.booleans()):
        thing = draw(st.sampled_from([statefulset, job]))(name).having(generation=draw(st.integers(0, 2)))
        found.append(
            draw(st.sampled_from([thing, thing.asleep(), thing.deleting(1), thing.complete(1), thing.failed()]))
        )
    if draw(st.booleans()):
        one = pod(name, draw(st.sampled_from(hosts))).holding(1)
        states = [
            one,
            one.pending(),
            one.unready(),
            one.terminating(1),
            one.ended(0, minutes=4),
            one.ended(1),
            one.refused(),
        ]
        found.append(draw(st.sampled_from(states)))
    return found


@settings(CALM, max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(moments(), st.floats(0, 1, exclude_max=True))
def test_before_it_is_due_time_changes_nothing(picture: Snapshot, part: float) -> None:
    due = next_due(picture)
    until = due or NOW + td(days=400)

    assert meaning(at(picture, NOW + (until - NOW) * part)) == meaning(picture)
    assert meaning(at(picture, until - TICK)) == meaning(picture)
