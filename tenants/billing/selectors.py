"""Reading the ledger. Selectors return; they never write.

`teams` always means: the ids of the teams in view, or None for everything, platform lines included. A row of a team
that is not in view is never returned.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction as F
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Count, Max, Min, Q, QuerySet, Sum

from tenants.billing import house
from tenants.billing.balance import BUCKETS, PoolBalance
from tenants.billing.models import Charge, Meter, PoolHour, Rate, RateCard, SetAside, Statement, from_micro
from tenants.billing.rating import HOUR, Kind, Line, Piece, RateBook, RatePeriod, Span, first_day, month_bounds, priced
from tenants.billing.report import Cell, MonthReport, tables

NO_AMOUNT = Decimal(0).scaleb(-6)


@dataclass(frozen=True, slots=True)
class Totals:
    """What a month's lines sum to, exactly."""

    charged_micro: int
    overhead_micro: int
    lines: int
    card_seconds: F


@dataclass(frozen=True, slots=True)
class Used:
    """What some lines sum to, exactly."""

    seconds: int
    card_seconds: F
    amount: Decimal


@dataclass(frozen=True, slots=True)
class WorkloadRow:
    """What one workload cost its team in a month."""

    workload: UUID
    name: str
    team: UUID
    team_name: str
    member_name: str
    sku: str
    since: datetime
    until: datetime
    seconds: int
    amount: Decimal


@dataclass(frozen=True, slots=True)
class PlacementRow:
    """One placement of a workload within a month, at one price: what a charge is made of."""

    placement: UUID | None
    kind: Kind
    cluster: str
    pool: str
    node: str
    sku: str
    share: F
    since: datetime
    until: datetime
    seconds: int
    card_seconds: F
    per_card_hour: Decimal
    amount: Decimal
    lines: int


def rate_book() -> RateBook:
    """Every published price. One query."""
    rates = Rate.objects.filter(card__published_at__isnull=False, card__currency=house.currency())
    found = rates.values_list("sku", "card__starts_at", "per_card_hour", "pk")
    return RateBook(RatePeriod(*row) for row in found)


def prices_at(now: datetime) -> dict[str, Decimal]:
    """Price per card-hour of each SKU that has one at an instant. One query."""
    rates = Rate.objects.filter(
        card__published_at__isnull=False, card__currency=house.currency(), card__starts_at__lte=now
    )
    return dict(rates.order_by("card__starts_at").values_list("sku", "per_card_hour"))


def rivals_of(card: RateCard) -> QuerySet[Rate]:
    """The published prices of the card's SKUs on other cards, latest first."""
    skus = card.rates.values_list("sku", flat=True)
    rates = Rate.objects.filter(sku__in=skus, card__published_at__isnull=False).exclude(card=card)
    return rates.select_related("card").order_by("-card__starts_at")


def last_charge_after(card: RateCard) -> Charge | None:
    """The latest line of one of the card's SKUs that is charged beyond the card's beginning."""
    skus = card.rates.values_list("sku", flat=True)
    return Charge.objects.filter(sku__in=skus, ended_at__gt=card.starts_at).order_by("-ended_at").first()


def month_name(period: str) -> str:
    return f"{first_day(period):%B %Y}"


def periods() -> QuerySet[Statement]:
    """The months that have lines, newest first."""
    return Statement.objects.select_related("closed_by")


def month(period: str, *, teams: Collection[UUID] | None = None) -> MonthReport:
    """The month's tables. Four queries. Raises ValueError for what is no month."""
    first_day(period)
    statement = periods().filter(period=period).first()
    zone = statement.zone if statement else house.zone().key
    since, until = month_bounds(period, ZoneInfo(zone))
    posted_since, posted_until = _posted()
    ran_from, ran_to = max(since, posted_since or until), min(until, posted_until or since)
    seconds = max(0, int((ran_to - ran_from).total_seconds()))
    return MonthReport(
        period=period,
        name=month_name(period),
        zone=zone,
        currency=statement.currency if statement else house.currency(),
        since=since,
        until=until,
        posted_until=posted_until,
        is_closed=bool(statement and statement.is_closed),
        closed_by=str(statement.closed_by) if statement and statement.closed_by else "",
        closed_at=statement.closed_at if statement else None,
        set_aside=set_aside(period, teams=teams).count(),
        tables=tables(_cells(period), teams=teams, seconds=seconds),
    )


