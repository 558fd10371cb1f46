"""What Kueue says of a workload, in our words: every condition that it knows, and those that it does not."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction as F
from typing import Any

import msgspec
import pytest

from scheduling.cluster.kueue_reading import (
    KueueFact,
    Usage,
    decode_workload,
    holds_workloads,
    usages,
    with_borrowers,
)
from scheduling.planning.facts import Reason, Standing

AT = "2026-12-01T08:00:00Z"
RECLAIMED = "that team has taken them back"


def said(kind: str, status: bool, reason: str = "", message: str = "", at: str = AT) -> dict[str, Any]:
    return {"type": kind, "status": str(status), "reason": reason, "message": message, "lastTransitionTime": at}


def document(*conditions: dict[str, Any], active: bool = True, job: str = "job-1", **status: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"job-{job}",
            "namespace": "team-vision",
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "notebook", "uid": job}],
        },
        "spec": {"queueName": "berth", "active": active},
        "status": {"conditions": list(conditions), **status},
    }


def fact(*conditions: dict[str, Any], **facts: Any) -> KueueFact:
    found = decode_workload(msgspec.json.encode(document(*conditions, **facts)))
    assert found is not None
    return found


RESERVED = said("QuotaReserved", True, "QuotaReserved")
ADMITTED = said("Admitted", True, "Admitted")
PREEMPTED = (
    said("Evicted", True, "Preempted", "Preempted to accommodate a workload"),
    said("Preempted", True, "InCohortReclamation", "Preempted to accommodate a workload (UID: 1)"),
)
BACK_IN_LINE = said("Requeued", True, "Preempted", "Preempted to accommodate a workload")

CASES = {  # conditions, further facts -> standing, reason, a part of the sentence
    "nothing is said yet": ((), {}, Standing.PENDING, Reason.HANDED_OVER, "has not judged it yet"),
    "quota is held, in today's word": (
        (said("QuotaReserved", False, "WaitingForQuota", "insufficient unused quota for x, 2 more needed"),),
        {}, Standing.PENDING, Reason.WAITING_FOR_QUOTA, "Kueue says: insufficient unused quota",
    ),
    "quota is held, before 0.19": (
        (said("QuotaReserved", False, "Pending", "pod set main: insufficient unused quota"),),
        {}, Standing.PENDING, Reason.WAITING_FOR_QUOTA, "is held at present",
    ),
    "more than it can ever have": (
        (said("QuotaReserved", False, "ExceedsMaxQuota", "request > maximum capacity (9 > 8)"),),
        {}, Standing.PENDING, Reason.EXCEEDS_QUOTA, "ask your lead for a grant",
    ),
    "more than it can ever have, before 0.19": (
        (said("QuotaReserved", False, "Pending", "insufficient quota for x: request > maximum capacity (9 > 8)"),),
        {}, Standing.PENDING, Reason.EXCEEDS_QUOTA, "maximum capacity (9 > 8)",
    ),
    "its cards are being taken back": (
        (said("QuotaReserved", False, "WaitingForPreemptedWorkloads", "Pending the preemption of 1 workload(s)"),),
        {}, Standing.PENDING, Reason.WAITING_FOR_PREEMPTED, "taken back from who borrowed them",
    ),
    "its cards are being taken back, before 0.19": (
        (said("QuotaReserved", False, "Pending", "insufficient unused quota. Pending the preemption of 1"),),
        {}, Standing.PENDING, Reason.WAITING_FOR_PREEMPTED, "taken back",
    ),
    "no kind of cards fits": (
        (said("QuotaReserved", False, "NoMatchingFlavor", "flavor a100 doesn't match node affinity"),),
        {}, Standing.PENDING, Reason.UNKNOWN_FLAVOR, "No kind of cards",
    ),
    "no kind of cards fits, before 0.19": (
        (said("QuotaReserved", False, "Pending", "flavor a100 doesn't match node affinity"),),
        {}, Standing.PENDING, Reason.UNKNOWN_FLAVOR, "No kind of cards",
    ),
    "its queue is not there": (
        (said("QuotaReserved", False, "Inadmissible", "LocalQueue berth doesn't exist"),),
        {}, Standing.PENDING, Reason.MISCONFIGURED, "LocalQueue berth doesn't exist",
    ),
    "its queue is held by an operator": (
        (said("QuotaReserved", False, "Suspended", "ClusterQueue berth-vision is stopped"),),
        {}, Standing.PENDING, Reason.QUEUE_STOPPED, "stopped by an operator",
    ),
    "its queue is held by an operator, before 0.19": (
        (said("QuotaReserved", False, "Inadmissible", "ClusterQueue berth-vision is stopped"),),
        {}, Standing.PENDING, Reason.QUEUE_STOPPED, "stopped by an operator",
    ),
    "a word that nobody knows is shown as it was said": (
        (said("QuotaReserved", False, "MoonInRetrograde", "come back tomorrow"),),
        {}, Standing.PENDING, Reason.SAID_BY_KUEUE, "MoonInRetrograde. Kueue says: come back tomorrow.",
    ),
    "a known word with a message that nobody knows keeps both": (
        (said("QuotaReserved", False, "Pending", "something new"),),
        {}, Standing.PENDING, Reason.SAID_BY_KUEUE, "Kueue says: something new.",
    ),
    "somebody's check is open": (
        (RESERVED, said("Admitted", False, "UnsatisfiedAdmissionChecks")),
        {"admissionChecks": [{"name": "budget", "state": "Pending", "message": "waits for money"}]},
        Standing.RESERVED, Reason.WAITING_FOR_CHECK, "the check budget says Pending. waits for money.",
    ),
    "every check is ready and admission is a moment away": (
        (RESERVED,), {"admissionChecks": [{"name": "budget", "state": "Ready"}]},
        Standing.RESERVED, Reason.WAITING_FOR_CHECK, "about to admit it",
    ),
    "admitted": ((RESERVED, ADMITTED), {}, Standing.ADMITTED, Reason.ADMITTED, "has admitted it"),
    "admitted again, with an old eviction": (
        (RESERVED, ADMITTED, said("Evicted", False, "QuotaReserved", "Previously: Preempted")),
        {}, Standing.ADMITTED, Reason.ADMITTED, "has admitted it",
    ),
    "preempted, its pods still there": (
        (RESERVED, ADMITTED, *PREEMPTED), {}, Standing.LEAVING, Reason.PREEMPTED, "Its pods are being stopped",
    ),
    "preempted and in line again": (
        (said("QuotaReserved", False, "Pending", "Preempted to accommodate a workload"), *PREEMPTED, BACK_IN_LINE),
        {}, Standing.PENDING, Reason.REQUEUED, f"{RECLAIMED}. It stands in line again",
    ),
    "in line again, and what holds it now": (
        (said("QuotaReserved", False, "WaitingForQuota", "insufficient"), *PREEMPTED, BACK_IN_LINE),
        {}, Standing.PENDING, Reason.REQUEUED, "is held at present",
    ),
    "evicted because its pods did not come up, with a pause": (
        (
            said("QuotaReserved", False, "Pending"),
            said("Evicted", True, "PodsReadyTimeout", "Exceeded the PodsReady timeout"),
            said("Requeued", False, "PodsReadyTimeout"),
        ),
        {"requeueState": {"count": 2, "requeueAt": "2026-12-01T08:10:00Z"}},
        Standing.PENDING, Reason.BACKING_OFF, "not before 2026-12-01 08:10 UTC",
    ),
    "evicted for a reason that nobody knows": (
        (RESERVED, said("Evicted", True, "FullMoon", "howling")),
        {}, Standing.LEAVING, Reason.EVICTED, "Kueue says FullMoon: howling.",
    ),
    "preempted for a reason that nobody knows": (
        (RESERVED, said("Evicted", True, "Preempted"), said("Preempted", True, "InTheDark", "hush")),
        {}, Standing.LEAVING, Reason.PREEMPTED, "preempted (InTheDark). Kueue says: hush.",
    ),
    "its node failed": (
        (RESERVED, said("Evicted", True, "NodeFailures", "node n1 failed")),
        {}, Standing.LEAVING, Reason.NODE_LOST, "node n1 failed",
    ),
    "taken out by somebody": ((), {"active": False}, Standing.INACTIVE, Reason.DEACTIVATED, "Somebody took it out"),
    "taken out because it was tried too often": (
        (said("Evicted", True, "DeactivatedDueToRequeuingLimitExceeded"),), {"active": False},
        Standing.INACTIVE, Reason.DEACTIVATED, "tried too often",
    ),
    "inactive counts before all else": (
        (RESERVED, ADMITTED, said("Finished", True, "Succeeded")), {"active": False},
        Standing.INACTIVE, Reason.DEACTIVATED, "until an operator",
    ),
    "finished counts before evicted": (
        (said("Finished", True, "Succeeded", "Job finished successfully"), *PREEMPTED),
        {}, Standing.FINISHED, Reason.SUCCEEDED, "Job finished successfully",
    ),
    "finished without an owner": (
        (said("Finished", True, "OwnerNotFound", "the Job is gone"),),
        {}, Standing.FINISHED, Reason.SAID_BY_KUEUE, "the Job is gone",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("conditions", "facts", "standing", "reason", "part"), CASES.values(), ids=CASES)
def test_what_it_says(
    conditions: tuple[dict[str, Any], ...], facts: dict[str, Any], standing: Standing, reason: Reason, part: str
) -> None:
    found = fact(*conditions, **facts).fact

    assert (found.standing, found.reason) == (standing, reason)
    assert part in found.text


PREEMPTIONS = {
    "InClusterQueue": "more urgent work of its own team",
    "InCohortReclamation": RECLAIMED,
    "InCohortFairSharing": "fair share",
    "InCohortReclaimWhileBorrowing": "more urgent work of another team borrows them",
}


@pytest.mark.parametrize(("token", "part"), PREEMPTIONS.items(), ids=PREEMPTIONS)
def test_why_it_was_preempted(token: str, part: str) -> None:
    found = fact(RESERVED, said("Evicted", True, "Preempted"), said("Preempted", True, token)).fact

    assert found.cause is Reason.PREEMPTED
    assert part in found.cause_text


STRANGERS = {
    "a workload of another queue": {"spec": {"queueName": "theirs"}},
    "a workload of no Job": {"metadata": {"name": "x", "ownerReferences": [{"kind": "RayJob", "uid": "1"}]}},
    "something that is no workload": {"spec": "nonsense", "metadata": 7},
}


@pytest.mark.parametrize("changes", STRANGERS.values(), ids=STRANGERS)
def test_what_is_not_ours_is_left_out(changes: dict[str, Any]) -> None:
    assert decode_workload(msgspec.json.encode({**document(ADMITTED), **changes})) is None


def test_the_jobs_label_stands_in_for_a_missing_owner() -> None:
    found = document(ADMITTED) | {"metadata": {"name": "x", "labels": {"kueue.x-k8s.io/job-uid": "job-7"}}}

    assert decode_workload(msgspec.json.encode(found)).job == "job-7"


def admission(queue: str, units: str) -> dict[str, Any]:
    part = {"name": "main", "flavors": {"nvidia.com/gpu": "h100"}, "resourceUsage": {"nvidia.com/gpu": units}}
    return {"clusterQueue": queue, "podSetAssignments": [part]}


def reserved_at(time: str) -> dict[str, Any]:
    return said("QuotaReserved", True, at=f"2026-12-01T{time}:00Z")


def test_who_came_last_is_who_borrows() -> None:
    old = fact(reserved_at("08:00"), ADMITTED, job="old", admission=admission("berth-vision", "2"))
    new = fact(reserved_at("09:00"), ADMITTED, job="new", admission=admission("berth-vision", "1"))
    theirs = fact(reserved_at("10:00"), ADMITTED, job="theirs", admission=admission("berth-speech", "1"))
    used = [Usage("berth-vision", "h100", "nvidia.com/gpu", F(3), F(1))]

    found = {one.job: one.fact for one in with_borrowers([old, new, theirs], used)}

    assert {job for job, one in found.items() if one.borrowed} == {"new"}
    assert found["new"].reason is Reason.BORROWED
    assert "may take them back" in found["new"].text
    assert found["old"].reason is Reason.ADMITTED


@pytest.mark.parametrize("listed", [[0, 1, 2], [2, 1, 0], [1, 0, 2]], ids=str)
def test_of_those_that_came_in_the_same_second_kueue_takes_the_least_uid(listed: list[int]) -> None:
    every = [
        replace(fact(reserved_at("08:00"), ADMITTED, job=uid, admission=admission("berth-vision", "1")), uid=uid)
        for uid in ("a", "b", "c")
    ]
    used = [Usage("berth-vision", "h100", "nvidia.com/gpu", F(3), F(1))]

    found = with_borrowers([every[number] for number in listed], used)

    assert [one.uid for one in found if one.fact.borrowed] == ["a"]


def test_a_part_that_is_borrowed_counts_for_the_whole_workload() -> None:
    one = fact(reserved_at("08:00"), ADMITTED, admission=admission("berth-vision", "4"))
    used = [Usage("berth-vision", "h100", "nvidia.com/gpu", F(4), F(1))]

    assert with_borrowers([one], used)[0].fact.borrowed


def test_a_status_that_lags_behind_hides_no_borrower() -> None:
    first, second = (
        fact(reserved_at("08:00"), ADMITTED, job=name, admission=admission("berth-vision", "1")) for name in "ab"
    )
    used = [Usage("berth-vision", "h100", "nvidia.com/gpu", F(1), F(1))]

    assert [one.fact.borrowed for one in with_borrowers([first, second], used)] == [True, True]


def test_what_a_queue_uses() -> None:
    resources = [{"name": "nvidia.com/gpu", "total": "3", "borrowed": "1"}, {"name": "cpu", "total": "0"}]
    odd = [{"name": "nvidia.com/gpu", "total": "many"}]
    status = {"flavorsUsage": [{"name": "h100", "resources": resources}, {"name": "odd", "resources": odd}]}

    found = usages({"metadata": {"name": "berth-vision"}, "status": status})

    assert found == (Usage("berth-vision", "h100", "nvidia.com/gpu", F(3), F(1)),)


HOLDING = {
    "it waits": ({"pendingWorkloads": 1}, True),
    "it holds quota": ({"reservingWorkloads": 1}, True),
    "it is empty": ({"pendingWorkloads": 0, "reservingWorkloads": 0, "admittedWorkloads": 0}, False),
    "nobody says": ({}, True),
}


@pytest.mark.parametrize(("status", "holds"), HOLDING.values(), ids=HOLDING)
def test_whether_a_queue_holds_work(status: dict[str, Any], holds: bool) -> None:
    assert holds_workloads({"status": status}) is holds
