"""The real Kueue beside the session's control plane, for tests with `--cluster controlplane`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from scheduling.cluster.client import Session
from tests.controlplane import fleet
from tests.controlplane.harbour import Harbour
from tests.controlplane.kueue import manager


@pytest.fixture(scope="session")
def kueue_manager(control_plane: fleet.Site) -> Iterator[fleet.Site]:
    """Kueue runs from here to the end of the session."""
    with manager.running(control_plane.plane):
        yield control_plane


@pytest.fixture
def kueue(kueue_manager: fleet.Site) -> Iterator[Session]:
    """A door to a control plane whose Kueue holds nothing, before and after."""
    with closing(Session(kueue_manager.plane.admin)) as door:
        yield door
        manager.sweep(door)


@pytest.fixture
def queued_harbour(kueue: Session, real_harbour: Harbour) -> Harbour:
    """A harbour whose cluster queues with Kueue; its queues are written."""
    real_harbour.world.cluster.queueing = "kueue"
    real_harbour.world.cluster.save()
    real_harbour.until(lambda: not real_harbour.looks[-1].again, "queues that are written")
    return real_harbour