def totals(period: str) -> Totals:
    """What the month's lines sum to. Two queries."""
    sums = Charge.objects.filter(period=period).aggregate(
        charged=Sum("amount_micro", filter=Q(kind=Kind.USE), default=0),
        overhead=Sum("amount_micro", filter=~Q(kind=Kind.USE), default=0),
        lines=Count("pk"),
    )
    shares = Charge.objects.filter(period=period).order_by().values_list("share").annotate(held=Sum("seconds"))
    card_seconds = sum((share * held for share, held in shares), F(0))
    return Totals(sums["charged"], sums["overhead"], sums["lines"], card_seconds)


def lines_of(
    period: str,
    *,
    teams: Collection[UUID] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    **equal: Any,
) -> QuerySet[Charge]:
    """The month's lines, oldest first; `equal` are columns of Charge: team=…, workload_id=…, kind=…, sku=…, pool=…."""
    found = _in_view(Charge.objects.filter(period=period, **equal), teams)
    if since:
        found = found.filter(started_at__gte=since)
    if until:
        found = found.filter(started_at__lt=until)
    return found


def set_aside(period: str | None = None, *, teams: Collection[UUID] | None = None) -> QuerySet[SetAside]:
    """Lines that no price covers, of one month or of all."""
    found = SetAside.objects.filter(posted_at=None)
    if period:
        found = found.filter(period=period)
    return found if teams is None else found.filter(team__in=list(teams))


def workloads_of(period: str, *, teams: Collection[UUID] | None = None, **equal: Any) -> QuerySet[Charge, Any]:
    """What each workload was charged, dearest first: rows as dictionaries, to be paged; see `as_workload_row`."""
    found = lines_of(period, teams=teams, kind=Kind.USE, **equal).order_by()
    return (
        found.values("workload_id", "workload_name", "team_id", "team_name", "member_name", "sku")
        .annotate(since=Min("started_at"), until=Max("ended_at"), held=Sum("seconds"), micro=Sum("amount_micro"))
        .order_by("-micro", "workload_name", "workload_id", "sku")
    )


def as_workload_row(row: Mapping[str, Any]) -> WorkloadRow:
    return WorkloadRow(
        workload=row["workload_id"],
        name=row["workload_name"],
        team=row["team_id"],
        team_name=row["team_name"],
        member_name=row["member_name"],
        sku=row["sku"],
        since=row["since"],
        until=row["until"],
        seconds=row["held"],
        amount=from_micro(row["micro"]),
    )


def placements_of(period: str, workload: UUID, *, teams: Collection[UUID] | None = None) -> list[PlacementRow]:
    """What a workload's charge of a month is made of, oldest first. One query."""
    rows = (
        lines_of(period, teams=teams, workload_id=workload)
        .order_by()
        .values("resource_id", "kind", "cluster", "pool", "node", "sku", "share", "per_card_hour_micro")
        .annotate(
            since=Min("started_at"),
            until=Max("ended_at"),
            held=Sum("seconds"),
            micro=Sum("amount_micro"),
            n=Count("pk"),
        )
        .order_by("since", "resource_id")
    )
    return [_placement_row(row) for row in rows]


def hours_of(
    cluster: str, pool: str, *, since: datetime | None = None, until: datetime | None = None
) -> QuerySet[PoolHour]:
    """Where a pool's card-seconds went, hour by hour, newest first."""
    found = PoolHour.objects.filter(cluster=cluster, pool=pool)
    if since:
        found = found.filter(hour__gte=since)
    if until:
        found = found.filter(hour__lt=until)
    return found.order_by("-hour")


