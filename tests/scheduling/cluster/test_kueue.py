"""Kueue's objects out of teams, grants and kinds of cards: whole documents, and what counts as a difference."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from fractions import Fraction as F
from typing import Any
from uuid import UUID

import pytest

from scheduling.cluster import names
from scheduling.cluster.kueue import (
    HOST,
    Limit,
    Stock,
    TeamFact,
    cluster_queue,
    cohort,
    essence,
    mixed_models,
    queue_documents,
    queued_documents,
    queued_job,
    resource_flavor,
    resource_of,
    stock_of_node,
    stocks_of,
)
from scheduling.cluster.writing import LaunchFact
from scheduling.planning.facts import Capacity, FlavorFact, Kind, Sharing
from scheduling.planning.shares import Sku, flavor_of
from tests.scheduling.planning.builders import node

H100 = "h100-80gb"
WHOLE = Stock(H100, Sharing.WHOLE, 1, Capacity.ON_DEMAND, {"nvidia.com/gpu": F(1)})
SLICES = Stock(
    H100, Sharing.MIG, 1, Capacity.ON_DEMAND, {"nvidia.com/mig-1g.10gb": F(1, 8), "nvidia.com/mig-3g.40gb": F(1, 2)}
)
VISION = TeamFact("vision", "team-vision", "research", cards={H100: F(5, 2)})
RESEARCH = TeamFact("research", "team-research", "meridian", heads=True, cards={H100: F(1)})
MERIDIAN = TeamFact("meridian", "team-meridian", heads=True)
OURS = {names.MANAGED_BY: names.MANAGER}


def flavor(sharing: Sharing, profile: str = "", replicas: int = 1, model: str = H100) -> FlavorFact:
    found = flavor_of(Sku(model, sharing, profile, replicas))
    assert found is not None
    return found


def units(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, str]]:
    """All amounts of a queue by flavor and resource, those of 0 left out."""
    return {
        (one["name"], unit["name"]): {key: value for key, value in unit.items() if key != "name"}
        for group in document["spec"]["resourceGroups"]
        for one in group["flavors"]
        for unit in one["resources"]
        if unit["nominalQuota"] != "0"
    }


def test_a_kind_of_cards_is_a_flavor_that_our_label_finds() -> None:
    assert resource_flavor(WHOLE) == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "berth-h100-80gb-whole-on-demand", "labels": OURS},
        "spec": {
            "nodeLabels": {"berth.portal/stock": "h100-80gb-whole-on-demand"},
            "tolerations": [
                {"key": key, "operator": "Exists"} for key in ("nvidia.com/gpu", "sku", "gpu", "accelerator")
            ],
        },
    }


def test_a_flavor_never_tolerates_more_than_kueue_allows() -> None:
    assert len(resource_flavor(replace(WHOLE, capacity=Capacity.SPOT))["spec"]["tolerations"]) <= 8


def test_cards_become_as_many_units_of_each_name_as_all_of_them_would_give() -> None:
    assert units(cluster_queue(VISION, [WHOLE, SLICES])) == {
        ("berth-h100-80gb-whole-on-demand", "nvidia.com/gpu"): {"nominalQuota": "2"},
        ("berth-h100-80gb-mig-on-demand", "nvidia.com/mig-1g.10gb"): {"nominalQuota": "20"},
        ("berth-h100-80gb-mig-on-demand", "nvidia.com/mig-3g.40gb"): {"nominalQuota": "5"},
        (HOST, "cpu"): {"nominalQuota": "1M"},
        (HOST, "memory"): {"nominalQuota": "1Pi"},
    }


def test_every_flavor_lists_exactly_the_covered_resources_in_order() -> None:
    for group in cluster_queue(VISION, [WHOLE, SLICES])["spec"]["resourceGroups"]:
        for one in group["flavors"]:
            assert [unit["name"] for unit in one["resources"]] == group["coveredResources"]


LIMITS = {  # limit -> what stands beside the nominal quota of 20 eighths
    "none": (Limit(), {}),
    "nothing may be borrowed": (Limit(borrowing=F(0)), {"borrowingLimit": "0"}),
    "one card may be borrowed": (Limit(borrowing=F(1)), {"borrowingLimit": "8"}),
    "half a card is lent": (Limit(lending=F(1, 2)), {"lendingLimit": "4"}),
    "no more is lent than there is": (Limit(lending=F(9)), {"lendingLimit": "20"}),
}


@pytest.mark.parametrize(("limit", "beside"), LIMITS.values(), ids=LIMITS)
def test_limits(limit: Limit, beside: dict[str, str]) -> None:
    found = units(cluster_queue(replace(VISION, limits={H100: limit}), [SLICES]))

    assert found["berth-h100-80gb-mig-on-demand", "nvidia.com/mig-1g.10gb"] == {"nominalQuota": "20", **beside}


def test_a_queue_belongs_to_its_parents_cohort_and_serves_its_own_namespace_only() -> None:
    spec = cluster_queue(VISION, [WHOLE])["spec"]

    assert spec["cohortName"] == "berth-research"
    assert spec["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "team-vision"}}
    assert spec["preemption"] == {"reclaimWithinCohort": "Any", "withinClusterQueue": "Never"}


def test_a_team_with_teams_below_it_heads_a_cohort_and_queues_in_it() -> None:
    assert cluster_queue(RESEARCH, [WHOLE])["spec"]["cohortName"] == "berth-research"
    assert cohort(RESEARCH, [WHOLE])["spec"] == {"parentName": "berth-meridian"}
    assert cohort(MERIDIAN, [WHOLE])["spec"] == {}


def test_a_limit_of_a_branch_bounds_all_of_it_and_not_its_own_queue() -> None:
    bounded = replace(RESEARCH, limits={H100: Limit(borrowing=F(0))})

    group = cohort(bounded, [WHOLE])["spec"]["resourceGroups"][0]
    assert group["flavors"][0]["resources"] == [{"name": "nvidia.com/gpu", "nominalQuota": "0", "borrowingLimit": "0"}]
    assert "borrowingLimit" not in str(cluster_queue(bounded, [WHOLE]))


def test_a_tree_has_nothing_above_it_to_borrow_from_and_no_limits_there() -> None:
    assert cohort(replace(MERIDIAN, limits={H100: Limit(borrowing=F(1))}), [WHOLE])["spec"] == {}


def test_what_is_named_comes_before_what_names_it_and_the_order_is_always_the_same() -> None:
    teams, stocks = [VISION, MERIDIAN, RESEARCH], [WHOLE, SLICES]
    found = list(queue_documents(teams, stocks))

    assert found == list(queue_documents(reversed(teams), reversed(stocks)))
    assert [(one["kind"], one["metadata"]["name"]) for one in found] == [
        ("ResourceFlavor", "berth-host"),
        ("ResourceFlavor", "berth-h100-80gb-mig-on-demand"),
        ("ResourceFlavor", "berth-h100-80gb-whole-on-demand"),
        ("Cohort", "berth-meridian"),
        ("Cohort", "berth-research"),
        ("ClusterQueue", "berth-meridian"),
        ("ClusterQueue", "berth-research"),
        ("ClusterQueue", "berth-vision"),
        *[
            found
            for team in ("meridian", "research", "vision")
            for found in (("Namespace", f"team-{team}"), ("LocalQueue", "berth"))
        ],
    ]


def test_a_cluster_without_pools_still_has_queues() -> None:
    assert [group["coveredResources"] for group in cluster_queue(VISION, [])["spec"]["resourceGroups"]] == [
        ["cpu", "memory"]
    ]


# Stocks


def test_stocks_come_from_flavors_and_resources_from_what_nodes_advertise() -> None:
    found = stocks_of([flavor(Sharing.WHOLE), flavor(Sharing.MIG, "1g.10gb"), flavor(Sharing.MIG, "3g.40gb")], [])

    assert [stock.name for stock in found] == ["h100-80gb-mig-on-demand", "h100-80gb-whole-on-demand"]
    assert found[0].units == {"nvidia.com/mig-1g.10gb": F(1, 8), "nvidia.com/mig-3g.40gb": F(1, 2)}


def test_a_node_that_renames_its_resource_is_believed() -> None:
    fact = node("n1", "train").h100(8).fact()
    device = replace(fact.devices[0], resource="nvidia.com/gpu.shared")

    assert resource_of(flavor(Sharing.WHOLE), [replace(fact, devices=(device,))]) == "nvidia.com/gpu.shared"
    assert resource_of(flavor(Sharing.WHOLE), []) == "nvidia.com/gpu"


def test_a_node_whose_cards_nobody_knows_is_of_no_stock() -> None:
    fact = node("n1", "train").h100(8).fact()

    assert stock_of_node(fact) == "h100-80gb-whole-on-demand"
    assert stock_of_node(replace(fact, known=False)) == ""
    assert stock_of_node(replace(fact, devices=())) == ""


def test_models_under_several_names_are_those_whose_sum_kueue_cannot_keep() -> None:
    a100 = Stock("a100-40gb", Sharing.WHOLE, 1, Capacity.ON_DEMAND, {"nvidia.com/gpu": F(1)})

    assert mixed_models([a100, WHOLE]) == frozenset()
    assert mixed_models([a100, SLICES]) == {H100}
    assert mixed_models([WHOLE, replace(WHOLE, capacity=Capacity.SPOT)]) == {H100}


# Workloads


def launch(**facts: Any) -> LaunchFact:
    known: dict[str, Any] = {
        "workload": UUID(int=7), "name": "notebook", "kind": Kind.WORKSPACE, "namespace": "team-vision",
        "team": "vision", "owner": 3, "image": "quay.io/x/y:1", "command": (), "env": (),
        "resource": "nvidia.com/gpu", "count": 2, "cpu_milli": 4000, "memory_mib": 8192, "storage_gib": 5,
        "node": "", "tolerations": (), "attempt": 1,
    }  # fmt: skip
    return LaunchFact(**{**known, **facts})


def test_a_workspace_is_a_suspended_job_in_its_teams_queue_whose_home_outlives_it() -> None:
    _, home, job = queued_documents(launch(), "h100-80gb-whole-on-demand")
    pod = job["spec"]["template"]["spec"]

    assert (home["kind"], home["metadata"]["name"]) == ("PersistentVolumeClaim", "home-notebook-00000000-0")
    assert "ownerReferences" not in home["metadata"]
    assert {"name": "home", "persistentVolumeClaim": {"claimName": "home-notebook-00000000-0"}} in pod["volumes"]
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "berth"
    assert job["spec"]["suspend"] is True
    assert pod["restartPolicy"] == "OnFailure"
    assert "podFailurePolicy" not in job["spec"]


def test_a_job_names_its_kind_of_cards_and_no_node() -> None:
    job = queued_job(launch(kind=Kind.JOB, storage_gib=0), "h100-80gb-whole-on-demand")
    pod = job["spec"]["template"]["spec"]

    assert pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] == {
        "nodeSelectorTerms": [
            {
                "matchExpressions": [
                    {"key": "berth.portal/stock", "operator": "In", "values": ["h100-80gb-whole-on-demand"]}
                ]
            }
        ]
    }
    assert pod["tolerations"] == []
    assert pod["restartPolicy"] == "Never"
    assert [volume["name"] for volume in pod["volumes"]] == ["shm"]


def test_a_queued_pod_is_as_confined_as_any_other() -> None:
    pod = queued_job(launch(), "s")["spec"]["template"]["spec"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert pod["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}


# Differences


def served(document: dict[str, Any]) -> dict[str, Any]:
    """As a server gives it back: with defaults, and quantities in its own writing."""
    found = deepcopy(document)
    found["metadata"] |= {"uid": "1", "resourceVersion": "7"}
    found["spec"] |= {"stopPolicy": "None", "flavorFungibility": {"whenCanBorrow": "MayStopSearch"}}
    found["spec"]["preemption"]["borrowWithinCohort"] = {"policy": "Never"}
    found["spec"]["resourceGroups"][1]["flavors"][0]["resources"][0]["nominalQuota"] = "1000k"
    found["status"] = {"pendingWorkloads": 0}
    return found


def test_the_servers_defaults_and_its_way_of_writing_numbers_are_no_difference() -> None:
    wanted = cluster_queue(VISION, [WHOLE])

    assert essence(served(wanted)) == essence(wanted)


def test_an_operator_may_hold_a_queue() -> None:
    wanted = cluster_queue(VISION, [WHOLE])
    held = served(wanted)
    held["spec"]["stopPolicy"] = "HoldAndDrain"

    assert essence(held) == essence(wanted)


def change(path: str, value: Any) -> Any:
    def changed(document: dict[str, Any]) -> None:
        place: Any = document["spec"]
        *steps, last = path.split(".")
        for step in steps:
            place = place[int(step) if step.isdigit() else step]
        place[last] = value

    return changed


CHANGES = {
    "another number": change("resourceGroups.0.flavors.0.resources.0.nominalQuota", "3"),
    "a limit that is not ours": change("resourceGroups.0.flavors.0.resources.0.borrowingLimit", "1"),
    "another cohort": change("cohortName", "elsewhere"),
    "everybody's namespaces": change("namespaceSelector", {}),
    "nothing is reclaimed": change("preemption.reclaimWithinCohort", "Never"),
    "a number that is none": change("resourceGroups.0.flavors.0.resources.0.nominalQuota", "many"),
}


@pytest.mark.parametrize("changed", CHANGES.values(), ids=CHANGES)
def test_what_is_ours_to_say_is_a_difference(changed: Any) -> None:
    wanted = cluster_queue(VISION, [WHOLE])
    there = served(wanted)
    changed(there)

    assert essence(there) != essence(wanted)
