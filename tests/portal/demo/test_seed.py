"""The demo's tables, seeded once from a simulated cluster: whole, consistent, and to the last card-second."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from datetime import timedelta as td
from fractions import Fraction as F
from itertools import pairwise
from typing import Any

import pytest
from django.db import transaction

from portal.demo import estate, people, seed
from portal.demo.place import Place
from scheduling.cluster.simulated import ManualClock, SimulatedCluster, fleet_documents
from scheduling.connect import forget_ports, port_for
from scheduling.consistency import Look, run_checks
from scheduling.handover import hand_over
from scheduling.models import CardSpan, Cluster, NodePool, Placement, Sample, Transition, UsageHour, Workload
from scheduling.planning.phases import MOVES
from scheduling.reconcile.cycle import run_cycle
from tenants.access import pending_to_decide, standing
from tenants.billing import house, selectors
from tenants.billing.checks import reconciliation
from tenants.billing.models import Charge, PoolHour, SetAside
from tenants.billing.services import close_month
from tenants.models import Grant, QuotaRequest, Role, User
from tenants.quota import over
from tenants.selectors import effect_of, quotas

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 12, 1, 11, 46, tzinfo=UTC)
LAST_MONTH, THIS_MONTH = "2026-11", "2026-12"
BUCKETS = ("used", "cold_start", "unallocated", "stranded", "out_of_service", "foreign")
MIB = 1024


@dataclass(frozen=True)
class Seeded:
    """The seeded tables, and the cluster that they were seeded from."""

    simulation: SimulatedCluster
    cluster: Cluster

    def person(self, name: str) -> User:
        return User.objects.get(username=name)

    def cycle(self, **later: float) -> datetime:
        """One look of the cycle, so much later."""
        if later:
            self.simulation.advance(**later)
        now = self.simulation.clock.now()
        with port_for(self.cluster) as port:
            run_cycle(Cluster.objects.get(pk=self.cluster.pk), port, now)
        return now


@pytest.fixture(scope="module")
def _tables(django_db_setup: None, django_db_blocker: Any) -> Iterator[Seeded]:
    """Seeding takes seconds, so it is done once; each test's own changes are rolled back to here."""
    simulation = SimulatedCluster(fleet_documents(), clock=ManualClock(NOW))
    with django_db_blocker.unblock(), transaction.atomic(), simulation.serve() as url:
        seed.seed(NOW, house.zone(), Place(url))
        yield Seeded(simulation, Cluster.objects.get())
        forget_ports()
        transaction.set_rollback(True)


@pytest.fixture
def seeded(_tables: Seeded, db: None) -> Seeded:
    return _tables


def test_the_four_are_who_the_log_in_page_says(seeded: Seeded) -> None:
    robin, dana, farah, omar = (standing(seeded.person(guise.username)) for guise in people.FOUR)
    assert [team.name for team in robin.teams_with(Role.RESEARCHER)] == ["Vision"]
    assert [team.name for team in dana.teams_with(Role.LEAD)] == ["Vision"]
    assert farah.closes_months()
    assert omar.is_operator
    assert [stand.user.username for stand in (robin, dana, farah) if stand.is_operator] == []


def test_everybody_can_log_in_with_the_password_that_is_printed(seeded: Seeded) -> None:
    users = User.objects.all()
    assert {user.username for user in users} == {fact.username for fact in people.PEOPLE}
    assert len({user.password for user in users}) == 1
    assert users[0].check_password(people.PASSWORD)


def test_no_parent_has_given_more_than_it_has(seeded: Seeded) -> None:
    instants = {grant.starts_at for grant in Grant.objects.all()} | {NOW}
    for instant in instants:
        in_force = quotas(instant)
        given: dict[tuple[Any, str], F] = defaultdict(F)
        for (team, model), quota in in_force.items():
            parent = standing(seeded.person("omar")).teams[team].parent_id
            given[parent, model] += quota.total
        assert all(parent is None or cards <= in_force[parent, model].total for (parent, model), cards in given.items())


