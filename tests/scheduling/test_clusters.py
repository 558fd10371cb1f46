"""Pausing a cluster is the operator's, and happens once."""

from __future__ import annotations

import runpy
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from django.http import Http404

from scheduling.clusters import access_cluster, set_paused
from scheduling.models import Cluster, Flavor
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


def test_what_the_documents_say_of_connecting_a_cluster_makes_one_that_is_only_looked_at(
    world: World, tmp_path: Path
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text()
    (tmp_path / "shell.py").write_text(dedent(page.partition("```python\n")[2].partition("   ```\n")[0]))

    runpy.run_path(str(tmp_path / "shell.py"))

    cluster = Cluster.objects.get(name="harbour-2")
    assert cluster.paused
    assert [(pool.name, pool.max_nodes) for pool in cluster.pools.all()] == [("h100-train", 1)]
    assert Flavor.objects.filter(model="h100-80gb", sharing="whole", capacity="on-demand").exists()
