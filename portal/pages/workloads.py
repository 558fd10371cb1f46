"""Workloads: the list, one workload with everything that is known of it, and the three things one may do with it."""

from dataclasses import dataclass
from datetime import datetime
from datetime import timedelta as td
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect

from portal.pages.doors import action, now_of, page, person, show, stand_of
from portal.pages.forms import WorkloadFilter
from portal.pages.paging import paged
from scheduling import selectors, services
from scheduling.access import access_workload
from scheduling.announce import team_topic, workload_topic
from scheduling.handover import cost_so_far
from scheduling.models import Placement, Sample, Workload
from scheduling.planning.cuda import in_words, needed, version_of
from scheduling.planning.endings import STOPPING_PATIENCE
from scheduling.planning.facts import Desired, Kind, Phase, Reason
from scheduling.removals import remove_by_force
from scheduling.story import NEXT, story_of
from scheduling.stuck import RISK, stuck_of
from scheduling.telemetry.idle import GAP
from tenants.access import Standing
from tenants.billing.selectors import prices_at
from tenants.errors import NotAllowed
from tenants.models import Role

MOST_TEAM_TOPICS = 20
STOPPABLE = (Phase.WAITING, Phase.PLACED, Phase.STARTING, Phase.RUNNING)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the list."""

    workload: Workload
    reading: Sample | None
    per_hour: Decimal | None
    topic: str


@dataclass(frozen=True, slots=True)
class Can:
    """What the person may do with a workload now."""

    sleep: bool = False
    wake: bool = False
    end: bool = False
    logs: bool = False


@page
def index(request: HttpRequest) -> HttpResponse:
    stand, now = stand_of(request), now_of(request)
    teams = list(stand.teams.values()) if stand.is_operator else stand.teams_with()
    form = WorkloadFilter(request.GET, teams)
    found = selectors.listed(stand, **filters(form)) if form.is_valid() else Workload.objects.none()
    turned = paged(request, found)
    topics = [team_topic(team.pk) for team in teams[:MOST_TEAM_TOPICS]]
    context = {"form": form, "page": turned, "rows": rows_of(list(turned), now), "topics": " ".join(topics)}
    context["may_run"] = bool(stand.teams_with(Role.RESEARCHER, Role.LEAD))
    context["filtered"] = any(request.GET.get(name) for name in form.fields)
    return show(
        request, "workloads/list.html", context, part="workloads/_rows.html", status=200 if form.is_valid() else 400
    )


@page
def detail(request: HttpRequest, pk: UUID) -> HttpResponse:
    workload = access_workload(stand_of(request), pk)
    context = facts_of(request, workload)
    return show(request, "workloads/detail.html", context, part="workloads/_live.html")


@page
def samples(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The last hour for the charts: seconds since 1970, busy in percent, memory in GiB; null where nobody reported."""
    workload = access_workload(stand_of(request), pk)
    found = selectors.samples_of(workload, now_of(request))
    memory = [None if one.memory_used_mib is None else one.memory_used_mib / 1024 for one in found]
    busy = [None if one.busy is None else one.busy * 100 for one in found]
    return JsonResponse({"at": [one.at.timestamp() for one in found], "busy": busy, "memory": memory})


@page
def logs(request: HttpRequest, pk: UUID) -> HttpResponse:
    workload = access_workload(stand_of(request), pk, to="logs")
    context = {"workload": workload, "logs": selectors.logs_of(workload)}
    return show(request, "workloads/logs.html", context, part="workloads/_logs.html")


@page
def events(request: HttpRequest, pk: UUID) -> HttpResponse:
    workload = access_workload(stand_of(request), pk)
    context = {"workload": workload, "events": selectors.events_of(workload)}
    return show(request, "workloads/events.html", context, part="workloads/_events.html")


@action
def sleep(request: HttpRequest, pk: UUID) -> HttpResponse:
    workload = access_workload(stand_of(request), pk, to="steer")
    services.sleep_workload(workload, by=person(request), now=now_of(request))
    messages.success(request, f"{workload.name} was asked to sleep: its storage stays, its quota becomes free.")
    return redirect("workload", pk)


@action
def wake(request: HttpRequest, pk: UUID) -> HttpResponse:
    workload = access_workload(stand_of(request), pk, to="steer")
    services.wake_workload(workload, by=person(request), now=now_of(request))
    messages.success(
        request, f"{workload.name} was asked to wake: it passes the quota check again and may have to wait."
    )
    return redirect("workload", pk)


@action
def end(request: HttpRequest, pk: UUID) -> HttpResponse:
    workload = access_workload(stand_of(request), pk, to="steer")
    services.end_workload(workload, by=person(request), now=now_of(request))
    messages.success(request, f"{workload.name} was asked to end: its card is given back.")
    return redirect("workload", pk)


@action
def force(request: HttpRequest, pk: UUID) -> HttpResponse:
    workload = access_workload(stand_of(request), pk, to="force")
    sure = request.POST.get("sure") == "yes"
    orders = remove_by_force(workload, by=person(request), now=now_of(request), sure=sure)
    names = ", ".join(order.pod for order in orders)
    messages.success(request, f"Pod {names} is removed by force at the next look at the cluster.")
    return redirect("workload", pk)


