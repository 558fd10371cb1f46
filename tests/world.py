"""A small world to tell stories in: the organisation Meridian, its people, one cluster and what runs there.

    def test_a_lead_sees_the_request(world, client):
        world.workload("notebook", by=world.robin, phase="running")
        client.force_login(world.dana)

The fixture is offered by conftest.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from datetime import timedelta as td
from decimal import Decimal
from fractions import Fraction as F
from typing import Any

import pytest

from scheduling.models import Cluster, Flavor, Node, NodePool, Placement, Transition, Workload
from scheduling.planning.facts import Capacity, DeviceFact, Isolation, NodeFact, Phase, Reason, Sharing
from scheduling.snapshot import node_json
from tenants.models import Grant, Membership, QuotaRequest, Role, Team, User

H100 = "h100-80gb"
A10G = "a10g-24gb"
GIB = 1024

PATHS: dict[str, tuple[Phase, ...]] = {  # the phases that a workload has been through when it stands in one
    "waiting": (Phase.WAITING,),
    "placed": (Phase.WAITING, Phase.PLACED),
    "starting": (Phase.WAITING, Phase.PLACED, Phase.STARTING),
    "running": (Phase.WAITING, Phase.PLACED, Phase.STARTING, Phase.RUNNING),
    "stopping": (Phase.WAITING, Phase.PLACED, Phase.STARTING, Phase.RUNNING, Phase.STOPPING),
    "asleep": (Phase.WAITING, Phase.PLACED, Phase.STARTING, Phase.RUNNING, Phase.STOPPING, Phase.ASLEEP),
    "ended": (Phase.WAITING, Phase.PLACED, Phase.STARTING, Phase.RUNNING, Phase.STOPPING, Phase.ENDED),
}
REASONS = {
    Phase.WAITING: Reason.WAITING_FOR_CAPACITY,
    Phase.PLACED: Reason.PLACED,
    Phase.STARTING: Reason.PULLING_IMAGE,
    Phase.RUNNING: Reason.RUNNING,
    Phase.STOPPING: Reason.ASKED_TO_SLEEP,
    Phase.ASLEEP: Reason.ASKED_TO_SLEEP,
    Phase.ENDED: Reason.ASKED_TO_END,
}
STEP = td(seconds=40)  # between two phases of a workload's past


@dataclass
class World:
    """Meridian > Research > Vision and Speech. Names of people, teams, pools and flavors are attributes or keys."""

    clock: Any
    organisation: Team
    research: Team
    vision: Team
    speech: Team
    robin: User  # researcher in Vision
    sasha: User  # researcher in Speech: an outsider to Vision
    dana: User  # lead of Vision
    lena: User  # lead of Research, so of Vision and Speech too
    farah: User  # finance of the organisation
    omar: User  # operator
    cluster: Cluster
    pools: dict[str, NodePool] = field(default_factory=dict)
    flavors: dict[str, Flavor] = field(default_factory=dict)

    @property
    def now(self) -> datetime:
        return self.clock.now()

    def grant(self, team: Team, model: str, amount: F | int, *, member: User | None = None, **facts: Any) -> Grant:
        """So many cards from an hour ago, open-ended unless told otherwise."""
        facts = {"starts_at": self.now - td(hours=1), "made_by": self.omar, "made_at": self.now, **facts}
        return Grant.objects.create(team=team, model=model, amount=F(amount), member=member, **facts)

    def asks(self, by: User, amount: F | int = 2, *, team: Team | None = None, **facts: Any) -> QuotaRequest:
        """A pending quota request of Vision, ten minutes old."""
        facts = {"model": H100, "reason": "A deadline in March.", "asked_at": self.now - td(minutes=10), **facts}
        return QuotaRequest.objects.create(team=team or self.vision, asked_by=by, amount=F(amount), **facts)

    def workload(
        self,
        name: str,
        *,
        by: User | None = None,
        team: Team | None = None,
        flavor: str = "slice",
        phase: str = "waiting",
        **facts: Any,
    ) -> Workload:
        """A workload with the past that its phase implies: transitions and, where it was placed, a placement."""
        owner = by or self.robin
        path = PATHS[phase]
        asked_at = facts.pop("asked_at", self.now - STEP * len(path))
        row = Workload.objects.create(
            name=name,
            kind=facts.pop("kind", "workspace"),
            team=team or self.vision,
            owner=owner,
            cluster=self.cluster,
            flavor=self.flavors[flavor],
            image="quay.io/jupyter/pytorch-notebook:latest",
            submission=f"test-{name}",
            asked_at=asked_at,
            desired_at=asked_at,
            desired_by=owner,
            version=len(path) - 1,
            phase=path[-1],
            phase_since=asked_at + STEP * (len(path) - 1),
            **{"phase_reason": REASONS[path[-1]], "phase_text": f"{name} is {path[-1]}.", **facts},
        )
        self._past(row, path)
        if Phase.PLACED in path:
            self.placement(row, path)
        return row

    def placement(self, row: Workload, path: tuple[Phase, ...] = PATHS["running"], **facts: Any) -> Placement:
        """One stay of the workload on the first node of a pool that offers its flavor."""
        at = {phase: row.asked_at + STEP * index for index, phase in enumerate(path)}
        pool = next(pool for pool in self.pools.values() if _offers(pool, row.flavor))
        node = pool.nodes.first()
        return Placement.objects.create(
            **{
                "workload": row,
                "attempt": row.placements.count() + 1,
                "cluster": row.cluster,
                "pool": pool.name,
                "node": node.name if node else f"{pool.name}-gone",
                "resource": resource_of(row.flavor),
                "flavor": row.flavor,
                "share": row.flavor.share * row.count,
                "namespace": row.team.namespace,
                "pod": f"{row.name}-0",
                "placed_at": at[Phase.PLACED],
                "running_at": at.get(Phase.RUNNING),
                "ended_at": at.get(Phase.ASLEEP) or at.get(Phase.ENDED),
                **facts,
            }
        )

    def node(self, name: str, pool: str, **changes: Any) -> Node:
        """One more node of a pool, whole and healthy unless `changes` of its facts say otherwise."""
        row = self.pools[pool]
        fact = node_fact(name, row, **changes)
        return Node.objects.create(
            cluster=row.cluster,
            pool=row,
            name=name,
            uid=fact.uid,
            model=fact.model,
            cards=fact.cards,
            schedulable=fact.schedulable,
            facts=node_json(fact),
            usable_since=fact.usable_since,
            seen_at=self.now,
        )

    def publish(self, prices: dict[str, str] | None = None) -> Any:
        """A rate card from thirty days ago on, with a price per card-hour for each flavor (by its key here)."""
        from tenants.billing.services import draft_rate_card, publish_rate_card

        wanted = prices or {"slice": "4.20", "whole": "4.20", "quarter": "1.10"}
        starts_at = self.now - td(days=30)
        sums = {self.flavors[key].sku: Decimal(sum_) for key, sum_ in wanted.items()}
        card = draft_rate_card("Autumn", sums, starts_at=starts_at, by=self.omar, now=starts_at)
        publish_rate_card(card, by=self.omar, now=starts_at)
        return card

    def _past(self, row: Workload, path: tuple[Phase, ...]) -> None:
        Transition.objects.bulk_create(
            Transition(
                workload=row,
                version=version,
                at=row.asked_at + STEP * version,
                before=path[version - 1] if version else "",
                after=after,
                reason=REASONS[after],
                text=f"{row.name} is {after}.",
                by=row.owner if not version else None,
            )
            for version, after in enumerate(path)
        )


@pytest.fixture
def world(db: None, clock: Any) -> World:
    """Meridian on a quiet morning: 16 H100 and 4 A10G granted to Vision, nothing runs."""
    now = clock.now()
    people = {name: person(name) for name in ("robin", "sasha", "dana", "lena", "farah")}
    omar = person("omar", is_staff=True)
    organisation, research, vision, speech = teams(now)
    cluster = Cluster.objects.create(name="harbour-1", server="http://127.0.0.1:9", created_at=now, seen_at=now)
    made = World(
        clock=clock,
        organisation=organisation,
        research=research,
        vision=vision,
        speech=speech,
        omar=omar,
        cluster=cluster,
        pools=pools(cluster),
        flavors=flavors(),
        **people,
    )
    for who, team, role in (
        (made.robin, vision, Role.RESEARCHER),
        (made.sasha, speech, Role.RESEARCHER),
        (made.dana, vision, Role.LEAD),
        (made.lena, research, Role.LEAD),
        (made.farah, organisation, Role.FINANCE),
    ):
        Membership.objects.create(team=team, user=who, role=role, since=now)
    for team, amount in ((organisation, 64), (research, 48), (vision, 16), (speech, 8)):
        made.grant(team, H100, amount)
        made.grant(team, A10G, amount / F(4))
    made.node("train-1", "h100-train")
    made.node("shared-1", "h100-shared")
    return made


def person(name: str, **facts: Any) -> User:
    return User.objects.create(username=name, first_name=name.title(), password="!", **facts)


def teams(now: datetime) -> tuple[Team, Team, Team, Team]:
    """Meridian, its department Research, and there Vision and Speech."""
    meridian = Team.objects.create(slug="meridian", name="Meridian", created_at=now)
    research = Team.objects.create(slug="research", name="Research", parent=meridian, created_at=now)
    vision = Team.objects.create(slug="vision", name="Vision", parent=research, created_at=now)
    speech = Team.objects.create(slug="speech", name="Speech", parent=research, created_at=now)
    return meridian, research, vision, speech


def pools(cluster: Cluster) -> dict[str, NodePool]:
    """Whole H100, H100 cut into slices, and A10G by time-slices at zero nodes."""
    shape = {"cpu_milli": 96_000, "host_memory_mib": 1024 * GIB, "provider": "cluster-api"}
    rows = (
        NodePool(name="h100-train", model=H100, sharing="whole", cards_per_node=8, min_nodes=1, max_nodes=4, **shape),
        NodePool(
            name="h100-shared",
            model=H100,
            sharing="mig",
            cards_per_node=2,
            max_nodes=3,
            layout="all-1g.10gb",
            layouts=["all-1g.10gb", "all-3g.40gb"],
            **shape,
        ),
        NodePool(
            name="a10g-burst",
            model=A10G,
            sharing="time-slice",
            replicas=4,
            cards_per_node=4,
            max_nodes=5,
            capacity="spot",
            **shape,
        ),
    )
    for row in rows:
        row.cluster = cluster
        row.wished_nodes = 0 if row.name == "a10g-burst" else 1
        row.save()
    return {row.name: row for row in rows}


def flavors() -> dict[str, Flavor]:
    """A whole H100, an eighth of one, and a quarter of an A10G; by short keys."""
    rows = {
        "whole": Flavor(
            sku=f"{H100}/whole/on-demand",
            model=H100,
            sharing="whole",
            share=F(1),
            memory_mib=81_559,
            capacity="on-demand",
            words="Whole H100: 80 GiB, isolated in hardware",
        ),
        "slice": Flavor(
            sku=f"{H100}/mig-1g.10gb/on-demand",
            model=H100,
            sharing="mig",
            profile="1g.10gb",
            share=F(1, 8),
            memory_mib=9_856,
            capacity="on-demand",
            words="1g.10gb slice of an H100: 10 GiB, isolated in hardware",
        ),
        "quarter": Flavor(
            sku=f"{A10G}/time-slice-4/spot",
            model=A10G,
            sharing="time-slice",
            replicas=4,
            share=F(1, 4),
            memory_mib=22_731,
            capacity="spot",
            words="Quarter of an A10G by time-slices: 22 GiB shared by 4, no isolation",
        ),
    }
    for row in rows.values():
        row.save()
    return rows


def node_fact(name: str, pool: NodePool, **changes: Any) -> NodeFact:
    """A healthy node of the pool; a MIG node is cut into seven slices of an eighth per card."""
    facts: dict[str, Any] = {
        "name": name,
        "uid": f"uid-{name}",
        "pool": pool.name,
        "model": pool.model,
        "known": True,
        "memory_mib": 81_559 if pool.model == H100 else 22_731,
        "cards": pool.cards_per_node,
        "sick_cards": 0,
        "sharing": Sharing(pool.sharing),
        "replicas": pool.replicas,
        "capacity": Capacity(pool.capacity),
        "devices": (device_of(pool),),
        "cpu_milli": pool.cpu_milli,
        "host_memory_mib": pool.host_memory_mib,
        "ready": True,
        "schedulable": True,
    }
    if pool.sharing == "mig":
        facts |= {"mig_capable": True, "mig_strategy": "mixed", "mig_config": "all-1g.10gb", "mig_state": "success"}
    return NodeFact(**facts | changes)


def device_of(pool: NodePool) -> DeviceFact:
    cards = pool.cards_per_node
    if pool.sharing == "mig":
        return DeviceFact(
            resource="nvidia.com/mig-1g.10gb",
            profile="1g.10gb",
            share=F(1, 8),
            isolation=Isolation.HARDWARE,
            capacity=7 * cards,
            allocatable=7 * cards,
            memory_mib=9_856,
        )
    isolation = Isolation.HARDWARE if pool.sharing == "whole" else Isolation.NONE
    units = cards * pool.replicas
    return DeviceFact(
        resource="nvidia.com/gpu",
        profile="",
        share=F(1, pool.replicas),
        isolation=isolation,
        capacity=units,
        allocatable=units,
        memory_mib=None,
    )


def resource_of(flavor: Flavor) -> str:
    return f"nvidia.com/mig-{flavor.profile}" if flavor.profile else "nvidia.com/gpu"


def _offers(pool: NodePool, flavor: Flavor) -> bool:
    return (pool.model, pool.sharing, pool.capacity) == (flavor.model, flavor.sharing, flavor.capacity)
