"""A port that writes only as long as the lease may still be ours.

`apply` asks the tables before each action. An action is several calls, and a worker may be stopped between two of them;
so each writing call looks at the clock once more. It costs nothing and asks nobody.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from scheduling.cluster.kueue_reading import Queues
from scheduling.cluster.port import ClusterPort, Document, EventFact, Exposition, Observation, Picture, Ref
from scheduling.reconcile.lease import Lease


@dataclass(frozen=True, slots=True)
class Fenced:
    """Every writing verb raises LeaseLost once the lease is over by this process's clock."""

    port: ClusterPort
    ours: Lease

    def observe(self, now: datetime, at_least: Picture | None = None) -> Observation:
        return self.port.observe(now, at_least)

    def taken(self, seen: Observation) -> None:
        self.port.taken(seen)

    def picture(self) -> Picture:
        return self.port.picture()

    def put(self, document: Document) -> str:
        self.ours.check()
        return self.port.put(document)

    def remove(self, ref: Ref) -> bool:
        self.ours.check()
        return self.port.remove(ref)

    def remove_by_force(self, ref: Ref) -> bool:
        self.ours.check()
        return self.port.remove_by_force(ref)

    def scale(self, ref: Ref, replicas: int) -> None:
        self.ours.check()
        self.port.scale(ref, replicas)

    def cordon(self, node: str, *, on: bool, marks: Mapping[str, str | None]) -> None:
        self.ours.check()
        self.port.cordon(node, on=on, marks=marks)

    def cut(self, node: str, config: str) -> None:
        self.ours.check()
        self.port.cut(node, config)

    def resize(self, pool: str, nodes: int, drop: Iterable[str]) -> None:
        self.ours.check()
        self.port.resize(pool, nodes, drop)

    def label(self, node: str, labels: Mapping[str, str | None]) -> None:
        self.ours.check()
        self.port.label(node, labels)

    def queues(self) -> Queues:
        return self.port.queues()

    def logs(self, namespace: str, pod: str, *, lines: int) -> str:
        return self.port.logs(namespace, pod, lines=lines)

    def events(self, namespace: str, name: str) -> list[EventFact]:
        return self.port.events(namespace, name)

    def metrics(self, nodes: Iterable[str]) -> list[Exposition]:
        return self.port.metrics(nodes)
