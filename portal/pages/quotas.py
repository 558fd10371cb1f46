"""Quotas: what each team may hold and holds, whose grants these are, and what one has asked for."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction as F
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from portal.pages.doors import action, now_of, page, person, show, stand_of
from portal.pages.forms import AskForm, GrantFilter, refuse
from portal.pages.login import onward
from portal.pages.paging import paged
from portal.templatetags.words import card_words, cards
from scheduling import services
from scheduling.announce import person_topic, team_topic
from scheduling.holdings import Holding, holdings
from scheduling.models import Flavor
from scheduling.planning import catalog
from scheduling.snapshot import held
from tenants.access import Standing, access_grant, access_quota_request
from tenants.errors import Refused
from tenants.models import Grant, QuotaRequest, Role, Team
from tenants.quota import NOTHING
from tenants.selectors import leads_of, quotas

TEAMS_PER_PAGE = 12
REQUESTS_PER_PAGE = 10
MOST_TEAM_TOPICS = 40


@dataclass(frozen=True, slots=True)
class Line:
    """One model of one team: the numbers, and how far the bar goes, in hundredths of its width."""

    holding: Holding
    given: F  # what the team has given on to the teams below
    mine: F
    mine_width: float
    others_width: float
    over_width: float

    @property
    def given_width(self) -> float:
        return min(100.0, float(self.given / self.holding.total * 100)) if self.holding.total else 0.0

    @property
    def over_from(self) -> float:
        return self.mine_width + self.others_width

    @property
    def to_give(self) -> F:
        return max(NOTHING, self.holding.total - self.given)


@dataclass(frozen=True, slots=True)
class Block:
    """One team of the tree with its models; `depth` says how far below the top it stands."""

    team: Team
    depth: int
    has_children: bool
    lines: list[Line]


@page
def index(request: HttpRequest) -> HttpResponse:
    return quota_page(request)


@action
def ask(request: HttpRequest) -> HttpResponse:
    stand = stand_of(request)
    form = ask_form(stand, request.POST)
    if form.is_valid():
        data = form.cleaned_data
        team = stand.teams[UUID(data.pop("team"))]
        try:
            services.ask_quota(team=team, by=person(request), now=now_of(request), **data)
            messages.success(request, f"Asked. {decider(team, stand)} decides.")
            return redirect("quotas")
        except Refused as refusal:
            refuse(form, refusal)
    return quota_page(request, form=form, status=400)


@action
def accept(request: HttpRequest, pk: UUID) -> HttpResponse:
    found = access_quota_request(stand_of(request), pk, to="asker")
    grant = services.accept_offer(found, by=person(request), now=now_of(request))
    messages.success(
        request, f"Accepted: {cards(grant.amount)} more of {catalog.title(found.model)} for you in {found.team}."
    )
    return redirect(onward(request) if "next" in request.POST else "quotas")


@action
def withdraw(request: HttpRequest, pk: UUID) -> HttpResponse:
    found = access_quota_request(stand_of(request), pk, to="asker")
    services.withdraw_request(found, by=person(request), now=now_of(request))
    messages.success(request, "Withdrawn. What waited for it ends.")
    return redirect(onward(request) if "next" in request.POST else "quotas")


@action
def end(request: HttpRequest, pk: UUID) -> HttpResponse:
    grant = access_grant(stand_of(request), pk, to="end")
    services.end_grant(grant, now=now_of(request))
    messages.success(
        request, f"Ended: {card_words(grant.amount)} of {catalog.title(grant.model)} for {grant.member or grant.team}."
    )
    return redirect("quotas")


def quota_page(request: HttpRequest, form: AskForm | None = None, status: int = 200) -> HttpResponse:
    stand, now = stand_of(request), now_of(request)
    tree = in_tree_order(stand)
    turned = paged(request, tree, name="teams", size=TEAMS_PER_PAGE)
    which = GrantFilter(request.GET, teams=[team for team, _ in tree], models=models_of(stand, now))
    context = {
        "here": reverse("quotas"),
        "teams": turned,
        "blocks": blocks_of(list(turned), stand, now),
        "grants": paged(request, filtered(grants_of(stand, now), which), name="grants"),
        "which": which,
        "ends": {pk for pk in stand.teams if stand.is_operator or stand.has(Role.LEAD, pk)},
        "requests": paged(request, own_requests(stand), name="requests", size=REQUESTS_PER_PAGE),
        "form": form or ask_form(stand),
        "may_ask": bool(runs_in(stand)),
        "topics": topics_of(stand, [team for team, _ in tree]),
    }
    status = status if which.is_valid() else 400
    return show(request, "quotas/quotas.html", context, part="quotas/_live.html", status=status)


def blocks_of(teams: list[tuple[Team, int]], stand: Standing, now: datetime) -> list[Block]:
    """The numbers of some teams. Four queries, however many teams."""
    keys = [team.pk for team, _ in teams]
    found = holdings(keys, now, member=stand.user.pk)
    given, mine = given_on(stand, now), held_by_me(stand, keys)
    parents = {team.parent_id for team in stand.teams.values()}
    return [
        Block(
            team,
            depth,
            team.pk in parents,
            [
                line_of(
                    holding, given.get((team.pk, holding.model), NOTHING), mine.get((team.pk, holding.model), NOTHING)
                )
                for holding in found[team.pk]
            ],
        )
        for team, depth in teams
    ]


def line_of(holding: Holding, given: F, mine: F) -> Line:
    whole = max(holding.total, holding.held, F(1, 1000))
    inside = holding.held - holding.over
    mine_inside = min(mine, inside)
    return Line(
        holding=holding,
        given=given,
        mine=mine,
        mine_width=float(mine_inside / whole * 100),
        others_width=float((inside - mine_inside) / whole * 100),
        over_width=float(holding.over / whole * 100),
    )


def given_on(stand: Standing, now: datetime) -> Mapping[tuple[UUID, str], F]:
    """What each team has given to the teams below it, by model. One query."""
    given: dict[tuple[UUID, str], F] = {}
    for (team, model), quota in quotas(now).items():
        if parent := stand.teams[team].parent_id:
            given[(parent, model)] = given.get((parent, model), NOTHING) + quota.total
    return given


def held_by_me(stand: Standing, teams: Collection[UUID]) -> Mapping[tuple[UUID, str], F]:
    return {
        (team, model): cards for (team, model, member), cards in held(teams=teams).items() if member == stand.user.pk
    }


def in_tree_order(stand: Standing) -> list[tuple[Team, int]]:
    """The teams that the person may see, each below its parent, with its depth among those seen."""
    seen = set(stand.readable())
    children: dict[UUID | None, list[Team]] = {}
    for team in sorted(stand.teams.values(), key=lambda team: team.name):
        if team.pk in seen:
            children.setdefault(team.parent_id if team.parent_id in seen else None, []).append(team)
    ordered: list[tuple[Team, int]] = []
    waiting = [(team, 0) for team in reversed(children.get(None, []))]
    while waiting:
        team, depth = waiting.pop()
        ordered.append((team, depth))
        waiting += [(child, depth + 1) for child in reversed(children.get(team.pk, []))]
    return ordered


def grants_of(stand: Standing, now: datetime) -> QuerySet[Grant]:
    """Grants in force or still to come, of the teams that the person may see."""
    rows = Grant.objects.filter(team__in=stand.readable()).exclude(ends_at__lte=now)
    return rows.select_related("team", "member", "made_by").order_by("team__name", "model", "starts_at", "pk")


def models_of(stand: Standing, now: datetime) -> list[str]:
    return list(grants_of(stand, now).order_by("model").values_list("model", flat=True).distinct())


def filtered(rows: QuerySet[Grant], which: GrantFilter) -> QuerySet[Grant]:
    """Those of one team or model; none where the filter makes no sense."""
    if not which.is_valid():
        return rows.none()
    wanted = {name: value for name, value in which.cleaned_data.items() if value}
    return rows.filter(**wanted)


def own_requests(stand: Standing) -> QuerySet[QuotaRequest]:
    return QuotaRequest.objects.filter(asked_by=stand.user).select_related("team", "decided_by")


def ask_form(stand: Standing, data: Any = None) -> AskForm:
    models = Flavor.objects.filter(offered=True).order_by("model").values_list("model", flat=True).distinct()
    return AskForm(data, teams=runs_in(stand), models=models)


def runs_in(stand: Standing) -> list[Team]:
    return stand.teams_with(Role.RESEARCHER, Role.LEAD)


def decider(team: Team, stand: Standing) -> str:
    found = [lead for lead in leads_of(team) if lead.pk != stand.user.pk]
    return str(found[0]) if found else "A lead"


def topics_of(stand: Standing, teams: list[Team]) -> str:
    return " ".join([person_topic(stand.user.pk), *(team_topic(team.pk) for team in teams[:MOST_TEAM_TOPICS])])
