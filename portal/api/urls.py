"""Addresses of the API. The generated reference is at /api/docs/."""

from django.urls import path, re_path, register_converter

from portal.api.doors import Nowhere
from portal.api.fields import MONTH_TEXT
from portal.api.views import charges, fleet, people, quota, reference, workloads


class MonthConverter:
    """A month such as 2026-11."""

    regex = MONTH_TEXT

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(MonthConverter, "month")

urlpatterns = [
    path("schema/", reference.SchemaView.as_view(), name="api-schema"),
    path("docs/", reference.docs, name="api-docs"),
    path("v1/login/", people.Login.as_view(), name="api-login"),
    path("v1/me/", people.Me.as_view(), name="api-me"),
    path("v1/teams/", people.Teams.as_view(), name="api-teams"),
    path("v1/grants/", people.Grants.as_view(), name="api-grants"),
    path("v1/grants/<uuid:pk>/end/", people.GrantEnd.as_view(), name="api-grant-end"),
    path("v1/flavors/", workloads.Flavors.as_view(), name="api-flavors"),
    path("v1/offers/", workloads.Offers.as_view(), name="api-offers"),
    path("v1/workloads/", workloads.Workloads.as_view(), name="api-workloads"),
    path("v1/workloads/<uuid:pk>/", workloads.One.as_view(), name="api-workload"),
    path("v1/workloads/<uuid:pk>/sleep/", workloads.Sleep.as_view(), name="api-workload-sleep"),
    path("v1/workloads/<uuid:pk>/wake/", workloads.Wake.as_view(), name="api-workload-wake"),
    path("v1/workloads/<uuid:pk>/end/", workloads.End.as_view(), name="api-workload-end"),
    path("v1/workloads/<uuid:pk>/force/", workloads.Force.as_view(), name="api-workload-force"),
    path("v1/workloads/<uuid:pk>/transitions/", workloads.Transitions.as_view(), name="api-workload-transitions"),
    path("v1/workloads/<uuid:pk>/placements/", workloads.Placements.as_view(), name="api-workload-placements"),
    path("v1/workloads/<uuid:pk>/samples/", workloads.Samples.as_view(), name="api-workload-samples"),
    path("v1/workloads/<uuid:pk>/logs/", workloads.Logs.as_view(), name="api-workload-logs"),
    path("v1/workloads/<uuid:pk>/events/", workloads.Events.as_view(), name="api-workload-events"),
    path("v1/quota-requests/", quota.Requests.as_view(), name="api-quota-requests"),
    path("v1/quota-requests/<uuid:pk>/", quota.One.as_view(), name="api-quota-request"),
    path("v1/quota-requests/<uuid:pk>/approve/", quota.Approve.as_view(), name="api-quota-request-approve"),
    path("v1/quota-requests/<uuid:pk>/deny/", quota.Deny.as_view(), name="api-quota-request-deny"),
    path("v1/quota-requests/<uuid:pk>/counter/", quota.Counter.as_view(), name="api-quota-request-counter"),
    path("v1/quota-requests/<uuid:pk>/accept/", quota.Accept.as_view(), name="api-quota-request-accept"),
    path("v1/quota-requests/<uuid:pk>/withdraw/", quota.Withdraw.as_view(), name="api-quota-request-withdraw"),
    path("v1/fleet/", fleet.Fleet.as_view(), name="api-fleet"),
    path("v1/pools/<int:pk>/", fleet.Pool.as_view(), name="api-pool"),
    path("v1/chargeback/", charges.Periods.as_view(), name="api-chargeback"),
    path("v1/chargeback/<month:month>/", charges.Month.as_view(), name="api-chargeback-month"),
    path("v1/chargeback/<month:month>/lines/", charges.Lines.as_view(), name="api-chargeback-lines"),
    path("v1/chargeback/<month:month>/close/", charges.Close.as_view(), name="api-chargeback-close"),
    re_path("", Nowhere.as_view()),  # everything else, line breaks included
]
