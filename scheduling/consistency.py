"""Finds and explains every disagreement between tables, cluster and ledger. Small checks; none repairs anything."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from datetime import timedelta as td
from fractions import Fraction as F
from uuid import UUID

from scheduling.cluster_checks import against_cluster
from scheduling.handover import chunks, complete_until, facts_of, first_hour
from scheduling.models import CardSpan, Cluster, Node, Placement, Workload
from scheduling.planning.facts import HOLDING, Phase
from scheduling.queue_checks import against_kueue
from scheduling.snapshot import held
from tenants.billing import checks, selectors
from tenants.billing.findings import Finding, counted
from tenants.billing.rating import HOUR
from tenants.models import Team
from tenants.quota import Quota, over
from tenants.selectors import quotas


@dataclass(frozen=True, slots=True)
class Look:
    """When it is, and how long a look at a cluster, or an hour's posting, may be due before it is said."""

    now: datetime
    patience: td


def run_checks(look: Look) -> list[Finding]:
    """Everything that any check finds, in the order of CHECKS."""
    return [finding for check in CHECKS.values() for finding in found_twice(check, look)]


def found_twice(check: Callable[[Look], Iterable[Finding]], look: Look) -> list[Finding]:
    """What a check still finds when it looks again: a cycle or a posting between two of its questions is no fault."""
    found = list(check(look))
    again = {(finding.check, finding.where) for finding in check(look)} if found else set()
    return [finding for finding in found if (finding.check, finding.where) in again]


