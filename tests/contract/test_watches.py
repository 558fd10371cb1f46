"""A mirror on a real stream: what appears, changes and vanishes is seen without a call, and our own writes at once."""

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier, Event
from typing import Any
from uuid import UUID

import pytest

from scheduling.cluster import client
from scheduling.cluster.api import MERGE, path_of
from scheduling.cluster.port import ClusterError, ClusterPort, Observation
from scheduling.cluster.writing import job, namespace_document
from tests.contract.conftest import NOON, Rig
from tests.contract.launches import JOB_REF, NAME, NOTEBOOK, ROW, TRAINING, WORKSPACE_REF, put_all

PATIENCE = 30.0
SEEDS = range(3)


@pytest.fixture
def rung() -> Event:
    return Event()


@pytest.fixture
def watched(cluster: Rig, rung: Event) -> Iterator[Rig]:
    """The cluster, with a port that watches it."""
    cluster.port.watch(rung.set)
    eventually(lambda: cluster.look().heard_at is not None, cluster)
    yield cluster
    cluster.port.close()


@pytest.fixture
def calls(watched: Rig, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What our port asks of the server, beside its watches."""
    asked: list[str] = []
    ask = client.Session.ask

    def counted(session: client.Session, method: str, path: str, **options: Any) -> bytes:
        if session is watched.port._api:
            asked.append(f"{method} {path}")
        return ask(session, method, path, **options)

    monkeypatch.setattr(client.Session, "ask", counted)
    return asked


def eventually(holds: Callable[[], Any], cluster: Rig) -> None:
    """What a stream says arrives when it arrives; on the simulation time has to pass besides."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it did not come to pass"
        cluster.pass_time()
        time.sleep(0.01)


def facts_of(seen: Observation) -> tuple[Any, ...]:
    return seen.nodes, seen.pods, seen.objects, seen.sizes, seen.complete


def listed(cluster: Rig) -> Observation:
    """What another port sees that lists everything."""
    with client.KubernetesPort(cluster.port._api._connection) as port:
        return port.observe(NOON)


def is_like_a_list(cluster: Rig) -> bool:
    return facts_of(cluster.look()) == facts_of(listed(cluster))


def test_objects_appear_change_and_vanish_without_a_call(watched: Rig, calls: list[str], rung: Event) -> None:
    node = watched.nodes_of("h100-train")[0].name
    put_all(watched.port, replace(NOTEBOOK, node=node))
    calls.clear()

    eventually(lambda: any(pod.workload == ROW and pod.ready for pod in watched.look().pods), watched)
    assert rung.is_set()
    watched.door.ask("DELETE", path_of("StatefulSet", NOTEBOOK.namespace, NAME))
    eventually(lambda: not any(pod.workload == ROW for pod in watched.look().pods), watched)
    eventually(lambda: not watched.look().objects, watched)

    assert calls == []


def test_a_change_by_somebody_else_rings(watched: Rig, rung: Event) -> None:
    name = watched.nodes_of("h100-mig")[0].name
    rung.clear()

    watched.door.ask("PATCH", path_of("Node", "", name), body={"spec": {"unschedulable": True}}, content=MERGE)

    eventually(rung.is_set, watched)
    eventually(lambda: not watched.node(name).schedulable, watched)


def put_to_sleep(port: ClusterPort) -> None:
    put_all(port, NOTEBOOK)
    port.scale(WORKSPACE_REF, 0)


WRITES: dict[str, tuple[Callable[[ClusterPort, str], Any], Callable[[Observation, str], bool]]] = {
    "put": (
        lambda port, node: put_all(port, replace(NOTEBOOK, node=node)),
        lambda seen, node: [one.generation for one in seen.objects] == [1],
    ),
    "put again": (
        lambda port, node: [put_all(port, replace(NOTEBOOK, node=node, attempt=attempt)) for attempt in (1, 2)],
        lambda seen, node: [one.generation for one in seen.objects] == [2],
    ),
    "scale": (
        lambda port, node: put_to_sleep(port),
        lambda seen, node: [one.replicas for one in seen.objects] == [0],
    ),
    "remove": (
        lambda port, node: [put_all(port, TRAINING), port.remove(JOB_REF)],
        lambda seen, node: all(one.deleting_since for one in seen.objects),
    ),
    "cordon": (
        lambda port, node: port.cordon(node, on=True, marks={"berth.portal/leaving": "now"}),
        lambda seen, node: [one.leaving for one in seen.nodes if one.name == node] == [True],
    ),
    "cut": (
        lambda port, node: port.cut(node, "all-balanced"),
        lambda seen, node: [one.cutting_to for one in seen.nodes if one.name == node] == ["all-balanced"],
    ),
    "resize": (
        lambda port, node: port.resize("a100-burst", 1, ()),
        lambda seen, node: [size.wished for size in seen.sizes if size.pool == "a100-burst"] == [1],
    ),
}


@pytest.mark.parametrize("verb", WRITES)
def test_our_own_writes_are_in_the_next_look(watched: Rig, calls: list[str], verb: str) -> None:
    write, shows = WRITES[verb]
    node = watched.nodes_of("h100-mig")[0].name
    write(watched.port, node)
    calls.clear()

    assert shows(watched.look(), node)
    assert calls == []


def test_a_put_reads_nothing(watched: Rig, calls: list[str]) -> None:
    """The namespace is written once; each other object once for each attempt."""
    put_all(watched.port, NOTEBOOK)
    assert [call.split()[0] for call in calls] == ["PATCH"] * 3

    calls.clear()
    put_all(watched.port, replace(NOTEBOOK, attempt=2))

    assert not [call for call in calls if call.endswith("namespaces/team-vision")]
    assert calls.count(calls[-1]) == 1
    reads = [call for call in calls if call.startswith("GET")]
    assert len(reads) <= 1  # where its controller was quicker than the watch: a conflict, a look, and once more


def test_a_namespace_that_was_deleted_meanwhile_is_made_again(watched: Rig) -> None:
    put_all(watched.port, TRAINING)
    watched.port.remove(JOB_REF)
    watched.port._writes._spaces["elsewhere"] = watched.port._writes._spaces["team-vision"]._replace(
        document={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere", "labels": {
            "app.kubernetes.io/managed-by": "berth"}}}
    )  # fmt: skip

    put_all_but_the_namespace(watched.port, replace(TRAINING, namespace="elsewhere"))

    assert watched.find("Namespace", "", "elsewhere") is not None
    assert watched.find("Job", "elsewhere", NAME) is not None