def used_by(workload: UUID) -> Used:
    """What a workload's use came to, all months together. One query."""
    return _used(Charge.objects.filter(kind=Kind.USE, workload_id=workload))


def used_between(since: datetime, until: datetime, *, teams: Collection[UUID] | None = None) -> Used:
    """What the teams' use in [since, until) came to. One query."""
    return _used(_in_view(Charge.objects.filter(kind=Kind.USE, started_at__gte=since, started_at__lt=until), teams))


def meters() -> dict[str, Meter]:
    return {meter.cluster: meter for meter in Meter.objects.all()}


def hours_missing(period: str) -> tuple[Meter, int] | None:
    """The cluster that is furthest behind in a month, and the hours that all of them lack; None when it is complete."""
    since, until = month_bounds(period, house.zone())
    behind = [meter for meter in Meter.objects.order_by("until") if meter.until < until]
    hours = sum(-((max(meter.until, since) - until) // HOUR) for meter in behind)
    return (behind[0], hours) if behind else None


def buckets(balance: PoolBalance | PoolHour) -> dict[str, F]:
    """The eight figures of a balance by their names."""
    return {name: getattr(balance, name) for name in BUCKETS}


def lines_again(row: SetAside, book: RateBook) -> list[Line]:
    """What a set-aside row would be as lines, by the prices of the book."""
    span = Span(
        kind=Kind(row.kind),
        resource=row.resource_id,
        team=row.team_id,
        team_name=row.team_name,
        member=row.member_id,
        member_name=row.member_name,
        workload=row.workload_id,
        workload_name=row.workload_name,
        cluster=row.cluster,
        pool=row.pool,
        node=row.node,
        model=row.model,
        sku=row.sku,
        share=row.share,
        started_at=row.started_at,
        ended_at=row.ended_at,
    )
    return priced(Piece(span, row.started_at, row.ended_at), book)


def _in_view(found: QuerySet[Charge], teams: Collection[UUID] | None) -> QuerySet[Charge]:
    return found if teams is None else found.filter(team__in=list(teams))


def _used(charges: QuerySet[Charge]) -> Used:
    rows = charges.order_by().values_list("share").annotate(held=Sum("seconds"), micro=Sum("amount_micro"))
    found = list(rows)
    return Used(
        seconds=sum(held for _, held, _ in found),
        card_seconds=sum((share * held for share, held, _ in found), F(0)),
        amount=from_micro(sum(micro for *_, micro in found)),
    )


def _posted() -> tuple[datetime | None, datetime | None]:
    """From and until when every cluster's hours are posted."""
    found = Meter.objects.aggregate(since=Min("since"), until=Min("until"))
    return found["since"], found["until"]


def _cells(period: str) -> list[Cell]:
    """The month's finest sums; shares are summed here, because no database adds fractions. One query."""
    who = ("kind", "team_id", "team_name", "member_id", "member_name", "model", "sku")
    rows = (
        Charge.objects.filter(period=period)
        .order_by()
        .values_list(*who, "share")
        .annotate(held=Sum("seconds"), micro=Sum("amount_micro"), n=Count("pk"), last=Max("started_at"))
    )
    sums: dict[tuple[Any, ...], list[Any]] = {}
    for *key, share, held, micro, lines, _ in sorted(rows, key=lambda row: row[-1]):
        found = sums.setdefault(tuple(key), [F(0), 0, 0])
        found[0] += share * held
        found[1] += micro
        found[2] += lines
    return [Cell(Kind(key[0]), *key[1:], *found) for key, found in sums.items()]


def _placement_row(row: Mapping[str, Any]) -> PlacementRow:
    return PlacementRow(
        placement=row["resource_id"],
        kind=Kind(row["kind"]),
        cluster=row["cluster"],
        pool=row["pool"],
        node=row["node"],
        sku=row["sku"],
        share=row["share"],
        since=row["since"],
        until=row["until"],
        seconds=row["held"],
        card_seconds=row["share"] * row["held"],
        per_card_hour=from_micro(row["per_card_hour_micro"]),
        amount=from_micro(row["micro"]),
        lines=row["n"],
    )
