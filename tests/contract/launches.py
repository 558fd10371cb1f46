"""Workloads for the contract suite."""

from dataclasses import replace
from uuid import UUID

from scheduling.cluster.belongings import belongings, owner_reference
from scheduling.cluster.port import ClusterPort, Ref
from scheduling.cluster.writing import LaunchFact, job_documents, object_name, workspace_documents
from scheduling.planning.facts import Kind, Taint

ROW = UUID("0d6e6b52-7c1e-4f0e-9a53-8f1c2b7ad001")
NOTEBOOK = LaunchFact(
    workload=ROW,
    name="Notebook",
    kind=Kind.WORKSPACE,
    namespace="team-vision",
    team="vision",
    owner=7,
    image="example.org/notebook:1",
    command=(),
    env=(),
    resource="nvidia.com/gpu",
    count=1,
    cpu_milli=4000,
    memory_mib=16384,
    storage_gib=10,
    node="a-node-that-is-not-there",
    tolerations=(Taint("nvidia.com/gpu", "present", "NoSchedule"),),
    attempt=1,
)
TRAINING = replace(NOTEBOOK, kind=Kind.JOB, command=("sh", "-c", "sleep 2"), storage_gib=0)
NAME = object_name(NOTEBOOK.name, ROW)
WORKSPACE_REF = Ref("StatefulSet", NOTEBOOK.namespace, NAME)
JOB_REF = Ref("Job", NOTEBOOK.namespace, NAME)


def put_all(port: ClusterPort, launch: LaunchFact) -> str:
    """Apply all documents; the uid of the object that stands for the workload."""
    documents = job_documents(launch) if launch.kind is Kind.JOB else workspace_documents(launch)
    uid = [port.put(document) for document in documents][-1]
    for document in belongings(launch, owner_reference(documents[-1]["kind"], documents[-1]["metadata"]["name"], uid)):
        port.put(document)
    return uid
