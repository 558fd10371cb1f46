"""Hearing of changes: a watch rings for what matters, and for nothing else."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from scheduling.cluster.mirror import NODES, PODS, Collection, Watch
from tests.contract.conftest import Rig
from tests.contract.launches import NOTEBOOK, ROW, put_all


@contextmanager
def ringing(cluster: Rig, collection: Collection) -> Iterator[Iterator[None]]:
    """A watch whose connection ends with the test."""
    rings = Watch(cluster.port, collection).rings()
    try:
        yield rings
    finally:
        rings.close()


def test_a_cordon_rings(cluster: Rig) -> None:
    name = cluster.nodes_of("h100-mig")[0].name

    with ringing(cluster, NODES) as rings:
        next(rings)  # at the beginning: somebody has to look
        cluster.port.cordon(name, on=True, marks={"berth.portal/leaving": "yes"})
        next(rings)

    assert cluster.node(name).leaving


def test_a_pod_of_ours_rings_from_its_first_word(cluster: Rig) -> None:
    node = cluster.nodes_of("h100-train")[0].name

    with ringing(cluster, PODS) as rings:
        next(rings)
        put_all(cluster.port, replace(NOTEBOOK, node=node))
        cluster.pass_time()
        next(rings)

    cluster.until(lambda look: any(pod.workload == ROW for pod in look.pods))
