"""Facts in a few words, for tests of whatever looks at a snapshot.

    picture = look(
        pool("h100").h100(8).nodes(1, of=4),
        node("n1", "h100").h100(8),
        workload("train").whole(2).running_on("n1"),
        workload("next").whole(1),
    )

Builders chain and are built by `look`, or by `.fact()`. Whoever has no quota in the picture gets
plenty. What runs has a pod, unless the picture brings pods of that workload itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from datetime import timedelta as td
from fractions import Fraction as F
from typing import Any, Self
from uuid import NAMESPACE_URL, UUID, uuid5

from scheduling.planning import catalog
from scheduling.planning.facts import (
    Capacity,
    Desired,
    DeviceFact,
    Isolation,
    Kind,
    NodeFact,
    ObjectFact,
    Phase,
    PodFact,
    PoolFact,
    QuotaFact,
    Sharing,
    Snapshot,
    WorkloadFact,
)
from scheduling.planning.shares import Sku, flavor_of, isolation_of

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
GIB = 1024
H100 = "h100-80gb"
A100 = "a100-40gb"
A10G = "a10g-24gb"
PLENTY = F(100_000)


def minutes_ago(minutes: float) -> datetime:
    return NOW - td(minutes=minutes)


def identity(name: str) -> UUID:
    """The same name is the same id in every run."""
    return uuid5(NAMESPACE_URL, name)


class Builder:
    """Keyword facts under construction; every verb answers with another builder and leaves this one as it is."""

    def __init__(self, **facts: Any) -> None:
        self.facts = facts

    def having(self, **facts: Any) -> Self:
        other = copy(self)
        other.facts = self.facts | facts
        return other


class CardBuilder(Builder):
    """What nodes and pools have in common: which cards, how shared."""

    def cards(self, model: str, count: int) -> Self:
        return self.having(model=model, cards=count)

    def h100(self, count: int = 8) -> Self:
        return self.cards(H100, count)

    def a100(self, count: int = 8) -> Self:
        return self.cards(A100, count)

    def a10g(self, count: int = 4) -> Self:
        return self.cards(A10G, count)

    def time_sliced(self, replicas: int) -> Self:
        return self.having(sharing=Sharing.TIME_SLICE, replicas=replicas)

    def mps(self, replicas: int) -> Self:
        return self.having(sharing=Sharing.MPS, replicas=replicas)

    def spot(self) -> Self:
        return self.having(capacity=Capacity.SPOT)

    def host(self, cpu: int, gib: int) -> Self:
        """Whole CPUs, GiB."""
        return self.having(cpu_milli=cpu * 1000, host_memory_mib=gib * GIB)


class NodeBuilder(CardBuilder):
    def __init__(self, name: str, pool: str) -> None:
        super().__init__()
        self.facts |= {
            "name": name,
            "uid": f"uid-{name}",
            "pool": pool,
            "model": H100,
            "cards": 8,
            "sharing": Sharing.WHOLE,
            "replicas": 1,
        }
        self.facts |= {
            "capacity": Capacity.ON_DEMAND,
            "cpu_milli": 96_000,
            "host_memory_mib": 1024 * GIB,
            "ready": True,
        }
        self.facts |= {
            "schedulable": True,
            "sick_cards": 0,
            "created_at": minutes_ago(600),
            "usable_since": minutes_ago(595),
        }

    def mig(self, layout: str, *, single: bool = False) -> Self:
        """Cut to a layout, seen done; with `single` its slices are called nvidia.com/gpu."""
        cut = self.having(sharing=Sharing.MIG, mig_capable=True, mig_config=layout, mig_state="success")
        return cut.having(mig_strategy="single" if single else "mixed")

    def sick(self, cards: int) -> Self:
        return self.having(sick_cards=cards)

    def cordoned(self) -> Self:
        return self.having(schedulable=False)

    def silent(self, minutes: float) -> Self:
        """Not ready for so long."""
        return self.having(ready=False, schedulable=False, not_ready_since=minutes_ago(minutes))

    def leaving(self) -> Self:
        return self.having(leaving=True, schedulable=False)

    def dropped(self) -> Self:
        return self.leaving().having(dropped=True)

    def cutting(self, to: str, state: str = "pending") -> Self:
        return self.having(cutting_to=to, mig_config=to, mig_state=state, schedulable=False)

    def shows(self, layout: str) -> Self:
        """Its devices are still (or already) those of this layout, whatever its label says."""
        return self.having(devices=self.having(mig_config=layout).fact().devices)

    def booting(self, minutes: float = 1) -> Self:
        """Joined so long ago, and shows no cards yet."""
        return self.having(created_at=minutes_ago(minutes), usable_since=None, devices=())

    def usable(self, minutes: float) -> Self:
        return self.having(usable_since=minutes_ago(minutes))

    def fact(self) -> NodeFact:
        facts = dict(self.facts)
        known = catalog.model(facts["model"])
        facts.setdefault("devices", tuple(self._devices(known)))
        return NodeFact(known=known is not None, memory_mib=known.memory_mib if known else None, **facts)

    def _devices(self, known: catalog.Model | None) -> Iterable[DeviceFact]:
        cards, sick = self.facts["cards"], self.facts["sick_cards"]
        sharing, replicas = self.facts["sharing"], self.facts["replicas"]
        resource = known.resource if known else "nvidia.com/gpu"
        layout = catalog.layout(known, self.facts["mig_config"]) if known and sharing is Sharing.MIG else None
        if layout is None or layout.whole or known is None or known.mig is None:
            isolation, share = isolation_of(sharing), F(1, replicas)
            yield DeviceFact(resource, "", share, isolation, cards * replicas, (cards - sick) * replicas, None)
            return
        for name, count in layout.counts.items():
            profile = known.mig.profile(name)
            assert profile is not None
            resource = "nvidia.com/gpu" if self.facts.get("mig_strategy") == "single" else profile.resource
            units = (count * cards, count * (cards - sick))
            yield DeviceFact(resource, name, profile.share, Isolation.HARDWARE, *units, profile.memory_mib)


class PoolBuilder(CardBuilder):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.facts |= {"name": name, "model": H100, "cards": 8, "sharing": Sharing.WHOLE, "replicas": 1}
        self.facts |= {
            "capacity": Capacity.ON_DEMAND,
            "cpu_milli": 96_000,
            "host_memory_mib": 1024 * GIB,
            "layout": "",
            "layouts": (),
        }
        self.facts |= {"min_nodes": 0, "max_nodes": 4, "wished_nodes": 0, "empty_after": td(minutes=15)}

    def mig(self, layout: str, *layouts: str) -> Self:
        """Fresh nodes come with `layout`; the planner may cut to any of `layouts`."""
        return self.having(sharing=Sharing.MIG, layout=layout, layouts=layouts)

    def nodes(self, wished: int | None, *, of: int, least: int = 0) -> Self:
        """So many asked for, of at most so many."""
        return self.having(wished_nodes=wished, max_nodes=of, min_nodes=least)

    def fixed(self) -> Self:
        return self.having(resizable=False)

    def spreading(self) -> Self:
        return self.having(spread=True)

    def fact(self) -> PoolFact:
        facts = dict(self.facts)
        return PoolFact(cards_per_node=facts.pop("cards"), **facts)


class WorkloadBuilder(Builder):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.facts |= {
            "id": identity(name),
            "name": name,
            "kind": Kind.WORKSPACE,
            "team": identity("team vision"),
            "owner": 1,
        }
        self.facts |= {
            "count": 1,
            "cpu_milli": 4000,
            "memory_mib": 16 * GIB,
            "desired": Desired.RUN,
            "phase": Phase.WAITING,
        }
        self.facts |= {"asked_at": minutes_ago(10), "phase_since": minutes_ago(10)}
        self.facts |= {"sku": Sku(H100, Sharing.WHOLE)}

    def whole(self, count: int = 1, *, model: str = H100) -> Self:
        return self.having(sku=Sku(model, Sharing.WHOLE), count=count)

    def slice(self, profile: str, *, model: str = H100) -> Self:
        return self.having(sku=Sku(model, Sharing.MIG, profile))

    def part(self, replicas: int, *, model: str = A10G, sharing: Sharing = Sharing.TIME_SLICE) -> Self:
        return self.having(sku=Sku(model, sharing, "", replicas))

    def spot(self) -> Self:
        return self.having(sku=replace(self.facts["sku"], capacity=Capacity.SPOT))

    def job(self) -> Self:
        return self.having(kind=Kind.JOB)

    def beside(self, cpu: int, gib: int) -> Self:
        """With so many CPUs and so much memory."""
        return self.having(cpu_milli=cpu * 1000, memory_mib=gib * GIB)

    def by(self, owner: int, team: str = "vision") -> Self:
        return self.having(owner=owner, team=identity(f"team {team}"))

    def asked(self, minutes: float) -> Self:
        """So many minutes ago."""
        return self.having(asked_at=minutes_ago(minutes))

    def wants(self, desired: Desired) -> Self:
        return self.having(desired=desired)

    def in_phase(self, phase: Phase, minutes: float = 10, *, node: str = "") -> Self:
        """For so many minutes."""
        placed = {"attempt": 1, "node": node} if node else {}
        return self.having(phase=phase, phase_since=minutes_ago(minutes), **placed)

    def placed_on(self, node: str, minutes: float = 0.5) -> Self:
        return self.in_phase(Phase.PLACED, minutes, node=node)

    def running_on(self, node: str, minutes: float = 60) -> Self:
        return self.in_phase(Phase.RUNNING, minutes, node=node)

    def fact(self) -> WorkloadFact:
        facts = dict(self.facts)
        flavor = flavor_of(sku := facts.pop("sku"), card_mib=40 * GIB)
        assert flavor is not None, f"no such flavor: {sku}"
        return WorkloadFact(flavor=flavor, **facts)


class PodBuilder(Builder):
    def __init__(self, name: str, node: str, workload: UUID | None) -> None:
        super().__init__()
        self.facts |= {"namespace": "team-vision" if workload else "kube-system", "name": name, "uid": f"uid-{name}"}
        self.facts |= {
            "node": node,
            "workload": workload,
            "phase": "Running",
            "ready": True,
            "requests": {},
            "cpu_milli": 0,
            "memory_mib": 0,
        }
        self.facts |= {
            "created_at": minutes_ago(9),
            "running_since": minutes_ago(8),
            "finished_at": None,
            "deleting_since": None,
        }

    def holding(self, units: int, resource: str = "nvidia.com/gpu") -> Self:
        return self.having(requests={resource: units})

    def pending(self, waiting_reason: str = "", message: str = "") -> Self:
        return self.having(phase="Pending", ready=False, running_since=None).having(
            waiting_reason=waiting_reason, message=message
        )

    def unready(self) -> Self:
        return self.having(ready=False)

    def terminating(self, minutes: float) -> Self:
        return self.having(deleting_since=minutes_ago(minutes))

    def ended(self, code: int, *, minutes: float = 1, reason: str = "") -> Self:
        return self.having(phase="Failed" if code else "Succeeded", ready=False, exit_code=code, reason=reason).having(
            finished_at=minutes_ago(minutes)
        )

    def refused(self, reason: str = "UnexpectedAdmissionError", message: str = "no healthy device") -> Self:
        return self.having(phase="Failed", ready=False, running_since=None).having(reason=reason, message=message)

    def fact(self) -> PodFact:
        return PodFact(**self.facts)


class ThingBuilder(Builder):
    def __init__(self, workload: str, kind: str) -> None:
        super().__init__()
        self.facts |= {"workload": identity(workload), "kind": kind, "namespace": "team-vision", "name": workload}
        self.facts |= {"uid": f"uid-{workload}", "replicas": 1, "generation": 0, "deleting_since": None}

    def deleting(self, minutes: float = 0) -> Self:
        return self.having(deleting_since=minutes_ago(minutes))

    def asleep(self) -> Self:
        return self.having(replicas=0)

    def complete(self, minutes: float = 1) -> Self:
        return self.having(complete=True, finished_at=minutes_ago(minutes))

    def failed(self, reason: str = "BackoffLimitExceeded", *, minutes: float = 1) -> Self:
        return self.having(failed=True, reason=reason, finished_at=minutes_ago(minutes))

    def fact(self) -> ObjectFact:
        return ObjectFact(**self.facts)


def node(name: str, pool: str = "h100") -> NodeBuilder:
    """A healthy node of eight whole H100 cards, until told otherwise."""
    return NodeBuilder(name, pool)


def pool(name: str) -> PoolBuilder:
    """Resizable, up to four nodes of eight whole H100 cards, none asked for."""
    return PoolBuilder(name)


def workload(name: str) -> WorkloadBuilder:
    """A workspace of Vision's member 1 that waits for one whole H100."""
    return WorkloadBuilder(name)


