"""Who may do what. Each `access_…` fetches and authorises in one step: what one may not know of is not there (404).

A role in a team holds for the team's whole subtree. The operator (staff) reads everything and runs the platform, but
decides no quota and closes no month.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.http import Http404

from tenants.errors import NotAllowed
from tenants.models import Grant, Membership, QuotaRequest, RequestState, Role, Team, User


@dataclass(frozen=True, slots=True)
class Standing:
    """One person's roles, spread over the tree of teams. Made once per request, in two queries."""

    user: User
    roles: Mapping[UUID, frozenset[str]]
    teams: Mapping[UUID, Team]

    @property
    def is_operator(self) -> bool:
        return bool(self.user.is_staff)

    def has(self, role: Role, team: UUID) -> bool:
        return str(role) in self.roles.get(team, frozenset())

    def may_read(self, team: UUID) -> bool:
        return self.is_operator or bool(self.roles.get(team))

    def teams_with(self, *roles: Role) -> list[Team]:
        """Teams in which the person has any of these roles (any role at all, when none is named), by name."""
        wanted = {str(role) for role in roles}
        found = [
            team for pk, team in self.teams.items() if self.roles.get(pk) and (not wanted or wanted & self.roles[pk])
        ]
        return sorted(found, key=lambda team: team.name)

    def readable(self) -> list[UUID]:
        """Ids of the teams whose workloads and quotas the person may see."""
        return [pk for pk in self.teams if self.may_read(pk)]

    def billed(self) -> list[UUID]:
        """Ids of the teams whose charges the person may see: as finance or lead, or all as operator."""
        if self.is_operator:
            return list(self.teams)
        return [team.pk for team in self.teams_with(Role.FINANCE, Role.LEAD)]

    def closes_months(self) -> bool:
        """Finance of the whole organisation: of every team without a parent."""
        roots = [team.pk for team in self.teams.values() if team.parent_id is None]
        return bool(roots) and all(self.has(Role.FINANCE, root) for root in roots)

    def sees_all_charges(self) -> bool:
        """Whether the platform's own lines (unallocated, stranded, cold start) are this person's to see."""
        return self.is_operator or self.closes_months()


def standing(user: User) -> Standing:
    """The person's effective roles: each membership reaches down the tree. Two queries."""
    teams = {team.pk: team for team in Team.objects.all()}
    direct: dict[UUID, set[str]] = {}
    for team, role in Membership.objects.filter(user=user).values_list("team_id", "role"):
        direct.setdefault(team, set()).add(role)
    roles = {pk: frozenset(_inherited(pk, teams, direct)) for pk in teams}
    return Standing(user=user, roles={pk: found for pk, found in roles.items() if found}, teams=teams)


def access_team(stand: Standing, pk: Any, *, to: str = "read") -> Team:
    """The team, if the person may `read` it, `run` work in it, `lead` it or see its `money`."""
    team = stand.teams.get(as_uuid(pk))
    if team is None or not stand.may_read(team.pk):
        raise Http404("There is no such team.")
    allowed = {
        "read": True,
        "run": stand.has(Role.RESEARCHER, team.pk) or stand.has(Role.LEAD, team.pk),
        "lead": stand.has(Role.LEAD, team.pk),
        "money": stand.is_operator or stand.has(Role.FINANCE, team.pk) or stand.has(Role.LEAD, team.pk),
    }[to]
    if not allowed:
        raise NotAllowed(f"Your roles in {team.name} do not include this; ask one of its leads.")
    return team


def access_quota_request(stand: Standing, pk: Any, *, to: str = "read") -> QuotaRequest:
    """The request, if the person may `read` it, `decide` it (as lead) or steer it as its `asker`."""
    found = QuotaRequest.objects.select_related("team", "asked_by", "decided_by").filter(pk=as_uuid(pk)).first()
    if found is None or not _may_see_request(stand, found):
        raise Http404("There is no such quota request.")
    if to == "decide" and not stand.has(Role.LEAD, found.team_id):
        raise NotAllowed(f"Only a lead of {found.team.name} decides this request.")
    if to == "asker" and found.asked_by_id != stand.user.pk:
        raise NotAllowed(f"Only {found.asked_by} may do this with the request.")
    return found


def access_grant(stand: Standing, pk: Any, *, to: str = "read") -> Grant:
    """The grant, if the person may `read` it or, as lead of its team, `end` it."""
    found = Grant.objects.select_related("team", "member", "made_by").filter(pk=as_uuid(pk)).first()
    if found is None or not stand.may_read(found.team_id):
        raise Http404("There is no such grant.")
    if to == "end" and not (stand.has(Role.LEAD, found.team_id) or stand.is_operator):
        raise NotAllowed(f"Only a lead of {found.team.name} or the operator ends this grant.")
    return found


def pending_to_decide(stand: Standing) -> int:
    """How many requests wait for this person's decision: the number beside the menu's word."""
    led = [team.pk for team in stand.teams_with(Role.LEAD)]
    if not led:
        return 0
    pending = QuotaRequest.objects.filter(team__in=led, state=RequestState.PENDING)
    return pending.exclude(asked_by=stand.user).count()


def as_uuid(value: Any) -> UUID:
    """A key out of a URL or a body; whatever is not one names nothing that exists."""
    try:
        return value if isinstance(value, UUID) else UUID(str(value))
    except (ValueError, ValidationError) as error:
        raise Http404("There is nothing of that name.") from error


def _inherited(pk: UUID, teams: Mapping[UUID, Team], direct: Mapping[UUID, set[str]]) -> set[str]:
    found: set[str] = set()
    seen: set[UUID] = set()
    current: UUID | None = pk
    while current is not None and current not in seen:
        seen.add(current)
        found |= direct.get(current, set())
        current = teams[current].parent_id if current in teams else None
    return found


def _may_see_request(stand: Standing, request: QuotaRequest) -> bool:
    if request.asked_by_id == stand.user.pk or stand.is_operator:
        return True
    return stand.has(Role.LEAD, request.team_id)
