"""What the cluster shows means for a workload: one table per phase, and a few stories."""

from dataclasses import dataclass, field, replace
from datetime import timedelta as td

import pytest

from scheduling.planning.facts import Desired, Kind, Phase, Reason
from scheduling.planning.phases import MOVES, RULES, Move, moves, observed
from scheduling.planning.retries import back_off
from tests.scheduling.planning.builders import (
    NOW,
    NodeBuilder,
    PodBuilder,
    ThingBuilder,
    WorkloadBuilder,
    job,
    look,
    minutes_ago,
    node,
    pod,
    statefulset,
    workload,
)


@dataclass
class Case:
    """One row: who, what is seen of it, and what follows (None: nothing new)."""

    who: WorkloadBuilder
    thing: ThingBuilder | None = None
    pods: list[PodBuilder] = field(default_factory=list)
    then: tuple[Phase, Reason] | None = None
    words: str = ""
    nodes: list[NodeBuilder] = field(default_factory=lambda: [node("n1"), node("n2")])
    complete: bool = True

    def move(self) -> Move | None:
        hosts = {one.fact().name: one.fact() for one in self.nodes}
        thing = self.thing.fact() if self.thing else None
        pods = [one.fact() for one in self.pods]
        return observed(self.who.fact(), thing, pods, NOW, nodes=hosts, complete=self.complete)


def placed(minutes: float = 0.5) -> WorkloadBuilder:
    return workload("a").placed_on("n1", minutes)


def starting(minutes: float = 2) -> WorkloadBuilder:
    return workload("a").in_phase(Phase.STARTING, minutes, node="n1")


def running(minutes: float = 60) -> WorkloadBuilder:
    return workload("a").running_on("n1", minutes)


def unbound(minutes: float, message: str = "") -> PodBuilder:
    return pod("a", "").pending(message=message).having(created_at=minutes_ago(minutes))


def stopping(to: Phase = Phase.ENDED, minutes: float = 1) -> WorkloadBuilder:
    return workload("a").in_phase(Phase.STOPPING, minutes, node="n1").having(stopping_to=to)


THERE = statefulset("a")

COMING_UP = {
    "nothing is seen yet, the put is fresh": Case(placed(0.5)),
    "its object is there, its pod not yet": Case(placed(), THERE, [], (Phase.PLACED, Reason.CREATING), "makes its pod"),
    "its object says why it has no pod": Case(
        placed(),
        statefulset("a").having(message="exceeded quota"),
        [],
        (Phase.PLACED, Reason.CREATING),
        "exceeded quota.",
    ),
    "its pod is not bound": Case(
        placed(),
        THERE,
        [unbound(1, message="0/3 nodes are available")],
        (Phase.PLACED, Reason.CREATING),
        "not yet bound its pod to node n1. 0/3 nodes are available.",
    ),
    "its pod is bound": Case(
        placed(), THERE, [pod("a").pending()], (Phase.STARTING, Reason.PULLING_IMAGE), "Node n1 pulls its image"
    ),
    "its container is being made": Case(
        placed(), THERE, [pod("a").pending("ContainerCreating")], (Phase.STARTING, Reason.PULLING_IMAGE)
    ),
    "its image cannot be pulled": Case(
        starting(),
        THERE,
        [pod("a").pending("ImagePullBackOff", 'Back-off pulling image "quay.io/x"')],
        (Phase.STARTING, Reason.IMAGE_UNAVAILABLE),
        'cannot pull its image: Back-off pulling image "quay.io/x". Check the image\'s name.',
    ),
    "its container cannot be made": Case(
        starting(),
        THERE,
        [pod("a").pending("CreateContainerConfigError", 'secret "s" not found')],
        (Phase.STARTING, Reason.CREATING),
        'CreateContainerConfigError: secret "s" not found.',
    ),
    "its program ends at once": Case(
        starting(),
        THERE,
        [pod("a").unready().having(waiting_reason="CrashLoopBackOff", exit_code=1)],
        (Phase.STARTING, Reason.CREATING),
        "Its program ended with exit code 1; node n1 starts it again",
    ),
    "it runs but is not ready": Case(
        placed(), THERE, [pod("a").unready()], (Phase.STARTING, Reason.CREATING), "is not ready yet"
    ),
    "it runs and is ready": Case(starting(), THERE, [pod("a")], (Phase.RUNNING, Reason.RUNNING), "It runs on node n1."),
    "it runs at the first look": Case(placed(), THERE, [pod("a")], (Phase.RUNNING, Reason.RUNNING)),
    "what is missing from an incomplete look means nothing": Case(starting(30), None, [], complete=False),
    "what is there in an incomplete look counts": Case(
        starting(), None, [pod("a")], (Phase.RUNNING, Reason.RUNNING), complete=False
    ),
    "an object of the attempt before says nothing": Case(
        placed().having(attempt=3), job("a").failed().having(generation=2), []
    ),
    "the cluster never heard of it": Case(
        placed(2), None, [], (Phase.WAITING, Reason.POD_LOST), "no trace of it 1 min after it was placed"
    ),
    "no pod for ten minutes": Case(
        starting(11),
        statefulset("a").having(message="quota exceeded"),
        [],
        (Phase.WAITING, Reason.POD_LOST),
        "The cluster made no pod for it. quota exceeded. It is tried again from 2026-12-01 12:01 UTC on",
    ),
    "its pod's state is unknown": Case(running(), THERE, [pod("a").having(phase="Unknown", ready=False)]),
}

