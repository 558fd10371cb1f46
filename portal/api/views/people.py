"""Who asks, in which teams, with which quota; and logging in."""

from typing import Any

from django.conf import settings
from django.contrib.auth import authenticate, get_user, login
from django.middleware.csrf import get_token
from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from portal import guesses
from portal.api.doors import Door, paged
from portal.api.exceptions import TooManyGuesses
from portal.api.inputs import Nothing, checked
from portal.api.serializers.people import (
    DemoLoginInput,
    GrantQuery,
    GrantShape,
    LoginInput,
    MeShape,
    TeamQuery,
    TeamShape,
    WhoShape,
)
from portal.demo.people import FOUR
from scheduling.holdings import holdings
from scheduling.services import end_grant
from tenants import clock
from tenants.access import Standing, access_grant, access_team, pending_to_decide
from tenants.errors import Refused
from tenants.models import Grant, Team, User
from tenants.selectors import grants_in_force

LOGIN = PolymorphicProxySerializer(
    component_name="Login", serializers=[LoginInput, DemoLoginInput], resource_type_field_name=None
)


class Login(Door):
    """The one door that is open to strangers. It takes no CSRF token, so it takes nothing that a form can send."""

    authentication_classes: list[Any] = []
    permission_classes = [AllowAny]

    @extend_schema(request=LOGIN if settings.BERTH_DEMO else LoginInput, responses={200: WhoShape}, auth=[])
    def post(self, request: Request) -> Response:
        """Log in.

        Answers who you are and sets the session cookie. Send this without a session: a browser that is somebody
        already stays that person (409). In a demo `{"person": "robin"}` is enough.
        """
        if _foreign(request):
            raise PermissionDenied("Log in from our own pages or from a program, not from another site.")
        user = self._person()
        if (already := get_user(request)).is_authenticated:
            raise Refused(f"You are logged in as {already}; send this without the session cookie.")
        login(request, user)
        return Response(WhoShape({"person": user, "csrf_token": get_token(request)}).data)

    def get_authenticate_header(self, request: Request) -> str:
        return 'Session realm="Berth"'

    def _person(self) -> User:
        data = self.request.data
        if settings.BERTH_DEMO and isinstance(data, dict) and "person" in data:
            return _of_demo(checked(DemoLoginInput, data)["person"])
        return _by_password(self.request, **self.body(LoginInput))


class Me(Door):
    @extend_schema(responses={200: MeShape})
    def get(self, request: Request) -> Response:
        """Say who you are, in which teams, and what quota is left."""
        mine = self.stand.teams_with()
        facts = {
            "person": request.user,
            "operator": self.stand.is_operator,
            "teams": team_rows(mine, self.stand, self.now),
            "to_decide": pending_to_decide(self.stand),
            "csrf_token": get_token(request),
            "now": self.now,
            "clock_rate": clock.rate(),
            "zone": settings.BERTH_ZONE,
        }
        return Response(MeShape(facts).data)


class Teams(Door):
    queries = {"GET": TeamQuery}

    @extend_schema(responses={200: paged(TeamShape)})
    def get(self, request: Request) -> Response:
        """List the teams that you may see, with what they hold."""
        rows = Team.objects.filter(pk__in=self.stand.readable())
        if search := self.query.get("search"):
            rows = rows.filter(name__icontains=search)
        return self.page(rows, TeamShape, rows_of=lambda teams: team_rows(teams, self.stand, self.now))


class Grants(Door):
    queries = {"GET": GrantQuery}

    @extend_schema(responses={200: paged(GrantShape)})
    def get(self, request: Request) -> Response:
        """List the grants of the teams that you may see, newest first."""
        rows = Grant.objects.select_related("team", "member", "made_by").filter(team__in=self.stand.readable())
        if team := self.query.get("team"):
            rows = rows.filter(team=access_team(self.stand, team))
        for name in ("model", "member"):
            if name in self.query:
                rows = rows.filter(**{name: self.query[name]})
        if "in_force" in self.query:
            now_held = grants_in_force(self.now).values("pk")
            rows = rows.filter(pk__in=now_held) if self.query["in_force"] else rows.exclude(pk__in=now_held)
        return self.page(rows.order_by("-starts_at", "id"), GrantShape, now=self.now)


class GrantEnd(Door):
    @extend_schema(request=None, responses={200: GrantShape})
    def post(self, request: Request, pk: str) -> Response:
        """End a grant now.

        What is held above the quota afterwards shows as over quota; nothing is stopped by it.
        """
        self.body(Nothing)
        grant = access_grant(self.stand, pk, to="end")
        end_grant(grant, now=self.now)
        grant.refresh_from_db()
        return Response(GrantShape(grant, context={"now": self.now}).data)


def team_rows(teams: Any, stand: Standing, now: Any) -> list[dict[str, Any]]:
    """Each team with the person's roles in it and what it holds. Two queries, however many teams."""
    teams = list(teams)
    held = holdings([team.pk for team in teams], now, member=stand.user.pk)
    readable = set(stand.readable())
    return [
        {
            "id": team.pk,
            "slug": team.slug,
            "name": team.name,
            "parent": team.parent_id if team.parent_id in readable else None,
            "roles": sorted(stand.roles.get(team.pk, ())),
            "quotas": held[team.pk],
        }
        for team in teams
    ]


def _foreign(request: Request) -> bool:
    """Whether another site's page sends this: a program sends no Origin."""
    origin = request.headers.get("Origin")
    return origin is not None and origin.partition("://")[2] != request.get_host()


def _of_demo(name: str) -> User:
    known = {guise.username for guise in FOUR}
    user = User.objects.filter(username=name, is_active=True).first() if name in known else None
    if user is None:
        raise AuthenticationFailed("The demo knows nobody of that name.")
    return user


def _by_password(request: Request, *, username: str, password: str) -> User:
    """The person, if name and password belong together; the same words whichever of them is wrong."""
    guess = guesses.Guess(username, request.META.get("REMOTE_ADDR", ""))
    if wait := guesses.seconds_to_wait(guess):
        raise TooManyGuesses(wait)
    user = authenticate(request, username=username, password=password)
    if not isinstance(user, User):
        guesses.note_failure(guess)
        raise AuthenticationFailed("Name and password do not belong together.")
    guesses.forget(guess)
    return user
