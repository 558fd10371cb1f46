"""The proxy itself, in front of the simulation: passes on what it should, and does what it is told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from scheduling.cluster.client import Connection, Session
from scheduling.cluster.port import ClusterError
from scheduling.cluster.simulated import ManualClock, SimulatedCluster, fleet_documents
from tests.contract.conftest import NOON, refusal_of
from tests.faults import deeds
from tests.faults.deeds import Answer, Drip, Hang, Lose, Reset, Shape
from tests.faults.proxy import Proxy, between

MAPS = "/api/v1/namespaces/default/configmaps"
NODES = "/api/v1/nodes"


@pytest.fixture
def proxy(seed: int) -> Iterator[Proxy]:
    world = SimulatedCluster(fleet_documents(), clock=ManualClock(NOON))
    with world.serve() as url, between(url, seed=seed) as proxy:
        yield proxy


@pytest.fixture
def door(proxy: Proxy) -> Iterator[Session]:
    session = Session(Connection(proxy.url))
    yield session
    session.close()


def make(door: Session, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    door.ask("POST", MAPS, body=body)


def made(proxy: Proxy) -> set[str]:
    """As the server has it, asked past the proxy."""
    straight = Session(Connection(proxy.server))
    try:
        items = json.loads(straight.ask("GET", MAPS))["items"]
    finally:
        straight.close()
    return {item["metadata"]["name"] for item in items} - {"kube-root-ca.crt"}


def test_it_passes_on_what_it_has_no_rule_for(proxy, door):
    straight = Session(Connection(proxy.server))
    make(door, "notes")

    assert door.ask("GET", NODES) == straight.ask("GET", NODES)
    assert made(proxy) == {"notes"}
    assert refusal_of(lambda: door.ask("GET", f"{MAPS}/nothing")).status == 404
    assert [(call.method, call.done) for call in proxy.history][:2] == [("POST", "passed"), ("GET", "passed")]
    straight.close()


def test_an_answer_in_the_servers_place_says_when_to_come_back(proxy, door):
    proxy.on(Answer(429, retry_after=7), method="POST")

    refusal = refusal_of(lambda: make(door, "notes"))

    assert (refusal.status, refusal.after, made(proxy)) == (429, 7.0, set())


@pytest.mark.parametrize(
    ("deed", "done"),
    [
        (Lose(), True),
        (Reset(), False),
        (Reset(after=1), True),
    ],
    ids=["the reply is lost", "reset at once", "reset in the middle of the answer"],
)
def test_a_connection_breaks(proxy, door, deed, done):
    proxy.on(deed, method="POST")

    refusal = refusal_of(lambda: make(door, "notes"))

    assert "does not answer" in str(refusal)
    assert made(proxy) == ({"notes"} if done else set())
    assert proxy.met()[type(deed).__name__.lower()] == 1


@pytest.mark.parametrize("after_all", [False, True], ids=["nothing is done", "the server did it"])
def test_a_request_hangs_until_its_client_gives_up(proxy, door, after_all):
    proxy.on(Hang(after_all=after_all), method="POST")

    refusal = refusal_of(lambda: door.ask("POST", MAPS, body={"metadata": {"name": "notes"}}, timeout=0.3))

    assert "does not answer" in str(refusal)
    assert made(proxy) == ({"notes"} if after_all else set())
    assert json.loads(door.ask("GET", MAPS))["items"] is not None  # others are not held up


def test_an_answer_that_drips_is_whole_in_the_end(proxy, door):
    whole = door.ask("GET", f"{NODES}?limit=1")
    proxy.on(Drip(pause=0.0, size=50))

    assert json.loads(door.ask("GET", f"{NODES}?limit=1"))["items"] == json.loads(whole)["items"]


def test_rules_count_spare_and_match(proxy, door):
    proxy.on(Answer(500), method="GET", path="/nodes$", times=2, spared=1)

    statuses = [status_of(door, NODES) for _ in range(4)]

    assert statuses == [200, 500, 500, 200]
    assert status_of(door, MAPS) == 200
    assert proxy.calls("GET", "/nodes$") == 4
    assert proxy.writes() == []


def test_calm_ends_every_fault(proxy, door):
    proxy.on(Answer(500), times=None)
    assert status_of(door, NODES) == 500

    proxy.calm()

    assert status_of(door, NODES) == 200


def test_the_same_seed_hits_the_same_requests():
    def struck(seed: int) -> list[int]:
        with SimulatedCluster([], clock=ManualClock(NOON)).serve() as url, between(url, seed=seed) as proxy:
            proxy.on(Answer(503), times=None, chance=0.3)
            door = Session(Connection(proxy.url))
            found = [status_of(door, MAPS) for _ in range(40)]
            door.close()
            return found

    first = struck(5)
    assert first == struck(5)
    assert first != struck(6)
    assert 4 <= first.count(503) <= 20


def status_of(door: Session, path: str) -> int:
    try:
        door.ask("GET", path)
    except ClusterError as error:
        return int(error.status or 0)
    return 200


# Watches


def heard(proxy: Proxy, door: Session, count: int, rule: Any = None) -> list[dict[str, Any]]:
    """The first events of a watch of ConfigMaps, with three made while it runs."""
    version = json.loads(door.ask("GET", MAPS))["metadata"]["resourceVersion"]
    stream = door.lines(MAPS, query={"watch": "true", "resourceVersion": version}, silence=5.0)
    maker = threading.Thread(target=make_three, args=(door,))
    maker.start()
    found = []
    for line in stream:
        found.append(json.loads(line))
        if len(found) == count:
            break
    stream.close()
    maker.join()
    return found


def make_three(door: Session) -> None:
    for number in range(3):
        make(door, f"map-{number}")


def names(events: list[dict[str, Any]]) -> list[str]:
    return [event["object"].get("metadata", {}).get("name", event["type"]) for event in events]


def test_a_watch_is_passed_on_line_by_line(proxy, door):
    assert names(heard(proxy, door, 3)) == ["map-0", "map-1", "map-2"]
    assert [call.done for call in proxy.history if call.watch] == ["passed"]


SHAPES = {
    "each line twice": (deeds.twice, ["map-0", "map-0", "map-1", "map-1"]),
    "in the wrong order": (deeds.swapped, ["map-1", "map-0"]),
    "begun with an error event": (deeds.begun_with(deeds.error_event(410, "Expired")), ["ERROR", "map-0", "map-1"]),
    "odd lines between": (deeds.among(b'{"type": "ODD", "object": {}}'), ["map-0", "ODD", "map-1", "ODD"]),
}


@pytest.mark.parametrize(("shape", "wanted"), SHAPES.values(), ids=SHAPES)
def test_the_lines_of_a_watch_are_shaped(proxy, door, shape, wanted):
    proxy.on(Shape(shape), watch=True)

    assert names(heard(proxy, door, len(wanted))) == wanted


def test_a_stream_falls_silent_and_stays_open(proxy, door):
    proxy.on(Shape(deeds.silent_after(1)), watch=True)
    version = json.loads(door.ask("GET", MAPS))["metadata"]["resourceVersion"]
    stream = door.lines(MAPS, query={"watch": "true", "resourceVersion": version}, silence=0.4)
    for number in range(2):
        make(door, f"map-{number}")

    assert names([json.loads(next(stream))]) == ["map-0"]
    began = time.monotonic()
    assert "went silent" in str(refusal_of(lambda: next(stream)))
    assert time.monotonic() - began >= 0.3


def test_a_hanging_request_is_let_go_when_its_time_is_over(proxy, door):
    over = threading.Event()
    proxy.on(Hang(over), path="/nodes$")
    threading.Timer(0.1, over.set).start()

    assert "does not answer" in str(refusal_of(lambda: door.ask("GET", NODES, timeout=5.0)))
