"""The openb traces as published, and rows that are odd."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduling.planning.hosts import Host
from scheduling.planning.mix import Ask
from scheduling.planning.traces import looks_like_trace, read_hosts, read_pods

FOLDER = Path(__file__).resolve().parents[2] / "data" / "openb"
HOSTS = "sn,cpu_milli,memory_mib,gpu,model\n"
NO_PART = "a pod with a card has to ask for a part of it, 1 to 1000"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"


def test_the_published_nodes_are_all_read() -> None:
    hosts, problems = read_hosts((FOLDER / "openb_node_list_gpu_node.csv").read_text())
    assert (len(hosts), sum(host.cards for host in hosts), problems) == (1213, 6212, [])
    assert hosts[0] == Host("openb-node-0000", "P100", 2, 64_000, 262_144)


@pytest.mark.parametrize(
    ("trace", "pods", "wishes"),
    [("default", 8152, 0), ("gpushare40", 8152, 0), ("gpuspec10", 8152, 732), ("multigpu20", 8324, 0)],
)
def test_the_published_pods_are_all_read(trace: str, pods: int, wishes: int) -> None:
    found, problems = read_pods((FOLDER / f"openb_pod_list_{trace}.csv").read_text())
    assert (len(found), sum(bool(pod.ask.models) for pod in found), problems) == (pods, wishes, [])


def test_a_pod_is_read_with_its_times() -> None:
    header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,scheduled_time\n"
    [pod], _ = read_pods(header + "p,4000,8192,1,460,V100M16|V100M32,7,90,\n")
    assert pod.ask == Ask(4000, 8192, 1, 460, frozenset({"V100M16", "V100M32"}))
    assert (pod.created, pod.deleted, pod.scheduled) == (7, 90, None)


ASKS = {
    "several cards are whole cards": ("p,1,2,4,500,\n", Ask(1, 2, 4, 1000)),
    "no card, whatever its thousandths": ("p,1,2,0,500,T4\n", Ask(1, 2, 0, 0)),
    "nothing said is nothing asked": ("p,1,,,,\n", Ask(1, 0, 0, 0)),
}


@pytest.mark.parametrize(("row", "ask"), ASKS.values(), ids=ASKS)
def test_a_row_is_a_request(row: str, ask: Ask) -> None:
    [pod], problems = read_pods(PODS + row)
    assert (pod.ask, problems) == (ask, [])


ODD_PODS = {
    "an amount below nothing": ("p,-1,2,1,500,\n", "cpu_milli", "'-1' is not a whole number from 0 on"),
    "half a core in words": ("p,500m,2,1,500,\n", "cpu_milli", "'500m' is not a whole number from 0 on"),
    "more than one card's thousandths": ("p,1,2,1,1001,\n", "gpu_milli", "1001 is more than 1000"),
    "a card without a part of it": ("p,1,2,1,0,\n", "gpu_milli", NO_PART),
    "more cards than a node can have": ("p,1,2,65,1000,\n", "num_gpu", "65 is more than 64"),
    "a number without an end": (f"p,{'9' * 50},2,0,0,\n", "cpu_milli", f"{'9' * 40} is more than {2**40}"),
}  # fmt: skip


@pytest.mark.parametrize(("row", "field", "text"), ODD_PODS.values(), ids=ODD_PODS)
def test_an_odd_row_is_told_and_its_neighbours_stay(row: str, field: str, text: str) -> None:
    pods, [problem] = read_pods(PODS + row + "good,1,2,0,0,\n")
    assert [pod.name for pod in pods] == ["good"]
    assert (problem.where, problem.field, problem.text) == ("line 2", field, text)


ODD_HOSTS = {
    "cards of no model": ("n,1,2,3,\n", "model"),
    "no name": (",1,2,0,\n", "sn"),
    "twice": ("good,1,2,0,\ngood,1,2,0,\n", "sn"),
}


@pytest.mark.parametrize(("rows", "field"), ODD_HOSTS.values(), ids=ODD_HOSTS)
def test_an_odd_node_is_told(rows: str, field: str) -> None:
    _, [problem] = read_hosts(HOSTS + rows)
    assert problem.field == field


def test_a_file_of_something_else_is_no_trace() -> None:
    assert looks_like_trace(HOSTS)
    assert looks_like_trace("\ufeff" + PODS)
    assert not looks_like_trace('{"kind": "List"}')
    hosts, [problem] = read_hosts("a,b\n1,2\n")
    assert (hosts, problem.where, problem.field) == ([], "line 1", "sn")


@pytest.mark.parametrize("text", ["", "\n", "name", "\x00,\n", '"'])
def test_whatever_the_text_is_it_is_only_told(text: str) -> None:
    assert read_pods(text)[0] == []
    assert read_hosts(text)[0] == []
