"""Pools as MachineDeployments of Cluster API, in the same API server as the nodes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from scheduling.cluster import names
from scheduling.cluster.api import MERGE, Api, document_in, pages, segment
from scheduling.cluster.documents import DeploymentDocument, MachineDocument
from scheduling.cluster.port import ClusterError, PoolSize
from scheduling.cluster.reading import each, pool_size
from scheduling.cluster.sources import Source
from scheduling.providers import Resized

VERSIONS = ("v1beta2", "v1beta1")  # newest first
NOT_FOUND = 404
KIND = "MachineDeployment"
DEPLOYMENTS = Source(
    kind=KIND,
    paths=tuple(f"/apis/cluster.x-k8s.io/{version}/machinedeployments" for version in VERSIONS),
    document=DeploymentDocument,
    fact=lambda found, _: pool_size(found),
    missing="The cluster does not define machinedeployments.cluster.x-k8s.io: pools of Cluster API cannot be resized.",
)


@dataclass(frozen=True, slots=True)
class Deployment:
    """One MachineDeployment: where it is, and its size."""

    namespace: str
    name: str
    size: PoolSize


class ClusterApi:
    """Remembers which version the server speaks; everything else is read anew each time."""

    def __init__(self) -> None:
        self._version = ""

    source = DEPLOYMENTS

    def resize(self, api: Api, pool: str, nodes: int, drop: Iterable[str]) -> Resized | None:
        found = self._deployment(api, pool)
        self._mark_for_deletion(api, found, frozenset(drop))
        if found.size.wished == nodes:
            return None
        path = f"{self._path(found.namespace, 'machinedeployments')}/{segment(found.name)}/scale"
        answer = document_in(api.ask("PATCH", path, body={"spec": {"replicas": nodes}}, content=MERGE))
        version = str((answer.get("metadata") or {}).get("resourceVersion", ""))
        return Resized(KIND, (found.namespace, found.name), version)

    def _deployment(self, api: Api, pool: str) -> Deployment:
        try:
            fitting = [found for found in self._deployments(api) if found.size.pool == pool]
        except ClusterError as error:
            if error.status != NOT_FOUND:
                raise
            fitting = []
        if len(fitting) != 1:
            number = "no MachineDeployment" if not fitting else f"{len(fitting)} MachineDeployments"
            text = f"Pool {pool} has {number} of Cluster API; it needs one to be resized."
            raise ClusterError(text, status=NOT_FOUND, retry=False)
        return fitting[0]

    def _deployments(self, api: Api) -> Iterator[Deployment]:
        for page in self._list(api, "machinedeployments"):
            yield from each(page, DeploymentDocument, lambda found, _: deployment(found)).facts

    def _list(self, api: Api, plural: str) -> list[bytes]:
        """The list in the newest version that the server speaks."""
        trouble: ClusterError | None = None
        for version in (self._version,) if self._version else VERSIONS:
            self._version = version
            try:
                return list(pages(api, self._path("", plural)))
            except ClusterError as error:
                self._version = ""
                if error.status != NOT_FOUND:
                    raise
                trouble = error
        raise trouble or ClusterError("The cluster speaks no version of Cluster API that Berth knows.", retry=False)

    def _mark_for_deletion(self, api: Api, found: Deployment, nodes: frozenset[str]) -> None:
        """Of the machines of a set, Cluster API deletes those first that carry its mark."""
        if not nodes:
            return
        selector = {"labelSelector": f"{names.CLUSTER_API_DEPLOYMENT}={found.name}"}
        path = self._path(found.namespace, "machines")
        mark = {"metadata": {"annotations": {names.DELETE_MACHINE: "true"}}}
        for page in pages(api, path, selector):
            for machine in each(page, MachineDocument, lambda machine, _: machine).facts:
                if machine.status.node_ref and machine.status.node_ref.name in nodes:
                    api.ask("PATCH", f"{path}/{segment(machine.metadata.name)}", body=mark, content=MERGE)

    def _path(self, namespace: str, plural: str) -> str:
        inside = f"/namespaces/{segment(namespace)}" if namespace else ""
        return f"/apis/cluster.x-k8s.io/{self._version}{inside}/{plural}"


def deployment(found: DeploymentDocument) -> Deployment:
    return Deployment(found.metadata.namespace, found.metadata.name, pool_size(found))
