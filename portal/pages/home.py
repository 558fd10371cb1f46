"""Home: what is mine now, what is left, what waits for me, what it costs, and the fleet in one line."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import Sum
from django.http import HttpRequest, HttpResponse

from portal.pages.context import menu
from portal.pages.doors import now_of, page, show, stand_of
from portal.pages.quotas import Line, held_by_me, line_of
from portal.pages.workloads import rows_of
from scheduling import fleet, selectors
from scheduling.announce import fleet_topic, person_topic, team_topic, workload_topic
from scheduling.handover import SoFar, live_lines, so_far
from scheduling.holdings import holdings
from scheduling.models import Cluster, Node, NodePool, Placement, Workload
from scheduling.offers import Offer, Sizes, offers
from scheduling.planning.facts import Kind as Kinds
from scheduling.planning.facts import Phase
from scheduling.planning.wording import several
from scheduling.stuck import stuck_on, stuck_words
from tenants.access import Standing
from tenants.billing import house
from tenants.billing.models import from_micro
from tenants.billing.rating import Kind, month_bounds, period_of
from tenants.billing.selectors import lines_of
from tenants.models import QuotaRequest, RequestState, Role, Team
from tenants.quota import NOTHING

WORKLOADS_SHOWN = 8
TEAMS_SHOWN = 4
REQUESTS_SHOWN = 5
OFFERS_SHOWN = 4
MOST_TEAM_TOPICS = 20
TROUBLES_SHOWN = 5  # of pods that do not go


@dataclass(frozen=True, slots=True)
class TeamQuota:
    team: Team
    lines: list[Line]


@page
def menu_part(request: HttpRequest) -> HttpResponse:
    """The menu alone, whose numbers move, and the clock beside it; `at` is the page around it."""
    at = request.GET.get("at", "/")
    return show(request, "parts/menu_page.html", {"menu": menu(request, at), "at": at}, part="parts/menu_part.html")


@page
def home(request: HttpRequest) -> HttpResponse:
    stand, now = stand_of(request), now_of(request)
    mine = list(selectors.listed(stand, mine=not oversees(stand))[:WORKLOADS_SHOWN])
    runs = stand.teams_with(Role.RESEARCHER, Role.LEAD)
    context = {
        "rows": rows_of(mine, now),
        "runs": bool(runs),
        "own_only": not oversees(stand),
        "quotas": quota_lines(stand, runs[:TEAMS_SHOWN], now),
        "to_decide": to_decide(stand),
        "offers": offers_to(stand),
        "cost": cost_this_month(stand, now),
        "own": own_cost(stand, now) if runs else None,
        "now_offers": startable(stand, runs, now),
        "month": period_of(now, house.zone()),
        "totals": fleet.totals(NodePool.objects.all()),
        "troubles": troubles(now) if stand.is_operator else [],
        "operates": stand.is_operator,
        "sees_all": stand.sees_all_charges(),
        "topics": topics_of(stand, runs, mine),
    }
    return show(request, "home/home.html", context, part="home/_live.html")


def oversees(stand: Standing) -> bool:
    """Whether the work of others is this person's business at first sight."""
    return bool(stand.teams_with(Role.LEAD)) or stand.is_operator


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
    zone = house.zone()
    return so_far(month_bounds(period_of(now, zone), zone)[0], now, teams=billed)


def own_cost(stand: Standing, now: datetime) -> Decimal:
    """What the person's own workloads have cost this month, posted or not. Four queries."""
    period = period_of(now, house.zone())
    since = month_bounds(period, house.zone())[0]
    posted = lines_of(period, kind=Kind.USE, member=stand.user).aggregate(micro=Sum("amount_micro", default=0))["micro"]
    lines = live_lines(now, placements=Placement.objects.filter(workload__owner=stand.user))
    live = [line.amount for line in lines if line.piece.started_at >= since and line.amount is not None]
    return from_micro(posted) + sum(live, Decimal(0))


def startable(stand: Standing, teams: list[Team], now: datetime) -> list[Offer]:
    """The cheapest offers that would start now in the person's first team."""
    if not teams:
        return []
    found = offers(teams[0], stand.user, kind=Kinds.WORKSPACE, sizes=Sizes(), now=now)
    return [one for one in found if one.starts == "now" and one.per_hour is not None][:OFFERS_SHOWN]


def troubles(now: datetime) -> list[str]:
    """What the operator should look at, in sentences."""
    found = []
    for cluster in Cluster.objects.all():
        if cluster.paused:
            found.append(f"{cluster.name} is paused.")
        if cluster.trouble:
            found.append(f"{cluster.name}: {cluster.trouble}")
    found += [f"Pool {pool.name}: {pool.trouble}" for pool in NodePool.objects.exclude(trouble="")]
    stuck = Workload.objects.filter(phase=Phase.WAITING, failures__gt=0).count()
    if stuck:
        found.append(f"{several(stuck, 'workload')} failed to start and {'is' if stuck == 1 else 'are'} tried again.")
    pods = [pod for row in Node.objects.exclude(lingering=[]) for pod in stuck_on(row) if pod.overdue(now)]
    found += [f"Node {pod.node}: {stuck_words(pod, known=True)}." for pod in pods[:TROUBLES_SHOWN]]
    return found


def topics_of(stand: Standing, teams: list[Team], mine: list[Workload]) -> str:
    topics = [fleet_topic(), person_topic(stand.user.pk), *(workload_topic(row.pk) for row in mine)]
    return " ".join([*topics, *(team_topic(team.pk) for team in teams[:MOST_TEAM_TOPICS])])
