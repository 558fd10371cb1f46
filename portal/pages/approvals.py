"""Approvals: the lead's inbox. Each request with its reason and what a yes would do to the numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction as F
from uuid import UUID

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from portal.pages.doors import action, now_of, page, person, show, stand_of
from portal.pages.forms import DecidedFilter, DecisionForm, refuse
from portal.pages.paging import paged
from portal.refusals import status_of
from portal.templatetags.words import card_words
from scheduling import services
from scheduling.announce import team_topic
from scheduling.holdings import holdings
from scheduling.planning import catalog
from tenants.access import Standing, access_quota_request
from tenants.errors import AlreadyDecided, NotAllowed, Refused
from tenants.models import QuotaRequest, RequestState, Role
from tenants.quota import NOTHING
from tenants.selectors import Effect, effects_of

PER_PAGE = 10
VERBS = ("approve", "deny", "counter")
MOST_TEAM_TOPICS = 45
Decide = Callable[[QuotaRequest, DecisionForm], None]


@dataclass(frozen=True, slots=True)
class Item:
    """One request that waits, with its effect, and what was wrong with an answer to it."""

    request: QuotaRequest
    effect: Effect
    held: F  # cards of that model that the team holds now
    own: bool  # nobody decides the own request
    approve: DecisionForm
    deny: DecisionForm
    counter: DecisionForm
    verb: str  # approve, deny or counter: which of them was sent and is open again


@page
def index(request: HttpRequest) -> HttpResponse:
    return inbox(request)


@action
def approve(request: HttpRequest, pk: UUID) -> HttpResponse:
    def decide(found: QuotaRequest, form: DecisionForm) -> None:
        services.approve_request(found, by=person(request), now=now_of(request), **form.cleaned_data)
        cards = card_words(form.cleaned_data["amount"] or found.amount)
        messages.success(request, f"Approved: {cards} more of {catalog.title(found.model)} for {found.asked_by}.")

    return decided(request, pk, "approve", decide)


@action
def deny(request: HttpRequest, pk: UUID) -> HttpResponse:
    def decide(found: QuotaRequest, form: DecisionForm) -> None:
        services.deny_request(found, by=person(request), now=now_of(request), note=form.cleaned_data["note"])
        messages.success(request, f"Denied. {found.asked_by} reads your reason.")

    return decided(request, pk, "deny", decide)


@action
def counter(request: HttpRequest, pk: UUID) -> HttpResponse:
    def decide(found: QuotaRequest, form: DecisionForm) -> None:
        facts = {"amount": form.offers(), "until": form.cleaned_data["until"], "note": form.cleaned_data["note"]}
        services.counter_request(found, by=person(request), now=now_of(request), **facts)
        messages.success(request, f"Offered. {found.asked_by} accepts or withdraws.")

    return decided(request, pk, "counter", decide)


def decided(request: HttpRequest, pk: UUID, verb: str, decide: Decide) -> HttpResponse:
    """One decision. What is wrong is said beside the request that it is about; who comes second reads who was first."""
    found = access_quota_request(stand_of(request), pk, to="decide")
    form = DecisionForm(request.POST, auto_id=ids_of(found, verb))
    if form.is_valid():
        try:
            decide(found, form)
            return redirect("approvals")
        except AlreadyDecided as refusal:
            return inbox(request, second=f"{found.asked_by}’s request: {refusal.text}", status=status_of(refusal))
        except Refused as refusal:
            refuse(form, refusal)
    return inbox(request, wrong={found.pk: (verb, form)}, status=400)


def inbox(
    request: HttpRequest,
    *,
    wrong: Mapping[UUID, tuple[str, DecisionForm]] | None = None,
    second: str = "",
    status: int = 200,
) -> HttpResponse:
    stand, now = stand_of(request), now_of(request)
    seen = seen_by(stand)
    turned = paged(request, seen.filter(state=RequestState.PENDING).order_by("asked_at", "pk"), size=PER_PAGE)
    effects = effects_of(list(turned), now)
    held = held_now(list(turned), stand, now)
    items = [item_of(one, effects[one.pk], held[one.pk], stand, wrong or {}) for one in turned]
    led = stand.teams_with(Role.LEAD)
    which = DecidedFilter(request.GET)
    context = {
        "here": reverse("approvals"),
        "page": turned,
        "items": items,
        "second": second,
        "decided": paged(request, past(seen, which), name="decided"),
        "which": which,
        "decides": {team.pk for team in led},
        "topics": " ".join(team_topic(team.pk) for team in led[:MOST_TEAM_TOPICS]),
    }
    status = status if which.is_valid() else 400
    return show(request, "approvals/approvals.html", context, part="approvals/_live.html", status=status)


def held_now(requests: Sequence[QuotaRequest], stand: Standing, now: datetime) -> dict[UUID, F]:
    """How many cards of the model each request's team holds. Two queries."""
    found = holdings({one.team_id for one in requests}, now, member=stand.user.pk)
    held = {(team, line.model): line.held for team, lines in found.items() for line in lines}
    return {one.pk: held.get((one.team_id, one.model), NOTHING) for one in requests}


def item_of(
    one: QuotaRequest, effect: Effect, held: F, stand: Standing, wrong: Mapping[UUID, tuple[str, DecisionForm]]
) -> Item:
    verb, sent = wrong.get(one.pk, ("", None))
    forms = {name: DecisionForm(auto_id=ids_of(one, name)) for name in VERBS}
    if sent is not None:
        forms[verb] = sent
    return Item(request=one, effect=effect, held=held, own=one.asked_by_id == stand.user.pk, verb=verb, **forms)


def ids_of(one: QuotaRequest, verb: str) -> str:
    """Keeps the fields of the many forms on the page apart."""
    return f"{verb}-{one.pk.hex[:12]}-%s"


def seen_by(stand: Standing) -> QuerySet[QuotaRequest]:
    """The requests of the teams that the person leads; all of them for the operator, who decides none."""
    found = QuotaRequest.objects.select_related("team__parent", "asked_by", "decided_by")
    if stand.is_operator:
        return found
    led = stand.teams_with(Role.LEAD)
    if not led:
        raise NotAllowed("Only leads decide about quota. Your own requests stand under Quotas.")
    return found.filter(team__in=[team.pk for team in led])


def past(seen: QuerySet[QuotaRequest], which: DecidedFilter) -> QuerySet[QuotaRequest]:
    """Decided requests, newest first: those with one answer or of one asker; none where the filter makes no sense."""
    if not which.is_valid():
        return seen.none()
    found = seen.exclude(state=RequestState.PENDING)
    if state := which.cleaned_data["state"]:
        found = found.filter(state=state)
    if name := which.cleaned_data["q"].strip():
        found = found.filter(Q(asked_by__first_name__icontains=name) | Q(asked_by__last_name__icontains=name))
    return found.order_by("-decided_at", "pk")
