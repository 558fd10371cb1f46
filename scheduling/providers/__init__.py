"""Who adds and removes machines: how many there are of each pool, and how to ask for another number."""

from collections.abc import Iterable
from typing import Protocol

from scheduling.cluster.api import Api
from scheduling.cluster.port import PoolSize


class Provider(Protocol):
    def sizes(self, api: Api) -> tuple[PoolSize, ...]:
        """What the provider was asked for and has, of every pool that it knows."""

    def resize(self, api: Api, pool: str, nodes: int, drop: Iterable[str]) -> None:
        """Ask for `nodes` nodes, and to give back `drop` first. Twice is the same as once."""
