"""The port of a cluster's row. One adapter per cluster and process, kept: connections and threads stay flat (W5).

The Kubernetes client is imported here when first needed, and not earlier: web processes rarely need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from django.conf import settings

from scheduling.models import Cluster

if TYPE_CHECKING:
    from scheduling.cluster.client import KubernetesPort


class Way(NamedTuple):
    """All of a cluster's row that leads to it. A row in which any of it changes leads elsewhere."""

    server: str
    token_file: str
    authority_file: str
    metrics_namespace: str


_ports: dict[int, tuple[Way, KubernetesPort]] = {}  # by the row's key
_rings: dict[int, Callable[[], None]] = {}  # of the clusters that this process watches
_lock = Lock()


@contextmanager
def port_for(cluster: Cluster) -> Iterator[KubernetesPort]:
    """The cluster's adapter, for the length of a piece of work."""
    yield kubernetes_port(cluster)


def kubernetes_port(cluster: Cluster) -> KubernetesPort:
    """The cluster's adapter in this process; a new one when its row has changed, and the old one is closed.

    Where this process watches the cluster, the new one does so at once. Raises ClusterError for an address that is
    none, or a token file that cannot be read.
    """
    way = way_to(cluster)
    with _lock:
        before = _ports.get(cluster.pk)
        if before and before[0] == way:
            return before[1]
        _ports.pop(cluster.pk, None)
        try:
            port = opened(way)
            _ports[cluster.pk] = way, port
            if cluster.pk in _rings:
                port.watch(_rings[cluster.pk], cluster.name)
            return port
        finally:
            if before:
                before[1].close()  # whoever is in the middle of a call ends it as it was begun


def listen(cluster: Cluster, ring: Callable[[], None]) -> None:
    """Watch the cluster from this process, wherever its row leads; `ring` at what matters. Raises ClusterError."""
    _rings[cluster.pk] = ring
    kubernetes_port(cluster).watch(ring, cluster.name)


def way_to(cluster: Cluster) -> Way:
    return Way(cluster.server, cluster.token_file, cluster.authority_file, cluster.metrics_namespace)


def opened(way: Way) -> KubernetesPort:
    from scheduling.cluster.client import Connection, KubernetesPort  # noqa: PLC0415

    connection = Connection(way.server, token_file=way.token_file, authority_file=way.authority_file)
    return KubernetesPort(connection, metrics_namespace=way.metrics_namespace, silence=settings.BERTH_SILENCE_SECONDS)


def forget_ports() -> None:
    """Close every adapter of this process, and watch nothing any more."""
    with _lock:
        _rings.clear()
        while _ports:
            _, (_, port) = _ports.popitem()
            port.close()
