"""From rows to the cluster's objects and back: what is put for a workload, and what has to go with it."""

from collections.abc import Iterator

from scheduling.cluster.port import ClusterPort, Ref
from scheduling.cluster.writing import LaunchFact, job_documents, object_name, workspace_documents
from scheduling.models import Placement, Workload
from scheduling.planning.facts import Kind, NodeFact


def put_all(row: Workload, placement: Placement, node: NodeFact, port: ClusterPort) -> None:
    """Apply the documents of a placed workload, in order. Twice is the same as once."""
    launch = launch_of(row, placement, node)
    documents = workspace_documents(launch) if launch.kind is Kind.WORKSPACE else job_documents(launch)
    for document in documents:
        port.put(document)


def remove_all(row: Workload, port: ClusterPort, *, storage: bool) -> None:
    """Remove what stands for a workload; its home too with `storage`. What is already gone is fine."""
    for ref in _refs(row, storage=storage):
        port.remove(ref)


def ref_of(row: Workload) -> Ref:
    """The object that stands for the workload."""
    kind = "StatefulSet" if row.kind == Kind.WORKSPACE else "Job"
    return Ref(kind, row.team.namespace, object_name(row.name, row.pk))


def launch_of(row: Workload, placement: Placement, node: NodeFact) -> LaunchFact:
    """All taints of a node that the plan chose are tolerated: a fit node has none but those of its pool."""
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
        resource=placement.resource,
        count=row.count,
        cpu_milli=row.cpu_milli,
        memory_mib=row.memory_mib,
        storage_gib=row.storage_gib,
        node=placement.node,
        tolerations=node.taints,
        attempt=row.attempt,
    )


def _refs(row: Workload, *, storage: bool) -> Iterator[Ref]:
    ref = ref_of(row)
    yield ref
    if ref.kind == "StatefulSet":
        yield Ref("Service", ref.namespace, ref.name)
        if storage and row.storage_gib:
            yield Ref("PersistentVolumeClaim", ref.namespace, f"home-{ref.name}-0")
