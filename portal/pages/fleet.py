"""The fleet: pools with their nodes and cards, what the cycle did, and the operator's rules."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from portal.messages import trouble
from portal.pages.doors import action, form, now_of, page, person, show, stand_of
from portal.pages.forms import PoolForm, refuse
from portal.pages.paging import paged
from portal.pages.tiles import Tile, tile_of, waking_tile
from scheduling import fleet
from scheduling.announce import fleet_topic, person_topic, send
from scheduling.cluster.port import NOT_NOW
from scheduling.clusters import PAUSED, access_cluster, set_paused
from scheduling.models import Cluster, Node, NodePool, Placement, Workload
from scheduling.pools import access_pool, change_pool
from scheduling.stuck import may_know, stuck_words
from tenants import clock
from tenants.access import Standing
from tenants.errors import NotAllowed, Refused
from tenants.models import User

POOLS_PER_PAGE = 12
NODES_DRAWN = 24
NODES_PER_PAGE = 48
REPORTS_SHOWN = 6
WAKING_DRAWN = 4
PACES = (1, 10, 60, 300)


@dataclass(frozen=True, slots=True)
class Drawn:
    """One pool, drawn."""

    seen: fleet.PoolSeen
    tiles: list[Tile]

    @property
    def more(self) -> int:
        return self.seen.total - len(self.seen.nodes)


@page
def index(request: HttpRequest) -> HttpResponse:
    stand, now = stand_of(request), now_of(request)
    pools = list(NodePool.objects.select_related("cluster"))
    turned = paged(request, pools, size=POOLS_PER_PAGE)
    context = {
        "page": turned,
        "pools": [drawn(one, stand) for one in fleet.pools_seen(list(turned), now, most=NODES_DRAWN)],
        "totals": fleet.totals(pools),
        "clusters": Cluster.objects.all(),
        "foreign": fleet.foreign_use(Node.objects.exclude(foreign={}), named=fleet.namespaces_of(stand)),
        "strays": list(fleet.strays()[:NODES_DRAWN]),
        "reports": fleet.told(fleet.reports()[:REPORTS_SHOWN]),
        "operates": stand.is_operator,
        "not_now": NOT_NOW,
        "paused": PAUSED,
        "paces": PACES if paces_here(stand) else (),
        "topic": fleet_topic(),
        "deaf": trouble() if stand.is_operator else "",
    }
    return show(request, "fleet/fleet.html", context, part="fleet/_live.html")


@form
def pool(request: HttpRequest, pk: int) -> HttpResponse:
    stand = stand_of(request)
    if request.method != "POST":
        found = access_pool(stand, pk)
        return pool_page(request, found, PoolForm(initial=rules_of(found)))
    found = access_pool(stand, pk, to="change")
    sent = PoolForm(request.POST)
    if sent.is_valid():
        try:
            change_pool(found, sent.cleaned_data, by=person(request), now=now_of(request))
            messages.success(
                request, f"The rules of {found.name} are changed; the next look at the cluster follows them."
            )
            return redirect("pool", pk)
        except Refused as refusal:
            refuse(sent, refusal)
    return pool_page(request, found, sent, status=400)


@page
def reports(request: HttpRequest) -> HttpResponse:
    if not stand_of(request).is_operator:
        raise NotAllowed("Only the operator reads what the cycle did in detail: it names the workloads of all teams.")
    turned = paged(request, fleet.reports())
    return show(request, "fleet/reports.html", {"page": turned, "reports": fleet.told(turned), "operates": True})


@action
def pause(request: HttpRequest, pk: int) -> HttpResponse:
    found = access_cluster(stand_of(request), pk, to="steer")
    set_paused(found, paused=True, by=person(request), now=now_of(request))
    messages.success(request, f"{found.name} is paused: Berth looks, but does nothing there. What runs goes on.")
    return redirect("fleet")


@action
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    found = access_cluster(stand_of(request), pk, to="steer")
    set_paused(found, paused=False, by=person(request), now=now_of(request))
    messages.success(request, f"{found.name} goes on.")
    return redirect("fleet")


@action
def pace(request: HttpRequest) -> HttpResponse:
    """How fast the demo's clock runs."""
    path = clock.clock_file()
    if path is None or not settings.BERTH_DEMO:
        raise Http404("The clock is the wall's.")
    if not stand_of(request).is_operator:
        raise NotAllowed("Only the operator sets how fast the demo's time passes.")
    wanted = request.POST.get("rate", "")
    if wanted not in {str(one) for one in PACES}:
        raise Refused(f"Choose one of {', '.join(f'{one}×' for one in PACES)}.", field="rate")
    clock.set_rate(path, float(wanted))
    everybody = User.objects.filter(is_active=True).values_list("pk", flat=True)
    send([{"topic": person_topic(pk), "what": "pace"} for pk in everybody])
    messages.success(
        request, f"A second of yours is now {wanted} of the demo’s." if wanted != "1" else "Time passes as usual."
    )
    return redirect("fleet")


def pool_page(request: HttpRequest, found: NodePool, sent: PoolForm, status: int = 200) -> HttpResponse:
    stand, now = stand_of(request), now_of(request)
    turned = paged(request, found.nodes.order_by("name"), size=NODES_PER_PAGE)
    seen = fleet.pool_seen(found, list(turned), fleet.holders_of(list(turned), now), most=NODES_PER_PAGE)
    context = {
        "pool": found,
        "seen": seen,
        "nodes": [(tile_of(node, stand), node, stuck_lines(node, stand)) for node in seen.nodes],
        "page": turned,
        "foreign": fleet.foreign_use(found.nodes.exclude(foreign={}), named=fleet.namespaces_of(stand)),
        "holders": holders_on(found) if stand.is_operator else [],
        "form": sent,
        "operates": stand.is_operator,
        "topic": fleet_topic(),
    }
    return show(request, "fleet/pool.html", context, part="fleet/_nodes.html", status=status)


def stuck_lines(node: fleet.NodeSeen, stand: Standing) -> list[tuple[str, Workload | None]]:
    """A sentence for each pod that does not go, and its workload for those who may see it."""
    found = []
    for pod in node.stuck:
        known = may_know(pod, stand, node.behind)
        found.append((stuck_words(pod, known=known), node.behind.get(pod.workload) if known else None))
    return found


def drawn(seen: fleet.PoolSeen, stand: Standing) -> Drawn:
    waking = [waking_tile(seen.pool.cards_per_node) for _ in range(min(seen.waking, WAKING_DRAWN))]
    return Drawn(seen, [tile_of(node, stand) for node in seen.nodes] + waking)


def holders_on(found: NodePool) -> Any:
    """Who holds what in a pool, for the operator."""
    rows = Placement.objects.filter(cluster=found.cluster_id, pool=found.name, ended_at=None)
    return rows.select_related("workload__team", "workload__owner").order_by("node", "placed_at")[:200]


def rules_of(found: NodePool) -> dict[str, Any]:
    names = ("min_nodes", "max_nodes", "idle_minutes", "empty_minutes", "spread", "layout")
    return {name: getattr(found, name) for name in names} | {"layouts": "\n".join(found.layouts)}


def paces_here(stand: Standing) -> bool:
    return settings.BERTH_DEMO and clock.is_simulated() and stand.is_operator
