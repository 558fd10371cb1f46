"""Pools of machines that people add and remove."""

from collections.abc import Iterable

from scheduling.cluster.api import Api
from scheduling.cluster.port import ClusterError
from scheduling.cluster.sources import Source


class Static:
    """Knows no sizes and changes none."""

    source: Source | None = None

    def resize(self, api: Api, pool: str, nodes: int, drop: Iterable[str]) -> None:  # noqa: ARG002
        raise ClusterError(f"Pool {pool} is static: its nodes are added and removed by hand.", retry=False)
