"""The fleet page says which way a cluster queues."""

from __future__ import annotations

from typing import Any

from scheduling.models import Cluster
from tests.world import World


def test_a_cluster_with_kueue_is_named_as_such(world: World, client: Any) -> None:
    client.force_login(world.omar)
    assert "queues with Kueue" not in client.get("/fleet/").content.decode()

    Cluster.objects.update(queueing="kueue")

    assert "queues with Kueue" in client.get("/fleet/").content.decode()