AT_WORK = {
    "all is well": Case(running(), THERE, [pod("a")]),
    "not ready for a moment is still running": Case(running(), THERE, [pod("a").unready()]),
    "its program ended and is started again": Case(
        running(),
        THERE,
        [pod("a").unready().having(waiting_reason="CrashLoopBackOff", exit_code=137)],
        (Phase.RUNNING, Reason.RUNNING),
        "ended with exit code 137",
    ),
    "its pod is being replaced": Case(running(), THERE, [pod("a").terminating(0.2)]),
    "its pod is gone, the cluster makes a new one": Case(
        running(), THERE, [], (Phase.STARTING, Reason.CREATING), "is gone"
    ),
    "its new pod pulls": Case(running(), THERE, [pod("a").pending()], (Phase.STARTING, Reason.PULLING_IMAGE)),
    "an unreadable pod is not gone": Case(running(), THERE, [], complete=False),
    "a job's pod is done, the controller has yet to say so": Case(running().job(), job("a"), [pod("a").ended(0)]),
    "a job's pod failed, the controller tries again": Case(running().job(), job("a"), [pod("a").ended(1)]),
    "a job's pod was done long ago, and its controller is silent": Case(
        running().job(), job("a"), [pod("a").ended(0, minutes=11)], (Phase.STARTING, Reason.CREATING)
    ),
    "a job's pod was done, nobody knows when": Case(
        running().job(), job("a"), [pod("a").ended(0).having(finished_at=None)]
    ),
    "a job's pod is gone without a trace": Case(running().job(), job("a"), [], (Phase.STARTING, Reason.CREATING)),
    "the job is done": Case(
        running().job(), job("a").complete(), [pod("a").ended(0)], (Phase.ENDED, Reason.SUCCEEDED), "exit code 0"
    ),
    "the job failed": Case(
        running().job(),
        job("a").failed(),
        [pod("a").ended(137, reason="OOMKilled")],
        (Phase.ENDED, Reason.FAILED),
        "It ended with exit code 137 (OOMKilled).",
    ),
    "the job failed and nobody knows the exit code": Case(
        running().job(),
        job("a").failed("DeadlineExceeded").having(message="ran too long"),
        [],
        (Phase.ENDED, Reason.FAILED),
        "The cluster gave it up. DeadlineExceeded: ran too long.",
    ),
}

