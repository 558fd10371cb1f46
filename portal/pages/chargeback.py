"""Chargeback: the month in tables, down to the placements and lines that a charge is made of, and closing it."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from portal.pages.bars import bars_of
from portal.pages.doors import action, now_of, page, person, show, stand_of
from portal.pages.download import download
from portal.pages.paging import paged
from portal.templatetags.words import sku_words
from scheduling.handover import so_far
from scheduling.planning import catalog
from tenants.access import as_uuid
from tenants.billing import checks, house, selectors
from tenants.billing.access import check_closes_months, teams_in_view
from tenants.billing.days import days_of
from tenants.billing.exports import lines_csv
from tenants.billing.models import Statement
from tenants.billing.rating import Kind, first_day, midnight, period_of
from tenants.billing.report import MonthReport
from tenants.billing.selectors import WorkloadRow
from tenants.billing.services import close_month
from tenants.errors import Refused

MONTHS_PER_PAGE = 12
LINES_PER_PAGE = 50
PEOPLE_PER_PAGE = 25
FINDINGS_SHOWN = 5


class Which(forms.Form):
    """Which workloads of a month: of one team, person, model or flavor."""

    team = forms.UUIDField(required=False)
    member = forms.IntegerField(required=False, min_value=1, max_value=2**62)
    model = forms.CharField(required=False, max_length=60)
    sku = forms.CharField(required=False, max_length=120)


@page
def index(request: HttpRequest) -> HttpResponse:
    """The latest month that has lines, else the present one."""
    teams_in_view(stand_of(request))
    latest = selectors.periods().first()
    return redirect("month", latest.period if latest else period_of(now_of(request), house.zone()))


@page
def month(request: HttpRequest, period: str) -> HttpResponse:
    return month_page(request, known(period))


@page
def balance(request: HttpRequest, period: str) -> HttpResponse:
    """Whether the month's card-seconds and lines add up: looked at anew each time, so it comes after the page."""
    teams_in_view(stand_of(request))
    found = checks.reconciliation(known(period))
    context = {"period": period, "findings": found[:FINDINGS_SHOWN], "count": len(found), "checked": True}
    return show(request, "chargeback/balance.html", context, part="chargeback/_balance.html")


@page
def workloads(request: HttpRequest, period: str) -> HttpResponse:
    """What each workload was charged, of whatever row one came from."""
    teams = teams_in_view(stand_of(request))
    which = Which(request.GET)
    if not which.is_valid():
        raise Refused("There is no such filter: follow the links of the month’s tables.")
    equal = {name: value for name, value in filters(which, teams).items() if value}
    found = paged(request, selectors.workloads_of(known(period), teams=teams, **equal), size=LINES_PER_PAGE)
    rows = [selectors.as_workload_row(row) for row in found]
    context = {
        "period": period,
        "name": selectors.month_name(period),
        "page": found,
        "rows": rows,
        "of": named(which, stand_of(request).teams, rows),
    }
    return show(request, "chargeback/workloads.html", context)


@page
def workload(request: HttpRequest, period: str, pk: UUID) -> HttpResponse:
    """The placements that one workload's charge of a month is made of."""
    teams = teams_in_view(stand_of(request))
    rows = selectors.placements_of(known(period), pk, teams=teams)
    if not rows:
        raise Http404("Nothing was charged for such a workload in this month.")
    lines = selectors.lines_of(period, teams=teams, workload_id=pk)
    first = lines.filter(kind=Kind.USE).first() or lines.first()  # a cold start is the platform's, and names nobody
    context = {
        "period": period,
        "name": selectors.month_name(period),
        "workload": first,
        "page": paged(request, rows, size=LINES_PER_PAGE),
        "total": sum((row.amount for row in rows), selectors.NO_AMOUNT),
    }
    return show(request, "chargeback/workload.html", context)


@page
def placement(request: HttpRequest, period: str, pk: UUID) -> HttpResponse:
    """The ledger lines of one placement: each at most an hour long."""
    teams = teams_in_view(stand_of(request))
    found = paged(request, selectors.lines_of(known(period), teams=teams, resource_id=pk), size=LINES_PER_PAGE)
    if not found.paginator.count:
        raise Http404("Nothing was charged for such a placement in this month.")
    context = {"period": period, "name": selectors.month_name(period), "page": found, "first": found[0]}
    return show(request, "chargeback/placement.html", context)


