"""What a cluster begins with: files, the demo's fleet, and the process that serves it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from scheduling.cluster.simulated import SimulatedCluster, fleet_documents, read_documents
from scheduling.cluster.simulated.__main__ import main
from scheduling.cluster.simulated.seeding import FLEET
from tests.scheduling.cluster.simulated.stories import DATA, Story, plain_node
from tests.scheduling.cluster.simulated.test_http import ask

ROOT = Path(__file__).parents[4]


def test_the_fleet_has_four_pools_one_of_them_empty(fleet: Story) -> None:
    figures = {
        one["metadata"]["name"]: (
            one["spec"]["replicas"],
            one["metadata"]["annotations"]["cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"],
            one["metadata"]["annotations"]["cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"],
        )
        for one in fleet.all("machinedeployments", "fleet")
    }

    assert figures == {
        "h100-train": (1, "1", "2"),
        "h100-mig": (2, "1", "3"),
        "a10g-shared": (1, "1", "3"),
        "a100-burst": (0, "0", "4"),
    }


def test_the_fleets_cards(fleet: Story) -> None:
    assert sorted(tuple(sorted(fleet.allocatable(name).items())) for name in fleet.names("nodes")) == [
        (("gpu", 0), ("mig-1g.10gb", 4), ("mig-2g.20gb", 2), ("mig-3g.40gb", 2)),
        (("gpu", 2),),
        (("gpu", 8),),
        (("gpu", 16),),
    ]


def test_the_fleets_nodes_are_ready_and_in_their_pools(fleet: Story) -> None:
    for node in fleet.all("nodes"):
        ready = [one["status"] for one in node["status"]["conditions"] if one["type"] == "Ready"]
        assert ready == ["True"]
        assert node["metadata"]["labels"]["node.cluster.x-k8s.io/pool"] in fleet.names("machinedeployments", "fleet")


def test_spot_nodes_say_so(fleet: Story) -> None:
    spot = [n["metadata"]["name"] for n in fleet.all("nodes") if "SPOT" in n["metadata"]["labels"].values()]

    assert spot == ["ip-10-42-17-203.eu-central-1.compute.internal"]


def test_the_fleet_comes_with_a_notice() -> None:
    assert "invented" in (FLEET / "NOTICE").read_text()


def test_a_folder_a_file_and_a_list_are_read(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(yaml.safe_dump_all([plain_node("b1"), plain_node("b2")]))
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [plain_node("a")]}))

    cluster = SimulatedCluster(read_documents(tmp_path))

    assert sorted(key.name for key in cluster.world.store.documents["nodes"]) == ["a", "b1", "b2"]


def test_all_real_shaped_nodes_can_be_planted() -> None:
    story = Story(json.loads((DATA / "nodes" / "nodelist.json").read_text())["items"])

    assert len(story.all("nodes")) == 8
    assert story.allocatable("dgx-h100-07") == {"gpu": 56}
    assert story.node("mi300x-oam-03")["status"]["allocatable"]["amd.com/gpu"] == "8"


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no \*\.yaml files"):
        read_documents(tmp_path)


def test_a_kind_that_is_not_served_is_refused() -> None:
    with pytest.raises(ValueError, match="The seed has a 'Deployment'"):
        SimulatedCluster([{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}}])


def test_the_order_of_the_documents_does_not_matter() -> None:
    story = Story(list(reversed(fleet_documents())))
    story.advance(minutes=1)

    assert {
        one["metadata"]["name"]: one["status"]["readyReplicas"] for one in story.all("machinedeployments", "fleet")
    } == {
        "a100-burst": 0,
        "a10g-shared": 1,
        "h100-mig": 2,
        "h100-train": 1,
    }


# The process


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "scheduling.cluster.simulated", "--port", "0"]
    environment = dict(os.environ) | {"BERTH_CLOCK": ""}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, env=environment, text=True, **pipes) as running:  # type: ignore[call-overload]
        yield running
        running.kill()


def test_it_serves_says_where_and_ends_on_sigterm(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    ready, _, url = process.stdout.readline().strip().partition(" ")

    assert ready == "ready"
    assert url.startswith("http://127.0.0.1:")
    assert b"h100-train" in ask(url, "GET", "/apis/cluster.x-k8s.io/v1beta2/machinedeployments")[2]
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    _, complaints = process.communicate(timeout=10)
    assert (process.returncode, complaints) == (0, "")
    assert time.monotonic() - began < 3


def test_an_open_watch_does_not_hold_up_the_end(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    url = process.stdout.readline().strip().partition(" ")[2]
    connection = HTTPConnection(urlsplit(url).netloc, timeout=10)
    connection.request("GET", "/api/v1/pods?watch=true")
    answer = connection.getresponse()
    answer.readline()

    process.send_signal(signal.SIGTERM)
    _, complaints = process.communicate(timeout=5)

    assert (process.returncode, complaints) == (0, "")
    answer.close()
    connection.close()


def test_a_seed_that_is_not_there_is_said_in_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--port", "0", "--seed", str(tmp_path / "nothing")]) == 2

    assert capsys.readouterr().err.startswith("simulated cluster: ")


def test_a_seed_that_is_no_yaml_is_said_in_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    seed = tmp_path / "seed.yaml"
    seed.write_text("a: [")

    assert main(["--port", "0", "--seed", str(seed)]) == 2
    assert str(seed) in capsys.readouterr().err


def test_a_port_that_is_taken_is_said_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()

        assert main(["--port", str(taken.getsockname()[1])]) == 2

    assert "simulated cluster: " in capsys.readouterr().err