TAKEN = {
    "its object was removed": Case(running(), None, [], (Phase.ENDED, Reason.REMOVED_OUTSIDE), "from outside"),
    "its object was removed, its pod still ends": Case(
        running(), None, [pod("a").terminating(0.5)], (Phase.STOPPING, Reason.REMOVED_OUTSIDE)
    ),
    "its object was orphaned from its pod": Case(running(), None, [pod("a")], (Phase.STOPPING, Reason.REMOVED_OUTSIDE)),
    "its object is being removed": Case(
        running(), statefulset("a").deleting(1), [pod("a").terminating(1)], (Phase.STOPPING, Reason.REMOVED_OUTSIDE)
    ),
    "a stale list does not show what was just seen": Case(running(0.1), None, []),
    "removed while it started": Case(starting(), None, [], (Phase.ENDED, Reason.REMOVED_OUTSIDE)),
    "removed before it was bound": Case(
        placed(0.5).having(reason=Reason.CREATING), None, [], (Phase.ENDED, Reason.REMOVED_OUTSIDE)
    ),
    "never put, so never removed": Case(running().having(attempt=0), None, []),
    "its owner had ended it": Case(
        running().wants(Desired.END), None, [], (Phase.ENDED, Reason.ASKED_TO_END), "Its owner ended it."
    ),
    "its time was up": Case(running().having(ends_at=minutes_ago(1)), None, [], (Phase.ENDED, Reason.TIME_IS_UP)),
    "its node is gone": Case(
        running(), THERE, [pod("a", "gone")], (Phase.WAITING, Reason.NODE_LOST), "Node gone is gone. It is placed again"
    ),
    "its node and its pod are gone": Case(
        running().having(node="gone"), THERE, [], (Phase.WAITING, Reason.NODE_LOST), "Node gone is gone."
    ),
    "where it runs is not known, so that is not lost": Case(
        running().having(node=""), THERE, [pod("a", "").having(phase="Unknown", ready=False)]
    ),
    "its node is silent for five minutes": Case(
        running(),
        THERE,
        [pod("a")],
        (Phase.WAITING, Reason.NODE_LOST),
        "Node n1 has not been ready since 2026-12-01 11:55 UTC.",
        nodes=[node("n1").silent(5)],
    ),
    "its node is silent for less": Case(running(), THERE, [pod("a")], nodes=[node("n1").silent(4.9)]),
    "its node is not ready, nobody knows since when": Case(
        running(), THERE, [pod("a")], nodes=[node("n1").having(ready=False)]
    ),
    "a job's node is gone": Case(running().job(), job("a"), [pod("a", "gone")], (Phase.WAITING, Reason.NODE_LOST)),
    "the job was done before its node went": Case(
        running().job(), job("a").complete(), [pod("a", "gone").ended(0)], (Phase.ENDED, Reason.SUCCEEDED)
    ),
    "its spot node was taken back": Case(
        running().job(),
        job("a").failed(),
        [pod("a").ended(143, reason="NodeShutdown")],
        (Phase.WAITING, Reason.NODE_LOST),
        "taken away (NodeShutdown)",
    ),
    "its node was drained": Case(
        running(),
        THERE,
        [unbound(1)],
        (Phase.WAITING, Reason.NODE_LOST),
        "Node n1 takes no new work, as when it is drained",
        nodes=[node("n1").cordoned()],
    ),
    "its node was drained just now": Case(
        running(), THERE, [unbound(0.1)], (Phase.STARTING, Reason.CREATING), nodes=[node("n1").cordoned()]
    ),
    "its node was closed while it runs there": Case(running(), THERE, [pod("a")], nodes=[node("n1").cordoned()]),
    "its node was closed by ourselves": Case(
        running(), THERE, [unbound(1)], (Phase.STARTING, Reason.CREATING), nodes=[node("n1").leaving()]
    ),
    "an incomplete look shows no drain": Case(
        running(), THERE, [unbound(1)], (Phase.STARTING, Reason.CREATING), nodes=[node("n1").cordoned()], complete=False
    ),
    "another took its card before its pod was made again": Case(
        running(),
        THERE,
        [unbound(11, message="0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")],
        (Phase.WAITING, Reason.POD_LOST),
        "has not bound its pod to node n1: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu. It is tried again",
    ),
    "a node missing from an incomplete look is not gone": Case(running(), THERE, [pod("a", "gone")], complete=False),
}

REFUSED = {
    "the kubelet refused it": Case(
        placed().job(),
        job("a").failed(),
        [pod("a").refused(message="Allocate failed due to no healthy devices present")],
        (Phase.WAITING, Reason.REJECTED_BY_NODE),
        "Node n1 refused it: Allocate failed due to no healthy devices present. It is tried again from",
    ),
    "out of something": Case(
        placed(),
        THERE,
        [pod("a").refused("OutOfnvidia.com/gpu", "")],
        (Phase.WAITING, Reason.REJECTED_BY_NODE),
        "OutOf",
    ),
    "this refusal has been dealt with": Case(
        placed().having(shunned=frozenset({"n1"}), node="n2"), None, [pod("a").refused()]
    ),
    "it runs in a second pod after all": Case(
        starting(), THERE, [pod("a").refused(), pod("a").having(name="a-1", uid="2")], (Phase.RUNNING, Reason.RUNNING)
    ),
    "the fifth refusal in a row": Case(
        placed().having(failures=4),
        THERE,
        [pod("a").refused()],
        (Phase.ENDED, Reason.FAILED),
        "failure 5 of at most 5 in a row",
    ),
    "evicted is not refused": Case(running(), THERE, [pod("a").refused("Evicted")], (Phase.STARTING, Reason.CREATING)),
}

