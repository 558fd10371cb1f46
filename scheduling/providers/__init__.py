"""Who adds and removes machines: how many there are of each pool, and how to ask for another number."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from scheduling.cluster.api import Api
from scheduling.cluster.shelf import Key
from scheduling.cluster.sources import Source


class Resized(NamedTuple):
    """The object that says how many nodes a pool shall have, as it is after our write."""

    kind: str
    key: Key
    version: str


class Provider(Protocol):
    @property
    def source(self) -> Source | None:
        """Where the cluster tells the sizes of pools, as facts of type PoolSize; None where nobody tells them there."""

    def resize(self, api: Api, pool: str, nodes: int, drop: Iterable[str]) -> Resized | None:
        """Ask for `nodes` nodes, and to give back `drop` first. Twice is the same as once. None: it stood so."""