def pod(workload: str, node: str = "n1") -> PodBuilder:
    """The running pod of a workload; it holds nothing until told."""
    return PodBuilder(f"{workload}-0", node, identity(workload))


def foreign(name: str, node: str) -> PodBuilder:
    """Somebody else's running pod."""
    return PodBuilder(name, node, None)


def job(workload: str) -> ThingBuilder:
    return ThingBuilder(workload, "Job")


def statefulset(workload: str) -> ThingBuilder:
    return ThingBuilder(workload, "StatefulSet")


def quota(
    granted: F | int, *, team: str = "vision", model: str = H100, own: dict[int, F | int] | None = None
) -> QuotaFact:
    mine = {member: F(cards) for member, cards in (own or {}).items()}
    return QuotaFact(identity(f"team {team}"), model, F(granted), mine, team_name=team.capitalize())


Piece = NodeBuilder | PoolBuilder | WorkloadBuilder | PodBuilder | ThingBuilder | QuotaFact


def look(
    *pieces: Piece,
    now: datetime = NOW,
    empty: dict[str, float] | None = None,
    complete: bool = True,
    plenty: bool = True,
) -> Snapshot:
    """The picture of all these pieces; `empty` says for how many minutes a node has held none of our pods."""
    workloads = [piece.fact() for piece in pieces if isinstance(piece, WorkloadBuilder)]
    nodes = [piece.fact() for piece in pieces if isinstance(piece, NodeBuilder)]
    pods = [piece.fact() for piece in pieces if isinstance(piece, PodBuilder)]
    quotas = [piece for piece in pieces if isinstance(piece, QuotaFact)]
    return Snapshot(
        now=now,
        pools=tuple(piece.fact() for piece in pieces if isinstance(piece, PoolBuilder)),
        nodes=tuple(nodes),
        pods=(*pods, *_pods_of(workloads, nodes, pods)),
        objects=tuple(piece.fact() for piece in pieces if isinstance(piece, ThingBuilder)),
        workloads=tuple(workloads),
        quotas=(*quotas, *_plenty(workloads, quotas)) if plenty else tuple(quotas),
        complete=complete,
        empty_since={name: now - td(minutes=minutes) for name, minutes in (empty or {}).items()},
    )


def resource_on(fact: WorkloadFact, host: NodeFact) -> str:
    """What the workload's units are called on that node."""
    return next((one.resource for one in host.devices if one.profile == fact.flavor.profile), "nvidia.com/gpu")


def _pods_of(workloads: Iterable[WorkloadFact], nodes: Iterable[NodeFact], pods: Iterable[PodFact]) -> list[PodFact]:
    hosts = {host.name: host for host in nodes}
    seen = {one.workload for one in pods}
    return [
        pod(fact.name, fact.node)
        .holding(fact.count, resource_on(fact, hosts[fact.node]))
        .having(cpu_milli=fact.cpu_milli, memory_mib=fact.memory_mib)
        .fact()
        for fact in workloads
        if fact.phase is Phase.RUNNING and fact.node in hosts and fact.id not in seen
    ]


def _plenty(workloads: Iterable[WorkloadFact], quotas: Iterable[QuotaFact]) -> list[QuotaFact]:
    given = {(one.team, one.model) for one in quotas}
    wanted = {(fact.team, fact.flavor.model) for fact in workloads} - given
    return [QuotaFact(team, model, PLENTY) for team, model in sorted(wanted, key=str)]
