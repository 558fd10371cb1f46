"""The request form: what somebody needs, and below it every offer with price, isolation and what would happen."""

import uuid
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect

from portal.pages.doors import form as form_page
from portal.pages.doors import now_of, page, person, show, stand_of
from portal.pages.forms import WishForm, refuse
from scheduling.models import Workload
from scheduling.offers import Offer, Sizes, offers
from scheduling.planning.facts import Kind
from scheduling.services import USUAL_GRACE, Wish, open_workload
from tenants.access import Standing
from tenants.errors import NotAllowed, Refused
from tenants.models import Role, Team, User
from tenants.selectors import leads_of

WHAT_OFFERS_NEED = ("team", "kind", "count", "hours", "cores", "memory_gib")


@dataclass(frozen=True, slots=True)
class Choice:
    """The offers for one team, and who decides there."""

    offers: list[Offer]
    best: Offer | None  # the first that starts now
    lead: User | None
    hours: int | None


@form_page
def new(request: HttpRequest) -> HttpResponse:
    """The form, as an address or a press of “Show the offers” fills it in; or, sent, the workload."""
    teams = teams_of(stand_of(request))
    if request.method == "POST" and "refresh" not in request.POST:
        return submit(request, teams)
    given = {name: value for name, value in (request.POST or request.GET).items() if name in WishForm.base_fields}
    return form_with_offers(request, WishForm(teams=teams, initial=fresh(teams) | given))


@page
def offers_part(request: HttpRequest) -> HttpResponse:
    """The offers alone, as the form stands now; what the address leaves out is as the form proposes it."""
    teams = teams_of(stand_of(request))
    blank = WishForm(teams=teams, initial=fresh(teams))
    choice, wrong = chosen(request, WishForm(proposal_of(blank) | request.GET.dict(), teams=teams))
    context = {"choice": choice, "wrong": wrong}
    status = 400 if wrong else 200
    return show(request, "workloads/offers.html", context, part="workloads/_offers.html", status=status)


def submit(request: HttpRequest, teams: list[Team]) -> HttpResponse:
    form = WishForm(request.POST, teams=teams)
    if form.is_valid():
        try:
            return redirect("workload", opened(request, form).pk)
        except Refused as refusal:
            refuse(form, refusal)
    return form_with_offers(request, form, status=400)


def opened(request: HttpRequest, form: WishForm) -> Workload:
    """Open the workload that the form and the pressed button say. Refuses what the offers would not have offered."""
    data, by, now = form.cleaned_data, person(request), now_of(request)
    team = stand_of(request).teams[uuid.UUID(data["team"])]
    offer = pressed(request.POST, offered(team, by, data, now))
    asks = "ask" in request.POST and offer.starts == "lead" and offer.missing > 0
    check(offer, asks=asks, pressed_ask="ask" in request.POST, reason=data["reason"])
    workload = open_workload(
        wish_of(data, offer),
        team=team,
        by=by,
        now=now,
        ask=offer.missing if asks else None,
        until=data["until"] if asks else None,
    )
    messages.success(request, "Your lead has been asked." if asks else f"{workload.name} has been asked for.")
    return workload


def check(offer: Offer, *, asks: bool, pressed_ask: bool, reason: str) -> None:
    if offer.per_hour is None:
        raise Refused(
            f"Nobody has published a price for “{offer.flavor.words}”, so it cannot be started. "
            "Choose another, or ask the operator for a price.",
            field="flavor",
        )
    if offer.starts == "lead" and not pressed_ask:
        raise Refused(
            "Your quota has been used up meanwhile: this offer now needs a lead. Look at the offers again.",
            field="flavor",
        )
    if asks and not reason.strip():
        raise Refused("Say in a sentence what it is for: your lead decides by it.", field="reason")


def pressed(data: QueryDict, found: list[Offer]) -> Offer:
    """The offer whose button sent the form."""
    key = data.get("ask") or data.get("flavor")
    offer = next((one for one in found if str(one.flavor.pk) == key), None)
    if offer is None:
        raise Refused("Choose one of the offers below.", field="flavor")
    return offer


def wish_of(data: dict[str, Any], offer: Offer) -> Wish:
    sizes = sizes_of(data)
    return Wish(
        name=data["name"].strip(),
        kind=Kind(data["kind"]),
        flavor=offer.flavor,
        count=offer.count,
        image=data["image"].strip(),
        command=data["command"].strip(),
        storage_gib=data["storage_gib"],
        hours=data["hours"],
        reason=data["reason"].strip(),
        submission=data["submission"],
        cuda=data["cuda"].strip(),
        grace_seconds=data["grace_seconds"] or USUAL_GRACE,
        checkpoint=data["checkpoint"].strip(),
        cpu_milli=sizes["cpu_milli"],
        memory_mib=sizes["memory_mib"],
    )


def form_with_offers(request: HttpRequest, form: WishForm, status: int = 200) -> HttpResponse:
    sent = form if form.is_bound else WishForm(proposal_of(form), teams=form.teams)
    choice, wrong = chosen(request, sent)
    context = {"form": form, "choice": choice, "wrong": wrong}
    return show(request, "workloads/new.html", context, status=400 if wrong else status)


def chosen(request: HttpRequest, form: WishForm) -> tuple[Choice | None, list[str]]:
    """The offers for what the form says so far, or the sentences about what it says wrongly."""
    form.is_valid()
    wrong = [f"{form.fields[name].label}: {text}" for name in WHAT_OFFERS_NEED for text in form.errors.get(name, [])]
    if wrong:
        return None, wrong
    data, by = form.cleaned_data, person(request)
    team = stand_of(request).teams[uuid.UUID(data["team"])]
    found = offered(team, by, data, now_of(request))
    best = next((offer for offer in found if offer.starts == "now" and offer.per_hour is not None), None)
    leads = [lead for lead in leads_of(team) if lead != by]
    return Choice(found, best, leads[0] if leads else None, data["hours"]), []


def proposal_of(form: WishForm) -> dict[str, Any]:
    return {name: form[name].initial for name in form.fields}


def offered(team: Team, member: User, data: dict[str, Any], now: Any) -> list[Offer]:
    sizes = Sizes(count=data["count"], **sizes_of(data))
    return offers(team, member, kind=Kind(data["kind"]), sizes=sizes, now=now)


def sizes_of(data: dict[str, Any]) -> dict[str, int]:
    return {"cpu_milli": int(data["cores"] * 1000), "memory_mib": data["memory_gib"] * 1024}


def fresh(teams: list[Team]) -> dict[str, Any]:
    return {"team": str(teams[0].pk), "submission": uuid.uuid4().hex}


def teams_of(stand: Standing) -> list[Team]:
    """Teams in which the person may run work."""
    found = stand.teams_with(Role.RESEARCHER, Role.LEAD)
    if not found:
        raise NotAllowed("You have no team in which to run work; ask a lead to take you in as a researcher.")
    # A team of the tree's middle comes last: work is usually run in the teams below.
    parents = {team.parent_id for team in stand.teams.values()}
    return sorted(found, key=lambda team: (team.pk in parents, team.name))
