"""From teams, grants and pools to Kueue's objects. Pure; what a site's own objects say is never read here.

A *stock* is one kind of cards: model, sharing and capacity type. It becomes a ResourceFlavor, found on nodes by a label
of ours. Kueue counts units of resource names, Berth counts cards: a team's cards of a model become as many units of
each of the model's resources as the whole of them would give. See docs/decisions/0009-*.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction as F
from typing import Any

from scheduling.cluster import names
from scheduling.cluster.quantities import BadQuantity, quantity
from scheduling.cluster.writing import Document, LaunchFact, job, label_value, namespace_document, object_name
from scheduling.planning import catalog
from scheduling.planning.facts import Capacity, FlavorFact, Kind, NodeFact, Sharing

VERSION = "kueue.x-k8s.io/v1beta2"
LOCAL_QUEUE = "berth"  # the one queue of a team's namespace
HOST = "berth-host"  # the flavor of CPU and memory, which Berth does not ration
PLENTY = {"cpu": "1M", "memory": "1Pi"}  # for each team; nobody has so much
TAINTS = ("sku", "gpu", "accelerator")
SPOT_TAINTS = (
    "kubernetes.azure.com/scalesetpriority",
    "cloud.google.com/gke-spot",
    "cloud.google.com/gke-provisioning",
    "oci.oraclecloud.com/oke-is-preemptible",
)
RESTARTS = 1_000_000  # of a workspace's container; a Job counts them as failures
UNITS = ("nominalQuota", "borrowingLimit", "lendingLimit")

Units = Mapping[str, F]  # resource name -> what one unit is of one card


@dataclass(frozen=True, slots=True)
class Stock:
    """One kind of cards of a cluster, and the resource names under which parts of it are asked for."""

    model: str
    sharing: Sharing
    replicas: int
    capacity: Capacity
    units: Units = field(default_factory=dict)

    @property
    def name(self) -> str:
        """ "h100-80gb-whole-on-demand", "a10g-24gb-time-slice-4-spot": a label's value and a part of names."""
        return stock_name(self.model, self.sharing, self.replicas, self.capacity)

    @property
    def flavor(self) -> str:
        return f"berth-{self.name}"


@dataclass(frozen=True, slots=True)
class Limit:
    """How much a team may borrow of a model and lend to others, in cards; None: as much as there is."""

    borrowing: F | None = None
    lending: F | None = None


@dataclass(frozen=True, slots=True)
class TeamFact:
    """One team of the tree, with the cards that it may hold here by model, its children's taken out."""

    slug: str
    namespace: str
    parent: str = ""  # slug; "" at the top
    heads: bool = False  # has teams below it
    cards: Mapping[str, F] = field(default_factory=dict)
    limits: Mapping[str, Limit] = field(default_factory=dict)

    @property
    def queue(self) -> str:
        """The name of its ClusterQueue, and of the Cohort where it has one."""
        return queue_name(self.slug)

    @property
    def cohort(self) -> str:
        """The Cohort that its ClusterQueue belongs to."""
        return self.queue if self.heads or not self.parent else queue_name(self.parent)


def queue_name(slug: str) -> str:
    return f"berth-{slug}"


def stock_name(model: str, sharing: Sharing, replicas: int, capacity: Capacity) -> str:
    kind = f"{sharing}-{replicas}" if sharing in (Sharing.TIME_SLICE, Sharing.MPS) else str(sharing)
    return label_value(f"{model}-{kind}-{capacity}")


def stock_of_flavor(flavor: FlavorFact) -> str:
    return stock_name(flavor.model, flavor.sharing, flavor.replicas, flavor.capacity)


def stock_of_node(node: NodeFact) -> str:
    """As the node is now; "" for one whose cards nobody can place. A cut changes it."""
    known = node.known and node.cards and node.devices
    return stock_name(node.model, node.sharing, node.replicas, node.capacity) if known else ""


def stocks_of(flavors: Iterable[FlavorFact], nodes: Iterable[NodeFact]) -> tuple[Stock, ...]:
    """The stocks behind these flavors. Resource names as nodes of a stock advertise them, else the usual ones."""
    seen: dict[tuple[str, str], str] = {}
    for node in nodes:
        for device in node.devices:
            seen.setdefault((stock_of_node(node), catalog.dotted(device.profile)), device.resource)
    found: dict[str, Stock] = {}
    for flavor in flavors:
        name = stock_of_flavor(flavor)
        resource = seen.get((name, catalog.dotted(flavor.profile)), usual_resource(flavor))
        before = found[name].units if name in found else {}
        found[name] = Stock(
            flavor.model, flavor.sharing, flavor.replicas, flavor.capacity, {**before, resource: flavor.share}
        )
    return tuple(found[name] for name in sorted(found))


