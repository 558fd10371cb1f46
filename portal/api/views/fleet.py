"""The fleet as last seen, and the operator's rules for its pools."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.doors import Door
from portal.api.fields import LARGEST
from portal.api.serializers import fleet as shapes
from portal.paging import Pages
from scheduling.fleet import Foreign, foreign_use, namespaces_of
from scheduling.holdings import units_held
from scheduling.models import Cluster, CycleReport, Node, NodePool, Workload
from scheduling.planning.facts import NodeFact
from scheduling.pools import access_pool, change_pool
from scheduling.snapshot import node_fact
from scheduling.stuck import Stuck, may_know, stuck_on, stuck_words, workloads_behind
from tenants.access import Standing

LAST_REPORTS = 20
POOL_ID = OpenApiParameter("id", {"type": "integer", "minimum": 1, "maximum": LARGEST}, OpenApiParameter.PATH)


@dataclass(frozen=True, slots=True)
class SeenNode:
    """A node with its facts and what is held of each of its resources."""

    name: str
    cluster: str
    pool: str
    seen_at: Any
    fact: NodeFact
    held: dict[str, int]
    foreign: list[Foreign]
    stuck: list[dict[str, Any]]


class Fleet(Door):
    queries = {"GET": shapes.FleetQuery}

    @extend_schema(responses={200: shapes.FleetShape})
    def get(self, request: Request) -> Response:
        """Show clusters, pools and nodes as last seen; the operator also sees what the cycle did."""
        clusters, pools = Cluster.objects.all(), NodePool.objects.select_related("cluster")
        if name := self.query.get("cluster"):
            clusters, pools = clusters.filter(name=name), pools.filter(cluster__name=name)
        pages = Pages()
        found: list[Node] = pages.paginate_queryset(self._nodes(), request, view=self) or []
        nodes = pages.get_paginated_response(seen(found, self.stand)).data
        facts = {"clusters": clusters, "pools": pools, "nodes": nodes, "reports": self._reports()}
        return Response(shapes.FleetShape(facts, context={"operates": self.stand.is_operator}).data)

    def _nodes(self) -> Any:
        rows = Node.objects.select_related("cluster", "pool").order_by("cluster__name", "name")
        columns = {"cluster": "cluster__name", "pool": "pool__name"}
        rows = rows.filter(**{column: self.query[name] for name, column in columns.items() if name in self.query})
        return rows.filter(schedulable=not self.query["troubled"]) if "troubled" in self.query else rows

    def _reports(self) -> Any:
        if not self.stand.is_operator:
            return None
        return CycleReport.objects.select_related("cluster")[:LAST_REPORTS]


class Pool(Door):
    @extend_schema(parameters=[POOL_ID], request=shapes.PoolInput, responses={200: shapes.PoolShape})
    def patch(self, request: Request, pk: int) -> Response:
        """Change a pool's rules; the next look at the cluster follows them."""
        pool = access_pool(self.stand, pk, to="change")
        changed = change_pool(pool, self.body(shapes.PoolInput), by=self.person, now=self.now)
        return Response(shapes.PoolShape(changed).data)


def seen(nodes: list[Node], stand: Standing) -> list[SeenNode]:
    """The nodes of a page. One query for what is held of all of them, and one more where a pod does not go."""
    held, behind, named = units_held(nodes), workloads_behind(nodes), namespaces_of(stand)
    return [
        SeenNode(
            name=node.name,
            cluster=node.cluster.name,
            pool=node.pool.name if node.pool else "",
            seen_at=node.cluster.seen_at or node.seen_at,  # a row is written only when something about it changed
            fact=node_fact(node),
            held=held[node.pk],
            foreign=foreign_use([node], named=named),
            stuck=[told(pod, stand, behind) for pod in stuck_on(node)],
        )
        for node in nodes
    ]


def told(pod: Stuck, stand: Standing, behind: Mapping[UUID, Workload]) -> dict[str, Any]:
    """A pod that does not go; whose it is, only to those who may know."""
    known = may_know(pod, stand, behind)
    return {
        "workload": pod.workload if known else None,
        "pod": pod.name if known else "",
        "since": pod.since,
        "units": pod.units,
        "words": stuck_words(pod, known=known),
    }
