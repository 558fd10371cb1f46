"""Home: what is mine now, what is left, what waits for me, what it costs, and the fleet in one line."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from portal.pages.doors import now_of, page, show, stand_of
from portal.pages.quotas import Line, held_by_me, line_of
from portal.pages.workloads import rows_of
from scheduling import fleet, selectors
from scheduling.announce import fleet_topic, person_topic, team_topic, workload_topic
from scheduling.handover import SoFar, so_far
from scheduling.holdings import holdings
from scheduling.models import Cluster, NodePool, Workload
from scheduling.planning.facts import Phase
from tenants.access import Standing
from tenants.billing.rating import month_bounds, period_of
from tenants.models import QuotaRequest, RequestState, Role, Team
from tenants.quota import NOTHING

WORKLOADS_SHOWN = 8
TEAMS_SHOWN = 4
REQUESTS_SHOWN = 5
MOST_TEAM_TOPICS = 20


@dataclass(frozen=True, slots=True)
class TeamQuota:
    team: Team
    lines: list[Line]


@page
def home(request: HttpRequest) -> HttpResponse:
    stand, now = stand_of(request), now_of(request)
    mine = list(shown_workloads(stand)[:WORKLOADS_SHOWN])
    runs = stand.teams_with(Role.RESEARCHER, Role.LEAD)
    context = {
        "rows": rows_of(mine, now),
        "runs": bool(runs),
        "whose": "The team’s workloads" if stand.teams_with(Role.LEAD) else "Your workloads",
        "quotas": quota_lines(stand, runs[:TEAMS_SHOWN], now),
        "to_decide": to_decide(stand),
        "offers": offers_to(stand),
        "cost": cost_this_month(stand, now),
        "month": period_of(now, ZoneInfo(settings.BERTH_ZONE)),
        "totals": fleet.totals(NodePool.objects.all()),
        "troubles": troubles() if stand.is_operator else [],
        "operates": stand.is_operator,
        "topics": topics_of(stand, runs, mine),
    }
    return show(request, "home/home.html", context, part="home/_live.html")


def shown_workloads(stand: Standing) -> Any:
    """One's own that have not ended; for a lead and the operator those of all in view."""
    leads = bool(stand.teams_with(Role.LEAD)) or stand.is_operator
    return selectors.listed(stand, mine=not leads)


def quota_lines(stand: Standing, teams: list[Team], now: datetime) -> list[TeamQuota]:
    """What the person's teams hold and may hold. Three queries."""
    keys = [team.pk for team in teams]
    found, mine = holdings(keys, now, member=stand.user.pk), held_by_me(stand, keys)
    rows = [
        TeamQuota(team, [line_of(one, NOTHING, mine.get((team.pk, one.model), NOTHING)) for one in found[team.pk]])
        for team in teams
    ]
    return [row for row in rows if row.lines]


def to_decide(stand: Standing) -> list[QuotaRequest]:
    led = [team.pk for team in stand.teams_with(Role.LEAD)]
    rows = QuotaRequest.objects.filter(team__in=led, state=RequestState.PENDING).exclude(asked_by=stand.user)
    return list(rows.select_related("asked_by", "team").order_by("asked_at")[:REQUESTS_SHOWN])


def offers_to(stand: Standing) -> list[QuotaRequest]:
    """Offers of leads that wait for the person's answer."""
    rows = QuotaRequest.objects.filter(asked_by=stand.user, state=RequestState.COUNTERED)
    return list(rows.select_related("decided_by", "team")[:REQUESTS_SHOWN])


def cost_this_month(stand: Standing, now: datetime) -> SoFar | None:
    """What the teams whose charges the person may see have used this month; None where there are none."""
    billed = None if stand.sees_all_charges() else stand.billed()
    if billed == []:
        return None
    zone = ZoneInfo(settings.BERTH_ZONE)
    return so_far(month_bounds(period_of(now, zone), zone)[0], now, teams=billed)


def troubles() -> list[str]:
    """What the operator should look at, in sentences."""
    found = []
    for cluster in Cluster.objects.all():
        if cluster.paused:
            found.append(f"{cluster.name} is paused.")
        if cluster.trouble:
            found.append(f"{cluster.name}: {cluster.trouble}")
    found += [f"Pool {pool.name}: {pool.trouble}" for pool in NodePool.objects.exclude(trouble="")]
    stuck = Workload.objects.filter(phase=Phase.WAITING, failures__gt=0).count()
    return [*found, f"{stuck} workloads failed to start and are tried again."] if stuck else found


def topics_of(stand: Standing, teams: list[Team], mine: list[Workload]) -> str:
    topics = [fleet_topic(), person_topic(stand.user.pk), *(workload_topic(row.pk) for row in mine)]
    return " ".join([*topics, *(team_topic(team.pk) for team in teams[:MOST_TEAM_TOPICS])])
