"""Pausing a cluster is the operator's, and happens once."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import Http404

from scheduling.clusters import access_cluster, set_paused
from scheduling.models import Cluster
from tenants.access import standing
from tenants.errors import NotAllowed
from tests.world import World


def test_pausing_is_written_told_and_wakes_the_cycle(
    world: World, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    said: list[Any] = []
    monkeypatch.setattr("scheduling.announce.send", said.extend)
    monkeypatch.setattr("scheduling.wake.send", said.append)

    with django_capture_on_commit_callbacks(execute=True):
        set_paused(world.cluster, paused=True, by=world.omar, now=world.now)

    assert Cluster.objects.get().paused
    assert {"topic": "fleet", "what": "fleet", "cluster": "harbour-1"} in said
    assert world.cluster.pk in said


def test_pausing_twice_says_nothing_the_second_time(world: World, django_capture_on_commit_callbacks: Any) -> None:
    set_paused(world.cluster, paused=True, by=world.omar, now=world.now)

    with django_capture_on_commit_callbacks() as callbacks:
        set_paused(world.cluster, paused=True, by=world.omar, now=world.now)

    assert callbacks == []


def test_who_may(world: World) -> None:
    assert access_cluster(standing(world.omar), world.cluster.pk, to="steer") == world.cluster
    assert access_cluster(standing(world.robin), world.cluster.pk) == world.cluster
    with pytest.raises(NotAllowed):
        access_cluster(standing(world.dana), world.cluster.pk, to="steer")
    with pytest.raises(Http404):
        access_cluster(standing(world.omar), 0)
