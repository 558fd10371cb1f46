"""W6: the operator's last word on a pod that does not go. Ordered in a row; nothing here calls a cluster."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta as td

import pytest
from django.http import Http404

from scheduling.access import access_workload
from scheduling.models import Removal, Transition, Workload
from scheduling.removals import remove_by_force
from tenants.access import standing
from tenants.errors import NotAllowed, Refused
from tests.scheduling.lingering import linger
from tests.world import World


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Callable) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr("scheduling.removals.wake_cycle", found.append)
    return found


def order(world: World, row: Workload, *, sure: bool = True) -> list[Removal]:
    return remove_by_force(row, by=world.omar, now=world.now, sure=sure)


def test_the_order_names_the_pod_by_its_uid_and_leaves_a_trace(world: World, woken: list[int]) -> None:
    row = world.workload("stuck", phase="stopping")
    linger(row, world.now - td(minutes=10))

    (removal,) = order(world, row)

    assert (removal.pod, removal.pod_uid, removal.node) == ("stuck-0", "uid-of-stuck", "train-1")
    assert (removal.asked_by, removal.asked_at, removal.done_at) == (world.omar, world.now, None)
    last = Transition.objects.filter(workload=row).latest("version")
    assert (last.before, last.after, last.reason, last.by) == ("stopping", "stopping", row.phase_reason, world.omar)
    assert "has had pod stuck-0 removed by force" in last.text
    assert "may still run" in last.text, "what it risks"
    assert woken == [world.cluster.pk]


def test_ordering_twice_is_ordering_once(world: World, woken: list[int]) -> None:
    row = world.workload("stuck", phase="stopping")
    linger(row, world.now - td(minutes=10))

    first, second = order(world, row), order(world, row)

    assert [one.pk for one in first] == [one.pk for one in second]
    assert Transition.objects.filter(workload=row, text__contains="by force").count() == 1


@pytest.mark.parametrize("phase", ["waiting", "asleep", "ended"])
def test_it_is_the_pod_that_counts_and_not_the_phase(world: World, woken: list[int], phase: str) -> None:
    row = world.workload("stuck", phase=phase)
    linger(row, world.now - td(minutes=10))

    assert len(order(world, row)) == 1


REFUSED = {
    "nothing is stuck": (None, True, "has no pod that does not go"),
    "it was told to go a minute ago": (1, True, "can be removed by force from"),
    "nobody is sure": (10, False, "Say that you are sure: On a node that does not answer"),
}


@pytest.mark.parametrize(("minutes", "sure", "words"), REFUSED.values(), ids=REFUSED)
def test_a_refusal_says_why_and_writes_nothing(
    world: World, woken: list[int], minutes: int | None, sure: bool, words: str
) -> None:
    row = world.workload("stuck", phase="stopping")
    if minutes:
        linger(row, world.now - td(minutes=minutes))
    steps = row.transitions.count()

    with pytest.raises(Refused, match=words):
        order(world, row, sure=sure)

    assert (Removal.objects.count(), row.transitions.count(), woken) == (0, steps, [])


def test_one_that_was_given_half_an_hour_is_left_alone_so_long(world: World, woken: list[int]) -> None:
    row = world.workload("saving", phase="stopping")
    linger(row, world.now - td(minutes=30), grace=1800)

    with pytest.raises(Refused, match="may still do so by itself"):
        order(world, row)
    world.clock.advance(minutes=1)

    assert len(order(world, row)) == 1


def test_a_pod_that_nobody_told_to_go_is_the_cycles(world: World, woken: list[int]) -> None:
    row = world.workload("orphan", phase="ended")
    linger(row, None)

    with pytest.raises(Refused, match="nothing to remove by force"):
        order(world, row)


def test_only_the_operator(world: World) -> None:
    row = world.workload("stuck", phase="stopping")

    assert access_workload(standing(world.omar), row.pk, to="force") == row
    for person in (world.robin, world.dana, world.lena, world.farah):
        with pytest.raises(NotAllowed, match="Only the operator"):
            access_workload(standing(person), row.pk, to="force")
    with pytest.raises(Http404):
        access_workload(standing(world.sasha), row.pk, to="force")
