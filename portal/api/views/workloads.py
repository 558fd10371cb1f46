"""What can be asked for, what runs, and what it was seen to do."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from portal.api.doors import Door, paged
from portal.api.exceptions import NotKnown
from portal.api.inputs import Nothing, PageQuery
from portal.api.serializers import workloads as shapes
from portal.api.submissions import KEY_TEXT, submission_of, submitted
from scheduling.access import access_workload, workloads_for
from scheduling.handover import cost_so_far
from scheduling.models import Flavor, Workload
from scheduling.offers import Sizes, offers
from scheduling.planning.facts import Kind
from scheduling.removals import remove_by_force
from scheduling.selectors import SHOWN_SPAN, events_of, logs_of, samples_of
from scheduling.services import Wish, end_workload, sleep_workload, wake_workload
from tenants.access import access_team
from tenants.billing.selectors import prices_at

IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 64, "pattern": f"^({KEY_TEXT})$"},
    OpenApiParameter.HEADER,
    description="Yours, for this submission. The same key and body again answer with the first workload (200).",
)


class Flavors(Door):
    queries = {"GET": shapes.FlavorQuery}

    @extend_schema(responses={200: paged(shapes.FlavorShape)})
    def get(self, request: Request) -> Response:
        """List the flavors, with their prices now."""
        rows = Flavor.objects.filter(**{name: self.query[name] for name in ("model", "sharing") if name in self.query})
        return self.page(rows, shapes.FlavorShape, prices=prices_at(self.now))


class Offers(Door):
    queries = {"GET": shapes.OfferQuery}

    @extend_schema(responses={200: shapes.OffersShape})
    def get(self, request: Request) -> Response:
        """Say what you could have right now, at which price, and whether it would start, wait, or need the lead."""
        team = named_team(self, self.query["team"])
        sizes = Sizes(**{name: self.query[name] for name in ("count", "cpu_milli", "memory_mib")})
        found = offers(team, self.person, kind=Kind(self.query["kind"]), sizes=sizes, now=self.now)
        return Response(shapes.OffersShape({"team": team, "at": self.now, "offers": found}).data)


class Workloads(Door):
    queries = {"GET": shapes.WorkloadQuery}

    @extend_schema(responses={200: paged(shapes.WorkloadShape)})
    def get(self, request: Request) -> Response:
        """List the workloads of your teams."""
        rows = filtered(self, workloads_for(self.stand))
        return self.page(rows.order_by(self.query["ordering"], "id"), shapes.WorkloadShape)

    @extend_schema(
        request=shapes.WorkloadInput,
        responses={201: shapes.WorkloadDetail, 200: shapes.WorkloadDetail},
        parameters=[IDEMPOTENCY_KEY],
    )
    def post(self, request: Request) -> Response:
        """Open a workload.

        It is written down and then waits for the next look at the cluster; with `ask` also for the lead's decision.
        """
        wish, extras = self._wish(self.body(shapes.WorkloadInput))
        workload, is_new = submitted(wish, extras, self.now)
        return self._answer(workload, 201 if is_new else 200)

    def _wish(self, data: dict[str, Any]) -> tuple[Wish, dict[str, Any]]:
        team = named_team(self, data.pop("team"))
        flavor = Flavor.objects.filter(sku=data.pop("flavor")).first()
        if flavor is None:
            raise NotKnown("There is no such flavor; GET /api/v1/flavors/ lists them.", field="flavor")
        extras = {
            "team": team,
            "by": self.person,
            "ask": data.pop("ask", None),
            "until": data.pop("ask_until", None),
        }
        kind = Kind(data.pop("kind"))
        return Wish(kind=kind, flavor=flavor, submission=submission_of(self.request), **data), extras

    def _answer(self, workload: Workload, status: int) -> Response:
        found = access_workload(self.stand, workload.pk)
        address = reverse("api-workload", kwargs={"pk": found.pk}, request=self.request)
        return Response(detail(found, self.now), status=status, headers={"Location": address})


class One(Door):
    @extend_schema(responses={200: shapes.WorkloadDetail})
    def get(self, request: Request, pk: str) -> Response:
        """Show one workload, with what it has cost so far."""
        return Response(detail(access_workload(self.stand, pk), self.now))


class Sleep(Door):
    @extend_schema(request=None, responses={200: shapes.WorkloadDetail})
    def post(self, request: Request, pk: str) -> Response:
        """Put a workspace to sleep: its storage stays, its quota is free."""
        self.body(Nothing)
        workload = access_workload(self.stand, pk, to="steer")
        sleep_workload(workload, by=self.person, now=self.now)
        return Response(detail(workload, self.now))


class Wake(Door):
    @extend_schema(request=None, responses={200: shapes.WorkloadDetail})
    def post(self, request: Request, pk: str) -> Response:
        """Wake a sleeping workspace: it passes the quota check again."""
        self.body(Nothing)
        workload = access_workload(self.stand, pk, to="steer")
        wake_workload(workload, by=self.person, now=self.now)
        return Response(detail(workload, self.now))


class End(Door):
    @extend_schema(request=None, responses={200: shapes.WorkloadDetail})
    def post(self, request: Request, pk: str) -> Response:
        """End a workload for good; its storage goes with it."""
        self.body(Nothing)
        workload = access_workload(self.stand, pk, to="steer")
        end_workload(workload, by=self.person, now=self.now)
        return Response(detail(workload, self.now))


class Force(Door):
    @extend_schema(request=shapes.ForceInput, responses={200: shapes.WorkloadDetail})
    def post(self, request: Request, pk: str) -> Response:
        """Remove its pods that do not go, by force; for the operator.

        On a node that does not answer the container may still run, and write, after another has taken its card.
        """
        workload = access_workload(self.stand, pk, to="force")
        remove_by_force(workload, by=self.person, now=self.now, sure=self.body(shapes.ForceInput)["sure"])
        return Response(detail(workload, self.now))


class Transitions(Door):
    queries = {"GET": PageQuery}

    @extend_schema(responses={200: paged(shapes.TransitionShape)})
    def get(self, request: Request, pk: str) -> Response:
        """List the steps of its phase, newest first."""
        rows = access_workload(self.stand, pk).transitions.select_related("by").order_by("-version")
        return self.page(rows, shapes.TransitionShape)


class Placements(Door):
    queries = {"GET": PageQuery}

    @extend_schema(responses={200: paged(shapes.PlacementShape)})
    def get(self, request: Request, pk: str) -> Response:
        """List where it ran and from when until when, newest first."""
        rows = access_workload(self.stand, pk).placements.select_related("cluster")
        return self.page(rows, shapes.PlacementShape)


class Samples(Door):
    @extend_schema(responses={200: shapes.SamplesShape})
    def get(self, request: Request, pk: str) -> Response:
        """Show what it was seen to use in the last hour."""
        workload = access_workload(self.stand, pk)
        found = {"since": self.now - SHOWN_SPAN, "until": self.now, "samples": samples_of(workload, self.now)}
        return Response(shapes.SamplesShape(found).data)


class Logs(Door):
    queries = {"GET": shapes.LogsQuery}

    @extend_schema(responses={200: shapes.LogsShape})
    def get(self, request: Request, pk: str) -> Response:
        """Show the last lines that its program printed; for its owner and the leads."""
        workload = access_workload(self.stand, pk, to="logs")
        return Response(shapes.LogsShape(logs_of(workload, self.query["lines"])).data)


class Events(Door):
    @extend_schema(responses={200: shapes.EventsShape})
    def get(self, request: Request, pk: str) -> Response:
        """Show what Kubernetes says about its objects and pods; asked of the cluster now."""
        return Response(shapes.EventsShape(events_of(access_workload(self.stand, pk))).data)


def named_team(door: Door, pk: Any, *, to: str = "run") -> Any:
    """The team that a body or an address names, for a person who may `run` work there."""
    try:
        return access_team(door.stand, pk, to=to)
    except Http404 as error:
        raise NotKnown("There is no such team.", field="team") from error


def filtered(door: Door, rows: QuerySet[Workload]) -> QuerySet[Workload]:
    query: Mapping[str, Any] = door.query
    if team := query.get("team"):
        rows = rows.filter(team=named_team(door, team, to="read"))
    if owner := query.get("owner"):
        rows = rows.filter(owner=door.person) if owner == "me" else rows.filter(owner__username=owner)
    if search := query.get("search"):
        rows = rows.filter(name__icontains=search)
    if model := query.get("model"):
        rows = rows.filter(flavor__model=model)
    return rows.filter(**{name: query[name] for name in ("phase", "kind") if name in query})


def detail(workload: Workload, now: Any) -> Any:
    return shapes.WorkloadDetail(workload, context={"cost": cost_so_far(workload, now)}).data
