"""What it cost: the months, their tables and lines, and closing them."""

from datetime import datetime

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.doors import Door, paged
from portal.api.fields import MONTH_TEXT
from portal.api.inputs import Nothing, PageQuery
from portal.api.serializers import charges as shapes
from tenants.billing import selectors
from tenants.billing.access import check_closes_months, teams_in_view
from tenants.billing.services import close_month

MONTH = OpenApiParameter(
    "month", {"type": "string", "pattern": f"^{MONTH_TEXT}$"}, OpenApiParameter.PATH, description="Such as 2026-11."
)
EQUAL = {
    "team": "team_id",
    "member": "member_id",
    "workload": "workload_id",
    "kind": "kind",
    "sku": "sku",
    "model": "model",
    "cluster": "cluster",
    "pool": "pool",
}


class Periods(Door):
    queries = {"GET": PageQuery}

    @extend_schema(responses={200: paged(shapes.PeriodShape)})
    def get(self, request: Request) -> Response:
        """List the months that have lines, newest first."""
        sees_all = teams_in_view(self.stand) is None
        return self.page(selectors.periods(), shapes.PeriodShape, all=sees_all)


class Month(Door):
    @extend_schema(parameters=[MONTH], responses={200: shapes.MonthShape})
    def get(self, request: Request, month: str) -> Response:
        """Show a month by team, person, model and flavor, and what the platform bore."""
        return Response(shapes.MonthShape(selectors.month(month, teams=teams_in_view(self.stand))).data)


class Lines(Door):
    queries = {"GET": shapes.LineQuery}

    @extend_schema(parameters=[MONTH], responses={200: paged(shapes.LineShape)})
    def get(self, request: Request, month: str) -> Response:
        """List the lines of a month, oldest first."""
        teams = teams_in_view(self.stand)
        if (team := self.query.get("team")) and team not in (self.stand.teams if teams is None else teams):
            raise Http404("There is no such team.")
        equal = {column: self.query[name] for name, column in EQUAL.items() if name in self.query}
        period: dict[str, datetime] = {name: self.query[name] for name in ("since", "until") if name in self.query}
        rows = selectors.lines_of(month, teams=teams, **period, **equal)
        return self.page(rows, shapes.LineShape)


class Close(Door):
    @extend_schema(parameters=[MONTH], request=None, responses={200: shapes.MonthShape})
    def post(self, request: Request, month: str) -> Response:
        """Close a month: its totals are written down, and late lines count in the next open month."""
        self.body(Nothing)
        check_closes_months(self.stand)
        close_month(month, by=self.person, now=self.now)
        return Response(shapes.MonthShape(selectors.month(month, teams=None)).data)
