"""Whose a pod is: by who made it, not by what it wears."""

from dataclasses import replace
from uuid import UUID

import pytest

from scheduling.planning.facts import ObjectFact, PodFact
from scheduling.planning.owners import disowned, unproven

ROW = UUID("0d6e6b52-7c1e-4f0e-9a53-8f1c2b7ad001")
SET = ObjectFact(ROW, "StatefulSet", "team-vision", "notebook-0d6e6b52", "set-uid", 1, 1, None)
JOB = replace(SET, kind="Job", uid="job-uid")
POD = PodFact(
    namespace="team-vision", name="notebook-0d6e6b52-0", uid="pod", node="n1", phase="Running", ready=True,
    workload=ROW, requests={"nvidia.com/gpu": 1}, cpu_milli=0, memory_mib=0, created_at=None, running_since=None,
    finished_at=None, deleting_since=None, controller="set-uid",
)  # fmt: skip
OF_JOB = replace(POD, name="notebook-0d6e6b52-x7k2p", controller="job-uid")

CASES = {  # pod, objects -> proven
    "a workspace's own": (POD, SET, True),
    "a job's own": (OF_JOB, JOB, True),
    "labels alone": (replace(POD, controller=""), SET, False),
    "another object's": (replace(POD, controller="other"), SET, False),
    "the object of another workload": (POD, replace(SET, workload=UUID(int=1)), False),
    "in another namespace": (replace(POD, namespace="team-audio"), SET, False),
    "a forged owner under a name of its own": (replace(POD, name="mine"), SET, False),
    "a second pod of a workspace": (replace(POD, name="notebook-0d6e6b52-1"), SET, False),
    "an object that merely wears the labels": (replace(POD, name="mine-0"), replace(SET, name="mine"), False),
    "an object without a uid": (replace(POD, controller=""), replace(SET, uid=""), False),
}


@pytest.mark.parametrize(("pod", "item", "proven"), CASES.values(), ids=CASES)
def test_a_pod_is_ours(pod: PodFact, item: ObjectFact, proven: bool) -> None:
    assert (unproven([pod], [item]) == []) is proven


def test_a_pod_without_our_labels_is_never_doubted() -> None:
    assert unproven([replace(POD, workload=None, controller="")], []) == []


def test_a_disowned_pod_holds_what_it_holds() -> None:
    kept, other = disowned([POD, replace(POD, uid="x")], {"x"})

    assert kept == POD
    assert (other.workload, other.requests, other.node) == (None, {"nvidia.com/gpu": 1}, "n1")
