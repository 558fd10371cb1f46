"""A cluster that is to queue with Kueue: without one, with queues that differ, and what stands in their way."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from scheduling import snapshot
from scheduling.cluster.kueue_reading import KueueFact, Queues
from scheduling.cluster.port import ClusterError
from scheduling.models import Cluster, NodePool
from scheduling.planning.facts import QueueFact, Reason, Standing
from scheduling.queueing import Setup, setup_of
from scheduling.reconcile import queue_work
from scheduling.reconcile.queue_work import left_over, missing
from scheduling.reconcile.queueing import WAITS, Picture, facts_from
from tests.scheduling.conftest import Harbour
from tests.scheduling.planning.builders import identity, job, statefulset
from tests.world import World

# On a cluster that has none: the simulation serves no kueue.x-k8s.io


@pytest.fixture
def without(harbour: Harbour) -> Harbour:
    Cluster.objects.update(queueing="kueue")
    return harbour


def test_a_cluster_without_kueue_says_so_in_a_sentence_and_starts_nothing(without: Harbour) -> None:
    row = without.open("notebook", "h100-80gb/whole")

    report = without.cycle()

    said = (
        "It is to queue with Kueue, and serves no kueue.x-k8s.io: nothing is started there. "
        "Install Kueue 0.15 or newer there, or let the cluster queue directly."
    )
    assert (report.refusal, report.actions, report.failures, report.again) == (said, [], [], False)
    assert without.read(row).phase == "waiting"
    without.world.cluster.refresh_from_db()
    assert without.world.cluster.trouble == said
    assert without.port.observe(without.now).objects == ()


def test_the_sentence_is_kept_once_and_not_with_every_look(without: Harbour) -> None:
    for _ in range(4):
        without.cycle()

    assert without.world.cluster.reports.exclude(refusal="").count() == 1


def test_back_to_direct_it_starts_as_if_nothing_had_been(without: Harbour) -> None:
    row = without.open("notebook", "h100-80gb/whole")
    without.cycle()
    Cluster.objects.update(queueing="direct")

    without.pass_time(minutes=5)

    assert without.read(row).phase == "running"


def test_what_was_started_directly_stands_in_the_way_and_goes_on(harbour: Harbour, monkeypatch: Any) -> None:
    row = harbour.open("notebook", "h100-80gb/whole")
    harbour.pass_time(minutes=5)
    Cluster.objects.update(queueing="kueue")
    monkeypatch.setattr(type(harbour.port), "queues", lambda self: Queues())

    report = harbour.cycle()

    assert "notebook" in report.refusal
    assert "Let it queue directly until they have ended" in report.refusal
    assert harbour.read(row).phase == "running"


def test_a_kueue_that_does_not_let_us_in_is_told_in_its_words(harbour: Harbour, monkeypatch: Any) -> None:
    Cluster.objects.update(queueing="kueue")

    def refuses(_self: Any) -> Queues:
        raise ClusterError("The cluster does not let us list workloads.", status=403, retry=False)

    monkeypatch.setattr(type(harbour.port), "queues", refuses)

    assert harbour.cycle().refusal == "The cluster does not let us list workloads."


# Queues that differ


@pytest.fixture
def setup(world: World) -> Setup:
    return setup_of(world.cluster, [], world.now)


def there(setup: Setup) -> list[dict[str, Any]]:
    """All that is wanted, as the server has it."""
    found = [document for document in setup.documents() if document["kind"] != "Namespace"]
    return [
        {**one, "metadata": {**one["metadata"], "uid": f"uid-{number}", "generation": 1}, "status": {}}
        for number, one in enumerate(found)
    ]


def picture(setup: Setup, documents: list[dict[str, Any]]) -> Picture:
    return Picture(Queues(tuple(documents)), setup, {})


def named(documents: Any) -> list[tuple[str, str]]:
    return [(one["kind"], one["metadata"]["name"]) for one in documents]


def test_nothing_is_written_where_nothing_differs(setup: Setup) -> None:
    assert list(missing(picture(setup, there(setup)))) == []


def test_on_a_new_cluster_all_of_it_is_written_in_order(setup: Setup) -> None:
    assert list(missing(picture(setup, []))) == setup.documents()


def test_what_was_changed_is_written_again_and_only_that(setup: Setup) -> None:
    documents = there(setup)
    queue = next(one for one in documents if one["metadata"]["name"] == "berth-vision")
    queue["spec"] = {**queue["spec"], "cohortName": "elsewhere"}

    assert named(missing(picture(setup, documents))) == [("ClusterQueue", "berth-vision")]


def test_a_write_that_changed_nothing_is_not_repeated(setup: Setup, monkeypatch: Any) -> None:
    monkeypatch.setattr(queue_work, "_vain", {})
    documents = there(setup)
    queue = next(one for one in documents if one["metadata"]["name"] == "berth-vision")
    queue["spec"] = {**queue["spec"], "cohortName": "elsewhere"}
    seen = picture(setup, documents)
    written: list[Any] = []
    hands = SimpleNamespace(port=SimpleNamespace(put=written.append))

    queue_work._write(next(iter(missing(seen))), seen, hands)

    assert list(missing(seen)) == []
    queue["metadata"]["generation"] = 2  # somebody changed it once more
    assert named(missing(seen)) == [("ClusterQueue", "berth-vision")]
    assert len(written) == 1


def test_what_nobody_asks_for_goes_the_last_written_first(setup: Setup) -> None:
    documents = there(setup)
    empty = {"pendingWorkloads": 0, "reservingWorkloads": 0, "admittedWorkloads": 0}
    documents = [{**one, "status": {"pendingWorkloads": 0, **empty}} for one in documents]
    bare = replace(setup, teams=(), stocks=())

    refs = list(left_over(picture(bare, documents)))

    kinds = list(dict.fromkeys(ref.kind for ref in refs))
    assert kinds == ["LocalQueue", "ClusterQueue", "Cohort", "ResourceFlavor"]
    assert ("ResourceFlavor", "berth-host") not in {(ref.kind, ref.name) for ref in refs}
    assert all(ref.uid for ref in refs)


def test_a_queue_that_holds_work_stays(setup: Setup) -> None:
    documents = [{**one, "status": {"admittedWorkloads": 1}} for one in there(setup)]
    bare = replace(setup, teams=())

    assert {ref.kind for ref in left_over(picture(bare, documents))} == {"Cohort"}


@pytest.mark.parametrize(
    ("classes", "asked"),
    [
        ({"h100-train": "nvidia", "h100-more": "nvidia"}, "nvidia"),
        ({"h100-train": "nvidia", "h100-more": ""}, None),
        ({"h100-shared": "nvidia", "a10g-burst": "nvidia"}, None),
    ],
    ids=["all pools that offer it ask for one", "they differ, and any may get it", "only pools of other cards ask"],
)
def test_a_job_in_the_queue_asks_for_the_runtime_class_of_its_pools(
    world: World, classes: dict[str, str], asked: str | None
) -> None:
    more = NodePool.objects.get(name="h100-train")
    more.pk, more.name = None, "h100-more"
    more.save()
    put: list[Any] = []
    hands: Any = SimpleNamespace(
        object_of=lambda row: None,
        runtime_classes=classes,
        look=SimpleNamespace(snapshot=snapshot.from_tables(world.cluster, world.now)),
        port=SimpleNamespace(put=put.append),
    )

    assert queue_work.hand_over(world.workload("train", kind="job", flavor="whole").pk, hands)

    assert put[-1]["spec"]["suspend"] is True
    assert put[-1]["spec"]["template"]["spec"].get("runtimeClassName") == asked


def test_kueues_word_is_matched_by_the_jobs_uid_and_not_by_a_label() -> None:
    mine, unmet = job("mine").having(queue="berth").fact(), job("unmet").having(queue="berth").fact()
    going = job("going").having(queue="berth").deleting().fact()
    word = KueueFact("uid-mine", "team-vision", "", QueueFact(Standing.PENDING, Reason.WAITING_FOR_QUOTA, "held"))
    other = KueueFact("uid-of-somebody-else", "team-vision", "", WAITS)

    found = facts_from([word, other], [mine, unmet, going, statefulset("plain").fact()])

    assert set(found) == {identity("mine"), identity("unmet")}
    assert found[identity("mine")].reason is Reason.WAITING_FOR_QUOTA
    assert found[identity("unmet")].reason is Reason.HANDED_OVER