GOING = {
    "its pod is still there": Case(stopping(), statefulset("a").deleting(), [pod("a").terminating(1)]),
    "its pod does not end": Case(
        stopping(minutes=3),
        None,
        [pod("a").terminating(3)],
        (Phase.STOPPING, Reason.REMOVED_OUTSIDE),
        "pod a-0 on node n1 has not ended, its program or a finalizer holds it",
    ),
    "it may take the time that it was given": Case(
        stopping(minutes=9).having(grace=td(minutes=10)), None, [pod("a").terminating(9)]
    ),
    "it had the time that it was given, and a minute": Case(
        stopping(minutes=11).having(grace=td(minutes=10)),
        None,
        [pod("a").terminating(11)],
        (Phase.STOPPING, Reason.REMOVED_OUTSIDE),
        "has not ended",
    ),
    "its node does not answer": Case(
        stopping(minutes=3).having(reason=Reason.ASKED_TO_END),
        None,
        [pod("a").terminating(3)],
        (Phase.STOPPING, Reason.ASKED_TO_END),
        "its node does not answer",
        nodes=[node("n1").silent(2)],
    ),
    "its node was removed with its pod": Case(
        stopping().wants(Desired.END), None, [pod("a").terminating(3)], (Phase.ENDED, Reason.ASKED_TO_END), nodes=[]
    ),
    "all gone, asked to end": Case(stopping().wants(Desired.END), None, [], (Phase.ENDED, Reason.ASKED_TO_END)),
    "all gone, time was up": Case(
        stopping().having(reason=Reason.TIME_IS_UP), None, [], (Phase.ENDED, Reason.TIME_IS_UP), "is up"
    ),
    "scaled to zero": Case(
        stopping(Phase.ASLEEP).having(reason=Reason.IDLE), statefulset("a").asleep(), [], (Phase.ASLEEP, Reason.IDLE)
    ),
    "scaled to zero on a wish": Case(
        stopping(Phase.ASLEEP).wants(Desired.SLEEP),
        statefulset("a").asleep(),
        [],
        (Phase.ASLEEP, Reason.ASKED_TO_SLEEP),
    ),
    "the order to scale did not arrive": Case(stopping(Phase.ASLEEP), statefulset("a"), []),
    "the order to end did not arrive": Case(stopping(), statefulset("a"), []),
    "its finished pod holds nothing": Case(
        stopping().wants(Desired.END), None, [pod("a").ended(0)], (Phase.ENDED, Reason.ASKED_TO_END)
    ),
    "a finalizer holds its finished pod": Case(
        stopping(minutes=2).having(reason=Reason.ASKED_TO_END),
        None,
        [pod("a").ended(0, minutes=1).terminating(1.5)],
        (Phase.STOPPING, Reason.ASKED_TO_END),
        "a finalizer holds its pod a-0",
    ),
    "its finished pod is just about to go": Case(stopping(), None, [pod("a").ended(0, minutes=0.1).terminating(0.5)]),
    "an incomplete look shows no end": Case(stopping(), None, [], complete=False),
    "a row that does not say where to, with its object at zero": Case(
        stopping().having(stopping_to=None), statefulset("a").asleep(), [], (Phase.ASLEEP, Reason.IDLE)
    ),
    "a row that does not say where to, and its object is gone": Case(
        stopping().having(stopping_to=None), None, [], (Phase.ENDED, Reason.REMOVED_OUTSIDE)
    ),
    "a job never sleeps": Case(
        stopping().job().having(stopping_to=None), None, [], (Phase.ENDED, Reason.REMOVED_OUTSIDE)
    ),
}

