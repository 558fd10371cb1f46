"""Proxies with a seed that can be given from outside, to play a failing test again."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def seed() -> int:
    """FAULTS_SEED=17 plays the faults of an earlier run again; it is in a failing test's output."""
    return int(os.environ.get("FAULTS_SEED", "26"))
