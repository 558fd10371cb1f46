"""The parts of the stand-ins that need no server: what they send, what they believe, and whom they let through."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduling.cluster.simulated import SimulatedCluster, fleet_documents
from scheduling.cluster.simulated.kinds import BY_PLURAL, Document, Key
from tests.controlplane.papers import make_papers
from tests.controlplane.standins import network
from tests.controlplane.standins.mirror import Mirror, News, path_of
from tests.controlplane.standins.world import difference

DIFFERENCES: dict[str, tuple[Any, Any, Any]] = {
    "nothing": ({"a": {"b": 1}}, {"a": {"b": 1}}, {}),
    "a new field": ({}, {"a": 1}, {"a": 1}),
    "a changed field": ({"a": 1, "b": 2}, {"a": 1, "b": 3}, {"b": 3}),
    "a field that goes": ({"a": 1}, {}, {"a": None}),
    "a field inside": ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}),
    "a field inside that goes": ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": None}}),
    "a new map that is empty": ({}, {"a": {}}, {"a": {}}),
    "lists are sent whole": ({"a": [1, 2]}, {"a": [1]}, {"a": [1]}),
    "zero is not nothing": ({"a": 1}, {"a": 0}, {"a": 0}),
}


@pytest.mark.parametrize(("before", "after", "patch"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_the_patch_between_two_documents(before: Any, after: Any, patch: Any) -> None:
    assert difference(before, after) == patch


# The mirror


def pod(version: int, **status: str) -> Document:
    meta = {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "status": status}


POD = Key("pods", "n", "p")
STORIES: dict[str, tuple[list[News], int | None]] = {
    "the newer one stays": ([News([pod(2)]), News([pod(1)])], 2),
    "versions are numbers": ([News([pod(9)]), News([pod(10)])], 10),
    "what is gone is gone": ([News([pod(1)]), News([pod(2)], gone=True)], None),
    "a late word about what is gone": ([News([pod(3)], gone=True), News([pod(2)])], None),
    "a late end of a predecessor": ([News([pod(5)]), News([pod(4)], gone=True)], 5),
    "a whole list without it": ([News([pod(1)]), News([], whole=BY_PLURAL["pods"], version=2)], None),
    "a whole list from before it was made": ([News([pod(3)]), News([], whole=BY_PLURAL["pods"], version=2)], 3),
    "a whole list of another kind": ([News([pod(1)]), News([], whole=BY_PLURAL["nodes"], version=2)], 1),
}


@pytest.mark.parametrize(("heard", "version"), STORIES.values(), ids=STORIES)
def test_what_the_mirror_believes(heard: list[News], version: int | None) -> None:
    mirror = Mirror()
    for news in heard:
        mirror.hear(news)

    found = mirror.get(POD)

    assert (int(found["metadata"]["resourceVersion"]) if found else None) == version


def test_who_listens_hears_each_version_once() -> None:
    mirror, heard = Mirror(), []
    mirror.listeners.append(lambda change: heard.append((change.type, change.version)))

    for news in (News([pod(1)]), News([pod(1)]), News([pod(2)]), News([pod(3)], gone=True), News([pod(3)], gone=True)):
        mirror.hear(news)

    assert heard == [("ADDED", 1), ("MODIFIED", 2), ("DELETED", 3)]


PATHS = {
    "all pods": (path_of(BY_PLURAL["pods"]), "/api/v1/pods"),
    "one pod": (path_of(BY_PLURAL["pods"], POD), "/api/v1/namespaces/n/pods/p"),
    "one node": (path_of(BY_PLURAL["nodes"], Key("nodes", "", "x")), "/api/v1/nodes/x"),
    "where jobs are made": (path_of(BY_PLURAL["jobs"], Key("jobs", "n", "")), "/apis/batch/v1/namespaces/n/jobs"),
}


@pytest.mark.parametrize(("path", "expected"), PATHS.values(), ids=PATHS)
def test_where_objects_stand(path: str, expected: str) -> None:
    assert path == expected


# The network


@pytest.fixture
def road(tmp_path_factory: pytest.TempPathFactory) -> Iterator[network.Network]:
    folder = tmp_path_factory.mktemp("road")
    with network.serving(folder / "s", make_papers(folder / "papers")) as serving:
        yield serving


def through(road: network.Network, target: str) -> tuple[int, socket.socket]:
    """Ask for a tunnel as the API server does; the answer's status, and the open connection."""
    line = socket.socket(socket.AF_UNIX)
    line.settimeout(5)
    line.connect(str(road.server_address))
    line.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += line.recv(1)
    return int(head.split()[1]), line


def test_an_exporter_answers_under_its_pods_address(road: network.Network) -> None:
    cluster = SimulatedCluster(fleet_documents())
    cluster.advance(minutes=2)
    road.world = cluster.world
    exporter = next(one for one in cluster.world.store.all("pods", "gpu-operator"))

    status, line = through(road, f"{exporter['status']['podIP']}:9400")

    with line:
        line.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = http.client.HTTPResponse(line)
        answer.begin()
        text = answer.read().decode()
    assert (status, answer.status) == (200, 200)
    assert exporter["spec"]["nodeName"] in text


def test_without_machines_there_is_no_road(road: network.Network) -> None:
    status, line = through(road, "10.64.0.1:9400")
    line.close()

    assert status == 503


def test_the_servers_certificate_is_signed_by_the_authority_for_loopback(tmp_path: Path) -> None:
    papers = make_papers(tmp_path)
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=str(papers.authority))
    server.load_cert_chain(papers.certificate, papers.key)
    here, there = socket.socketpair()

    def answer() -> None:
        with server.wrap_socket(there, server_side=True) as secure:
            secure.sendall(b"hello")

    thread = threading.Thread(target=answer)
    thread.start()
    with client.wrap_socket(here, server_hostname="127.0.0.1") as secure:
        said = secure.recv(5)
    thread.join()
    assert said == b"hello"
