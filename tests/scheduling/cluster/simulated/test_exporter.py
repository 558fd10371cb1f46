"""The DCGM expositions: the form of dcgm-exporter, and loads that follow from pod and time."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import pytest

from scheduling.cluster.simulated.errors import ApiError
from tests.scheduling.cluster.simulated.stories import (
    BALANCED,
    DATA,
    SHARED,
    TRAIN,
    UNCUT,
    Story,
    job,
    on_node,
    pod,
    stateful_set,
)

SERIES = re.compile(r"^([A-Z_0-9]+)\{(.*)\} (\S+)$")
LABEL = re.compile(r'([A-Za-z_]+)="([^"]*)"')


def series(text: str, metric: str = "") -> Iterator[tuple[str, dict[str, str], float]]:
    for line in text.splitlines():
        match = SERIES.match(line)
        if match and metric in ("", match[1]):
            yield match[1], dict(LABEL.findall(match[2])), float(match[3])


def exposition(story: Story, node: str) -> str:
    return str(story.world.parts["exporter"].exposition(node))


def value(story: Story, node: str, metric: str, **labels: str) -> float:
    found = [number for _, has, number in series(exposition(story, node), metric) if has | labels == has]
    assert len(found) == 1, f"{len(found)} series of {metric} with {labels}"
    return found[0]


def metrics(text: str) -> set[str]:
    return {name for name, _, _ in series(text)}


def form(text: str) -> list[tuple[str, ...]]:
    """For each metric the label names of its series, in print order."""
    return sorted({(name, *labels) for name, labels, _ in series(text)})


def sample(name: str) -> str:
    return (DATA / "dcgm_samples" / name).read_text()


# The form


def test_whole_cards_look_like_the_sample(fleet: Story) -> None:
    fleet.create(pod("p", {"nvidia.com/gpu": "1"}, affinity=on_node(TRAIN)))
    fleet.advance(minutes=1)
    ours, theirs = form(exposition(fleet, TRAIN)), form(sample("01-full-gpu-a100.prom"))

    assert set(ours) <= set(theirs)
    assert ("DCGM_FI_DEV_GPU_UTIL", "gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname",
            "DCGM_FI_DRIVER_VERSION", "container", "namespace", "pod") in ours  # fmt: skip


def test_slices_look_like_the_sample(fleet: Story) -> None:
    fleet.create(pod("p", {"nvidia.com/mig-1g.10gb": "1"}, affinity=on_node(BALANCED)))
    fleet.advance(minutes=1)
    ours = form(exposition(fleet, BALANCED))

    assert set(ours) <= set(form(sample("02-mig-mixed-h100.prom")))
    assert not [line for line in ours if line[0].endswith("_UTIL")]


def test_shared_cards_look_like_the_sample(fleet: Story) -> None:
    for name in "abcde":
        fleet.create(pod(name, {"nvidia.com/gpu": "1"}, affinity=on_node(SHARED)))
    fleet.advance(minutes=1)
    ours = form(exposition(fleet, SHARED))

    assert set(ours) <= set(form(sample("03-timesliced-a10g-virtual-gpus.prom")))


def test_every_metric_has_its_help_and_its_type_once(fleet: Story) -> None:
    lines = exposition(fleet, TRAIN).splitlines()
    heads = [line.split()[2] for line in lines if line.startswith("# TYPE")]

    assert len(heads) == len(set(heads)) == len(metrics("\n".join(lines)))
    assert [line.split()[2] for line in lines if line.startswith("# HELP")] == heads
    assert all(line.split()[3] in ("gauge", "counter") for line in lines if line.startswith("# TYPE"))


def test_energy_is_a_counter_and_power_a_gauge(fleet: Story) -> None:
    text = exposition(fleet, TRAIN)

    assert "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter" in text
    assert "# TYPE DCGM_FI_DEV_POWER_USAGE gauge" in text


def test_the_board_is_repeated_per_slice_and_has_one_parent(fleet: Story) -> None:
    rows = list(series(exposition(fleet, BALANCED), "DCGM_FI_DEV_POWER_USAGE"))

    assert [(has["gpu"], has["GPU_I_PROFILE"], has["GPU_I_ID"]) for _, has, _ in rows[:4]] == [
        ("0", "2g.20gb", "3"),
        ("0", "1g.10gb", "9"),
        ("0", "1g.10gb", "10"),
        ("0", "3g.40gb", "2"),
    ]
    assert len({has["UUID"] for _, has, _ in rows}) == 2
    assert len({number for _, has, number in rows if has["gpu"] == "0"}) == 1


def test_a_mig_card_without_instances_is_a_card_without_utilisation(fleet: Story) -> None:
    fleet.cut(UNCUT, "all-enabled")
    fleet.advance(minutes=2)

    assert "GPU_I_ID" not in exposition(fleet, UNCUT)


# The load


def test_a_workspace_is_busy_for_a_while_and_then_quiet(fleet: Story) -> None:
    document = stateful_set(resources={"nvidia.com/gpu": "1"}, affinity=on_node(TRAIN))
    fleet.create(document)
    fleet.advance(minutes=1)
    early = []
    for _ in range(18):
        fleet.advance(minutes=1)
        early.append(value(fleet, TRAIN, "DCGM_FI_DEV_GPU_UTIL", pod="ws-0"))

    fleet.advance(minutes=5)
    late = []
    for _ in range(90):
        fleet.advance(minutes=1)
        late.append(value(fleet, TRAIN, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", pod="ws-0"))

    assert all(30 <= busy <= 90 for busy in early)
    assert len(set(early)) > 5
    assert all(busy < 0.01 for busy in late)


def test_a_quiet_workspace_keeps_its_memory(fleet: Story) -> None:
    fleet.create(stateful_set(resources={"nvidia.com/gpu": "1"}, affinity=on_node(TRAIN)))
    fleet.advance(minutes=10)
    busy = value(fleet, TRAIN, "DCGM_FI_DEV_FB_USED", pod="ws-0")

    fleet.advance(hours=5)

    assert value(fleet, TRAIN, "DCGM_FI_DEV_FB_USED", pod="ws-0") == busy > 10_000


def test_a_job_is_busy_all_the_time(fleet: Story) -> None:
    fleet.create(job(script="sleep 36000", resources={"nvidia.com/gpu": "1"}, pod={"affinity": on_node(TRAIN)}))
    fleet.advance(minutes=1)
    name = fleet.names("pods")[0]

    for _ in range(20):
        fleet.advance(minutes=7)
        assert 85 <= value(fleet, TRAIN, "DCGM_FI_DEV_GPU_UTIL", pod=name) <= 98


FIXED: dict[str, dict[str, Any]] = {
    "an argument": {"args": ["--load", "0.4"]},
    "an argument with its value": {"args": ["--load=0.4"]},
    "within a script": {"command": ["sh", "-c", "train --load 0.4"]},
    "the environment": {"env": [{"name": "LOAD", "value": "0.4"}]},
}


@pytest.mark.parametrize("how", FIXED.values(), ids=FIXED)
def test_a_load_can_be_wished(fleet: Story, how: dict[str, Any]) -> None:
    fleet.create(pod("p", {"nvidia.com/gpu": "1"}, affinity=on_node(TRAIN), **how))

    for _ in range(3):
        fleet.advance(minutes=10)
        assert value(fleet, TRAIN, "DCGM_FI_DEV_GPU_UTIL", pod="p") == 40


def test_how_long_a_workspace_is_busy_can_be_wished(fleet: Story) -> None:
    env = [{"name": "BUSY_MINUTES", "value": "60"}]
    fleet.create(stateful_set(resources={"nvidia.com/gpu": "1"}, affinity=on_node(TRAIN), env=env))

    fleet.advance(minutes=50)
    assert value(fleet, TRAIN, "DCGM_FI_DEV_GPU_UTIL", pod="ws-0") >= 30
    fleet.advance(minutes=20)
    assert value(fleet, TRAIN, "DCGM_FI_DEV_GPU_UTIL", pod="ws-0") < 1


def test_the_same_moment_reads_the_same(fleet: Story) -> None:
    fleet.create(stateful_set(resources={"nvidia.com/gpu": "1"}, affinity=on_node(TRAIN)))
    fleet.advance(minutes=5)

    assert exposition(fleet, TRAIN) == exposition(fleet, TRAIN)


def test_a_pod_that_has_not_started_is_there_and_idle(fleet: Story) -> None:
    fleet.create(pod("p", {"nvidia.com/gpu": "1"}, affinity=on_node(TRAIN)))

    assert value(fleet, TRAIN, "DCGM_FI_DEV_GPU_UTIL", pod="p") == 0


def test_a_card_that_nobody_holds_is_there_and_idle(fleet: Story) -> None:
    assert value(fleet, TRAIN, "DCGM_FI_DEV_GPU_UTIL", gpu="7") == 0
    assert value(fleet, TRAIN, "DCGM_FI_DEV_POWER_USAGE", gpu="7") == 70


def test_used_free_and_reserved_memory_are_the_memory(fleet: Story) -> None:
    fleet.create(pod("p", {"nvidia.com/gpu": "1"}, affinity=on_node(TRAIN)))
    fleet.advance(minutes=5)

    parts = [value(fleet, TRAIN, f"DCGM_FI_DEV_FB_{part}", gpu="0") for part in ("USED", "FREE", "RESERVED")]
    assert sum(parts) == 81559


def test_a_slice_uses_no_more_than_its_own_memory(fleet: Story) -> None:
    fleet.create(
        job(script="sleep 999", resources={"nvidia.com/mig-1g.10gb": "1"}, pod={"affinity": on_node(BALANCED)})
    )
    fleet.advance(minutes=5)
    where = {"gpu": "0", "GPU_I_ID": "9"}

    used, free = (value(fleet, BALANCED, f"DCGM_FI_DEV_FB_{part}", **where) for part in ("USED", "FREE"))

    assert 5000 < used < 9984
    assert used + free <= 9984


def test_sharers_add_up_to_the_board(fleet: Story) -> None:
    for name in "abcdefgh":
        fleet.create(pod(name, {"nvidia.com/gpu": "1"}, affinity=on_node(SHARED), args=["--load", "0.3"]))
    fleet.advance(minutes=5)
    for metric in ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED"):
        rows = [(has, number) for _, has, number in series(exposition(fleet, SHARED), metric) if has["gpu"] == "0"]
        board = [number for has, number in rows if "pod" not in has]
        pods = [number for has, number in rows if "pod" in has]
        assert board == [sum(pods)]
        assert len(pods) == 2


def test_sharers_who_want_more_than_there_is_share_it(fleet: Story) -> None:
    for name in "abcde":
        fleet.create(pod(name, {"nvidia.com/gpu": "1"}, affinity=on_node(SHARED), args=["--load", "0.9"]))
    fleet.advance(minutes=5)
    rows = [(has, number) for _, has, number in series(exposition(fleet, SHARED), "DCGM_FI_DEV_GPU_UTIL")]

    assert [number for has, number in rows if has["gpu"] == "0"] == [100, 50, 50]
    assert [has["vgpu"] for has, _ in rows if has["gpu"] == "0" and "vgpu" in has] == ["0", "1"]


def test_other_figures_of_a_shared_card_are_copies_per_pod(fleet: Story) -> None:
    for name in "abcde":
        fleet.create(pod(name, {"nvidia.com/gpu": "1"}, affinity=on_node(SHARED), args=["--load", "0.3"]))
    fleet.advance(minutes=5)
    rows = [(has, n) for _, has, n in series(exposition(fleet, SHARED), "DCGM_FI_PROF_GR_ENGINE_ACTIVE")]

    first = [(has.get("pod"), n) for has, n in rows if has["gpu"] == "0"]
    assert first == [("a", 0.6), ("e", 0.6)]


def test_energy_only_grows(fleet: Story) -> None:
    readings = []
    for _ in range(5):
        fleet.advance(minutes=10)
        readings.append(value(fleet, TRAIN, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", gpu="0"))

    steps = [after - before for before, after in itertools.pairwise(readings)]
    assert steps == [70 * 600 * 1000] * 4  # an idle board draws 70 W


def test_a_sick_card_shows_its_xid(fleet: Story) -> None:
    fleet.faults.card_sick(TRAIN, card=3, xid=79)

    assert value(fleet, TRAIN, "DCGM_FI_DEV_XID_ERRORS", gpu="3") == 79
    assert value(fleet, TRAIN, "DCGM_FI_DEV_XID_ERRORS", gpu="2") == 0


# The door


def exporter(story: Story, node: str = TRAIN) -> dict[str, Any]:
    return story.get("pods", f"nvidia-dcgm-exporter-{node}", "gpu-operator")


def test_every_gpu_node_has_an_exporter(fleet: Story) -> None:
    found = {one["spec"]["nodeName"]: one for one in fleet.all("pods", "gpu-operator")}

    assert sorted(found) == sorted([TRAIN, BALANCED, UNCUT, SHARED])
    assert {one["metadata"]["labels"]["app"] for one in found.values()} == {"nvidia-dcgm-exporter"}
    assert {one["status"]["phase"] for one in found.values()} == {"Running"}


def test_an_exporter_that_is_deleted_comes_back(fleet: Story) -> None:
    before = exporter(fleet)["metadata"]["uid"]
    fleet.delete("pods", exporter(fleet)["metadata"]["name"], "gpu-operator")
    fleet.advance(minutes=1)

    assert exporter(fleet)["metadata"]["uid"] != before
    assert exporter(fleet)["status"]["phase"] == "Running"


def test_it_answers_through_the_api_server(fleet: Story) -> None:
    from tests.scheduling.cluster.simulated.test_http import ask

    path = f"/api/v1/namespaces/gpu-operator/pods/nvidia-dcgm-exporter-{SHARED}:9400/proxy/metrics"
    with fleet.serve() as url:
        code, headers, body = ask(url, "GET", path)

    assert (code, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert body.decode() == exposition(fleet, SHARED)


def test_the_colon_may_be_escaped(fleet: Story) -> None:
    from tests.scheduling.cluster.simulated.test_http import ask

    with fleet.serve() as url:
        base = f"/api/v1/namespaces/gpu-operator/pods/nvidia-dcgm-exporter-{TRAIN}"
        assert ask(url, "GET", f"{base}%3A9400/proxy/metrics")[0] == 200
        assert ask(url, "GET", f"{base}:1234/proxy/metrics")[0] == 503
        assert ask(url, "GET", f"{base}:9400/proxy/other")[0] == 404


def test_a_dead_node_does_not_answer(fleet: Story) -> None:
    fleet.faults.node_not_ready(TRAIN)

    with pytest.raises(ApiError) as refused:
        fleet.world.parts["exporter"].serve(exporter(fleet), "9400", "metrics")

    assert refused.value.code == 503


def test_a_pod_that_is_no_exporter_does_not_listen(fleet: Story) -> None:
    fleet.create(pod("p", affinity=on_node(TRAIN)))
    fleet.advance(minutes=1)

    with pytest.raises(ApiError, match="connection refused"):
        fleet.world.parts["exporter"].serve(fleet.get("pods", "p"), "9400", "metrics")
