"""The clusters that the contract suite runs against: the simulation, and a real API server where one is named.

Set BERTH_CONTRACT_SERVER (and BERTH_CONTRACT_TOKEN_FILE, BERTH_CONTRACT_AUTHORITY_FILE) to run the suite against a
real control plane as well. What needs machines, GPUs or faults on request asks for `simulation` and runs there only.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from scheduling.cluster.api import APPLY, path_of
from scheduling.cluster.client import Connection, KubernetesPort, Session
from scheduling.cluster.port import ClusterError, Observation
from scheduling.cluster.simulated import Delays, ManualClock, SimulatedCluster, fleet_documents
from scheduling.planning.facts import NodeFact

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
LONGEST_WAIT = 600  # of the cluster's own seconds
REAL = os.environ.get("BERTH_CONTRACT_SERVER", "")


@dataclass
class Rig:
    """A cluster, our port to it, and a door of its own for what others do there."""

    port: KubernetesPort
    door: Session
    pass_time: Callable[[], None]
    simulated: SimulatedCluster | None = None

    def look(self) -> Observation:
        return self.port.observe(NOON)

    def until(self, holds: Callable[[Observation], Any]) -> Observation:
        """Let time pass until a look shows it."""
        for _ in range(LONGEST_WAIT):
            seen = self.look()
            if holds(seen):
                return seen
            self.pass_time()
        raise AssertionError(f"it did not come to pass within {LONGEST_WAIT} s; last seen: {seen}")

    def node(self, name: str) -> NodeFact:
        return next(node for node in self.look().nodes if node.name == name)

    def nodes_of(self, pool: str) -> list[NodeFact]:
        return [node for node in self.look().nodes if node.pool == pool]

    # What others do

    def plant(self, document: dict[str, Any], manager: str = "somebody-else") -> None:
        meta = document["metadata"]
        path = path_of(document["kind"], meta.get("namespace", ""), meta["name"])
        self.door.ask("PATCH", path, query={"fieldManager": manager}, body=document, content=APPLY)

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        return self.port._find(kind, namespace, name)


@pytest.fixture
def simulation() -> Iterator[Rig]:
    """A simulated cluster with its fleet, whose clock stands until `until` moves it."""
    with simulated() as rig:
        yield rig


@pytest.fixture(params=["simulated", *(["real"] if REAL else [])])
def cluster(request: pytest.FixtureRequest) -> Iterator[Rig]:
    """Any API server that takes our documents."""
    with simulated() if request.param == "simulated" else real() as rig:
        yield rig


@contextmanager
def simulated() -> Iterator[Rig]:
    world = SimulatedCluster(fleet_documents(), clock=ManualClock(NOON), delays=Delays())
    world.advance(minutes=2)  # its exporters are up
    with world.serve() as url, port_to(Connection(url), lambda: world.advance(seconds=1)) as rig:
        rig.simulated = world
        yield rig


@contextmanager
def real() -> Iterator[Rig]:
    connection = Connection(
        REAL,
        token_file=os.environ.get("BERTH_CONTRACT_TOKEN_FILE", ""),
        authority_file=os.environ.get("BERTH_CONTRACT_AUTHORITY_FILE", ""),
    )
    with port_to(connection, lambda: time.sleep(0.2)) as rig:
        yield rig


@contextmanager
def port_to(connection: Connection, pass_time: Callable[[], None]) -> Iterator[Rig]:
    door = Session(connection)
    try:
        with KubernetesPort(connection) as port:
            yield Rig(port, door, pass_time)
    finally:
        door.close()


def gone(rig: Rig, kind: str, namespace: str, name: str) -> bool:
    return rig.find(kind, namespace, name) is None


def refusal_of(call: Callable[[], Any]) -> ClusterError:
    with pytest.raises(ClusterError) as refusal:
        call()
    return refusal.value
