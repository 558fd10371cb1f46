"""From rows to the cluster's objects and back: what is put for a workload, and what has to go with it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta as td
from functools import partial
from uuid import UUID

from django.conf import settings

from scheduling.choices import Queueing
from scheduling.cluster.belongings import belongings, host_name, owner_reference, route_document
from scheduling.cluster.kueue import queued_documents
from scheduling.cluster.port import ClusterError, ClusterPort, Ref
from scheduling.cluster.writing import Document, LaunchFact, RouteFact, job_documents, object_name, workspace_documents
from scheduling.models import Cluster, Placement, Workload
from scheduling.planning.cuda import in_words
from scheduling.planning.facts import Kind, NodeFact, ObjectFact
from scheduling.planning.shares import share_words

NOT_FOUND = 404


def put_all(
    row: Workload, placement: Placement, node: NodeFact, port: ClusterPort, *, none_of: Iterable[str] = ()
) -> None:
    """Apply the documents of a placed workload, in order. Twice is the same as once.

    `none_of`: resources that somebody else has added; what another manager has set, an apply takes away by no less.
    """
    launch = replace(launch_of(row, placement, node), none_of=tuple(none_of))
    write_furnished(row, *put_launch(launch, port))


def furnishing(launch: LaunchFact, thing: ObjectFact, port: ClusterPort) -> Callable[[], tuple[str, str]]:
    """The call that applies what belongs to a workload whose object is there already, as after a put that broke off
    between the two. It asks no tables."""
    return partial(put_belongings, launch, owner_reference(thing.kind, thing.name, thing.uid), port)


def runtime_classes(cluster: Cluster) -> Mapping[str, str]:
    """By pool. One query."""
    return dict(cluster.pools.values_list("name", "runtime_class"))


def put_launch(launch: LaunchFact, port: ClusterPort) -> tuple[str, str]:
    """The calls alone, without the tables: the address that the workload answers at, and why it has none."""
    documents = workspace_documents(launch) if launch.kind is Kind.WORKSPACE else job_documents(launch)
    uid = [port.put(document) for document in documents][-1]
    last = documents[-1]
    return put_belongings(launch, owner_reference(last["kind"], last["metadata"]["name"], uid), port)


def put_belongings(launch: LaunchFact, owner: Document, port: ClusterPort) -> tuple[str, str]:
    """The same for what belongs to an object. A way in that cannot be made is no reason not to run."""
    for document in belongings(launch, owner):
        port.put(document)
    route = route_document(launch, owner)
    if route is None or launch.route is None:
        return "", ""
    try:
        port.put(route)
    except ClusterError as error:
        return "", no_way_in(route["kind"], error)
    return f"https://{host_name(launch.name, launch.workload, launch.route.domain)}/", ""


def no_way_in(kind: str, error: ClusterError) -> str:
    if error.status == NOT_FOUND:
        return f"The cluster knows no objects of kind {kind}, so this workspace has no address of its own."
    return f"No address could be made for it: {error}"


def write_furnished(row: Workload, address: str, problem: str) -> None:
    """All of this attempt is in the cluster; where it is reached, or why not."""
    write_all_furnished([(row, (address, problem))])


def write_all_furnished(found: Iterable[tuple[Workload, tuple[str, str]]]) -> None:
    """The same for many; those of whom the same is to be said are written together."""
    alike: defaultdict[tuple[int, str, str], list[UUID]] = defaultdict(list)
    for row, (address, problem) in found:
        alike[row.attempt, address, problem[:300]].append(row.pk)
    for (attempt, address, problem), pks in alike.items():
        rows = Workload.objects.filter(pk__in=pks, attempt=attempt)
        rows.update(furnished=attempt, address=address, address_problem=problem)


def queue_all(row: Workload, stock: str, resource: str, runtime_class: str, port: ClusterPort) -> None:
    """Apply the documents of a workload that Kueue is to admit; which node it gets, nobody here knows."""
    for document in queued_documents(replace(queued_launch(row, resource), runtime_class=runtime_class), stock):
        port.put(document)


def removal(row: Workload, port: ClusterPort, *, storage: bool) -> Callable[[], bool]:
    """The call that removes what stands for a workload; its home too with `storage`. It asks no tables.

    What belongs to it (service, facts, way in) goes with it: the cluster sees to that. What is already gone is fine.
    """
    return partial(remove_refs, tuple(_refs(row, storage=storage)), port)


def remove_refs(refs: Iterable[Ref], port: ClusterPort) -> bool:
    """Whether any of them was still there."""
    removed = [port.remove(ref) for ref in refs]
    return any(removed)


def ref_of(row: Workload) -> Ref:
    """The object that stands for the workload."""
    kind = "StatefulSet" if row.kind == Kind.WORKSPACE and is_direct(row) else "Job"
    return Ref(kind, row.team.namespace, object_name(row.name, row.pk))


def is_direct(row: Workload) -> bool:
    return row.cluster.queueing == Queueing.DIRECT


def launch_of(
    row: Workload, placement: Placement, node: NodeFact, classes: Mapping[str, str] | None = None
) -> LaunchFact:
    """All taints of a node that the plan chose are tolerated: a fit node has none but those of its pool.

    `classes` are the pools' runtime classes, where they are at hand.
    """
    launch = queued_launch(row, placement.resource)
    found = runtime_classes(row.cluster) if classes is None else classes
    return replace(
        launch,
        node=placement.node,
        tolerations=node.taints,
        attempt=row.attempt,
        runtime_class=found.get(placement.pool, ""),
        facts=tuple(tenancy_of(row, placement, node).items()) if is_direct(row) else (),
    )


def queued_launch(row: Workload, resource: str) -> LaunchFact:
    """Of the attempt that comes next, on a node that is not known; so it cannot be told of that node either."""
    return LaunchFact(
        workload=row.pk,
        name=row.name,
        kind=Kind(row.kind),
        namespace=row.team.namespace,
        team=row.team.slug,
        owner=row.owner_id,
        image=row.image,
        command=("sh", "-c", row.command) if row.command.strip() else (),
        env=(),
        resource=resource,
        count=row.count,
        cpu_milli=row.cpu_milli,
        memory_mib=row.memory_mib,
        storage_gib=row.storage_gib,
        node="",
        tolerations=(),
        attempt=row.attempt + 1,
        grace=td(seconds=row.grace_seconds),
        checkpoint=row.checkpoint,
        pull_secrets=tuple(row.cluster.pull_secrets),
        route=route_of(row.cluster),
    )


def route_of(cluster: Cluster) -> RouteFact | None:
    if not cluster.route_kind or not cluster.route_domain:
        return None
    return RouteFact(cluster.route_kind, cluster.route_domain, cluster.route_class)


def tenancy_of(row: Workload, placement: Placement, node: NodeFact) -> dict[str, str]:
    """What a workload may read of itself: what it got, until when, and where its page is."""
    hours = f"{row.hours} hours after it first ran" if row.hours else "when it is ended"
    ends = row.first_ran_at + td(hours=row.hours) if row.first_ran_at and row.hours else None
    return {
        "workload": str(row.pk),
        "name": row.name,
        "kind": row.kind,
        "team": row.team.slug,
        "flavor": row.flavor.sku,
        "holds": f"{share_words(placement.share)} of {row.flavor.model}",
        "resource": placement.resource,
        "units": str(row.count),
        "cpu": f"{row.cpu_milli}m",
        "memory": f"{row.memory_mib}Mi",
        "storage": f"{row.storage_gib}Gi",
        "cluster": row.cluster.name,
        "pool": placement.pool,
        "node": placement.node,
        "cuda": in_words(node.cuda),
        "attempt": str(row.attempt),
        "placed_at": placement.placed_at.isoformat(timespec="seconds"),
        "ends": ends.isoformat(timespec="seconds") if ends else hours,
        "seconds_to_stop": str(row.grace_seconds),
        "page": f"{settings.BERTH_URL}/workloads/{row.pk}/",
    }


def _refs(row: Workload, *, storage: bool) -> Iterator[Ref]:
    ref = ref_of(row)
    yield ref
    if row.kind == Kind.WORKSPACE and storage and row.storage_gib:
        yield Ref("PersistentVolumeClaim", ref.namespace, f"home-{ref.name}-0")