@page
def csv(request: HttpRequest, period: str) -> HttpResponse:
    """Every line of the month that the person may see, streamed."""
    teams = teams_in_view(stand_of(request))
    lines = selectors.lines_of(known(period), teams=teams).iterator(chunk_size=2000)
    return download(request, lines_csv(lines, settings.BERTH_ZONE), f"berth-{period}.csv", "text/csv; charset=utf-8")


@action
def close(request: HttpRequest, period: str) -> HttpResponse:
    check_closes_months(stand_of(request))
    try:
        close_month(known(period), by=person(request), now=now_of(request))
    except Refused as refusal:
        return month_page(request, period, refusal=refusal.text, status=400)
    messages.success(request, f"{selectors.month_name(period)} is closed. Late lines count in the next open month.")
    return redirect("month", period)


def month_page(request: HttpRequest, period: str, *, refusal: str = "", status: int = 200) -> HttpResponse:
    stand, now = stand_of(request), now_of(request)
    teams = teams_in_view(stand)
    report = selectors.month(period, teams=teams)
    context = {
        "here": reverse("month", args=[period]),
        "report": report,
        "tables": report.tables,
        "people": paged(request, report.tables.by_person, name="people", size=PEOPLE_PER_PAGE),
        "bars": bars_of(days_of(period, teams=teams)),
        "before": change_from(report, teams),
        "today": so_far(start_of_today(now), now, teams=teams) if report.since <= now < report.until else None,
        "months": paged(request, selectors.periods(), name="months", size=MONTHS_PER_PAGE),
        "sees_all": teams is None,
        "may_close": stand.closes_months() and not report.is_closed,
        "refusal": refusal,
        "idle_amount": idle_amount(report),
        "links": reverse("month-workloads", args=[period]),
    }
    return show(request, "chargeback/month.html", context, status=status)


def idle_amount(report: MonthReport) -> Any:
    """Unallocated and stranded together, as shown."""
    rows = [row.shown for row in report.tables.platform if row.key in ("unallocated", "stranded")]
    return sum(rows) if rows else None


def change_from(report: MonthReport, teams: Collection[UUID] | None) -> dict[str, Any] | None:
    """How a whole month's charged sum compares with the month before; None where there is nothing to compare."""
    if report.posted_until is None or report.posted_until < report.until:
        return None
    first = first_day(report.period)
    earlier = f"{first.year - (first.month == 1):04d}-{(first.month - 2) % 12 + 1:02d}"
    if not Statement.objects.filter(period=earlier).exists():
        return None
    before = selectors.month(earlier, teams=teams).tables.charged.amount
    if not before:
        return None
    return {
        "name": selectors.month_name(earlier),
        "percent": round(float(report.tables.charged.amount / before - 1) * 100),
    }


def filters(which: Which, teams: Collection[UUID] | None) -> dict[str, Any]:
    data = which.cleaned_data
    if data["team"] and teams is not None and data["team"] not in teams:
        raise Http404("There is no such team.")
    return {"team_id": data["team"], "member_id": data["member"], "model": data["model"], "sku": data["sku"]}


def named(which: Which, teams: Any, rows: Sequence[WorkloadRow]) -> str:
    """What the list is about, in words. A person is called as on the lines."""
    data = which.cleaned_data
    if data["team"]:
        team = teams.get(as_uuid(data["team"]))
        return team.name if team else ""
    if data["sku"]:
        return sku_words(data["sku"])
    if data["model"]:
        return catalog.title(data["model"])
    return rows[0].member_name if data["member"] and rows else ""


def start_of_today(now: datetime) -> datetime:
    zone = ZoneInfo(settings.BERTH_ZONE)
    return midnight(now.astimezone(zone).date(), zone)


def known(period: str) -> str:
    """The period, if it is a month."""
    try:
        first_day(period)
    except ValueError as error:
        raise Http404(str(error)) from error
    return period
