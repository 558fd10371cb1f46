"""Quota requests: asking, deciding, taking or leaving an offer."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from portal.api.doors import Door, paged
from portal.api.exceptions import NotKnown
from portal.api.inputs import Nothing
from portal.api.serializers import quota as shapes
from portal.api.views.workloads import named_team
from scheduling.models import Flavor
from scheduling.services import (
    accept_offer,
    approve_request,
    ask_quota,
    counter_request,
    deny_request,
    withdraw_request,
)
from tenants.access import Standing, access_quota_request
from tenants.models import QuotaRequest, RequestState, Role
from tenants.selectors import effect_of, requests_for


class Requests(Door):
    queries = {"GET": shapes.RequestQuery}

    @extend_schema(responses={200: paged(shapes.RequestShape)})
    def get(self, request: Request) -> Response:
        """List your quota requests and those that you decide, newest first."""
        rows = requests_for(self.stand)
        if team := self.query.get("team"):
            rows = rows.filter(team=named_team(self, team, to="read"))
        if whose := self.query.get("asked_by"):
            rows = rows.filter(asked_by=self.person) if whose == "me" else rows.exclude(asked_by=self.person)
        rows = rows.filter(**{name: self.query[name] for name in ("state", "model") if name in self.query})
        return self.page(rows, shapes.RequestShape)

    @extend_schema(request=shapes.AskInput, responses={201: shapes.RequestDetail})
    def post(self, request: Request) -> Response:
        """Ask the leads of a team for cards of your own."""
        wanted = self.body(shapes.AskInput)
        team = named_team(self, wanted.pop("team"))
        if not Flavor.objects.filter(model=wanted["model"]).exists():
            raise NotKnown(
                "Nothing of this GPU model is offered; GET /api/v1/flavors/ lists the models.", field="model"
            )
        made = ask_quota(team=team, by=self.person, now=self.now, **wanted)
        address = reverse("api-quota-request", kwargs={"pk": made.pk}, request=request)
        return Response(told(made, self.stand, self.now), status=201, headers={"Location": address})


class One(Door):
    @extend_schema(responses={200: shapes.RequestDetail})
    def get(self, request: Request, pk: str) -> Response:
        """Show one request; its deciders also see what approving it would do."""
        return Response(told(access_quota_request(self.stand, pk), self.stand, self.now))


class Approve(Door):
    @extend_schema(request=shapes.ApproveInput, responses={200: shapes.RequestDetail})
    def post(self, request: Request, pk: str) -> Response:
        """Approve a request, as asked or with less or until a date."""
        found = access_quota_request(self.stand, pk, to="decide")
        approve_request(found, by=self.person, now=self.now, **self.body(shapes.ApproveInput))
        return Response(told(found, self.stand, self.now))


class Deny(Door):
    @extend_schema(request=shapes.DenyInput, responses={200: shapes.RequestDetail})
    def post(self, request: Request, pk: str) -> Response:
        """Deny a request, with the reason that the asker will read."""
        found = access_quota_request(self.stand, pk, to="decide")
        deny_request(found, by=self.person, now=self.now, **self.body(shapes.DenyInput))
        return Response(told(found, self.stand, self.now))


class Counter(Door):
    @extend_schema(request=shapes.CounterInput, responses={200: shapes.RequestDetail})
    def post(self, request: Request, pk: str) -> Response:
        """Offer something else; nothing is granted until the asker accepts."""
        found = access_quota_request(self.stand, pk, to="decide")
        counter_request(found, by=self.person, now=self.now, **self.body(shapes.CounterInput))
        return Response(told(found, self.stand, self.now))


class Accept(Door):
    @extend_schema(request=None, responses={200: shapes.RequestDetail})
    def post(self, request: Request, pk: str) -> Response:
        """Accept the lead's offer."""
        self.body(Nothing)
        found = access_quota_request(self.stand, pk, to="asker")
        accept_offer(found, by=self.person, now=self.now)
        return Response(told(found, self.stand, self.now))


class Withdraw(Door):
    @extend_schema(request=None, responses={200: shapes.RequestDetail})
    def post(self, request: Request, pk: str) -> Response:
        """Withdraw your own request; the workload that waited for it ends."""
        self.body(Nothing)
        found = access_quota_request(self.stand, pk, to="asker")
        withdraw_request(found, by=self.person, now=self.now)
        return Response(told(found, self.stand, self.now))


def told(request: QuotaRequest, stand: Standing, now: Any) -> Any:
    """The request and, for who may decide it, its effect."""
    request.refresh_from_db()
    decides = request.state == RequestState.PENDING and (stand.has(Role.LEAD, request.team_id) or stand.is_operator)
    effect = effect_of(request, request.amount, request.until, now) if decides else None
    return shapes.RequestDetail({"request": request, "effect": effect}).data
