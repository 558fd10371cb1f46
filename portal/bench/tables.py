"""Tables for the bench: one organisation of many teams with cards to hold, one cluster, and work that waits."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from datetime import timedelta as td
from fractions import Fraction as F

from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore

from portal.bench.machines import MODEL, POOL
from scheduling.models import Cluster, Flavor, NodePool, Transition, Workload
from scheduling.planning.facts import Kind, Phase, Reason
from scheduling.planning.shares import flavor_words, flavors_of
from scheduling.snapshot import pool_fact
from tenants.models import Grant, Membership, Role, Team, User

BACKEND = "django.contrib.auth.backends.ModelBackend"


@dataclass(frozen=True, slots=True)
class World:
    cluster: Cluster
    flavor: Flavor
    teams: Sequence[Team]
    people: Sequence[User]  # one of each team


def make_world(
    *, now: datetime, teams: int, cards: int, server: str, token_file: str = "", authority: str = ""
) -> World:
    """So many teams, each with a member and a grant of so many cards, and a cluster with a pool of fixed size."""
    root = Team.objects.create(slug="bench", name="Bench", created_at=now)
    people = [User(username=f"member-{number}", date_joined=now) for number in range(teams)]
    User.objects.bulk_create(people)
    rows = [Team(slug=f"bench-{number}", name=f"Team {number}", parent=root, created_at=now) for number in range(teams)]
    Team.objects.bulk_create(rows)
    begin = now - td(hours=1)
    Membership.objects.bulk_create(
        Membership(team=team, user=user, role=Role.RESEARCHER, since=begin)
        for team, user in zip(rows, people, strict=True)
    )
    grants = [(root, F(cards * teams)), *((team, F(cards)) for team in rows)]
    Grant.objects.bulk_create(
        Grant(team=team, model=MODEL, amount=amount, starts_at=begin, made_by=people[0], made_at=begin)
        for team, amount in grants
    )
    cluster = Cluster.objects.create(
        name="bench", server=server, token_file=token_file, authority_file=authority, created_at=now
    )
    return World(cluster, make_flavor(cluster), rows, people)


def make_flavor(cluster: Cluster) -> Flavor:
    pool = NodePool.objects.create(
        cluster=cluster, name=POOL, model=MODEL, sharing="whole", cards_per_node=8, cpu_milli=96_000,
        host_memory_mib=512 * 1024, provider="static", max_nodes=10_000, idle_minutes=None,
    )  # fmt: skip
    fact = flavors_of(pool_fact(pool))[0]
    return Flavor.objects.create(
        sku=fact.sku, model=fact.model, sharing=fact.sharing, profile=fact.profile, replicas=fact.replicas,
        share=fact.share, memory_mib=fact.memory_mib, capacity=fact.capacity, words=flavor_words(fact),
    )  # fmt: skip


def wait_in_line(world: World, count: int, *, now: datetime, name: str = "job") -> list[Workload]:
    """So many Jobs of one card that wait, as `open_workload` leaves them; one team after the other."""
    rows = []
    for number in range(count):
        at = number % len(world.teams)
        rows.append(
            Workload(
                name=f"{name}-{number}", kind=Kind.JOB, team=world.teams[at], owner=world.people[at],
                cluster=world.cluster, flavor=world.flavor, image="example.org/bench:1", command="sleep 3600",
                cpu_milli=1000, memory_mib=1024, submission=uuid.uuid4().hex, asked_at=now, desired_at=now,
                desired_by=world.people[at], phase_since=now, phase_text="Submitted.",
            )
        )  # fmt: skip
    Workload.objects.bulk_create(rows, batch_size=1000)
    Transition.objects.bulk_create(
        [
            Transition(workload=row, version=0, at=now, after=Phase.WAITING, reason=Reason.SUBMITTED, by=row.owner)
            for row in rows
        ],
        batch_size=1000,
    )
    return rows


def session_of(user: User) -> str:
    """The key of a session in which the user is logged in."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = BACKEND
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return str(session.session_key)