def resource_of(flavor: FlavorFact, nodes: Iterable[NodeFact]) -> str:
    """The name under which a node of the flavor's stock gives it out."""
    return next(iter(stocks_of([flavor], nodes)[0].units))


def usual_resource(flavor: FlavorFact) -> str:
    model = catalog.model(flavor.model)
    if flavor.sharing is Sharing.MIG:
        profile = model.mig.profile(flavor.profile) if model and model.mig else None
        return profile.resource if profile else f"nvidia.com/mig-{flavor.profile}"
    return model.resource if model else "nvidia.com/gpu"


def mixed_models(stocks: Iterable[Stock]) -> frozenset[str]:
    """Models whose cards Kueue knows under more than one name: it cannot keep their sum, so Berth does."""
    counts: dict[str, int] = {}
    for stock in stocks:
        counts[stock.model] = counts.get(stock.model, 0) + len(stock.units)
    return frozenset(model for model, count in counts.items() if count > 1)


# The objects


def queue_documents(teams: Iterable[TeamFact], stocks: Iterable[Stock]) -> Iterator[Document]:
    """All of it, in the order in which it is written: what is named comes before what names it."""
    kinds = sorted(stocks, key=lambda stock: stock.name)
    tree = sorted(teams, key=lambda team: team.slug)
    yield host_flavor()
    yield from (resource_flavor(stock) for stock in kinds)
    yield from (cohort(team, kinds) for team in tree if team.heads or not team.parent)
    yield from (cluster_queue(team, kinds) for team in tree)
    for team in tree:
        yield namespace_document(team.namespace, team.slug)
        yield local_queue(team)


def resource_flavor(stock: Stock) -> Document:
    spec = {"nodeLabels": {names.STOCK: stock.name}, "tolerations": [tolerate(key) for key in usual_taints(stock)]}
    return {**headed("ResourceFlavor", stock.flavor), "spec": spec}


def host_flavor() -> Document:
    return {**headed("ResourceFlavor", HOST), "spec": {}}


def cohort(team: TeamFact, stocks: Iterable[Stock]) -> Document:
    """A team with teams below it: its limits bound the whole branch. What it gave to nobody is in its own queue."""
    spec: Document = {"parentName": queue_name(team.parent)} if team.parent else {}
    bounded = [model for model, limit in team.limits.items() if limit != Limit()]
    if team.parent and bounded:
        spec["resourceGroups"] = [card_group({}, team.limits, list(stocks))]
    return {**headed("Cohort", team.queue), "spec": spec}


def cluster_queue(team: TeamFact, stocks: Iterable[Stock]) -> Document:
    """What is the team's own is reclaimed from whoever borrowed it; within a team nobody is pushed out."""
    kinds = list(stocks)
    groups = [card_group(team.cards, {} if team.heads else team.limits, kinds)] if kinds else []
    spec = {
        "cohortName": team.cohort,
        "queueingStrategy": "BestEffortFIFO",
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": team.namespace}},
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "Never"},
        "resourceGroups": [*groups, host_group()],
    }
    return {**headed("ClusterQueue", team.queue), "spec": spec}


def local_queue(team: TeamFact) -> Document:
    return {**headed("LocalQueue", LOCAL_QUEUE, team.namespace), "spec": {"clusterQueue": team.queue}}


def card_group(cards: Mapping[str, F], limits: Mapping[str, Limit], stocks: list[Stock]) -> Document:
    """Every flavor has to list every resource; of those that it does not have, nobody has any."""
    covered = sorted({resource for stock in stocks for resource in stock.units})
    flavors = [
        {
            "name": stock.flavor,
            "resources": [amounts(resource, stock, cards, limits) for resource in covered],
        }
        for stock in stocks
    ]
    return {"coveredResources": covered, "flavors": flavors}


def amounts(resource: str, stock: Stock, cards: Mapping[str, F], limits: Mapping[str, Limit]) -> Document:
    share = stock.units.get(resource)
    if share is None:
        return {"name": resource, "nominalQuota": "0"}
    nominal = units_in(cards.get(stock.model, F(0)), share)
    found: Document = {"name": resource, "nominalQuota": str(nominal)}
    limit = limits.get(stock.model, Limit())
    if limit.borrowing is not None:
        found["borrowingLimit"] = str(units_in(limit.borrowing, share))
    if limit.lending is not None:
        found["lendingLimit"] = str(min(nominal, units_in(limit.lending, share)))
    return found


def units_in(cards: F, share: F) -> int:
    """Whole units that so many cards give; what is left over is given to nobody."""
    return max(0, int(cards / share))


def host_group() -> Document:
    resources = [{"name": name, "nominalQuota": amount} for name, amount in PLENTY.items()]
    return {"coveredResources": list(PLENTY), "flavors": [{"name": HOST, "resources": resources}]}


