"""A harbour for stories that run on the simulation and on a real control plane alike (`--cluster controlplane`).

Meridian's world, the cycle and our adapter with Berth's own rights. On the simulation a hand turns both clocks; on the
real server time passes by itself, and `turn` puts only Berth's own clock ahead, so that nobody waits for minutes. So a
story asks for what it expects with `until`, and never for how long that takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from datetime import timedelta as td
from typing import Any

from scheduling.cluster.api import JSON, MERGE, document_in, path_of
from scheduling.cluster.client import Connection, KubernetesPort, Session
from scheduling.cluster.port import ClusterError, Ref
from scheduling.cluster.simulated import Delays, ManualClock, SimulatedCluster, fleet_documents
from scheduling.cluster.simulated.faults import Faults
from scheduling.models import Node, Placement, Workload
from scheduling.planning.facts import PodFact
from scheduling.reconcile import launch
from scheduling.reconcile.cycle import run_cycle
from scheduling.reconcile.remember import Report
from tests.conftest import Clock
from tests.controlplane import fleet
from tests.scheduling.conftest import Harbour as SimulatedHarbour
from tests.scheduling.conftest import furnish
from tests.world import World

PATIENCE = 40.0  # seconds of the wall clock, on a machine that is busy with other things
NAP = 0.04  # between two looks at a real cluster
STEP = 5.0  # seconds of the simulation's time between two looks at it
MOST_STEPS = 400
NOT_FOUND = 404


class WallClock(Clock):
    """The wall's clock, which a test may put ahead."""

    def __init__(self) -> None:
        self.ahead = td(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def set(self, at: datetime) -> datetime:
        self.ahead = at - datetime.now(UTC)
        return at

    def advance(self, **duration: float) -> datetime:
        self.ahead += td(**duration)
        return self.now()


@dataclass
class Harbour(SimulatedHarbour):
    """`cluster` is the simulation, or None; `door` is for what others do there, with every right."""

    door: Session
    faults: Faults  # of the machines
    looks: list[Report]
    machines: Any = None  # the stand-ins' world, on a real server

    @property
    def real(self) -> bool:
        return self.cluster is None

    # Time

    def turn(self, **duration: float) -> None:
        """Berth's clock goes on, and the simulation's with it."""
        self.world.clock.advance(**duration)
        if not self.real:
            self.cluster.advance(seconds=td(**duration).total_seconds())

    def wait(self) -> None:
        """Let a little time pass."""
        if self.real:
            time.sleep(NAP)
        else:
            self.turn(seconds=STEP)

    def cycle(self) -> Report:
        self.world.cluster.refresh_from_db()
        report = run_cycle(self.world.cluster, self.port, self.world.now)
        self.looks.append(report)
        return report

    def until(self, holds: Callable[[], Any], what: str = "it") -> Any:
        """Look again and again until it holds; answers what `holds` found. Fails with the last looks."""
        for _ in self._tries():
            self.cycle()
            if found := holds():
                return found
            self.wait()
        raise AssertionError(f"{what} did not come to pass. The last looks: {self.told()}")

    def seen(self, holds: Callable[[], Any], what: str = "it") -> Any:
        """Wait, without a look of Berth's, until the cluster by itself has come to it."""
        for _ in self._tries():
            if found := holds():
                return found
            self.wait()
        raise AssertionError(f"{what} did not come to pass in the cluster.")

    def settle(self) -> list[str]:
        """A few looks, with a breath in between."""
        for _ in range(5):
            self.cycle()
            self.wait()
        return [text for one in self.looks[-5:] for text in one.actions]

    def _tries(self) -> Iterator[int]:
        deadline = time.monotonic() + PATIENCE
        for step in range(10**9 if self.real else MOST_STEPS):
            if self.real and time.monotonic() > deadline:
                return
            yield step

    def told(self) -> str:
        said = [*(text for one in self.looks[-12:] for text in (*one.actions, *one.failures, one.refusal) if text)]
        rows = [(row.name, row.phase, row.phase_reason, row.phase_text) for row in Workload.objects.all()]
        return f"{said}; {rows}"

    def failures(self) -> list[str]:
        """What could not be done, in all looks so far."""
        return [text for one in self.looks for text in one.failures]

    def cluster_now(self) -> datetime:
        """The time of the cluster's own clocks."""
        return datetime.now(UTC) if self.real else self.world.now

    def ages(self) -> None:
        """Berth's clock goes on by so much that what is young now is no longer: the graces for stale lists are over."""
        self.turn(seconds=20)

    def dies_slowly(self, seconds: float) -> None:
        """From now on a program takes so long to end, so that a look can see it end."""
        if self.real:
            self.machines.delays = replace(self.machines.delays, termination=seconds)

    # Workloads

    def run(self, name: str = "notebook", flavor: str = "h100-80gb/whole", **facts: Any) -> Workload:
        """Open a workload and see it run."""
        row = self.open(name, flavor, **facts)
        self.until(lambda: self.phase(row) == "running", f"{name} running")
        return self.read(row)

    def phase(self, row: Workload) -> str:
        phase: str = self.read(row).phase
        return phase

    def placement(self, row: Workload) -> Placement:
        """Its newest."""
        return Placement.objects.filter(workload=row).latest("placed_at")

    def node_of(self, row: Workload) -> str:
        return self.placement(row).node

    def placement_node(self, row: Workload) -> str:
        """Where it is placed now; "" while it is not."""
        found = Placement.objects.filter(workload=row, ended_at=None).first()
        return found.node if found else ""

    def pods_of(self, row: Workload) -> list[PodFact]:
        return [pod for pod in self.port.observe(self.world.now).pods if pod.workload == row.pk]

    def node_names(self, pool: str) -> list[str]:
        return list(Node.objects.filter(pool__name=pool).values_list("name", flat=True))

    def node_ready(self, name: str) -> bool:
        return next(node.ready for node in self.port.observe(self.world.now).nodes if node.name == name)

    # What others do there

    def object_path(self, row: Workload) -> str:
        ref = launch.ref_of(self.read(row))
        return path_of(ref.kind, ref.namespace, ref.name)

    def pod_path(self, row: Workload) -> str:
        return path_of("Pod", row.team.namespace, self.pods_of(row)[0].name)

    def document(self, path: str) -> dict[str, Any]:
        return document_in(self.door.ask("GET", path))

    def there(self, path: str) -> dict[str, Any] | None:
        try:
            return self.document(path)
        except ClusterError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def patch(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return document_in(self.door.ask("PATCH", path, body=body, content=MERGE))

    def delete(self, path: str, **options: Any) -> None:
        """As `kubectl delete` does it."""
        body = {"propagationPolicy": "Background", **options}
        self.door.ask("DELETE", path, body=body, content=JSON)

    def hold(self, path: str) -> None:
        """A finalizer: whatever is deleted stays until `release`."""
        self.patch(path, {"metadata": {"finalizers": ["example.org/hold"]}})

    def release(self, path: str) -> None:
        self.patch(path, {"metadata": {"finalizers": None}})

    def remove(self, ref: Ref) -> bool:
        return self.port.remove(ref)


@contextmanager
def simulated(world: World) -> Iterator[Harbour]:
    """The simulated fleet, on the world's own clock."""
    cluster = SimulatedCluster(fleet_documents(), clock=ManualClock(world.now), delays=Delays())
    with cluster.serve() as url, doors(Connection(url), Connection(url)) as (port, door):
        yield furnished(world, url, Harbour(world, cluster, port, door, cluster.faults, []))


@contextmanager
def on_real_server(world: World, site: fleet.Site, name: str) -> Iterator[Harbour]:
    """Berth comes with its own rights, all others with every right."""
    plane = site.plane
    with (
        fleet.planted(site, name) as (machines, faults),
        doors(plane.berth, plane.admin) as (port, door),
    ):
        world.cluster.token_file = str(plane.folder / "berth.token")
        world.cluster.authority_file = str(plane.papers.authority)
        yield furnished(world, plane.server, Harbour(world, None, port, door, faults, [], machines))


@contextmanager
def doors(ours: Connection, theirs: Connection) -> Iterator[tuple[KubernetesPort, Session]]:
    door = Session(theirs)
    try:
        with KubernetesPort(ours) as port:
            yield port, door
    finally:
        door.close()


def furnished(world: World, server: str, harbour: Harbour) -> Harbour:
    """The tables know the fleet, and the cycle has come to rest."""
    furnish(world)
    world.cluster.server = server
    world.cluster.save()
    harbour.until(lambda: not harbour.looks[-1].again and Node.objects.exists(), "a quiet beginning")
    return harbour
