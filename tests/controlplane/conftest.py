"""The harbour of the stories: on the simulation, or with `--cluster controlplane` on the real control plane.

A story that asks for `harbour` runs on both, one that asks for `real_harbour` on the real one only.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta as td
from itertools import count

import pytest

from tests.conftest import Clock
from tests.controlplane import fleet
from tests.controlplane.harbour import Harbour, WallClock, on_real_server, simulated
from tests.world import World

runs = count()


@pytest.fixture
def on_cluster(request: pytest.FixtureRequest) -> str:
    """Which cluster this run is about; asking for it keeps a test in both runs."""
    return str(request.config.getoption("--cluster"))


@pytest.fixture
def clock(on_cluster: str, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The wall's on a real cluster, whose objects bear the wall's times; else one that stands until it is moved."""
    found = WallClock() if on_cluster == "controlplane" else Clock()
    monkeypatch.setattr("tenants.clock.now", found.now)
    return found


@pytest.fixture
def quiet(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker is woken: the test itself looks. Whoever asks a cluster to wait does so on the test's clock."""
    monkeypatch.setattr("scheduling.cluster.circuit.seconds", lambda: clock.now().timestamp())
    monkeypatch.setattr("scheduling.wake.send", lambda cluster_id: None)
    monkeypatch.setattr("scheduling.telemetry.sampler.SHORTEST", td(0))


@pytest.fixture
def harbour(request: pytest.FixtureRequest, on_cluster: str, world: World, quiet: None) -> Iterator[Harbour]:
    if on_cluster == "simulated":
        with simulated(world) as found:
            yield found
        return
    with on_real_server(world, request.getfixturevalue("control_plane"), f"story {next(runs)}") as found:
        yield found


@pytest.fixture
def real_harbour(world: World, quiet: None, control_plane: fleet.Site, on_cluster: str) -> Iterator[Harbour]:
    with on_real_server(world, control_plane, f"story {next(runs)}") as found:
        yield found
