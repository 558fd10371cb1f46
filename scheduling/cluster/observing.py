"""One look at a cluster: every list that a plan needs, or the word that one is missing."""

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import TypeVar

from scheduling.cluster import names
from scheduling.cluster.api import Api, list_path, pages
from scheduling.cluster.port import ClusterError, Observation, PoolSize
from scheduling.cluster.reading import Decoded, decode_nodes, decode_objects, decode_pods
from scheduling.planning.facts import ObjectFact, Problem

Fact = TypeVar("Fact")


class Look:
    """Gathers lists; what cannot be read is remembered instead of raised."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.problems: list[Problem] = []
        self.complete = True

    def at(self, kind: str, decode: Callable[[bytes], Decoded[Fact]], selector: str = "") -> tuple[Fact, ...]:
        """All objects of a kind, of every namespace. Raises a ClusterError."""
        path = list_path(kind)
        facts: list[Fact] = []
        for page in pages(self.api, path, {"labelSelector": selector} if selector else None):
            found = decode(page)
            facts += found.facts
            self.problems += [Problem(kind, problem.field, problem.text) for problem in found.problems]
        return tuple(facts)

    def maybe(self, what: str, read: Callable[[], tuple[Fact, ...]]) -> tuple[Fact, ...]:
        """The same, or nothing and the word that it is missing."""
        try:
            return read()
        except ClusterError as error:
            self.complete = False
            self.problems.append(Problem(what, "", str(error)))
            return ()


def observe(api: Api, sizes: Callable[[Api], tuple[PoolSize, ...]], now: datetime) -> Observation:
    """Raises a ClusterError when not even the nodes can be read: then nothing is known."""
    look = Look(api)
    nodes = look.at("Node", decode_nodes)
    pods = look.maybe("Pod", lambda: look.at("Pod", decode_pods))
    objects = tuple(our_objects(look))
    pools = look.maybe("MachineDeployment", lambda: sizes(api))
    return Observation(
        at=now,
        nodes=nodes,
        pods=pods,
        objects=objects,
        sizes=pools,
        complete=look.complete,
        problems=tuple(look.problems),
    )


def our_objects(look: Look) -> Iterator[ObjectFact]:
    for kind in ("StatefulSet", "Job"):
        decode = partial(decode_objects, kind=kind)
        yield from look.maybe(kind, partial(look.at, kind, decode, names.OUR_PODS))