def filters(form: WorkloadFilter) -> dict[str, Any]:
    data = form.cleaned_data
    return {
        "search": data["q"].strip(),
        "phase": data["phase"],
        "team": UUID(data["team"]) if data["team"] else None,
        "kind": data["kind"],
        "mine": bool(data["owner"]),
    }


def rows_of(workloads: list[Workload], now: Any) -> list[Row]:
    """Workloads with their newest reading and their price. Three queries."""
    readings, prices = selectors.newest_readings(workloads, now), prices_at(now)
    return [Row(row, readings.get(row.pk), price_of(row, prices), workload_topic(row.pk)) for row in workloads]


def price_of(workload: Workload, prices: dict[str, Decimal]) -> Decimal | None:
    """What it costs per hour while it runs; None where nobody has published a price."""
    price, share = prices.get(workload.flavor.sku), workload.flavor.share * workload.count
    return None if price is None else price * share.numerator / share.denominator


def facts_of(request: HttpRequest, workload: Workload) -> dict[str, Any]:
    """Everything on the page of one workload."""
    now, stand = now_of(request), stand_of(request)
    placement = selectors.last_placement(workload)
    pool = selectors.pool_of(placement)
    steps = selectors.recent_steps(workload)
    readings = selectors.samples_of(workload, now)
    fresh = bool(readings) and now - readings[-1].at <= GAP and workload.phase == Phase.RUNNING
    return {
        "workload": workload,
        "topic": workload_topic(workload.pk),
        "placement": placement,
        "pool": pool,
        "open": bool(placement and placement.ended_at is None),
        "story": story_of(steps, now),
        "next": NEXT.get(Reason(workload.phase_reason), "") if workload.phase == Phase.WAITING else "",
        "reading": readings[-1] if fresh else None,
        "mean_busy": mean_busy(readings),
        "buckets": selectors.in_buckets(readings, now),
        "has_readings": bool(readings),
        "idle": selectors.idle_rule(workload, placement, pool, fresh=fresh, now=now),
        "cost": cost_so_far(workload, now),
        "per_hour": price_of(workload, prices_at(now)),
        "ends_at": workload.first_ran_at + td(hours=workload.hours)
        if workload.first_ran_at and workload.hours
        else None,
        "can": abilities(stand, workload),
        "asked": workload.quota_request,
        "mine": workload.owner_id == stand.user.pk,
        "history": paged(
            request, workload.transitions.select_related("by").order_by("-version"), name="history", size=10
        ),
        "connect": connect_words(workload, placement),
        **forcing(stand, workload, now),
        "slow": slow_words(workload, now),
        "cuda": cuda_words(workload),
    }


def forcing(stand: Standing, workload: Workload, now: Any) -> dict[str, Any]:
    """For the operator: its pods that had their time and did not go. One query."""
    if not stand.is_operator:
        return {}
    return {"overdue": [pod for pod in stuck_of(workload) if pod.overdue(now)], "risk": RISK}


def slow_words(workload: Workload, now: datetime) -> str:
    """Why it still stops, once it had the time that stopping takes; "" before."""
    late = workload.phase == Phase.STOPPING and now - workload.phase_since >= STOPPING_PATIENCE
    return workload.phase_text if late else ""


def mean_busy(readings: list[Sample]) -> float | None:
    known = [one.busy for one in readings if one.busy is not None]
    return sum(known) / len(known) if known else None


def abilities(stand: Standing, workload: Workload) -> Can:
    if workload.desired == Desired.END or workload.phase == Phase.ENDED:
        return Can(logs=allowed(stand, workload, "logs"))
    if not allowed(stand, workload, "steer"):
        return Can(logs=allowed(stand, workload, "logs"))
    sleeps = workload.desired == Desired.SLEEP or workload.phase == Phase.ASLEEP
    return Can(
        sleep=workload.kind == Kind.WORKSPACE and not sleeps and workload.phase in STOPPABLE,
        wake=sleeps,
        end=True,
        logs=allowed(stand, workload, "logs"),
    )


def allowed(stand: Standing, workload: Workload, to: str) -> bool:
    try:
        access_workload(stand, workload.pk, to=to)
    except NotAllowed:
        return False
    return True


def cuda_words(workload: Workload) -> str:
    """The least version that it needs, and who says so; empty where nobody does."""
    need = needed(workload.cuda, workload.image)
    if need is None:
        return ""
    return f"{in_words(need)} or newer" + ("" if version_of(workload.cuda) else ", by the image’s tag")


def connect_words(workload: Workload, placement: Placement | None) -> str:
    """The command that leads to the running workload; empty while there is nothing to connect to."""
    if placement is None or placement.ended_at or not placement.pod or workload.phase != Phase.RUNNING:
        return ""
    if workload.kind == Kind.WORKSPACE:
        return f"kubectl -n {placement.namespace} port-forward pod/{placement.pod} 8888:8888"
    return f"kubectl -n {placement.namespace} logs -f pod/{placement.pod}"
