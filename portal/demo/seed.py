"""Fills empty tables with the Meridian Institute: people, fleet, thirty days of history up to now, and work of today.

What happened is written through the services that write it every day, with the times at which it happened; only the
bulk of the past (workloads, placements, meters) is written as rows. The ledger is made by the hand-over alone. Today's
work is opened as people open it, and is placed by the cycle like everybody's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from datetime import timedelta as td
from fractions import Fraction as F
from zoneinfo import ZoneInfo

from django.contrib.auth.hashers import make_password
from django.db import transaction

from portal.demo import estate, people, rows
from portal.demo.fleet import Fault, Past, guest, machines
from portal.demo.history import Setting, write_history
from portal.demo.place import Place
from scheduling.cluster.port import Observation
from scheduling.connect import port_for
from scheduling.handover import hand_over
from scheduling.models import Cluster, Flavor, NodePool
from scheduling.planning.facts import Kind, NodeFact, Sharing
from scheduling.planning.shares import flavor_words, flavors_of
from scheduling.reconcile import records
from scheduling.services import Wish, open_workload
from tenants import services as tenants
from tenants.billing.services import draft_rate_card, publish_rate_card
from tenants.models import Membership, QuotaRequest, Team, User

SEED = "meridian"
FOUNDED = td(days=400)  # before now
PRESENT = "as the cluster shows it"


@dataclass(frozen=True, slots=True)
class Opening:
    """A workload that somebody opens as the demo begins."""

    by: str
    team: str
    name: str
    kind: Kind
    sku: str
    count: int = 1
    command: str = ""
    hours: int | None = None
    reason: str = ""
    ask: F | None = None  # with a quota request for so many cards


SLICE = "h100-80gb/mig-1g.10gb/on-demand"
HALF = "h100-80gb/mig-3g.40gb/on-demand"
H100 = "h100-80gb/whole/on-demand"
A10G = "a10g-24gb/time-slice-4/spot"
BUSY = "start-notebook.py --busy-minutes 4320"  # somebody works at it for three days
OPENINGS = (
    Opening("mina", "vision", "tracking-lab", Kind.WORKSPACE, HALF, command=BUSY),
    Opening("noor", "language", "distillation-check", Kind.WORKSPACE, HALF, command=BUSY),
    Opening("priya", "speech", "wakeword-lab", Kind.WORKSPACE, SLICE),
    Opening("tomas", "vision", "detector-notes", Kind.WORKSPACE, A10G, command=BUSY),
    Opening("kofi", "robotics", "grasp-planner", Kind.WORKSPACE, A10G, command=BUSY),
    Opening("jonas", "speech", "voices-retrain", Kind.JOB, H100, 3, "python train.py --voices all", 48),
    Opening("ivo", "language", "tokeniser-ablation", Kind.JOB, H100, 2, "python ablate.py --all", 36),
    Opening("mina", "vision", "pose-retrain", Kind.JOB, H100, 2, "python train.py --pose full", 36),
    Opening("sana", "robotics", "gait-rollouts", Kind.JOB, A10G, 1, "python rollout.py --seeds 64", 24),
    Opening(
        "tomas", "vision", "detector-large", Kind.JOB, H100, 3, "python train.py --size large", 24,
        "The large detector needs three cards for a day; the small one has converged.", F(3),
    ),
)  # fmt: skip


def seed(now: datetime, zone: ZoneInfo, place: Place) -> None:
    """Write everything. `now` is where the history ends; `place` is where the running cluster is."""
    since = estate.beginning(now, zone)
    with transaction.atomic():
        crew = make_people(now)
        teams = make_teams(crew, now)
        give_grants(crew, teams, now)
        cluster = make_cluster(place, now)
        flavors = make_flavors(cluster)
        publish_prices(crew["omar"], flavors, since, now, zone)
    seen = look(cluster, now)
    history = write_history(setting(seen.nodes, since, now, zone))
    book = rows.Book(cluster, teams, crew, flavors)
    with transaction.atomic():
        rows.write(history, book, seed=SEED, until=now)
        records.see_nodes(cluster, seen, now)
        records.see_pools(cluster, seen.sizes)
        Cluster.objects.filter(pk=cluster.pk).update(seen_at=now)
        decide_requests(crew, teams, now)
    hand_over(now)
    open_today(book, now)


def make_people(now: datetime) -> dict[str, User]:
    password = make_password(people.PASSWORD)  # one for all: thirteen times would take a second
    rows_ = [
        User(
            username=fact.username,
            first_name=fact.first_name,
            last_name=fact.last_name,
            email=fact.email,
            is_staff=fact.operator,
            password=password,
            date_joined=now - FOUNDED,
        )
        for fact in people.PEOPLE
    ]
    User.objects.bulk_create(rows_)
    return {user.username: user for user in User.objects.all()}


def make_teams(crew: Mapping[str, User], now: datetime) -> dict[str, Team]:
    made: dict[str, Team] = {}
    for fact in people.TEAMS:
        parent = made.get(fact.parent)
        made[fact.slug] = Team.objects.create(slug=fact.slug, name=fact.name, parent=parent, created_at=now - FOUNDED)
    Membership.objects.bulk_create(
        Membership(team=made[team], user=crew[fact.username], role=role, since=now - FOUNDED)
        for fact in people.PEOPLE
        for team, role in fact.roles
    )
    return made


def give_grants(crew: Mapping[str, User], teams: Mapping[str, Team], now: datetime) -> None:
    """The standing grants, and one that has ended: Speech had two cards more for its release last month."""
    began = now - td(days=180)
    for team, model, cards in estate.GRANTS:
        tenants.give_grant(team=teams[team], model=model, amount=F(cards), by=crew["omar"], now=began)
    tenants.give_grant(
        team=teams["speech"],
        model=estate.H100,
        amount=F(2),
        by=crew["lena"],
        now=now - td(days=40),
        ends_at=now - td(days=26),
        reason="The spring release.",
    )


def make_cluster(place: Place, now: datetime) -> Cluster:
    """A cluster with a token is a real one, whose minutes last a minute."""
    cluster = Cluster.objects.create(
        name=estate.CLUSTER,
        server=place.server,
        token_file=place.token_file,
        authority_file=place.authority_file,
        created_at=now - FOUNDED,
    )
    limits = estate.SHORT_LIMITS if place.token_file else {}
    NodePool.objects.bulk_create(
        NodePool(
            cluster=cluster,
            name=fact.name,
            model=fact.model,
            sharing=fact.sharing,
            replicas=fact.replicas,
            capacity=fact.capacity,
            cards_per_node=fact.cards_per_node,
            cpu_milli=fact.cpu_milli,
            host_memory_mib=fact.host_memory_mib,
            provider="cluster-api",
            min_nodes=fact.min_nodes,
            max_nodes=fact.max_nodes,
            layout=fact.layout,
            layouts=list(fact.layouts),
            **{"empty_minutes": fact.empty_after // td(minutes=1), **limits.get(fact.name, {})},
        )
        for fact in estate.POOLS
    )
    return cluster


def make_flavors(cluster: Cluster) -> dict[str, Flavor]:
    facts = {fact.sku: fact for pool in estate.POOLS for fact in flavors_of(pool)}
    Flavor.objects.bulk_create(
        Flavor(
            sku=fact.sku,
            model=fact.model,
            sharing=fact.sharing,
            profile=fact.profile,
            replicas=fact.replicas,
            share=fact.share,
            memory_mib=fact.memory_mib,
            capacity=fact.capacity,
            words=flavor_words(fact),
        )
        for fact in facts.values()
    )
    return {flavor.sku: flavor for flavor in Flavor.objects.all()}


def publish_prices(by: User, flavors: Mapping[str, Flavor], since: datetime, now: datetime, zone: ZoneInfo) -> None:
    """Two rate cards: one from before the history, one whose prices hold from the middle of a month."""
    cards = (
        ("Prices of the autumn", since - td(days=60)),
        ("Prices after the new contract", estate.price_change(now, zone)),
    )
    for changed, (name, starts_at) in enumerate(cards):
        prices = {sku: estate.price_of(sku, changed=bool(changed)) for sku in flavors}
        drafted = starts_at - td(days=5)
        card = draft_rate_card(name, prices, starts_at=starts_at, by=by, now=drafted)
        publish_rate_card(card, by=by, now=drafted)


def look(cluster: Cluster, now: datetime) -> Observation:
    """What the cluster shows, by the same adapter as ever."""
    with port_for(cluster) as port:
        return port.observe(now)


def setting(nodes: Sequence[NodeFact], since: datetime, until: datetime, zone: ZoneInfo) -> Setting:
    """The past of the nodes that are there now, and of one more for training that was there for five days."""
    standing = machines(nodes, _past(nodes, since, until), since, until)
    training = next(machine for machine in standing if machine.pool == "h100-train")
    week, tail = since + td(days=8, hours=6), training.name.rpartition("-")[2]
    name = training.name.removesuffix(tail) + "x5hn"
    return Setting(
        since=since,
        until=until,
        zone=zone,
        machines=[*standing, guest(training, name, week, week + td(days=5))],
        bursts=[pool for pool in estate.POOLS if pool.min_nodes == 0],
        quotas={(team, model): F(cards) for team, model, cards in estate.GRANTS},
        seed=SEED,
    )


def _past(nodes: Sequence[NodeFact], since: datetime, until: datetime) -> Past:
    """Sliced nodes were cut otherwise before, one card was sick for a night, and a debug pod held a quarter once."""
    sliced = sorted(node.name for node in nodes if node.pool == "h100-mig")
    whole = [node.name for node in nodes if node.pool == "h100-train"]
    shared = [node.name for node in nodes if node.sharing is Sharing.TIME_SLICE]
    layouts = {
        sliced[0]: ((since, "all-1g.10gb"), (since + td(days=6, hours=4), PRESENT)),
        sliced[-1]: (
            (since, "all-balanced"),
            (since + td(days=11, hours=3), "all-3g.40gb"),
            (until - td(days=4, hours=8), PRESENT),
        ),
    }
    night, noon = since + td(days=12, hours=22), since + td(days=17, hours=11)
    faults = {name: (Fault(night, night + td(hours=9), out_of_service=F(1)),) for name in whole[:1]}
    faults |= {name: (Fault(noon, noon + td(hours=2), foreign=F(1, 4)),) for name in shared[:1]}
    return Past(layouts, faults)


def decide_requests(crew: Mapping[str, User], teams: Mapping[str, Team], now: datetime) -> None:
    for past in sorted(estate.REQUESTS, key=lambda past: -past.asked):
        request = tenants.ask_quota(
            team=teams[past.team],
            by=crew[past.by],
            model=past.model,
            amount=past.amount,
            reason=past.reason,
            now=now - td(days=past.asked),
            until=_before(now, past.until),
        )
        _decide(request, past, crew[past.decided_by], now)


def _decide(request: QuotaRequest, past: estate.PastRequest, by: User, now: datetime) -> None:
    at, until = now - td(days=past.decided), _before(now, past.offered_until)
    if past.verdict == "approved":
        tenants.approve(request, by=by, now=at, amount=past.offered, until=until, note=past.note)
    elif past.verdict == "denied":
        tenants.deny(request, by=by, now=at, note=past.note)
    elif past.verdict == "countered":
        tenants.counter(request, by=by, now=at, amount=past.offered or F(1), until=until, note=past.note)
    else:
        tenants.withdraw(request, by=by, now=at)


def _before(now: datetime, days: float | None) -> datetime | None:
    return None if days is None else now - td(days=days)


def open_today(book: rows.Book, now: datetime) -> None:
    """Work of other people than the visitor, waiting for the cycle as everybody's does."""
    for number, opening in enumerate(OPENINGS):
        flavor = book.flavors[opening.sku]
        cpu_milli, memory_mib = estate.sizes_of(flavor.sharing, opening.count)
        wish = Wish(
            name=opening.name,
            kind=opening.kind,
            flavor=flavor,
            count=opening.count,
            cpu_milli=cpu_milli,
            memory_mib=memory_mib,
            command=opening.command,
            storage_gib=50 if opening.kind is Kind.WORKSPACE else 0,
            hours=opening.hours,
            reason=opening.reason,
            submission=f"opening-{number}",
        )
        open_workload(wish, team=book.teams[opening.team], by=book.people[opening.by], now=now, ask=opening.ask)
