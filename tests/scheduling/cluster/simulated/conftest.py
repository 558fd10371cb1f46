"""Clusters for the stories: an empty one, the demo's fleet, and one behind HTTP with the client that Berth uses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.scheduling.cluster.simulated.stories import Story, fleet_story, plain_node


@pytest.fixture
def story() -> Story:
    """Two machines without GPUs."""
    return Story([plain_node("n1"), plain_node("n2")])


@pytest.fixture
def fleet() -> Story:
    return fleet_story()


@pytest.fixture
def url(story: Story) -> Iterator[str]:
    with story.serve() as url:
        yield url


@pytest.fixture
def client(url: str, tmp_path: Path) -> Iterator[Any]:
    """The official DynamicClient against the served story."""
    with dynamic_client(url, tmp_path) as client:
        yield client


def dynamic_client(url: str, folder: Path) -> Any:
    from contextlib import contextmanager

    from kubernetes import client, dynamic

    @contextmanager
    def opened() -> Iterator[Any]:
        configuration = client.Configuration(host=url)
        configuration.retries = False
        with client.ApiClient(configuration) as connection:
            yield dynamic.DynamicClient(connection, cache_file=str(folder / "discovery.json"))

    return opened()
