"""Does the ledger agree with itself and with the facts? Each check returns findings; none repairs."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from fractions import Fraction as F

from django.db.models import Q, Sum

from tenants.billing import house, selectors
from tenants.billing.balance import imbalance
from tenants.billing.findings import Finding, counted
from tenants.billing.models import Charge, PoolHour, SetAside, Statement, StatementState, from_micro
from tenants.billing.posting import Hours, Rated, rate_hours
from tenants.billing.rating import Kind, Line, hour_of, month_bounds, price


def reconciliation(period: str) -> list[Finding]:
    """What keeps a month from balancing: lines against totals, buckets against cards, and lines against buckets."""
    since, until = month_bounds(period, house.zone())
    return [*line_sums(period), *bucket_sums(since, until), *lines_against_buckets(since, until)]


def line_sums(period: str) -> list[Finding]:
    """Each line is its seconds x share x price; the lines sum to the totals of the tables and of the closing."""
    found = list(_wrong_amounts(period))
    report, totals = selectors.month(period), selectors.totals(period)
    lines = from_micro(totals.charged_micro + totals.overhead_micro)
    for name, rows in (("teams", report.tables.by_team), ("persons", report.tables.by_person)):
        summed = sum((row.amount for row in rows), selectors.NO_AMOUNT)
        if summed != from_micro(totals.charged_micro):
            text = f"The {name} sum to {summed}, the lines to {from_micro(totals.charged_micro)}."
            found.append(Finding("line-sums", period, text))
    if report.tables.total.amount != lines:
        found.append(
            Finding("line-sums", period, f"The total is {report.tables.total.amount}, the lines sum to {lines}.")
        )
    return [*found, *closings(period)]


def closings(period: str | None = None) -> list[Finding]:
    """Closed months whose lines no longer sum to what was written down at the closing."""
    closed = Statement.objects.filter(state=StatementState.CLOSED)
    found = []
    for statement in closed.filter(period=period) if period else closed:
        totals = selectors.totals(statement.period)
        now = (totals.charged_micro, totals.overhead_micro, totals.lines, totals.card_seconds)
        if now != (statement.charged_micro, statement.overhead_micro, statement.lines, statement.card_seconds):
            text = f"It was closed with {statement.lines} lines and now has {totals.lines}, or their sums differ."
            found.append(Finding("closed-month", statement.period, text))
    return found


def bucket_sums(since: datetime | None = None, until: datetime | None = None) -> list[Finding]:
    """Hours of a pool whose buckets do not sum to the cards that were there."""
    rows = _pool_hours(since, until)
    return [Finding("buckets", str(row), sentence) for row in rows if (sentence := imbalance(row))]


def overlaps(since: datetime | None = None, until: datetime | None = None) -> list[Finding]:
    """Hours of a pool in which more was held than there was. They balance; the facts behind them disagree."""
    return [
        Finding("overlap", str(row), f"{row.overlap} card-seconds were held beyond the {row.present} that were there.")
        for row in _pool_hours(since, until)
        if row.overlap > 0
    ]


def lines_against_buckets(since: datetime | None = None, until: datetime | None = None) -> list[Finding]:
    """Hours of a pool in which the lines of a bucket, charged or set aside, do not sum to the bucket."""
    lined = _lined(since, until)
    found = []
    for row in _pool_hours(since, until):
        where = (row.cluster, row.pool, row.hour)
        for kind in Kind:
            bucket = row.used if kind == Kind.USE else getattr(row, kind.name.lower())
            if (summed := lined.pop((*where, str(kind)), F(0))) != bucket:
                text = f"The lines of {kind} sum to {summed} card-seconds, the bucket holds {bucket}."
                found.append(Finding("lines-and-buckets", str(row), text))
    for (cluster, pool, hour, name), summed in lined.items():
        text = f"{summed} card-seconds of {name} have lines and no balance."
        found.append(Finding("lines-and-buckets", f"{pool} of {cluster} in {hour:%Y-%m-%d %H}h", text))
    return found


def set_aside_lines(period: str | None = None) -> list[Finding]:
    """Lines that wait for a price, by month and SKU."""
    skus: Counter[tuple[str, str]] = Counter(selectors.set_aside(period).values_list("period", "sku"))
    return [
        Finding(
            "set-aside",
            period,
            f"{counted(count, 'line')} of {sku} without a price; publish a rate card that covers it.",
        )
        for (period, sku), count in sorted(skus.items())
    ]


def against_facts(hours: Hours) -> list[Finding]:
    """What the ledger says differently than these facts, rated once more, would."""
    rated = rate_hours(hours, selectors.rate_book(), house.zone())
    doubtful = [Finding("doubtful-facts", hours.cluster, text) for text in rated.doubts]
    return doubtful + compare(hours, rated, until=hours.until)


def compare(hours: Hours, rated: Rated, *, until: datetime) -> list[Finding]:
    """What the ledger says differently about [hours.since, until) than the facts say now."""
    found = [*_against_lines(hours, rated.lines, until), *_against_balances(hours, rated, until)]
    return _gathered(found)


def _against_lines(hours: Hours, lines: Iterable[Line], until: datetime) -> Iterator[Finding]:
    window = Q(cluster=hours.cluster, hour__gte=hours.since, hour__lt=until)
    charges = {charge.key: charge for charge in Charge.objects.filter(window, corrects=None)}
    waiting = {_thing_and_hour(row.key) for row in SetAside.objects.filter(window, posted_at=None).only("key")}
    expected = {line.key: line for line in lines}
    for key, line in expected.items():
        where = line.piece.span.workload_name or f"{line.piece.span.pool} of {hours.cluster}"
        if charge := charges.get(key):
            if sentence := _difference(charge, line):
                yield Finding("differing-charge", where, sentence)
        elif _thing_and_hour(key) not in waiting:
            at = f"{line.piece.started_at:%Y-%m-%d %H:%M:%S}"
            yield Finding(
                "missing-charge",
                where,
                f"{line.piece.seconds} s of {line.piece.span.kind} from {at} UTC are not in the ledger.",
            )
    for charge in (charge for key, charge in charges.items() if key not in expected):
        where = charge.workload_name or f"{charge.pool} of {hours.cluster}"
        at = f"{charge.started_at:%Y-%m-%d %H:%M:%S} UTC"
        text = f"{charge.seconds} s of {charge.kind} from {at} are charged; nothing held them."
        yield Finding("charge-without-facts", where, text)


def _difference(charge: Charge, line: Line) -> str:
    at = f"{charge.started_at:%Y-%m-%d %H:%M:%S} UTC"
    seconds, share = line.piece.seconds, line.piece.span.share
    if (charge.seconds, charge.share) != (seconds, share):
        ledger = f"{charge.seconds} s of {charge.share} cards"
        return f"From {at} the ledger has {ledger}, the facts have {seconds} s of {share}."
    if line.rate and charge.per_card_hour != line.rate.per_card_hour:
        return f"From {at} it is priced at {charge.per_card_hour}, the rate card says {line.rate.per_card_hour}."
    return ""


def _against_balances(hours: Hours, rated: Rated, until: datetime) -> Iterator[Finding]:
    rows = PoolHour.objects.filter(cluster=hours.cluster, hour__gte=hours.since, hour__lt=until)
    there = {(row.pool, row.hour): row for row in rows}
    for pool, hour in sorted(there.keys() | rated.balances.keys()):
        row, facts = there.get((pool, hour)), rated.balances.get((pool, hour))
        if row is None or facts is None or selectors.buckets(row) != selectors.buckets(facts):
            where = f"{pool} of {hours.cluster}"
            text = f"The balance of the hour from {hour:%Y-%m-%d %H:%M} UTC is not what the facts say."
            yield Finding("differing-balance", where, text)


def _gathered(found: Iterable[Finding]) -> list[Finding]:
    """One finding per check and place: the first one, with the number of others alike."""
    groups: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in found:
        groups[finding.check, finding.where].append(finding)
    return [
        Finding(check, where, alike[0].text + (f" And {len(alike) - 1} more like it." if len(alike) > 1 else ""))
        for (check, where), alike in groups.items()
    ]


def _wrong_amounts(period: str) -> Iterator[Finding]:
    """Recalculate each line; those without a rate were not made by the meter and are left alone."""
    rows = (
        Charge.objects.filter(period=period, corrects=None, rate__isnull=False)
        .order_by()
        .values_list("seconds", "share", "per_card_hour_micro", "amount_micro")
    )
    for seconds, share, per_card_hour, amount in rows.distinct():
        if price(seconds, share, from_micro(per_card_hour)) != from_micro(amount):
            text = f"{seconds} s of {share} cards at {from_micro(per_card_hour)} are not {from_micro(amount)}."
            yield Finding("line-sums", period, text)


def _pool_hours(since: datetime | None, until: datetime | None) -> Iterator[PoolHour]:
    return PoolHour.objects.filter(_window(since, until)).iterator(chunk_size=2000)


def _lined(since: datetime | None, until: datetime | None) -> dict[tuple[str, str, datetime, str], F]:
    """Card-seconds by (cluster, pool, hour, kind) as the lines have them, charged or waiting for a price."""
    summed: dict[tuple[str, str, datetime, str], F] = defaultdict(F)
    charged = Charge.objects.filter(_window(since, until), corrects=None)
    waiting = SetAside.objects.filter(_window(since, until), posted_at=None)
    for rows in (charged, waiting):
        groups = rows.order_by().values_list("cluster", "pool", "hour", "kind", "share").annotate(held=Sum("seconds"))
        for cluster, pool, hour, kind, share, held in groups:
            summed[cluster, pool, hour, str(kind)] += share * held
    return summed


def _window(since: datetime | None, until: datetime | None) -> Q:
    """The hours in [since, until), those that either end cuts included."""
    window = Q(hour__gte=hour_of(since)) if since else Q()
    return window & Q(hour__lt=until) if until else window


def _thing_and_hour(key: str) -> str:
    """A key without its minutes: a piece that waits for a price may be cut differently once there is one."""
    return key[:-7]
