"""A harbour: Meridian's world with a real adapter on the simulated cluster, on one clock that tests turn by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta as td
from fractions import Fraction as F
from typing import Any

import pytest

from scheduling.cluster.client import Connection, KubernetesPort
from scheduling.cluster.simulated import ManualClock, SimulatedCluster, fleet_documents
from scheduling.connect import forget_ports
from scheduling.models import Flavor, NodePool, Workload
from scheduling.planning.facts import Kind
from scheduling.planning.shares import flavor_words, flavors_of
from scheduling.reconcile.cycle import run_cycle
from scheduling.reconcile.remember import Report
from scheduling.services import Wish, open_workload
from scheduling.snapshot import pool_fact
from scheduling.telemetry.sampler import sample_cluster
from tests.world import World

A100 = "a100-40gb"
SHAPE = {"cpu_milli": 11_000, "host_memory_mib": 80 * 1024, "provider": "cluster-api"}
H100 = "h100-80gb"
POOLS = (
    {"name": "h100-train", "model": H100, "sharing": "whole", "cards_per_node": 8, "min_nodes": 1, "max_nodes": 2},
    {
        "name": "h100-mig", "model": H100, "sharing": "mig", "cards_per_node": 2, "min_nodes": 1, "max_nodes": 2,
        "layout": "all-balanced", "layouts": ["all-1g.10gb", "all-3g.40gb", "all-balanced"],
    },
    {
        "name": "a10g-shared", "model": "a10g-24gb", "sharing": "time-slice", "replicas": 4, "cards_per_node": 4,
        "capacity": "spot", "min_nodes": 1, "max_nodes": 2,
    },
    {"name": "a100-burst", "model": A100, "sharing": "whole", "cards_per_node": 2, "max_nodes": 4},
)  # fmt: skip


@dataclass
class Harbour:
    """The world, the cluster behind it, and the hand that turns the clock."""

    world: World
    cluster: SimulatedCluster
    port: KubernetesPort

    def __getattr__(self, name: str) -> Any:
        return getattr(self.world, name)

    def open(self, name: str, flavor: str, *, by: Any = None, kind: Kind = Kind.WORKSPACE, **facts: Any) -> Workload:
        """Open a workload of Vision by a part of its flavor's sku, such as "h100-80gb/whole"."""
        wanted = Flavor.objects.get(sku__startswith=flavor)
        ask = facts.pop("ask", None)
        wish = Wish(name=name, kind=kind, flavor=wanted, submission=name, reason="A paper.", **facts)
        return open_workload(wish, team=self.world.vision, by=by or self.world.robin, now=self.world.now, ask=ask)

    def cycle(self) -> Report:
        """One look, on the fresh row of the cluster."""
        self.world.cluster.refresh_from_db()
        return run_cycle(self.world.cluster, self.port, self.world.now)

    def settle(self) -> list[str]:
        """Look until nothing more is done; returns what was done."""
        done: list[str] = []
        for _ in range(8):
            report = self.cycle()
            done += [*report.actions, *report.failures, *([report.refusal] if report.refusal else [])]
            if not report.again:
                return done
        raise AssertionError(f"The cycle does not come to rest: {done[-6:]}")

    def pass_time(self, *, minutes: float, every: float = 1.0) -> list[str]:
        """Let time pass in steps, with a look after each; returns what was done."""
        done = []
        for _ in range(round(minutes / every)):
            self.turn(minutes=every)
            done += self.settle()
        return done

    def sample(self) -> int:
        """One sampling of what runs, as the periodic task does it."""
        return sample_cluster(self.world.cluster, self.world.now)

    def turn(self, **duration: float) -> None:
        """Move both clocks, the tables' and the cluster's."""
        self.world.clock.advance(**duration)
        self.cluster.advance(seconds=td(**duration).total_seconds())

    def read(self, row: Workload) -> Workload:
        return Workload.objects.select_related("team", "owner", "flavor").get(pk=row.pk)


@pytest.fixture
def harbour(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Harbour]:
    """The demo's fleet: whole H100, H100 in slices, A10G by time, and A100 at zero nodes."""
    monkeypatch.setattr("scheduling.wake.send", lambda cluster_id: None)
    monkeypatch.setattr("scheduling.telemetry.sampler.SHORTEST", td(0))
    monkeypatch.setattr("scheduling.cluster.circuit.seconds", lambda: world.clock.now().timestamp())
    furnish(world)
    cluster = SimulatedCluster(fleet_documents(), clock=ManualClock(world.now))
    with cluster.serve() as url, KubernetesPort(Connection(server=url)) as port:
        world.cluster.server = url
        world.cluster.save()
        harbour = Harbour(world, cluster, port)
        harbour.settle()
        yield harbour
        forget_ports()


def furnish(world: World) -> None:
    """The pools of the fleet in place of the world's own, their flavors, and grants for A100."""
    world.cluster.nodes.all().delete()
    world.cluster.pools.all().delete()
    Flavor.objects.all().delete()
    for facts in POOLS:
        row = NodePool.objects.create(cluster=world.cluster, **{**SHAPE, **facts})
        world.pools[row.name] = row
        for flavor in flavors_of(pool_fact(row)):
            Flavor.objects.get_or_create(
                sku=flavor.sku,
                defaults={
                    "model": flavor.model, "sharing": flavor.sharing, "profile": flavor.profile,
                    "replicas": flavor.replicas, "share": flavor.share, "memory_mib": flavor.memory_mib,
                    "capacity": flavor.capacity, "words": flavor_words(flavor),
                },
            )  # fmt: skip
    for team in (world.organisation, world.research, world.vision):
        world.grant(team, A100, F(8))
