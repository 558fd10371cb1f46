"""What belongs to a workload, as whole documents; its host name, its outer bound, and what Kubernetes says of it."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction as F
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.cluster.belongings import belongings, host_name, owner_reference, route_document
from scheduling.cluster.bounds import bound_document, most_units, offered_by
from scheduling.cluster.events import decode_events, is_about
from scheduling.cluster.port import ClusterError
from scheduling.cluster.writing import RouteFact
from scheduling.planning.facts import Sharing
from tests.scheduling.cluster.test_writing import METADATA, NOTEBOOK, ROW, TRAINING
from tests.scheduling.planning.builders import node, pool

NAME = "protein-folding-0d6e6b52"
SET = owner_reference("StatefulSet", NAME, "set-uid")
OWNED = METADATA | {
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": NAME, "uid": "set-uid"}]
}
FACTS = (("name", "Protein folding"), ("team", "vision"))
HOST = "protein-folding-1ln6mkjs3p7gt6ijhse2mumg04.lab.example.org"


def test_a_workspace_has_its_facts_and_its_service() -> None:
    facts, service = belongings(replace(NOTEBOOK, facts=FACTS), SET)

    assert service == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": OWNED,
        "spec": {
            "clusterIP": "None",
            "selector": {"berth.portal/workload": str(ROW)},
            "ports": [{"name": "web", "port": 8888, "protocol": "TCP", "targetPort": 8888}],
        },
    }
    assert (facts["kind"], facts["metadata"]) == ("ConfigMap", OWNED)
    assert json.loads(facts["data"]["tenancy.json"]) == dict(FACTS)


def test_a_job_has_its_facts_alone() -> None:
    job = owner_reference("Job", NAME, "job-uid")
    (facts,) = belongings(replace(TRAINING, facts=FACTS), job)

    assert facts["metadata"]["ownerReferences"] == [
        {"apiVersion": "batch/v1", "kind": "Job", "name": NAME, "uid": "job-uid"}
    ]
    assert belongings(TRAINING, job) == ()


def test_an_ingress_leads_to_the_service_with_no_word_of_the_tenants_in_it() -> None:
    document = route_document(replace(NOTEBOOK, route=RouteFact("ingress", "lab.example.org", "nginx")), SET)

    backend = {"service": {"name": NAME, "port": {"name": "web"}}}
    assert document == {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": OWNED,
        "spec": {
            "ingressClassName": "nginx",
            "tls": [{"hosts": [HOST]}],
            "rules": [{"host": HOST, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}],
        },
    }


def test_an_http_route_names_its_gateway() -> None:
    document = route_document(replace(NOTEBOOK, route=RouteFact("httproute", "lab.example.org", "infra/web")), SET)

    assert document is not None
    assert document["spec"] == {
        "parentRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "web", "namespace": "infra"}],
        "hostnames": [HOST],
        "rules": [{"backendRefs": [{"name": NAME, "port": 8888}]}],
    }


def test_there_is_no_way_in_where_none_is_asked_for_nor_to_a_job() -> None:
    assert route_document(NOTEBOOK, SET) is None
    assert route_document(replace(TRAINING, route=RouteFact("ingress", "lab.example.org")), SET) is None


@given(st.text(), st.uuids(), st.text(), st.uuids())
def test_two_workspaces_never_share_a_host(one: str, first: UUID, other: str, second: UUID) -> None:
    hosts = [host_name(one, first, "d"), host_name(other, second, "d")]

    assert (hosts[0] == hosts[1]) <= (first == second)
    assert all(len(host) <= 63 + 2 and host.isascii() and host[0].isalpha() for host in hosts)


# Bounds


def test_a_bound_names_requests_only() -> None:
    document = bound_document("team-vision", "vision", {"nvidia.com/gpu": 2, "nvidia.com/mig-1g.10gb": 0})

    assert document["spec"] == {"hard": {"requests.nvidia.com/gpu": "2", "requests.nvidia.com/mig-1g.10gb": "0"}}
    assert document["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "berth"


OFFERED = {
    "h100-80gb": {"nvidia.com/gpu": F(1), "nvidia.com/mig-1g.10gb": F(1, 8)},
    "a10g-24gb": {"nvidia.com/gpu": F(1, 4)},
}
MOST: dict[str, Any] = {
    "nothing granted is nothing allowed, in every dimension": ({}, {"nvidia.com/gpu": 0, "nvidia.com/mig-1g.10gb": 0}),
    "a grant may be spent on any of its resources": (
        {"h100-80gb": F(2)},
        {"nvidia.com/gpu": 2, "nvidia.com/mig-1g.10gb": 16},
    ),
    "two models that call their units the same add up": (
        {"h100-80gb": F(2), "a10g-24gb": F(1)},
        {"nvidia.com/gpu": 6, "nvidia.com/mig-1g.10gb": 16},
    ),
    "a part of a card that holds no unit is none": (
        {"h100-80gb": F(7, 16)},
        {"nvidia.com/gpu": 0, "nvidia.com/mig-1g.10gb": 3},
    ),
    "a model that is not here": ({"l4-24gb": F(9)}, {"nvidia.com/gpu": 0, "nvidia.com/mig-1g.10gb": 0}),
}


@pytest.mark.parametrize(("granted", "most"), MOST.values(), ids=MOST)
def test_the_most_units(granted: dict[str, F], most: dict[str, int]) -> None:
    assert most_units(granted, OFFERED) == most


def test_what_a_pool_at_zero_will_offer_is_bound_before_it_is_there() -> None:
    mig = pool("mig").having(sharing=Sharing.MIG, layout="all-balanced", layouts=("all-1g.10gb", "all-disabled")).fact()
    sliced = pool("a10g").having(model="a10g-24gb", sharing=Sharing.TIME_SLICE, replicas=4).fact()

    found = offered_by([mig, sliced], [])

    assert found["a10g-24gb"] == {"nvidia.com/gpu": F(1, 4)}
    assert found["h100-80gb"]["nvidia.com/mig-1g.10gb"] == F(1, 8)
    assert {"nvidia.com/gpu", "nvidia.com/mig-3g.40gb"} <= set(found["h100-80gb"])


def test_what_nodes_call_their_cards_counts_too() -> None:
    assert offered_by([], [node("n1").h100(8).fact()]) == {"h100-80gb": {"nvidia.com/gpu": F(1)}}


# Events


def page(*items: Any) -> bytes:
    return json.dumps({"kind": "EventList", "items": list(items)}).encode()


def event(**facts: Any) -> dict[str, Any]:
    return {"involvedObject": {"kind": "Pod", "name": f"{NAME}-0"}, "metadata": {"name": "e"}, **facts}


ABOUT = {
    NAME: True, f"{NAME}-0": True, f"{NAME}-x7k2p": True, f"home-{NAME}-0": True,
    "protein-folding-0d6e6b53-0": False, f"x{NAME}": False, "": False,
}  # fmt: skip


@pytest.mark.parametrize(("other", "about"), ABOUT.items(), ids=ABOUT)
def test_what_an_event_is_about(other: str, about: bool) -> None:
    assert is_about(other, NAME) is about


def test_an_event_is_read() -> None:
    (found,) = decode_events(
        page(event(type="Warning", reason="BackOff", message="no", count=3, lastTimestamp="2026-12-01T12:00:00Z")), NAME
    )

    assert (found.about, found.warning, found.reason, found.text, found.times) == (
        f"Pod {NAME}-0", True, "BackOff", "no", 3,
    )  # fmt: skip
    assert found.at == datetime(2026, 12, 1, 12, tzinfo=UTC)


def test_a_series_tells_when_it_was_last_seen_and_how_often() -> None:
    series = {"count": 9, "lastObservedTime": "2026-12-01T12:30:00.000000Z"}
    (found,) = decode_events(page(event(series=series, eventTime="2026-12-01T12:00:00.000000Z", count=None)), NAME)

    assert (found.times, found.at) == (9, datetime(2026, 12, 1, 12, 30, tzinfo=UTC))


ODD = {
    "no object": event(involvedObject=None), "a list": [], "text": "x", "wrong types": event(count="x", message=7),
    "nothing": {}, "an absurd time": event(lastTimestamp="never"),
}  # fmt: skip


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_an_odd_event_spoils_only_itself(odd: Any) -> None:
    found = list(decode_events(page(odd, event(reason="Started")), NAME))

    assert "Started" in [one.reason for one in found]


def test_what_is_no_list_is_a_sentence() -> None:
    with pytest.raises(ClusterError, match="not a list"):
        list(decode_events(b"<html>", NAME))


def test_a_huge_message_is_cut() -> None:
    (found,) = decode_events(page(event(message="x" * 10**6)), NAME)

    assert len(found.text) == 1000
