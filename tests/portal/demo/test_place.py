"""Where the demo's cluster is: a file that is waited for, and what a real one changes about the demo."""

from __future__ import annotations

import socket
from datetime import UTC, datetime
from pathlib import Path

import pytest

from portal.demo import launcher, prepare, seed
from portal.demo.launcher import CONTROL_PLANE, SIMULATED, Demo
from portal.demo.place import Place, read_place, write_place
from portal.demo.story import scenes
from portal.management.commands import demo as command
from portal.processes import CouldNotStart
from tools import controlplane

NOW = datetime(2026, 12, 1, 11, 46, tzinfo=UTC)
REAL = Place("https://127.0.0.1:6443", "/run/berth.token", "/run/ca.crt", "/run/admin.crt", "/run/admin.key")


def test_a_place_is_what_was_written(tmp_path: Path) -> None:
    file = tmp_path / "ready.json"
    assert read_place(file) is None
    write_place(file, REAL)
    assert read_place(file) == REAL


def test_who_prepares_waits_for_the_file_and_for_the_cluster_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "PATIENCE", 0.0)
    file = tmp_path / "cluster.json"
    with pytest.raises(TimeoutError, match=r"cluster\.json did not come up"):
        prepare.wait_for(file)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = Place(f"http://127.0.0.1:{listener.getsockname()[1]}")
        write_place(file, place)
        assert prepare.wait_for(file) == place
    with pytest.raises(TimeoutError):
        prepare.wait_for(file)


def test_before_the_cluster_has_said_where_it_is_nobody_guesses(tmp_path: Path) -> None:
    with pytest.raises(CouldNotStart, match="has not said where it is"):
        _ = Demo(tmp_path, 1, 1.0, cluster=CONTROL_PLANE).place


@pytest.mark.parametrize(("kind", "simulated"), [(SIMULATED, True), (CONTROL_PLANE, False)])
def test_only_beside_a_simulated_cluster_the_clock_is_our_own(tmp_path: Path, kind: str, simulated: bool) -> None:
    found = launcher.environment(Demo(tmp_path, 1, 1.0, cluster=kind), "redis://127.0.0.1:1/0")

    assert ("BERTH_CLOCK" in found) is simulated


def test_both_stories_have_the_same_steps_but_for_how_long_it_is_quiet() -> None:
    simulated, real = (dict(scenes(real=real)) for real in (False, True))

    assert {*simulated} ^ {*real} == {"Ninety quiet minutes", "A quiet minute"}
    assert [*simulated.values()] != [*real.values()]  # the money is read while the minute passes
    assert {*simulated.values()} == {*real.values()}


@pytest.mark.django_db
def test_a_real_cluster_is_known_by_its_files_and_its_burst_pool_has_short_limits() -> None:
    cluster = seed.make_cluster(REAL, NOW)

    assert (cluster.server, cluster.token_file, cluster.authority_file) == (
        "https://127.0.0.1:6443",
        "/run/berth.token",
        "/run/ca.crt",
    )
    limits = {pool.name: (pool.idle_minutes, pool.empty_minutes) for pool in cluster.pools.all()}
    assert limits == {"a100-burst": (1, 0), "a10g-shared": (90, 30), "h100-mig": (90, 30), "h100-train": (90, 30)}


def test_a_control_plane_that_is_not_built_is_said_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controlplane, "lacking", lambda: ["etcd", "kube-apiserver"])

    command.check_cluster(SIMULATED)
    with pytest.raises(CouldNotStart, match=r"^etcd, kube-apiserver .* make controlplane builds them, once\.$"):
        command.check_cluster(CONTROL_PLANE)


def test_real_time_is_not_hurried() -> None:
    assert command.checked_rate(None, CONTROL_PLANE) == 1.0
    assert command.checked_rate(None, SIMULATED) == 60.0
    with pytest.raises(CouldNotStart, match="--rate is 60, but a real control plane lives in real time"):
        command.checked_rate(60.0, CONTROL_PLANE)
