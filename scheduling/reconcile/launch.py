"""From rows to the cluster's objects and back: what is put for a workload, and what has to go with it."""

from collections.abc import Iterator
from dataclasses import replace

from scheduling.cluster.kueue import queued_documents
from scheduling.cluster.port import ClusterPort, Ref
from scheduling.cluster.writing import LaunchFact, job_documents, object_name, workspace_documents
from scheduling.models import Placement, Queueing, Workload
from scheduling.planning.facts import Kind, NodeFact


def put_all(row: Workload, placement: Placement, node: NodeFact, port: ClusterPort) -> None:
    """Apply the documents of a placed workload, in order. Twice is the same as once."""
    launch = launch_of(row, placement, node)
    documents = workspace_documents(launch) if launch.kind is Kind.WORKSPACE else job_documents(launch)
    for document in documents:
        port.put(document)


def queue_all(row: Workload, stock: str, resource: str, port: ClusterPort) -> None:
    """Apply the documents of a workload that Kueue is to admit; which node it gets, nobody here knows."""
    for document in queued_documents(queued_launch(row, resource), stock):
        port.put(document)


def remove_all(row: Workload, port: ClusterPort, *, storage: bool) -> None:
    """Remove what stands for a workload; its home too with `storage`. What is already gone is fine."""
    for ref in _refs(row, storage=storage):
        port.remove(ref)


def ref_of(row: Workload) -> Ref:
    """The object that stands for the workload."""
    direct = row.cluster.queueing == Queueing.DIRECT
    kind = "StatefulSet" if row.kind == Kind.WORKSPACE and direct else "Job"
    return Ref(kind, row.team.namespace, object_name(row.name, row.pk))


def launch_of(row: Workload, placement: Placement, node: NodeFact) -> LaunchFact:
    """All taints of a node that the plan chose are tolerated: a fit node has none but those of its pool."""
    launch = queued_launch(row, placement.resource)
    return replace(launch, node=placement.node, tolerations=node.taints, attempt=row.attempt)


def queued_launch(row: Workload, resource: str) -> LaunchFact:
    """Of the attempt that comes next, on a node that is not known."""
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
    )


def _refs(row: Workload, *, storage: bool) -> Iterator[Ref]:
    ref = ref_of(row)
    yield ref
    if ref.kind == "StatefulSet":
        yield Ref("Service", ref.namespace, ref.name)
    if row.kind == Kind.WORKSPACE and storage and row.storage_gib:
        yield Ref("PersistentVolumeClaim", ref.namespace, f"home-{ref.name}-0")
