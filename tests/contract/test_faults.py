"""What the API server does to us, and what we make of it."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scheduling.cluster import api, client
from tests.contract.conftest import NOON, Rig, refusal_of
from tests.contract.launches import JOB_REF, NOTEBOOK, ROW, TRAINING, WORKSPACE_REF, put_all


@pytest.fixture
def faults(simulation: Rig) -> Any:
    return simulation.faults


# Refusals


def test_429_says_how_long_to_wait(simulation: Rig, faults: Any) -> None:
    faults.answer(429, retry_after=7)

    refusal = refusal_of(simulation.look)

    assert (refusal.status, refusal.retry, refusal.after) == (429, True, 7.0)


REFUSALS = {403: False, 404: False, 409: True, 410: True, 500: True, 503: True, 504: True}


@pytest.mark.parametrize(("status", "retry"), REFUSALS.items(), ids=[str(status) for status in REFUSALS])
def test_whether_trying_again_can_help(simulation: Rig, faults: Any, status: int, retry: bool) -> None:
    name = simulation.look().nodes[0].name
    faults.answer(status, method="PATCH", path="nodes")

    refusal = refusal_of(lambda: simulation.port.cordon(name, on=True, marks={}))

    assert (refusal.status, refusal.retry) == (status, retry)
    assert str(refusal) == f"The cluster refused ({status}): a fault on request"


VERBS: dict[str, Callable[[Rig], Any]] = {
    "put": lambda rig: put_all(rig.port, NOTEBOOK),
    "remove": lambda rig: rig.port.remove(JOB_REF),
    "scale": lambda rig: rig.port.scale(WORKSPACE_REF, 1),
    "cordon": lambda rig: rig.port.cordon("x", on=True, marks={}),
    "cut": lambda rig: rig.port.cut("x", "all-disabled"),
    "resize": lambda rig: rig.port.resize("a100-burst", 1, ()),
    "logs": lambda rig: rig.port.logs("x", "x", lines=1),
    "observe": lambda rig: rig.look(),
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_every_verb_fails_with_a_sentence(simulation: Rig, faults: Any, verb: Callable[[Rig], Any]) -> None:
    faults.answer(503, times=None)

    refusal = refusal_of(lambda: verb(simulation))

    assert (str(refusal), refusal.retry) == ("The cluster refused (503): a fault on request", True)


# Lost replies: the server did it, we were not told


@pytest.mark.parametrize("launch", [NOTEBOOK, TRAINING], ids=["a workspace", "a job"])
def test_a_lost_reply_leaves_one_object_when_it_is_put_again(simulation: Rig, faults: Any, launch: Any) -> None:
    faults.lose_reply(method="POST" if launch is TRAINING else "PATCH", path="statefulsets|jobs")

    refusal = refusal_of(lambda: put_all(simulation.port, launch))
    made = [found.uid for found in simulation.look().objects]

    assert (refusal.status, refusal.retry) == (None, True)
    assert "does not answer" in str(refusal)
    assert [put_all(simulation.port, launch)] == made
    assert [found.workload for found in simulation.look().objects] == [ROW]


def test_a_lost_reply_to_a_removal_is_no_second_removal(simulation: Rig, faults: Any) -> None:
    put_all(simulation.port, TRAINING)
    faults.lose_reply(method="DELETE")

    refusal_of(lambda: simulation.port.remove(JOB_REF))

    simulation.until(lambda look: not look.objects)
    assert simulation.port.remove(JOB_REF) is False


def test_a_lost_reply_to_a_resize_buys_one_node(simulation: Rig, faults: Any) -> None:
    faults.lose_reply(method="PATCH", path="scale")

    refusal_of(lambda: simulation.port.resize("a100-burst", 1, ()))
    simulation.port.resize("a100-burst", 1, ())

    simulation.until(lambda _: simulation.nodes_of("a100-burst"))
    assert [size.wished for size in simulation.look().sizes if size.pool == "a100-burst"] == [1]


# Looks that are not whole


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("/pods$", "Pod"),
        ("/statefulsets$", "StatefulSet"),
        ("/jobs$", "Job"),
        ("/machinedeployments$", "MachineDeployment"),
    ],
)
def test_a_missing_list_makes_the_look_incomplete(simulation: Rig, faults: Any, path: str, where: str) -> None:
    faults.answer(500, path=path, times=None)

    seen = simulation.look()

    assert seen.complete is False
    assert [(problem.where, problem.text) for problem in seen.problems] == [
        (where, "The cluster refused (500): a fault on request")
    ]
    assert seen.nodes


def test_without_nodes_nothing_is_known(simulation: Rig, faults: Any) -> None:
    faults.answer(500, path="/nodes$", times=None)

    assert refusal_of(simulation.look).retry is True


def test_a_cluster_without_cluster_api_has_no_pools(simulation: Rig, faults: Any) -> None:
    faults.answer(404, path="machinedeployments", times=None)

    seen = simulation.look()

    assert (seen.sizes, seen.complete) == ((), True)


def test_an_older_cluster_api_is_spoken_to_in_its_own_version(simulation: Rig, faults: Any) -> None:
    faults.answer(404, path="v1beta2", times=None)
    faults.answer(403, path="v1beta1", times=None)

    assert [problem.text for problem in simulation.look().problems] == ["The cluster refused (403): a fault on request"]


# Pages


def test_a_list_of_many_pages_is_whole(simulation: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = simulation.look()

    monkeypatch.setattr(api, "PAGE", 1)

    paged = simulation.look()
    assert [node.name for node in paged.nodes] == [node.name for node in whole.nodes]
    assert [pod.uid for pod in paged.pods] == [pod.uid for pod in whole.pods]


def test_w1_a_list_that_expires_between_two_pages_begins_anew(
    simulation: Rig, faults: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "PAGE", 1)
    whole = simulation.look()
    ask = client.Session.ask
    asked: list[dict[str, Any]] = []

    def once_expired(session: client.Session, method: str, path: str, **options: Any) -> bytes:
        query = options.get("query") or {}
        if path.endswith("/nodes"):
            asked.append(dict(query))
            if "continue" in query and len(asked) == 2:
                faults.answer(410, path="/nodes$")
        return ask(session, method, path, **options)

    monkeypatch.setattr(client.Session, "ask", once_expired)

    seen = simulation.look()

    assert [node.name for node in seen.nodes] == [node.name for node in whole.nodes]
    assert ["continue" in query for query in asked[:4]] == [False, True, False, True]


def test_w1_a_list_that_always_expires_is_asked_for_in_one_piece(
    simulation: Rig, faults: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "PAGE", 1)
    ask = client.Session.ask

    def always_expired(session: client.Session, method: str, path: str, **options: Any) -> bytes:
        if "continue" in (options.get("query") or {}):
            faults.answer(410, path=path + "$")
        return ask(session, method, path, **options)

    monkeypatch.setattr(client.Session, "ask", always_expired)

    assert len(simulation.look().nodes) == 4


# Patience


def test_w3_a_server_that_does_not_answer_is_given_up(
    simulation: Rig, faults: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults.delay(0.6, path="/nodes$")

    with monkeypatch.context() as hasty:
        hasty.setattr(client, "READ_SECONDS", 0.2)
        refusal = refusal_of(simulation.look)

    assert (refusal.status, refusal.retry) == (None, True)
    assert "does not answer" in str(refusal)
    assert simulation.look().complete


def test_a_slow_exporter_does_not_hold_up_the_others(
    simulation: Rig, faults: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduling.cluster.exporters.PATIENCE", 0.7)
    names = [node.name for node in simulation.look().nodes]
    faults.delay(2.5, path=f"nvidia-dcgm-exporter-{names[0]}")

    found = simulation.port.metrics(names)

    assert [exposition.text is None for exposition in found] == [True, False, False, False]


# Upkeep


def test_w5_connections_and_threads_stay_flat(simulation: Rig) -> None:
    names = [node.name for node in simulation.look().nodes]

    def used() -> tuple[int, int]:
        return threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))

    def work() -> None:
        for _ in range(40):
            simulation.port.observe(NOON)
            simulation.port.metrics(names)
            refusal_of(lambda: simulation.port.logs("default", "nobody", lines=1))

    work()
    before = used()
    work()

    threads, files = used()
    assert threads <= before[0]
    assert files <= before[1] + 2 * client.AT_ONCE  # both ends of the pool's connections are in this process


def test_a_quiet_look_writes_nothing(simulation: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    put_all(simulation.port, NOTEBOOK)
    simulation.look()  # the first one asks once which cluster this is
    asked: list[str] = []
    ask = client.Session.ask

    def counted(session: client.Session, method: str, path: str, **options: Any) -> bytes:
        asked.append(method)
        return ask(session, method, path, **options)

    monkeypatch.setattr(client.Session, "ask", counted)

    simulation.look()

    assert set(asked) == {"GET"}
    assert len(asked) == 5
