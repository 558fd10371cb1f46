"""Addresses of the pages. What changes anything is POST only."""

from django.urls import path

from portal.pages import approvals, chargeback, fleet, home, login, quotas, request, workloads

urlpatterns = [
    path("", home.home, name="home"),
    path("menu/", home.menu_part, name="menu"),
    path("login/", login.log_in, name="login"),
    path("logout/", login.log_out, name="logout"),
    path("workloads/", workloads.index, name="workloads"),
    path("workloads/new/", request.new, name="new-workload"),
    path("workloads/new/offers/", request.offers_part, name="workload-offers"),
    path("workloads/<uuid:pk>/", workloads.detail, name="workload"),
    path("workloads/<uuid:pk>/samples/", workloads.samples, name="workload-samples"),
    path("workloads/<uuid:pk>/logs/", workloads.logs, name="workload-logs"),
    path("workloads/<uuid:pk>/sleep/", workloads.sleep, name="sleep-workload"),
    path("workloads/<uuid:pk>/wake/", workloads.wake, name="wake-workload"),
    path("workloads/<uuid:pk>/end/", workloads.end, name="end-workload"),
    path("quotas/", quotas.index, name="quotas"),
    path("quotas/ask/", quotas.ask, name="ask-quota"),
    path("quotas/requests/<uuid:pk>/accept/", quotas.accept, name="accept-offer"),
    path("quotas/requests/<uuid:pk>/withdraw/", quotas.withdraw, name="withdraw-request"),
    path("quotas/grants/<uuid:pk>/end/", quotas.end, name="end-grant"),
    path("approvals/", approvals.index, name="approvals"),
    path("approvals/<uuid:pk>/approve/", approvals.approve, name="approve-request"),
    path("approvals/<uuid:pk>/deny/", approvals.deny, name="deny-request"),
    path("approvals/<uuid:pk>/counter/", approvals.counter, name="counter-request"),
    path("fleet/", fleet.index, name="fleet"),
    path("fleet/pools/<int:pk>/", fleet.pool, name="pool"),
    path("fleet/reports/", fleet.reports, name="reports"),
    path("fleet/clusters/<int:pk>/pause/", fleet.pause, name="pause-cluster"),
    path("fleet/clusters/<int:pk>/resume/", fleet.resume, name="resume-cluster"),
    path("fleet/pace/", fleet.pace, name="pace"),
    path("chargeback/", chargeback.index, name="chargeback"),
    path("chargeback/<slug:period>/", chargeback.month, name="month"),
    path("chargeback/<slug:period>/balance/", chargeback.balance, name="month-balance"),
    path("chargeback/<slug:period>/close/", chargeback.close, name="close-month"),
    path("chargeback/<slug:period>/lines.csv", chargeback.csv, name="month-csv"),
    path("chargeback/<slug:period>/workloads/", chargeback.workloads, name="month-workloads"),
    path("chargeback/<slug:period>/workloads/<uuid:pk>/", chargeback.workload, name="month-workload"),
    path("chargeback/<slug:period>/placements/<uuid:pk>/", chargeback.placement, name="month-placement"),
]