def test_one_request_waits_for_dana_and_she_could_approve_it(seeded: Seeded) -> None:
    assert pending_to_decide(standing(seeded.person("dana"))) == 1
    request = QuotaRequest.objects.get(state="pending")
    assert effect_of(request, request.amount, request.until, NOW).possible
    assert request.workloads.get().phase_text


def test_requests_were_decided_in_every_way(seeded: Seeded) -> None:
    states = set(QuotaRequest.objects.values_list("state", flat=True))
    assert states == {"pending", "approved", "denied", "countered", "withdrawn"}
    assert Grant.objects.filter(ends_at__lte=NOW).exists()
    assert Grant.objects.filter(ends_at__gt=NOW).exists()


def test_the_pools_are_those_of_the_cluster(seeded: Seeded) -> None:
    wanted = {found["metadata"]["name"]: found for found in fleet_documents() if found["kind"] == "MachineDeployment"}
    assert set(wanted) == {pool.name for pool in NodePool.objects.all()}
    for pool in NodePool.objects.all():
        notes = wanted[pool.name]["metadata"]["annotations"]
        hardware = json.loads(notes["simulation.berth/hardware"])
        assert pool.cards_per_node == hardware["cards"]
        assert pool.cpu_milli == int(notes["capacity.cluster-autoscaler.kubernetes.io/cpu"].removesuffix("m"))
        memory = int(notes["capacity.cluster-autoscaler.kubernetes.io/memory"].removesuffix("Ki"))
        assert pool.host_memory_mib == memory // MIB
        assert pool.replicas == hardware.get("sharing", {}).get("replicas", 1)
        assert pool.max_nodes <= int(notes["cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"])
        assert pool.wished_nodes == wanted[pool.name]["spec"]["replicas"]


def test_the_nodes_say_what_the_pools_say(seeded: Seeded) -> None:
    nodes = seeded.cluster.nodes.select_related("pool")
    assert {node.pool.name for node in nodes if node.pool} == {"h100-train", "h100-mig", "a10g-shared"}
    assert [
        node.name
        for node in nodes
        if node.pool and (node.model, node.cards) != (node.pool.model, node.pool.cards_per_node)
    ] == []


def test_both_months_balance_to_the_last_digit(seeded: Seeded) -> None:
    for period in (LAST_MONTH, THIS_MONTH):
        assert reconciliation(period) == []
        totals = selectors.totals(period)
        assert totals.charged_micro > 0
        lines = Charge.objects.filter(period=period)
        assert sum(line.amount_micro for line in lines) == totals.charged_micro + totals.overhead_micro
    assert not SetAside.objects.exists()


def test_every_pool_and_hour_accounts_for_every_card_second(seeded: Seeded) -> None:
    """Counted here again, from the spans alone: cards present x seconds = the sum of all buckets."""
    present = card_seconds_by_hour()
    hours = PoolHour.objects.all()
    assert {(row.pool, row.hour) for row in hours} == set(present)
    for row in hours:
        assert row.present == present[row.pool, row.hour]
        assert sum((getattr(row, bucket) for bucket in BUCKETS), F(0)) == row.present
        assert row.overlap == 0