def stale_clusters(look: Look) -> Iterator[Finding]:
    """Clusters that were not looked at lately: what the tables say of them may be old. Or that were seen in time to
    come: this machine's clock was set back, and until it is there again nothing is charged twice and nothing begins."""
    for cluster in Cluster.objects.all():
        trouble = f" The last look failed: {cluster.trouble}" if cluster.trouble else ""
        if cluster.seen_at is None:
            yield Finding("stale-cluster", cluster.name, f"It was never seen.{trouble}")
        elif look.now - cluster.seen_at > look.patience:
            ago = counted((look.now - cluster.seen_at) // td(minutes=1), "minute")
            yield Finding("stale-cluster", cluster.name, f"It was last seen {ago} ago.{trouble}")
        elif cluster.seen_at - look.now > look.patience:
            text = f"It was last seen at {cluster.seen_at:%Y-%m-%d %H:%M} UTC, which is still to come; check the clock."
            yield Finding("clock-set-back", cluster.name, text)


def tables_and_clusters(look: Look) -> Iterator[Finding]:
    """Nodes, objects and pods as each cluster says now, against the tables."""
    for cluster in Cluster.objects.all():
        yield from against_cluster(cluster, look.now)


def tables_and_queues(look: Look) -> Iterator[Finding]:
    """What each team holds, and the queues themselves, against the Kueue of each cluster that queues with one."""
    for cluster in Cluster.objects.all():
        yield from against_kueue(cluster, look.now)


def open_placements(look: Look) -> Iterator[Finding]:
    """Placements that go on although their workload holds nothing any more: somebody is charged for them."""
    rows = Placement.objects.filter(ended_at=None).exclude(workload__phase__in=HOLDING)
    for row in rows.select_related("workload"):
        since = f"{row.placed_at:%Y-%m-%d %H:%M} UTC"
        text = f"It is {row.workload.phase}, and its placement on {row.node} since {since} has no end."
        yield Finding("open-placement", row.workload.name, text)


def holding_without_placement(look: Look) -> Iterator[Finding]:
    """Workloads that hold a card, by their phase, without a placement: nobody is charged for them.

    What stops for longer than its grace may have none: the platform bears what its pod still keeps.
    """
    open_ones = Placement.objects.filter(ended_at=None).values("workload")
    for workload in Workload.objects.filter(phase__in=HOLDING - {Phase.STOPPING}).exclude(pk__in=open_ones):
        text = f"It is {workload.phase} since {workload.phase_since:%Y-%m-%d %H:%M} UTC and has no open placement."
        yield Finding("holding-without-placement", workload.name, text)


def uncounted_cards(look: Look) -> Iterator[Finding]:
    """Nodes whose cards, as last seen, are not what the open spans count: the balance would miss or invent some."""
    counted_cards = {(row.cluster_id, row.node_uid): row for row in CardSpan.objects.filter(ended_at=None)}
    for node in Node.objects.select_related("cluster"):
        span = counted_cards.pop((node.cluster_id, node.uid), None)
        cards = span.cards if span else 0
        if cards != node.cards:
            text = f"It has {counted(node.cards, 'card')} as last seen, and the balance counts {cards}."
            yield Finding("uncounted-cards", f"{node} of {node.cluster}", text)
    for span in counted_cards.values():
        text = f"The balance counts its {counted(span.cards, 'card')}, and no such node was seen last."
        yield Finding("uncounted-cards", span.node, text)


def held_above_quota(look: Look) -> Iterator[Finding]:
    """Teams that hold more than their grants, because a grant ended or was lowered: worth knowing, no fault."""
    by_member: dict[tuple[UUID, str], dict[int, F]] = defaultdict(dict)
    for (team, model, member), cards in held().items():
        by_member[team, model][member] = cards
    names = dict(Team.objects.values_list("pk", "name"))
    granted = quotas(look.now)
    for (team, model), cards_of in sorted(by_member.items(), key=lambda item: (names[item[0][0]], item[0][1])):
        quota = granted.get((team, model), Quota())
        if above := over(quota, cards_of):
            text = f"It holds {sum(cards_of.values())} cards of {model} with {quota.total} granted: {above} too many."
            yield Finding("above-quota", names[team], text, mere_note=True)


def late_hours(look: Look) -> Iterator[Finding]:
    """Clusters whose complete hours are not in the ledger yet, or that have facts from before it begins."""
    meters = selectors.meters()
    for cluster in Cluster.objects.all():
        first, meter = first_hour(cluster), meters.get(cluster.name)
        since = meter.until if meter else first
        if since is None:
            continue
        missing = (complete_until(cluster, look.now - look.patience) - since) // HOUR
        if missing > 0:
            yield Finding(
                "late-hours", cluster.name, f"{counted(missing, 'hour')} from {since:%Y-%m-%d %H:%M} UTC not posted."
            )
        if meter and first and first < meter.since:
            text = (
                f"There are facts from {first:%Y-%m-%d %H:%M} UTC on; the ledger begins {meter.since:%Y-%m-%d %H:%M}."
            )
            yield Finding("facts-before-ledger", cluster.name, text)


def ledger_and_facts(look: Look) -> Iterator[Finding]:
    """Posted hours, rated once more from placements and cards, against what the ledger has."""
    meters = selectors.meters()
    for cluster in Cluster.objects.all():
        if meter := meters.get(cluster.name):
            for since, until in chunks(meter.since, meter.until):
                hours, doubtful = facts_of(cluster, since, until)
                yield from doubtful
                yield from checks.against_facts(hours)


def buckets(look: Look) -> list[Finding]:
    """Every hour of every pool: the buckets against the cards, and the lines against the buckets."""
    return [*checks.bucket_sums(), *checks.overlaps(), *checks.lines_against_buckets()]


def statements(look: Look) -> list[Finding]:
    """Every month: lines, tables and what was written down when it was closed."""
    months = selectors.periods().values_list("period", flat=True)
    return [finding for period in months for finding in checks.line_sums(period)]


def set_aside(look: Look) -> list[Finding]:
    """Lines that no published price covers."""
    return checks.set_aside_lines()


CHECKS: dict[str, Callable[[Look], Iterable[Finding]]] = {
    "stale clusters": stale_clusters,
    "tables and clusters": tables_and_clusters,
    "tables and queues": tables_and_queues,
    "open placements": open_placements,
    "holding without placement": holding_without_placement,
    "uncounted cards": uncounted_cards,
    "held above quota": held_above_quota,
    "late hours": late_hours,
    "ledger and facts": ledger_and_facts,
    "buckets": buckets,
    "statements": statements,
    "set aside": set_aside,
}
