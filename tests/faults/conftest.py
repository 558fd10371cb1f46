"""The simulated harbour of the cycle's tests behind a fault proxy. Stories for both clusters: tests/controlplane/."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.faults.proxy import Proxy
from tests.faults.stand import behind_a_proxy, comes_to_rest
from tests.scheduling.conftest import Harbour, harbour

__all__ = ["harbour"]


@pytest.fixture
def seed() -> int:
    """FAULTS_SEED=17 plays the faults of an earlier run again; it is in a failing test's output."""
    return int(os.environ.get("FAULTS_SEED", "26"))


@pytest.fixture
def road(harbour: Harbour, seed: int) -> Iterator[Proxy]:
    """The proxy on the harbour's road to its cluster. Every test ends at rest, with every invariant whole."""
    with behind_a_proxy(harbour, seed) as proxy:
        yield proxy
        comes_to_rest(harbour, proxy)
