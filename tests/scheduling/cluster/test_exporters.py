"""Which exporter is asked about which node."""

from typing import Any

from scheduling.cluster.exporters import expositions
from scheduling.cluster.port import ClusterError, Exposition
from tests.scheduling.cluster.scripted import ScriptedApi

PODS = "/api/v1/namespaces/gpu-operator/pods"


def exporter(name: str, *, ready: bool, node: str | None = "n1") -> dict[str, Any]:
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    meta = {"name": name, "namespace": "gpu-operator"}
    return {"metadata": meta, "spec": {"nodeName": node}, "status": {"conditions": [condition]}}


def test_of_two_exporters_on_a_node_the_ready_one_is_asked() -> None:
    pods = [exporter("a", ready=False), exporter("b", ready=True), exporter("c", ready=False)]
    api = ScriptedApi({PODS: {"kind": "PodList", "items": pods}, f"{PODS}/b:9400/proxy/metrics": "up 1"})

    assert expositions(api, ["n1"], "gpu-operator") == [Exposition("n1", "up 1")]


def test_an_exporter_that_is_not_ready_is_still_worth_asking() -> None:
    api = ScriptedApi(
        {PODS: {"kind": "PodList", "items": [exporter("a", ready=False)]}, f"{PODS}/a:9400/proxy/metrics": "up 1"}
    )

    assert expositions(api, ["n1"], "gpu-operator") == [Exposition("n1", "up 1")]


def test_an_exporter_without_a_node_belongs_to_none() -> None:
    api = ScriptedApi({PODS: {"kind": "PodList", "items": [exporter("a", ready=True, node=None)]}})

    assert expositions(api, ["n1"], "gpu-operator") == [
        Exposition("n1", None, "No metrics exporter runs on this node.")
    ]


def test_exporters_are_looked_for_everywhere_when_nobody_says_where() -> None:
    api = ScriptedApi(
        {
            "/api/v1/pods": {"kind": "PodList", "items": [exporter("a", ready=True)]},
            f"{PODS}/a:9400/proxy/metrics": "up 1",
        }
    )

    assert expositions(api, ["n1"])[0].text == "up 1"


def test_without_the_list_every_node_says_why() -> None:
    api = ScriptedApi({PODS: ClusterError("The cluster refused (500): no", status=500)})

    assert expositions(api, ["n1", "n2"], "gpu-operator") == [
        Exposition("n1", None, "The cluster refused (500): no"),
        Exposition("n2", None, "The cluster refused (500): no"),
    ]


def test_bytes_that_are_no_text_do_not_stop_the_rest() -> None:
    pods = {"kind": "PodList", "items": [exporter("a", ready=True)]}
    api = ScriptedApi({PODS: pods, f"{PODS}/a:9400/proxy/metrics": b"caf\xe9 1"})

    assert expositions(api, ["n1"], "gpu-operator")[0].text == "caf\ufffd 1"
