"""The port of a cluster's row. One adapter per cluster and process, kept: connections and threads stay flat (W5).

The Kubernetes client is imported here when first needed, and not earlier: web processes rarely need it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from scheduling.models import Cluster

if TYPE_CHECKING:
    from scheduling.cluster.client import KubernetesPort

_ports: dict[tuple[str, str], KubernetesPort] = {}
_lock = Lock()


@contextmanager
def port_for(cluster: Cluster) -> Iterator[KubernetesPort]:
    """The cluster's adapter, for the length of a piece of work."""
    yield kubernetes_port(cluster)


def kubernetes_port(cluster: Cluster) -> KubernetesPort:
    """The cluster's adapter in this process. Raises ClusterError for an address that is none."""
    from scheduling.cluster.client import Connection, KubernetesPort  # noqa: PLC0415

    key = (cluster.server, cluster.metrics_namespace)
    with _lock:
        if key not in _ports:
            _ports[key] = KubernetesPort(Connection(server=cluster.server), metrics_namespace=cluster.metrics_namespace)
        return _ports[key]


def forget_ports() -> None:
    """Close every adapter of this process."""
    with _lock:
        while _ports:
            _, port = _ports.popitem()
            port.close()