AT_REST = {
    "waiting": Case(workload("a"), None, [pod("a")]),
    "asleep": Case(workload("a").in_phase(Phase.ASLEEP), None, []),
    "ended": Case(workload("a").in_phase(Phase.ENDED), job("a").complete(), []),
}
CASES = COMING_UP | AT_WORK | TAKEN | REFUSED | GOING | AT_REST


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_cluster_shows(case: Case) -> None:
    move = case.move()

    assert (move and (move.to, move.reason)) == case.then
    assert case.words in (move.text if move else "")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_step_is_allowed_and_lies_between_its_phase_and_now(case: Case) -> None:
    who, move = case.who.fact(), case.move()
    if move is None:
        return
    assert move.to == who.phase or move.to in MOVES[who.phase]
    assert who.phase_since <= move.at <= NOW
    assert move.text[:1].isupper()
    assert move.text.endswith(".")
    assert "  " not in move.text


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_same_state_says_the_same_a_minute_later(case: Case) -> None:
    """Only what is due by then may differ: no sentence holds a running clock."""
    move = case.move()
    if move is None or move.to is not case.who.fact().phase:
        return
    later = replace(case, who=case.who)
    hosts = {one.fact().name: one.fact() for one in later.nodes}
    pods = [one.fact() for one in later.pods]
    again = observed(
        later.who.fact(), later.thing.fact() if later.thing else None, pods, NOW + td(minutes=1), nodes=hosts
    )
    assert again is not None
    assert (again.to, again.reason, again.text) == (move.to, move.reason, move.text)


def test_the_meter_starts_with_the_container() -> None:
    move = Case(starting(5), THERE, [pod("a").having(running_since=minutes_ago(1))]).move()

    assert move is not None
    assert move.at == move.running_since == minutes_ago(1)
    assert (move.node, move.pod, move.pod_uid, move.failures) == ("n1", "a-0", "uid-a-0", 0)


def test_a_nodes_clock_that_is_wrong_does_not_bend_the_meter() -> None:
    ahead = Case(starting(5), THERE, [pod("a").having(running_since=NOW + td(seconds=9))]).move()
    behind = Case(starting(5), THERE, [pod("a").having(running_since=minutes_ago(50))]).move()

    assert ahead is not None
    assert behind is not None
    assert ahead.running_since == NOW
    assert behind.running_since == minutes_ago(5)


def test_whose_card_is_gone_pays_until_its_pod_had_to_wait() -> None:
    for case in ("its node was drained", "another took its card before its pod was made again"):
        move = CASES[case].move()
        assert move is not None
        assert move.at == CASES[case].pods[0].fact().created_at


def test_a_job_ends_when_it_finished_not_when_we_looked() -> None:
    move = Case(running().job(), job("a").failed(minutes=3), [pod("a").ended(2, minutes=3)]).move()

    assert move is not None
    assert move.at == move.finished_at == minutes_ago(3)
    assert move.exit_code == 2


def test_what_is_deleted_outside_stops_at_the_deletion() -> None:
    move = Case(running(), statefulset("a").deleting(4), [pod("a").terminating(4)]).move()

    assert move is not None
    assert move.at == minutes_ago(4)


def test_what_stopped_ended_with_its_last_pod() -> None:
    pods = [pod("a").ended(0, minutes=minutes).having(name=f"a-{minutes}") for minutes in (0.7, 0.3)]
    move = Case(stopping().wants(Desired.END), None, pods).move()

    assert move is not None
    assert move.at == minutes_ago(0.3)


def test_a_refusal_names_the_node_to_shun_and_the_pause() -> None:
    move = Case(placed().having(failures=1), THERE, [pod("a").refused()]).move()

    assert move is not None
    assert (move.shun, move.failures) == ("n1", 2)
    assert move.not_before == NOW + td(minutes=2)


def test_pauses_grow_and_stop_growing() -> None:
    assert [back_off(failures) for failures in range(4)] == [
        td(seconds=30),
        td(minutes=1),
        td(minutes=2),
        td(minutes=4),
    ]
    assert back_off(6) == back_off(600) == td(minutes=30)


def test_every_phase_that_holds_something_has_rules() -> None:
    assert set(RULES) == {Phase.PLACED, Phase.STARTING, Phase.RUNNING, Phase.STOPPING}
    assert set(MOVES) == set(Phase)
    assert MOVES[Phase.ENDED] == frozenset()


def test_a_snapshot_is_read_as_a_whole() -> None:
    picture = look(
        node("n1"),
        workload("up").in_phase(Phase.STARTING, node="n1"),
        statefulset("up"),
        pod("up"),
        workload("down").running_on("n1"),
        pod("down").terminating(1),
        workload("done").in_phase(Phase.RUNNING, node="n1").having(kind=Kind.JOB),
        job("done").complete(),
        workload("quiet"),
    )

    found = {move.workload: move.to for move in moves(picture)}

    assert list(found.values()) == [Phase.RUNNING, Phase.STOPPING, Phase.ENDED]
