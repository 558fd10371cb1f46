"""What the DCGM exporters of nodes print, fetched through the API server's proxy to their pods."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from scheduling.cluster import names
from scheduling.cluster.api import Api, list_path, pages, path_of
from scheduling.cluster.port import ClusterError, Exposition
from scheduling.cluster.reading import decode_pods
from scheduling.planning.facts import PodFact

AT_ONCE = 8
PATIENCE = 5.0  # seconds for one exporter


def expositions(api: Api, nodes: Iterable[str], namespace: str = "") -> list[Exposition]:
    """One per node, in the order of the nodes; a node that fails yields its problem."""
    wanted = list(dict.fromkeys(nodes))
    if not wanted:
        return []
    try:
        pods = exporters(api, namespace)
    except ClusterError as error:
        return [Exposition(node, None, str(error)) for node in wanted]
    with ThreadPoolExecutor(max_workers=min(AT_ONCE, len(wanted)), thread_name_prefix="exporters") as pool:
        return list(pool.map(lambda node: exposition(api, node, pods.get(node)), wanted))


def exporters(api: Api, namespace: str = "") -> Mapping[str, PodFact]:
    """The exporter's pod of each node; of two, as during its upgrade, the one that is ready."""
    found: dict[str, PodFact] = {}
    for page in pages(api, list_path("Pod", namespace), {"labelSelector": names.EXPORTER}):
        for pod in decode_pods(page).facts:
            if pod.node and (pod.ready or pod.node not in found):
                found[pod.node] = pod
    return found


def exposition(api: Api, node: str, pod: PodFact | None) -> Exposition:
    if pod is None:
        return Exposition(node, None, "No metrics exporter runs on this node.")
    path = path_of("Pod", pod.namespace, f"{pod.name}:{names.EXPORTER_PORT}").replace("%3A", ":")
    try:
        text = api.ask("GET", f"{path}/proxy/metrics", timeout=PATIENCE).decode(errors="replace")
    except ClusterError as error:
        return Exposition(node, None, str(error))
    return Exposition(node, text)
