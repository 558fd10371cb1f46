"""The cluster that the contract suite runs against: the simulation, or a real control plane (`--cluster controlplane`).

Both have the same fleet, the machines of both are played by the same stand-ins, and both are as new for each test.
Tests that need faults of the server itself ask for `simulation` and run there only, tests of rights for `real`.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest

from scheduling.cluster.api import APPLY, document_in, path_of
from scheduling.cluster.client import Connection, KubernetesPort, Session
from scheduling.cluster.port import ClusterError, Observation
from scheduling.cluster.simulated import Delays, ManualClock, SimulatedCluster, fleet_documents
from scheduling.cluster.simulated.faults import Faults
from scheduling.planning.facts import NodeFact
from tests.controlplane import fleet

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
LONGEST_WAIT = 600  # looks, a second of the simulation's own time apart
NAP = 0.05  # seconds between two looks at a real one


@dataclass
class Rig:
    """A cluster, our port to it, and a door of its own for what others do there."""

    port: KubernetesPort
    door: Session
    pass_time: Callable[[], None]
    faults: Faults  # of the machines; the simulation has those of the server too

    def look(self) -> Observation:
        return self.port.observe(NOON)

    def until(self, holds: Callable[[Observation], Any]) -> Observation:
        """Let time pass until a look shows it."""
        for _ in range(LONGEST_WAIT):
            seen = self.look()
            if holds(seen):
                return seen
            self.pass_time()
        raise AssertionError(f"it did not come to pass within {LONGEST_WAIT} looks; last seen: {seen}")

    def node(self, name: str) -> NodeFact:
        return next(node for node in self.look().nodes if node.name == name)

    def nodes_of(self, pool: str) -> list[NodeFact]:
        return [node for node in self.look().nodes if node.pool == pool]

    # What others do

    def plant(self, document: dict[str, Any], manager: str = "somebody-else") -> None:
        meta = document["metadata"]
        path = path_of(document["kind"], meta.get("namespace", ""), meta["name"])
        self.door.ask("PATCH", path, query={"fieldManager": manager}, body=document, content=APPLY)

    def document(self, path: str) -> dict[str, Any]:
        return document_in(self.door.ask("GET", path))

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        return self.port._writes.find(kind, namespace, name)


@pytest.fixture
def simulation() -> Iterator[Rig]:
    """A simulated cluster with its fleet, whose clock stands until `until` moves it."""
    with simulated() as rig:
        yield rig


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[Rig]:
    """The cluster that this run is about, with its fleet."""
    if request.config.getoption("--cluster") == "simulated":
        with simulated() as rig:
            yield rig
        return
    with on_real_server(request.getfixturevalue("control_plane")) as rig:
        yield rig


@pytest.fixture
def real(control_plane: fleet.Site) -> Iterator[Rig]:
    """The control plane, for what the simulation does not know at all, as rights."""
    with on_real_server(control_plane) as rig:
        yield rig


@contextmanager
def simulated() -> Iterator[Rig]:
    world = SimulatedCluster(fleet_documents(), clock=ManualClock(NOON), delays=Delays())
    world.advance(minutes=2)  # its exporters are up
    with world.serve() as url:
        here = Connection(url)
        with port_to(here, here, world.faults, lambda: world.advance(seconds=1)) as rig:
            yield rig


runs = count()


@contextmanager
def on_real_server(site: fleet.Site) -> Iterator[Rig]:
    """Berth comes with its own rights, all others with every right."""
    with (
        fleet.planted(site, f"test {next(runs)}") as (_, faults),
        port_to(site.plane.berth, site.plane.admin, faults, lambda: time.sleep(NAP)) as rig,
    ):
        yield rig


@contextmanager
def port_to(ours: Connection, theirs: Connection, faults: Faults, pass_time: Callable[[], None]) -> Iterator[Rig]:
    door = Session(theirs)
    try:
        with KubernetesPort(ours) as port:
            yield Rig(port, door, pass_time, faults)
    finally:
        door.close()


def gone(rig: Rig, kind: str, namespace: str, name: str) -> bool:
    return rig.find(kind, namespace, name) is None


def refusal_of(call: Callable[[], Any]) -> ClusterError:
    with pytest.raises(ClusterError) as refusal:
        call()
    return refusal.value
