"""What stands around every page: the menu, who is logged in, the zone and the clock."""

from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction as F
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject

from portal.pages.doors import now_of, stand_of
from scheduling.announce import person_topic, team_topic
from scheduling.models import Workload
from scheduling.planning.facts import HOLDING, Phase
from tenants import clock
from tenants.access import Standing, pending_to_decide
from tenants.models import Role
from tenants.quota import NOTHING

MOST_TEAM_TOPICS = 3


@dataclass(frozen=True, slots=True)
class Word:
    """One word of the menu."""

    name: str
    url: str
    icon: str
    here: bool
    count: int = 0
    counted: str = ""  # what the number counts, for who cannot see


@dataclass(frozen=True, slots=True)
class Menu:
    words: list[Word]
    who: str
    roles: str
    holds: F  # cards held by the person now
    topics: str  # what moves the numbers in it


@dataclass(frozen=True, slots=True)
class Time:
    """What time it is where the organisation is, and how fast it passes."""

    now: datetime
    zone: str
    rate: float
    simulated: bool


def around(request: HttpRequest) -> dict[str, Any]:
    """Context processor. The menu costs its queries only where a template shows it."""
    return {
        "menu": SimpleLazyObject(lambda: menu(request, request.path)),
        "time": Time(now_of(request), settings.BERTH_ZONE, clock.rate(), clock.is_simulated()),
        "currency": settings.BERTH_CURRENCY,
        "is_demo": settings.BERTH_DEMO,
    }


def menu(request: HttpRequest, path: str) -> Menu | None:
    """The menu of whoever is logged in, on the page at `path`. Four queries, two of them for the person's roles."""
    if not getattr(request, "user", None) or not request.user.is_authenticated:
        return None
    stand = stand_of(request)
    mine = Workload.objects.filter(owner=stand.user).exclude(phase=Phase.ENDED)
    rows = list(mine.values_list("phase", "flavor__share", "count"))
    holds = sum((share * count for phase, share, count in rows if phase in HOLDING), NOTHING)
    return Menu(words(path, stand, len(rows)), str(stand.user), roles_of(stand), holds, topics_of(stand))


def topics_of(stand: Standing) -> str:
    led = stand.teams_with(Role.LEAD)[:MOST_TEAM_TOPICS]
    return " ".join([person_topic(stand.user.pk), *(team_topic(team.pk) for team in led)])


def words(path: str, stand: Standing, open_workloads: int) -> list[Word]:
    found = [
        word(path, "Home", "home", "home"),
        word(path, "Workloads", "workloads", "layers", open_workloads, "of yours"),
        word(path, "Quotas", "quotas", "gauge"),
    ]
    if stand.teams_with(Role.LEAD) or stand.is_operator:
        found.append(word(path, "Approvals", "approvals", "inbox", pending_to_decide(stand), "to decide"))
    found.append(word(path, "Fleet", "fleet", "server"))
    if stand.billed():
        found.append(word(path, "Chargeback", "chargeback", "receipt"))
    return found


def word(path: str, name: str, view: str, icon: str, count: int = 0, counted: str = "") -> Word:
    url = reverse(view)
    here = path == url if url == "/" else path.startswith(url)
    return Word(name, url, icon, here, count, counted)


def roles_of(stand: Standing) -> str:
    """The person's roles in words: "Lead of Vision", "Operator". Of inherited roles the highest team is named."""
    if stand.is_operator:
        return "Operator"
    named = [
        f"{title} of {team.name}" if role != Role.RESEARCHER else f"{title} in {team.name}"
        for role, title in ((Role.LEAD, "Lead"), (Role.FINANCE, "Finance"), (Role.RESEARCHER, "Researcher"))
        for team in stand.teams_with(role)
        if team.parent_id is None or not stand.has(role, team.parent_id)
    ]
    return " · ".join(named[:2]) or "No role yet"