def test_the_ledger_reaches_from_the_first_hour_to_the_last_full_one(seeded: Seeded) -> None:
    since = estate.beginning(NOW, house.zone())
    found = set(PoolHour.objects.filter(pool="h100-train").values_list("hour", flat=True))
    wanted = {since + td(hours=number) for number in range((NOW - since) // td(hours=1))}
    assert found == wanted
    assert len(found) > 30 * 24


def test_a_price_changed_in_the_middle_of_the_month(seeded: Seeded) -> None:
    lines = Charge.objects.filter(period=LAST_MONTH, sku="h100-80gb/whole/on-demand", kind="use")
    assert len({line.per_card_hour_micro for line in lines}) == 2
    change = estate.price_change(NOW, house.zone())
    assert {line.per_card_hour_micro for line in lines if line.started_at < change} == {4_100_000}
    assert {line.per_card_hour_micro for line in lines if line.started_at >= change} == {3_950_000}


def test_finance_can_close_the_last_month(seeded: Seeded) -> None:
    closed = close_month(LAST_MONTH, by=seeded.person("farah"), now=NOW)
    assert closed.is_closed


def test_tables_and_ledger_agree(seeded: Seeded) -> None:
    findings = run_checks(Look(now=NOW, patience=td(minutes=15)))
    assert [str(finding) for finding in findings if not finding.mere_note] == []


def test_the_hand_over_has_nothing_left_to_do(seeded: Seeded) -> None:
    again = hand_over(NOW)
    assert (again.hours, again.charges, again.findings) == (0, 0, [])


def test_nobody_was_over_the_quota_when_a_stay_began(seeded: Seeded) -> None:
    """The rule of today, asked at the instants of the past, member by member."""
    rows = list(Placement.objects.select_related("workload", "flavor"))
    for row in rows[::7]:
        key = (row.workload.team_id, row.flavor.model)
        held: dict[int, F] = defaultdict(F)
        for other in rows:
            same = (other.workload.team_id, other.flavor.model) == key
            if same and other.placed_at <= row.placed_at and (other.ended_at is None or row.placed_at < other.ended_at):
                held[other.workload.owner_id] += other.share
        assert over(quotas(row.placed_at)[key], held) == 0


def test_every_workload_walked_a_way_that_phases_can_go(seeded: Seeded) -> None:
    by_workload: dict[Any, list[Transition]] = defaultdict(list)
    for step in Transition.objects.order_by("workload", "version"):
        by_workload[step.workload_id].append(step)
    for row in Workload.objects.all():
        steps = by_workload[row.pk]
        assert [step.version for step in steps] == list(range(row.version + 1))
        assert (steps[0].before, steps[-1].after, steps[-1].at) == ("", row.phase, row.phase_since)
        for earlier, later in pairwise(steps):
            assert later.before == earlier.after
            assert later.at >= earlier.at
            assert later.after == later.before or later.after in MOVES[later.before]


def test_the_meters_were_quiet_before_a_workspace_fell_asleep(seeded: Seeded) -> None:
    asleep = Workload.objects.filter(phase="asleep", phase_reason="Idle")
    assert asleep
    for row in asleep:
        last = UsageHour.objects.filter(placement__workload=row).order_by("hour").last()
        assert last is not None
        assert last.busy_sum / last.busy_samples < 0.02


def test_what_ended_lately_still_shows_its_chart(seeded: Seeded) -> None:
    assert Sample.objects.filter(at__gt=NOW - td(hours=1)).count() > 30
    assert not Sample.objects.filter(at__gte=NOW).exists()
    assert not UsageHour.objects.filter(busy_samples=0).exists()


def test_the_work_of_today_is_placed_by_the_cycle_like_everybodys(seeded: Seeded) -> None:
    openings = Workload.objects.filter(submission__startswith="opening-")
    assert set(openings.values_list("phase", flat=True)) == {"waiting"}
    seeded.cycle()
    for _ in range(4):
        seeded.cycle(seconds=40)
    phases = dict(openings.values_list("name", "phase"))
    assert {name: phase for name, phase in phases.items() if phase != "running"} == {"detector-large": "waiting"}


def test_between_history_and_present_no_card_second_is_lost(seeded: Seeded) -> None:
    """The first look goes on where the history ends: the spans of each node touch."""
    for node in seeded.cluster.nodes.all():
        spans = list(CardSpan.objects.filter(node=node.name).order_by("started_at"))
        assert spans[-1].ended_at is None
        assert all(earlier.ended_at == later.started_at for earlier, later in pairwise(spans))


def card_seconds_by_hour() -> dict[tuple[str, datetime], int]:
    """Cards x seconds of every pool and full hour before now, as the spans tell."""
    found: dict[tuple[str, datetime], int] = defaultdict(int)
    last = NOW.replace(minute=0)
    for span in CardSpan.objects.all():
        hour = span.started_at.replace(minute=0, second=0)
        until = min(span.ended_at or last, last)
        while hour < until:
            begins, ends = max(hour, span.started_at), min(hour + td(hours=1), until)
            if ends > begins:
                found[span.pool, hour] += span.cards * ((ends - begins) // td(seconds=1))
            hour += td(hours=1)
    return found