def test_a_namespace_that_was_deleted_meanwhile_is_made_again_for_all_who_come_at_once(
    watched: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the cycle puts several at a time: all of them have met the refusal before the first makes it again."""
    put_all(watched.port, TRAINING)
    watched.port.remove(JOB_REF)
    spaces = watched.port._writes._spaces
    document = namespace_document("elsewhere", "vision")
    spaces["elsewhere"] = spaces["team-vision"]._replace(document=document)
    jobs = [job(replace(TRAINING, namespace="elsewhere", workload=UUID(int=number << 96))) for number in range(1, 5)]
    met, ask = Barrier(len(jobs)), client.Session.ask

    def all_met(session: client.Session, method: str, path: str, **options: Any) -> bytes:
        try:
            return ask(session, method, path, **options)
        except ClusterError as error:
            if (method, error.status) == ("POST", 404):
                met.wait(PATIENCE)
            raise

    monkeypatch.setattr(client.Session, "ask", all_met)
    with ThreadPoolExecutor(len(jobs)) as several:
        uids = list(several.map(watched.port.put, jobs))

    assert len(set(uids)) == len(jobs)


def put_all_but_the_namespace(port: ClusterPort, launch: Any) -> None:
    port.put(job(launch))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_mirror_is_like_a_list_after_whatever_happened(watched: Rig, seed: int) -> None:
    """A seeded sequence of writes of ours and of others, time passing; then the picture is that of a fresh list."""
    dice = random.Random(seed)
    nodes = [node.name for node in watched.look().nodes]
    mine = [replace(NOTEBOOK, attempt=n) for n in (1, 2, 3)]

    def others(path: str, body: dict[str, Any]) -> None:
        watched.door.ask("PATCH", path, body=body, content=MERGE)

    acts: list[Callable[[], Any]] = [
        lambda: put_all(watched.port, replace(dice.choice(mine), node=dice.choice(nodes))),
        lambda: watched.port.scale(WORKSPACE_REF, 0),
        lambda: watched.port.remove(WORKSPACE_REF),
        lambda: watched.port.cordon(dice.choice(nodes), on=dice.random() < 0.5, marks={}),
        lambda: watched.port.resize("a100-burst", dice.randint(0, 2), ()),
        lambda: others(path_of("Node", "", dice.choice(nodes)), {"spec": {"unschedulable": dice.random() < 0.5}}),
        lambda: others(path_of("Node", "", dice.choice(nodes)), {"metadata": {"labels": {"zone": str(dice.random())}}}),
        watched.pass_time,
        watched.look,
    ]
    for _ in range(25):
        dice.choice(acts)()

    eventually(lambda: is_like_a_list(watched), watched)


# What breaks


@pytest.fixture
def simulated(simulation: Rig, rung: Event) -> Rig:
    simulation.port.watch(rung.set)
    eventually(lambda: simulation.look().heard_at is not None, simulation)
    return simulation


def test_w1_a_history_that_is_forgotten_is_listed_and_what_happened_meanwhile_is_seen(simulated: Rig) -> None:
    name = simulated.nodes_of("h100-mig")[0].name
    simulated.faults.silence_watches("nodes")  # what happens now nobody is told
    simulated.faults.node_vanish(name)
    simulated.faults.clear()

    simulated.faults.expire_watches("nodes")

    eventually(lambda: all(node.name != name for node in simulated.look().nodes), simulated)
    eventually(lambda: is_like_a_list(simulated), simulated)


def test_w1_410_as_a_status_is_the_same(simulated: Rig) -> None:
    name = simulated.nodes_of("h100-mig")[0].name
    simulated.faults.answer(410, method="GET", path="/nodes$")
    simulated.faults.cut_watches("nodes")

    simulated.faults.node_vanish(name)

    eventually(lambda: all(node.name != name for node in simulated.look().nodes), simulated)


def test_w3_what_happens_behind_a_silent_stream_is_seen_within_the_bound(simulation: Rig) -> None:
    name = simulation.nodes_of("h100-mig")[0].name
    connection = simulation.port._api._connection
    with client.KubernetesPort(connection, silence=0.3) as port:
        port.watch(lambda: None)
        eventually(lambda: port.observe(NOON).heard_at is not None, simulation)
        simulation.faults.silence_watches("nodes")
        simulation.faults.node_vanish(name)

        began = time.monotonic()
        eventually(lambda: all(node.name != name for node in port.observe(NOON).nodes), simulation)

    assert time.monotonic() - began < 5.0


def test_streams_that_are_cut_come_back_and_lose_nothing(simulated: Rig) -> None:
    for turn in range(3):
        simulated.faults.cut_watches()
        simulated.port.cordon(simulated.look().nodes[turn].name, on=True, marks={})
        eventually(lambda: is_like_a_list(simulated), simulated)


# Two processes


def test_r5_a_second_mirror_never_shows_less_than_the_first_wrote(watched: Rig) -> None:
    """Its stream is behind; it waits or lists, but does not look on from its past."""
    with client.KubernetesPort(watched.port._api._connection) as second:
        second.watch(lambda: None)
        eventually(lambda: second.observe(NOON).heard_at is not None, watched)
        for attempt in range(1, 6):
            put_all(watched.port, replace(NOTEBOOK, attempt=attempt))

            seen = second.observe(NOON, watched.port.picture())

            assert [found.generation for found in seen.objects] == [attempt]
