"""What the cluster makes of a workload, on its page: its address, what Kubernetes says, and what it needs."""

from datetime import UTC, datetime
from typing import Any, Self

import pytest

from scheduling.cluster.port import ClusterError, EventFact
from scheduling.models import Node, Workload
from tests.portal.pages.reading import as_person, look
from tests.world import World

SAID = EventFact(
    datetime(2026, 12, 1, 12, tzinfo=UTC), "Pod notebook-0", True, "FailedMount", "<b>no map</b>", 3, "kubelet"
)


def cluster_says(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    class Port:
        def __init__(self, cluster: Any) -> None: ...

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

        def events(self, namespace: str, name: str) -> list[EventFact]:
            if isinstance(answer, Exception):
                raise answer
            return answer

    monkeypatch.setattr("scheduling.selectors.port_for", Port)


def words_of(world: World, row: Workload, who: Any = None) -> str:
    return look(as_person(who or world.robin), f"/workloads/{row.pk}/").words


class TestEvents:
    def test_they_are_told_in_kubernetes_own_words_as_text(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        cluster_says(monkeypatch, [SAID])
        row = world.workload("notebook", phase="starting")

        words = look(as_person(world.robin), f"/workloads/{row.pk}/events/").words

        assert "FailedMount" in words
        assert "3 times" in words
        assert "<b>no map</b>" in words
        assert SAID.about in words

    def test_a_cluster_that_does_not_answer_is_said(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        cluster_says(monkeypatch, ClusterError("The API server does not answer."))
        row = world.workload("notebook", phase="starting")

        words = look(as_person(world.robin), f"/workloads/{row.pk}/events/").words

        assert "harbour-1 did not say: The API server does not answer." in words

    def test_the_page_itself_asks_no_cluster(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        cluster_says(monkeypatch, AssertionError("asked"))

        assert "What Kubernetes says" in words_of(world, world.workload("notebook", phase="running"))


class TestAddress:
    def test_it_is_shown_while_it_runs_with_what_it_does_not_do(self, world: World) -> None:
        row = world.workload("notebook", phase="running")
        Workload.objects.filter(pk=row.pk).update(address="https://notebook-1.lab.example.org/")

        words = words_of(world, row)

        assert "https://notebook-1.lab.example.org/" in words
        assert "Berth checks nobody at this address" in words

    def test_a_sleeper_has_none(self, world: World) -> None:
        row = world.workload("notebook", phase="asleep")
        Workload.objects.filter(pk=row.pk).update(address="https://notebook-1.lab.example.org/")

        assert "lab.example.org" not in words_of(world, row)

    def test_why_there_is_none_is_said(self, world: World) -> None:
        row = world.workload("notebook", phase="running")
        Workload.objects.filter(pk=row.pk).update(address_problem="The cluster knows no objects of kind HTTPRoute.")

        assert "The cluster knows no objects of kind HTTPRoute." in words_of(world, row)


class TestForeign:
    @pytest.fixture
    def fleet(self, world: World) -> World:
        row = world.node("shared-7", "h100-shared")
        held = {"kube-system": {"nvidia.com/mig-1g.10gb": 2}, "team-vision": {"nvidia.com/mig-1g.10gb": 1}}
        Node.objects.filter(pk=row.pk).update(foreign=held)
        return world

    def test_the_operator_sees_every_namespace(self, fleet: World) -> None:
        words = look(as_person(fleet.omar), "/fleet/").words

        assert "Held outside Berth" in words
        assert "kube-system ¼ card: 2 × nvidia.com/mig-1g.10gb" in words
        assert "team-vision ⅛ card" in words

    def test_others_see_their_own_by_name_and_the_rest_without(self, fleet: World) -> None:
        for address in ("/fleet/", f"/fleet/pools/{fleet.pools['h100-shared'].pk}/"):
            words = look(as_person(fleet.robin), address).words

            assert "team-vision ⅛ card" in words
            assert "Other namespaces ¼ card" in words
            assert "kube-system" not in words

    def test_where_there_is_none_nothing_is_said(self, world: World) -> None:
        assert "Held outside Berth" not in look(as_person(world.omar), "/fleet/").words
