"""Hands held cards over to billing, hour by hour, so that the ledger outlives the scheduler.

An hour is complete when the cluster was looked at some minutes after it ended: what happened in it is known then.
Nothing is handed over twice: billing keeps, per cluster, the hour up to which it has everything.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from datetime import timedelta as td
from decimal import Decimal
from fractions import Fraction as F
from uuid import UUID

from django.db.models import Min, Q, QuerySet

from scheduling.models import CardSpan, Cluster, Placement, Workload
from tenants.billing import house, selectors
from tenants.billing.balance import CardInterval
from tenants.billing.findings import Finding
from tenants.billing.models import Meter, SetAside
from tenants.billing.posting import PLATFORM, Hours
from tenants.billing.rating import (
    HOUR,
    Kind,
    Line,
    Span,
    clipped,
    hour_of,
    marks,
    pieces,
    priced,
    whole,
    whole_card_sku,
)
from tenants.billing.services import post_hours, reprice_set_aside

LAG = td(minutes=5)
HOURS_AT_ONCE = 7 * 24


@dataclass(slots=True)
class HandOver:
    """What one run handed over; `repriced` lines had waited for a price."""

    hours: int = 0
    charges: int = 0
    set_aside: int = 0
    repriced: int = 0
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SoFar:
    """Use up to now, posted or not. `unpriced` are card-seconds that no price covers; they are not in the amount."""

    seconds: int
    card_seconds: F
    amount: Decimal
    unpriced: F


def hand_over(now: datetime) -> HandOver:
    """Post every complete hour of every cluster that is not in the ledger yet."""
    report = HandOver(repriced=reprice_set_aside(now=now))
    meters = selectors.meters()
    for cluster in Cluster.objects.all():
        since = next_hour(cluster, meters.get(cluster.name))
        if since is not None:
            _hand_over_cluster(cluster, since, complete_until(cluster, now), report, now)
    return report


def next_hour(cluster: Cluster, meter: Meter | None) -> datetime | None:
    """The first hour of a cluster that is not posted; None while nothing is known of it."""
    return meter.until if meter else first_hour(cluster)


def first_hour(cluster: Cluster) -> datetime | None:
    """The hour of the first card or placement that a cluster is known to have had."""
    cards = cluster.card_spans.aggregate(first=Min("started_at"))["first"]
    placements = cluster.placements.aggregate(first=Min("placed_at"))["first"]
    found = [instant for instant in (cards, placements) if instant]
    return hour_of(whole(min(found))) if found else None


def complete_until(cluster: Cluster, now: datetime) -> datetime:
    """The end of the last hour whose facts are known: not without a look at the cluster after it ended."""
    seen = min(now, cluster.seen_at) if cluster.seen_at else now
    return hour_of(whole(seen - LAG))


def facts_of(cluster: Cluster, since: datetime, until: datetime) -> tuple[Hours, list[Finding]]:
    """Who held what, and which cards there were, in [since, until). Three queries."""
    spans, findings = _spans(_touching(cluster.placements.all(), since, until), until)
    cards = CardSpan.objects.filter(Q(ended_at=None) | Q(ended_at__gt=since), cluster=cluster, started_at__lt=until)
    hours = Hours(
        cluster=cluster.name,
        since=since,
        until=until,
        spans=spans,
        cards=[_interval(row, until) for row in cards],
        capacities=dict(cluster.pools.values_list("name", "capacity")),
    )
    return hours, findings


def chunks(since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    """[since, until) in parts that fit into memory and into one transaction."""
    while since < until:
        following = min(until, since + HOURS_AT_ONCE * HOUR)
        yield since, following
        since = following


def cost_so_far(workload: Workload, now: datetime) -> SoFar:
    """What a workload has cost its team up to now. Six queries."""
    waiting = selectors.set_aside().filter(kind=Kind.USE, workload_id=workload.pk)
    live = live_lines(now, placements=workload.placements.all())
    return _summed(selectors.used_by(workload.pk), waiting, live)


def so_far(since: datetime, now: datetime, *, teams: Collection[UUID] | None = None) -> SoFar:
    """What the teams in view used in [since, now), such as today or this month, posted or not. Five queries."""
    waiting = selectors.set_aside(teams=teams).filter(kind=Kind.USE, started_at__gte=since, started_at__lt=now)
    live = [line for line in live_lines(now, teams=teams) if line.piece.started_at >= since]
    return _summed(selectors.used_between(since, now, teams=teams), waiting, live)


def live_lines(
    now: datetime, *, placements: QuerySet[Placement] | None = None, teams: Collection[UUID] | None = None
) -> list[Line]:
    """The use that is not in the ledger yet, priced on the fly, up to now. Three queries."""
    posted = {name: meter.until for name, meter in selectors.meters().items()}
    found = Placement.objects.all() if placements is None else placements
    if teams is not None:
        found = found.filter(workload__team__in=list(teams))
    book, zone = selectors.rate_book(), house.zone()
    oldest = min(posted.values(), default=None)
    lines: list[Line] = []
    for placement in _touching(found, oldest, now):
        for span in spans_of(placement, whole(now)):
            piece = clipped(span, posted.get(placement.cluster.name, span.started_at), whole(now))
            if span.kind == Kind.USE:
                cuts = marks(piece.started_at, piece.ended_at, zone)
                lines += [line for part in pieces(piece, cuts) for line in priced(part, book)]
    return lines


def spans_of(placement: Placement, until: datetime) -> list[Span]:
    """Cold start from placing to running, which the platform bears, and use from then on; until `until` while open.

    A placement that ended before it ran, by its instants, has a use that ends before it starts: counted 0, and said.
    """
    placed_at = whole(placement.placed_at)
    running_at = whole(placement.running_at) if placement.running_at else None
    ended_at = whole(placement.ended_at) if placement.ended_at else max(until, running_at or placed_at)
    found = [_span(placement, Kind.COLD_START, placed_at, min(running_at or ended_at, ended_at))]
    if running_at:
        found.append(_span(placement, Kind.USE, running_at, ended_at))
    return found


def _hand_over_cluster(cluster: Cluster, since: datetime, until: datetime, report: HandOver, now: datetime) -> None:
    for start, end in chunks(since, until):
        try:
            hours, findings = facts_of(cluster, start, end)
            posted = post_hours(hours, now=now)
        except ValueError as error:  # one cluster's odd facts do not keep the others from being posted
            report.findings.append(Finding("not-posted", cluster.name, str(error)))
            return
        report.hours += (end - start) // HOUR
        report.charges += posted.charges
        report.set_aside += posted.set_aside
        report.findings += [*findings, *posted.findings]


def _touching(placements: QuerySet[Placement], since: datetime | None, until: datetime) -> QuerySet[Placement]:
    found = placements.filter(placed_at__lt=until)
    if since:
        found = found.filter(Q(ended_at=None) | Q(ended_at__gte=since))
    return found.select_related("cluster", "flavor", "workload__team", "workload__owner")


def _spans(placements: Iterable[Placement], until: datetime) -> tuple[list[Span], list[Finding]]:
    """A placement that makes no sense is said and left out; the others count."""
    spans: list[Span] = []
    findings = []
    for placement in placements:
        try:
            spans += spans_of(placement, until)
        except ValueError as error:
            findings.append(Finding("doubtful-facts", str(placement), str(error)))
    return spans, findings


def _span(placement: Placement, kind: Kind, started_at: datetime, ended_at: datetime) -> Span:
    workload, flavor = placement.workload, placement.flavor
    of_team = kind == Kind.USE
    return Span(
        kind=kind,
        resource=placement.pk,
        team=workload.team_id if of_team else None,
        team_name=workload.team.name if of_team else PLATFORM,
        member=workload.owner_id if of_team else None,
        member_name=str(workload.owner) if of_team else "",
        workload=workload.pk,
        workload_name=workload.name,
        cluster=placement.cluster.name,
        pool=placement.pool,
        node=placement.node,
        model=flavor.model,
        sku=flavor.sku if of_team else whole_card_sku(flavor.model, flavor.capacity),
        share=placement.share,
        started_at=started_at,
        ended_at=ended_at,
    )


def _interval(row: CardSpan, until: datetime) -> CardInterval:
    return CardInterval(
        node=row.node,
        pool=row.pool,
        model=row.model,
        cards=F(row.cards),
        out_of_service=row.out_of_service,
        stranded=row.stranded,
        foreign=row.foreign,
        started_at=whole(row.started_at),
        ended_at=whole(row.ended_at) if row.ended_at else until,
    )


def _summed(posted: selectors.Used, waiting: Iterable[SetAside], live: Iterable[Line]) -> SoFar:
    """The ledger's sums, with what waits for a price and what is not posted yet."""
    seconds, card_seconds, amount, unpriced = posted.seconds, posted.card_seconds, posted.amount, F(0)
    for row in waiting:
        seconds += row.seconds
        card_seconds += row.card_seconds
        unpriced += row.card_seconds
    for line in live:
        seconds += line.piece.seconds
        card_seconds += line.piece.card_seconds
        if line.amount is None:
            unpriced += line.piece.card_seconds
        else:
            amount += line.amount
    return SoFar(seconds, card_seconds, amount, unpriced)
