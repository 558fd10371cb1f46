"""Where a cluster's row leads: one port for each, a new one when the row changes, and who listens follows it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scheduling import connect
from scheduling.cluster.port import ClusterError
from scheduling.cluster.simulated import ManualClock, SimulatedCluster, fleet_documents
from scheduling.models import Cluster

CHANGES = {
    "another server": {"server": "https://127.0.0.1:2"},
    "another token file": {"token_file": "/run/secrets/other"},
    "another authority": {"authority_file": "/run/secrets/other.crt"},
    "exporters elsewhere": {"metrics_namespace": "elsewhere"},
}


class Port:
    """Stands in for an adapter: remembers where it leads and whether it was closed."""

    def __init__(self, way: connect.Way) -> None:
        self.way, self.closed, self.watched = way, False, ""

    def watch(self, ring: Any, name: str) -> None:
        self.watched = name

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def ports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(connect, "opened", Port)
    monkeypatch.setattr(connect, "_ports", {})
    yield
    connect.forget_ports()


def row(**facts: Any) -> Cluster:
    return Cluster(**{"pk": 1, "name": "harbour-1", "server": "https://127.0.0.1:1", **facts})


def test_a_row_has_one_port_however_often_it_is_read(ports: None) -> None:
    assert connect.kubernetes_port(row()) is connect.kubernetes_port(row(name="renamed", paused=True))
    assert connect.kubernetes_port(row(pk=2)) is not connect.kubernetes_port(row())


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_row_that_leads_elsewhere_has_a_new_port_and_the_old_one_is_closed(
    ports: None, change: dict[str, str]
) -> None:
    before, other = connect.kubernetes_port(row()), connect.kubernetes_port(row(pk=2))

    after = connect.kubernetes_port(row(**change))

    assert after is not before
    assert after.way == connect.way_to(row(**change))
    assert (before.closed, after.closed, other.closed) == (True, False, False)
    assert len(connect._ports) == 2


def test_a_row_that_leads_nowhere_leaves_no_port_behind(monkeypatch: pytest.MonkeyPatch, ports: None) -> None:
    before = connect.kubernetes_port(row())

    def refuse(way: connect.Way) -> None:
        raise ClusterError("nobody")

    monkeypatch.setattr(connect, "opened", refuse)
    with pytest.raises(ClusterError):
        connect.kubernetes_port(row(server="https://127.0.0.1:2"))

    assert before.closed
    assert connect._ports == {}


def test_the_files_of_the_row_are_those_of_the_connection(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("t0ken\n")
    way = connect.Way("https://127.0.0.1:1", str(token), str(tmp_path / "ca.crt"), "gpu-operator")

    with connect.opened(way) as port:
        connection = port._api._connection

    assert (connection.server, connection.token_file) == (way.server, way.token_file)
    assert (connection.authority_file, connection.verify) == (way.authority_file, True)
    assert "t0ken" not in repr(connection)


def test_who_listens_follows_the_row_without_a_restart() -> None:
    """A stream that would last for minutes is ended by the first who reads the changed row, as each cycle does."""
    rung = threading.Event()
    with served() as old, served() as new:
        try:
            connect.listen(row(server=old), rung.set)
            before = connect.kubernetes_port(row(server=old))
            assert rung.wait(10)
            until_streaming(before)
            rung.clear()

            after = connect.kubernetes_port(row(server=new))

            assert rung.wait(10)
            until_streaming(after)
            assert (before.mirror.is_watching, after.mirror.is_watching) == (False, True)
            assert not [thread for thread in before.mirror._threads if thread.is_alive()]
        finally:
            connect.forget_ports()
    assert not [thread for thread in after.mirror._threads if thread.is_alive()]


def test_a_row_that_cannot_be_watched_yet_is_watched_when_it_leads_somewhere(
    monkeypatch: pytest.MonkeyPatch, ports: None
) -> None:
    def refuse(way: connect.Way) -> None:
        raise ClusterError("nobody")

    rings: list[int] = []
    with monkeypatch.context() as nowhere:
        nowhere.setattr(connect, "opened", refuse)
        with pytest.raises(ClusterError):
            connect.listen(row(), lambda: rings.append(1))

    assert connect.kubernetes_port(row()).watched == "harbour-1"


def until_streaming(port: Any) -> None:
    """Until somebody listens by this port; a stream is known to its session as soon as it has begun."""
    waiting = threading.Event()
    for _ in range(1_000):
        if port._api._streams:
            return
        waiting.wait(0.01)
    raise AssertionError("nobody listens")


def served() -> Any:
    clock = ManualClock(datetime(2026, 12, 1, 12, tzinfo=UTC))
    return SimulatedCluster(fleet_documents(), clock=clock).serve()
