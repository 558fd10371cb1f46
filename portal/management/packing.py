"""What `plan` does: files to a fleet and requests, and these to a run of a policy."""

from dataclasses import dataclass, replace

import numpy as np

from portal.bench.openb import placer_of
from portal.management.console import CouldNot, read_file
from scheduling.planning.facts import Problem
from scheduling.planning.fragments import fragmentation
from scheduling.planning.hosts import Host, Hosts
from scheduling.planning.mix import Ask, mix_of
from scheduling.planning.replay import Arrived, arrive, in_random_order, offered
from scheduling.planning.traces import looks_like_trace, read_hosts, read_pods

MARK = 100


@dataclass(frozen=True, slots=True)
class Fleet:
    """What two files hold, and what is odd about them, as sentences."""

    hosts: tuple[Host, ...]
    asks: tuple[Ask, ...]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Packed:
    policy: str
    arrived: Arrived
    fragmentation: float


def read_fleet(nodes: str, pods: str) -> Fleet:
    """Raises CouldNot where a file cannot be read, or there is no node or no pod in it."""
    if nodes == pods == "-":
        raise CouldNot("Nodes and pods cannot both come from standard input; give one of them as a file.")
    (node_file, node_text), (pod_file, pod_text) = read_file(nodes), read_file(pods)
    if looks_like_trace(node_text) or looks_like_trace(pod_text):
        return _of_traces(node_file, node_text, pod_file, pod_text)
    return read_documents(node_file, node_text, pod_file, pod_text)


def read_documents(node_file: str, node_text: str, pod_file: str, pod_text: str) -> Fleet:
    """Node and Pod lists of Kubernetes."""
    raise CouldNot(f"{node_file}: line 1: this is no openb node list; its first line names sn, cpu_milli and others.")


def pack(fleet: Fleet, *, policy: str, seed: int | None, arrivals: float | None) -> Packed:
    """Packs as the pods come: in the file's order, or shuffled by the seed and drawn on until `arrivals`.

    What the policies know beforehand is how often each kind of pod stands in the file.
    """
    random = np.random.default_rng(0 if seed is None else seed)
    hosts = Hosts(fleet.hosts) if seed is None else in_random_order(fleet.hosts, random)
    mix = mix_of((ask, 1.0) for ask in fleet.asks)
    if mix is None:
        raise CouldNot("There is no pod to place.")
    marks = [MARK] if arrivals is None else sorted({min(MARK, round(MARK * arrivals)), round(MARK * arrivals)})
    until = None if arrivals is None else hosts.capacity * arrivals
    in_order = seed is None and arrivals is None
    arrived = arrive(
        placer_of(policy, mix, hosts), fleet.asks if in_order else offered(fleet.asks, until, random), marks
    )
    return Packed(policy, arrived, fragmentation(mix, hosts))


def _of_traces(node_file: str, node_text: str, pod_file: str, pod_text: str) -> Fleet:
    hosts, odd_hosts = read_hosts(node_text)
    pods, odd_pods = read_pods(pod_text)
    odd = [*_sentences(node_file, odd_hosts), *_sentences(pod_file, odd_pods)]
    if not hosts:
        raise CouldNot(odd[0] if odd_hosts else f"{node_file}: sn: there is no node in it.")
    if not pods:
        raise CouldNot(_sentences(pod_file, odd_pods)[0] if odd_pods else f"{pod_file}: name: there is no pod in it.")
    return Fleet(tuple(hosts), tuple(pod.ask for pod in pods), tuple(odd))


def _sentences(file: str, problems: list[Problem]) -> list[str]:
    named = [replace(problem, where=f"{file}: {problem.where}") for problem in problems]
    return [": ".join(part for part in (problem.where, problem.field, problem.text) if part) + "." for problem in named]
