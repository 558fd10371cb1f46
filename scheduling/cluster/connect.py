"""The port of a cluster's row. One adapter per cluster and process, kept: connections and threads stay flat (W5)."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from scheduling.cluster.port import ClusterPort
from scheduling.models import Cluster

_ports: dict[tuple[str, str], ClusterPort] = {}
_lock = Lock()


@contextmanager
def port_for(cluster: Cluster) -> Iterator[ClusterPort]:
    """The cluster's adapter. The Kubernetes client is imported here and not earlier: web processes rarely need it."""
    yield _port(cluster)


def forget_ports() -> None:
    """Close every adapter of this process."""
    with _lock:
        while _ports:
            _, port = _ports.popitem()
            port.close()


def _port(cluster: Cluster) -> ClusterPort:
    from scheduling.cluster.client import Connection, KubernetesPort

    key = (cluster.server, cluster.metrics_namespace)
    with _lock:
        if key not in _ports:
            _ports[key] = KubernetesPort(Connection(server=cluster.server), metrics_namespace=cluster.metrics_namespace)
        return _ports[key]