def usual_taints(stock: Stock) -> tuple[str, ...]:
    """Taints that merely say "a node with cards": a flavor tolerates at most eight."""
    model = catalog.model(stock.model)
    own = f"{model.vendor if model else 'nvidia'}.com/gpu"
    return (own, *TAINTS, *(SPOT_TAINTS if stock.capacity is Capacity.SPOT else ()))


def tolerate(key: str) -> Document:
    return {"key": key, "operator": "Exists"}


def headed(kind: str, name: str, namespace: str = "") -> Document:
    meta: Document = {"name": name, "labels": {names.MANAGED_BY: names.MANAGER}}
    return {"apiVersion": VERSION, "kind": kind, "metadata": meta | ({"namespace": namespace} if namespace else {})}


# Workloads


def queued_documents(launch: LaunchFact, stock: str) -> tuple[Document, ...]:
    """Namespace, home and Job of a workload that Kueue is to admit, in the order in which they are applied."""
    home = (home_claim(launch),) if keeps_home(launch) else ()
    return namespace_document(launch.namespace, launch.team), *home, queued_job(launch, stock)


def queued_job(launch: LaunchFact, stock: str) -> Document:
    """Suspended until Kueue admits it. It names its kind of cards; which node, Kueue and the scheduler decide."""
    document = job(launch)
    document["metadata"]["labels"][names.QUEUE] = LOCAL_QUEUE
    spec = document["spec"]
    spec["suspend"] = True
    pod = spec["template"]["spec"]
    pod["tolerations"] = []
    pod["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": among(stock)}}
    if launch.kind is Kind.WORKSPACE:  # its program is started again where it is
        pod["restartPolicy"] = "OnFailure"
        spec["backoffLimit"] = RESTARTS
        spec.pop("podFailurePolicy", None)
    if keeps_home(launch):
        pod["volumes"].append({"name": "home", "persistentVolumeClaim": {"claimName": claim_name(launch)}})
    return document


def home_claim(launch: LaunchFact) -> Document:
    """A claim of its own: it outlives the Job, which goes when the workspace sleeps."""
    meta = {
        "name": claim_name(launch),
        "namespace": launch.namespace,
        "labels": {names.MANAGED_BY: names.MANAGER, names.WORKLOAD: str(launch.workload)},
    }
    size = {"requests": {"storage": f"{launch.storage_gib}Gi"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": meta,
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": size},
    }


def claim_name(launch: LaunchFact) -> str:
    """As a StatefulSet would call it, so that a home is found again whichever way its cluster queues."""
    return f"home-{object_name(launch.name, launch.workload)}-0"


def keeps_home(launch: LaunchFact) -> bool:
    return launch.kind is Kind.WORKSPACE and launch.storage_gib > 0


def among(stock: str) -> Document:
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": names.STOCK, "operator": "In", "values": [stock]}]}]}


# Comparing


def essence(document: Mapping[str, Any]) -> Any:
    """What of an object is ours to say, in a form that can be compared: the server's defaults are left out.

    So is stopPolicy: an operator may hold a queue by hand.
    """
    spec = document.get("spec") or {}
    return KINDS[document["kind"]](spec)


def group_essence(groups: Any) -> Any:
    return [
        (
            group.get("coveredResources"),
            [
                (one.get("name"), [unit_essence(unit) for unit in one.get("resources") or ()])
                for one in flavors_in(group)
            ],
        )
        for group in groups or ()
    ]


def flavors_in(group: Mapping[str, Any]) -> Any:
    return group.get("flavors") or ()


def unit_essence(unit: Mapping[str, Any]) -> Any:
    return unit.get("name"), [number(unit.get(key)) for key in UNITS]


def number(value: Any) -> F | str | None:
    """A server may write a quantity in another way: 1000 as 1k."""
    try:
        return None if value is None else quantity(value)
    except BadQuantity:
        return str(value)


def flavor_essence(spec: Mapping[str, Any]) -> Any:
    tolerations = [(one.get("key"), one.get("operator"), one.get("effect")) for one in spec.get("tolerations") or ()]
    return spec.get("nodeLabels") or {}, tolerations, spec.get("nodeTaints") or []


def cluster_queue_essence(spec: Mapping[str, Any]) -> Any:
    preemption = spec.get("preemption") or {}
    return (
        spec.get("cohortName"),
        spec.get("queueingStrategy"),
        spec.get("namespaceSelector"),
        preemption.get("reclaimWithinCohort"),
        preemption.get("withinClusterQueue"),
        group_essence(spec.get("resourceGroups")),
    )


KINDS: Mapping[str, Any] = {
    "ResourceFlavor": flavor_essence,
    "Cohort": lambda spec: (spec.get("parentName"), group_essence(spec.get("resourceGroups"))),
    "ClusterQueue": cluster_queue_essence,
    "LocalQueue": lambda spec: spec.get("clusterQueue"),
}
"""Each kind that Berth writes, in the order in which it is written."""
