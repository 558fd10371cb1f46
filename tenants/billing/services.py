"""Writing the ledger: posting hours, publishing prices, closing months."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db import transaction

from tenants.billing import checks, house, selectors
from tenants.billing.findings import Finding, counted
from tenants.billing.models import (
    Charge,
    Meter,
    PoolHour,
    Rate,
    RateCard,
    SetAside,
    Statement,
    StatementState,
    to_micro,
)
from tenants.billing.posting import Hours, Rated, rate_hours
from tenants.billing.rating import Line, RatePeriod, hour_of, month_bounds, next_period, period_of, price
from tenants.errors import AlreadyDecided, Refused
from tenants.models import User

ROWS_AT_ONCE = 2000


@dataclass(frozen=True, slots=True)
class Posted:
    """What posting came to. Findings are what the ledger already says differently; it is not changed by them."""

    charges: int
    set_aside: int
    pool_hours: int
    findings: list[Finding]


@transaction.atomic
def post_hours(hours: Hours, *, now: datetime) -> Posted:
    """Write the hours that are not in the ledger yet, and compare those that are; all of them or none.

    Raises ValueError when hours between the ledger's last and these are missing.
    """
    meter = _locked_meter(hours)
    if hours.since > meter.until:
        raise ValueError(f"{hours.cluster} is posted until {meter.until:%Y-%m-%d %H:%M} UTC; post from there.")
    rated = rate_hours(hours, selectors.rate_book(), house.zone())
    findings = [Finding("doubtful-facts", hours.cluster, text) for text in rated.doubts]
    if hours.since < meter.until:
        findings += checks.compare(hours, _part(rated, hours.since, meter.until), until=meter.until)
    new = _part(rated, meter.until, hours.until)
    charges, set_aside = _write_lines(new.lines, now=now)
    PoolHour.objects.bulk_create(_pool_hours(hours.cluster, new), batch_size=ROWS_AT_ONCE)
    Meter.objects.filter(pk=meter.pk, until__lt=hours.until).update(until=hours.until)
    return Posted(charges, set_aside, len(new.balances), findings)


@transaction.atomic
def reprice_set_aside(*, now: datetime) -> int:
    """Post what was set aside and has a price by now; answers how many rows left the pile."""
    book = selectors.rate_book()
    waiting = SetAside.objects.select_for_update().filter(posted_at=None).order_by("pk")
    again = {row.pk: selectors.lines_again(row, book) for row in waiting}
    ready = {pk: lines for pk, lines in again.items() if all(line.rate for line in lines)}
    if ready:
        _write_lines([line for lines in ready.values() for line in lines], now=now)
        SetAside.objects.filter(pk__in=list(ready)).update(posted_at=now)
    return len(ready)


@transaction.atomic
def draft_rate_card(
    name: str, prices: Mapping[str, Decimal], *, starts_at: datetime, by: User, now: datetime, currency: str = ""
) -> RateCard:
    """Prices per card-hour by SKU; they count once the card is published."""
    if not prices:
        raise Refused("A rate card needs at least one price.", field="prices")
    for sku, amount in prices.items():
        if not amount.is_finite() or amount < 0:
            raise Refused(f"The price of {sku} is {amount}; a price is 0 or more.", field="prices")
    currency = currency or house.currency()
    card = RateCard.objects.create(name=name, currency=currency, starts_at=starts_at, created_at=now, created_by=by)
    Rate.objects.bulk_create(Rate(card=card, sku=sku, per_card_hour=amount) for sku, amount in prices.items())
    return card


@transaction.atomic
def publish_rate_card(card: RateCard, *, by: User, now: datetime) -> None:
    """From `starts_at` its prices hold. It never changes the past: a card that would is refused."""
    published = RateCard.objects.filter(pk=card.pk, published_at=None).update(published_at=now, published_by=by)
    if not published:
        raise AlreadyDecided(f"“{card}” is published already; draft a new card to change a price.")
    _check_prices(card, now)


def close_month(period: str, *, by: User, now: datetime) -> Statement:
    """Write the month's totals down; from then on late lines count in the next open month.

    Refuses a month that is not over, not wholly posted, has lines without a price, or does not balance.
    """
    _check_month(period, now)
    with transaction.atomic():
        statement = Statement.objects.select_for_update().filter(period=period).first()
        if statement is None:
            raise Refused(f"Nothing was posted for {selectors.month_name(period)}; there is nothing to close.")
        if statement.is_closed:
            raise AlreadyDecided(statement.closing_words())
        _check_complete(period)
        totals = selectors.totals(period)
        closed = Statement.objects.filter(pk=statement.pk, state=StatementState.DRAFT).update(
            state=StatementState.CLOSED,
            closed_by=by,
            closed_at=now,
            charged_micro=totals.charged_micro,
            overhead_micro=totals.overhead_micro,
            lines=totals.lines,
            card_seconds=totals.card_seconds,
        )
        statement.refresh_from_db()
        if not closed:
            raise AlreadyDecided(statement.closing_words())
    return statement


def _check_prices(card: RateCard, now: datetime) -> None:
    if card.currency != house.currency():
        raise Refused(f"The card is in {card.currency}, the ledger in {house.currency()}; draft it in that currency.")
    if rival := selectors.rivals_of(card).filter(card__starts_at=card.starts_at).first():
        raise Refused(
            f"“{rival.card}” already prices {rival.sku} from that instant; choose another one.", field="starts_at"
        )
    unchanged = "and a new price never changes the past"
    held = selectors.rivals_of(card).filter(card__starts_at__lt=card.starts_at).first()
    if held and card.starts_at < now:
        raise Refused(
            f"{held.sku} has a price since {held.card.starts_at:%d %B %Y}, {unchanged}; "
            "let the card start now or later.",
            field="starts_at",
        )
    if last := selectors.last_charge_after(card):
        raise Refused(
            f"{last.sku} is charged until {last.ended_at:%d %B %Y, %H:%M} UTC, {unchanged}; "
            "let the card start then or later.",
            field="starts_at",
        )


def _locked_meter(hours: Hours) -> Meter:
    """One poster at a time per cluster; the others wait here and then find the hours posted."""
    Meter.objects.get_or_create(cluster=hours.cluster, defaults={"since": hours.since, "until": hours.since})
    return Meter.objects.select_for_update().get(cluster=hours.cluster)


def _part(rated: Rated, since: datetime, until: datetime) -> Rated:
    """What of it lies in the hours [since, until)."""
    lines = [line for line in rated.lines if since <= line.piece.started_at < until]
    balances = {key: found for key, found in rated.balances.items() if since <= key[1] < until}
    return Rated(lines, balances, [])


def _write_lines(lines: Sequence[Line], *, now: datetime) -> tuple[int, int]:
    """(charges, rows set aside)."""
    periods = _open_periods({period_of(line.piece.started_at, house.zone()) for line in lines})
    currency = house.currency()
    charges, set_aside = [], []
    for line in lines:
        period = periods[period_of(line.piece.started_at, house.zone())]
        if line.rate:
            charges.append(_charge(line, line.rate, period, currency, now))
        else:
            set_aside.append(_set_aside(line, period, now))
    Charge.objects.bulk_create(charges, batch_size=ROWS_AT_ONCE)
    SetAside.objects.bulk_create(set_aside, batch_size=ROWS_AT_ONCE)
    return len(charges), len(set_aside)


def _open_periods(periods: Iterable[str]) -> dict[str, str]:
    """For each month the first one, from it on, that still takes lines; locked, so that nobody closes it meanwhile."""
    found: dict[str, str] = {}
    for period in sorted(periods):
        open_period = period
        while _locked_statement(open_period).is_closed:
            open_period = next_period(open_period)
        found[period] = open_period
    return found


def _locked_statement(period: str) -> Statement:
    Statement.objects.get_or_create(
        period=period, defaults={"zone": house.zone().key, "currency": house.currency(), "state": StatementState.DRAFT}
    )
    return Statement.objects.select_for_update().get(period=period)


def _charge(line: Line, rate: RatePeriod, period: str, currency: str, now: datetime) -> Charge:
    amount = price(line.piece.seconds, line.piece.span.share, rate.per_card_hour)
    return Charge(
        **_metered(line, period),
        per_card_hour_micro=to_micro(rate.per_card_hour),
        amount_micro=to_micro(amount),
        currency=currency,
        rate_id=rate.rate,
        posted_at=now,
    )


def _set_aside(line: Line, period: str, now: datetime) -> SetAside:
    span = line.piece.span
    reason = f"No published price for {span.sku} at {line.piece.started_at:%Y-%m-%d %H:%M} UTC."
    return SetAside(**_metered(line, period), reason=reason, set_aside_at=now)


def _metered(line: Line, period: str) -> dict[str, object]:
    piece, span = line.piece, line.piece.span
    return {
        "key": line.key,
        "period": period,
        "hour": hour_of(piece.started_at),
        "kind": str(span.kind),
        "team_id": span.team,
        "team_name": span.team_name,
        "member_id": span.member,
        "member_name": span.member_name,
        "workload_id": span.workload,
        "workload_name": span.workload_name,
        "resource_id": span.resource,
        "cluster": span.cluster,
        "pool": span.pool,
        "node": span.node,
        "model": span.model,
        "sku": span.sku,
        "share": span.share,
        "started_at": piece.started_at,
        "ended_at": piece.ended_at,
        "seconds": piece.seconds,
    }


def _pool_hours(cluster: str, rated: Rated) -> list[PoolHour]:
    return [
        PoolHour(cluster=cluster, pool=pool, hour=hour, **selectors.buckets(found))
        for (pool, hour), found in sorted(rated.balances.items())
    ]


def _check_month(period: str, now: datetime) -> None:
    try:
        until = month_bounds(period, house.zone())[1]
    except ValueError as error:
        raise Refused(str(error), field="month") from error
    if now < until:
        local = until.astimezone(house.zone())
        raise Refused(
            f"{selectors.month_name(period)} ends on {local:%d %B %Y at %H:%M} ({house.zone().key}); "
            "close it after that.",
            field="month",
        )


def _check_complete(period: str) -> None:
    name = selectors.month_name(period)
    if behind := selectors.hours_missing(period):
        meter, hours = behind
        raise Refused(
            f"{counted(hours, 'hour')} of {name} not posted yet: {meter.cluster} stands at "
            f"{meter.until:%d %B, %H:%M} UTC. They follow once the cluster has been seen; close the month then."
        )
    if count := SetAside.objects.filter(period=period, posted_at=None).count():
        raise Refused(
            f"{counted(count, 'line')} of {name} without a price; publish a rate card that covers all, "
            "then close the month."
        )
    if findings := checks.reconciliation(period):
        raise Refused(
            f"{name} does not balance: {findings[0]} "
            f"({counted(len(findings), 'finding')}; the command consistency lists them.)"
        )
