"""One site for all tests of this folder; each leaves it whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from portal.demo.launcher import Demo, empty_folder, running
from portal.processes import free_port
from tests.integration.site import Site


@pytest.fixture(scope="session")
def running_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site") / "demo"
    empty_folder(folder)
    with running(Demo(folder=folder, port=free_port(), rate=60.0)) as demo:
        yield Site(demo)


@pytest.fixture
def site(running_site: Site) -> Iterator[Site]:
    """The site, whole before and after, with Robin logged in. Afterwards every invariant holds."""
    running_site.most_pods.clear()
    running_site.enter()
    yield running_site
    assert running_site.findings() == []
    assert set(running_site.most_pods.values()) <= {1}, "A workload had two pods at once."
