"""When the control plane is built, from what, and what is said where it cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import controlplane
from tools.controlplane import KUEUE, PROGRAMS, CouldNotBuild, Program

NAMES = [one.name for one in PROGRAMS]


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The packages that a call has built; building makes empty programs, and takes no time."""
    packages: list[str] = []

    def compile_packages(_go: str, _module: Path, wanted: list[str], place: Path) -> None:
        packages.extend(wanted)
        for package in wanted:
            program(place / controlplane.binary_name(package))

    for variable in ("KUBEBUILDER_ASSETS", "KUEUE_ASSETS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(controlplane, "CACHE", tmp_path / "cache")

    def keep_documents(_go: str, wanted: Program, folder: Path) -> None:
        if wanted.documents:
            controlplane.documents_of(folder / wanted.name).mkdir(exist_ok=True)

    monkeypatch.setattr(controlplane, "compile_packages", compile_packages)
    monkeypatch.setattr(controlplane, "keep_documents", keep_documents)
    monkeypatch.setattr(controlplane.shutil, "which", lambda _name: "/usr/bin/go")
    return packages


def program(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)


def test_the_second_call_does_nothing(built: list[str]) -> None:
    first = controlplane.programs()
    built.clear()

    assert controlplane.programs() == first
    assert built == []
    assert all(controlplane.runs(first[name]) for name in NAMES)


def test_what_was_deleted_is_built_again(built: list[str]) -> None:
    controlplane.programs()["kube-scheduler"].unlink()
    built.clear()

    controlplane.programs()

    assert built == ["k8s.io/kubernetes/cmd/kube-scheduler"]


def test_other_pins_are_another_control_plane_and_the_old_one_goes(
    built: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = controlplane.programs()["etcd"]
    monkeypatch.setattr(controlplane, "fingerprint", lambda _wanted: "another")

    after = controlplane.programs()["etcd"]

    assert after.parent.name == "another"
    assert not before.exists()


@pytest.mark.parametrize("file", ["go.mod", "go.sum", "etcd/go.mod", "etcd/go.sum"])
def test_every_pin_decides_what_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    (tmp_path / "etcd").mkdir()
    for name in ("go.mod", "go.sum", "etcd/go.mod", "etcd/go.sum"):
        (tmp_path / name).write_text("require k8s.io/kubernetes v1.36.3\n")
    modules = tuple(Program(one, tmp_path / folder, one) for one, folder in (("etcd", "etcd"), ("kube-apiserver", ".")))
    monkeypatch.setattr(controlplane, "MODULES", tmp_path)
    before = controlplane.fingerprint(modules)

    (tmp_path / file).write_text("require k8s.io/kubernetes v1.36.3\n\n")

    assert controlplane.fingerprint(modules) != before


def test_kueue_has_a_folder_of_its_own_and_neither_set_sweeps_the_other_away(built: list[str]) -> None:
    plane = controlplane.programs()
    kueue = controlplane.programs(KUEUE)

    assert list(kueue) == ["kueue"]
    assert kueue["kueue"].parent != plane["etcd"].parent
    assert all(controlplane.runs(path) for path in (*plane.values(), *kueue.values()))


def test_a_ready_kueue_is_used_and_nothing_is_built(
    built: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUEUE_ASSETS", str(tmp_path / "assets"))
    program(tmp_path / "assets" / "kueue")
    (tmp_path / "assets" / "kueue-documents").mkdir()

    assert controlplane.programs(KUEUE) == {"kueue": tmp_path / "assets" / "kueue"}
    assert built == []


def test_a_kueue_without_its_documents_is_not_ready(
    built: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUEUE_ASSETS", str(tmp_path / "assets"))
    program(tmp_path / "assets" / "kueue")

    assert controlplane.programs(KUEUE)["kueue"].parent != tmp_path / "assets"
    assert built == ["sigs.k8s.io/kueue/cmd/kueue"]


def test_without_go_a_missing_kueue_names_its_own_variable(built: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controlplane.shutil, "which", lambda _name: None)

    with pytest.raises(CouldNotBuild, match="KUEUE_ASSETS name a folder with kueue"):
        controlplane.programs(KUEUE)


def test_ready_programs_are_used_and_the_rest_is_built(
    built: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    for name in ("etcd", "kube-apiserver"):
        program(tmp_path / "assets" / name)

    found = controlplane.programs()

    assert list(found) == NAMES
    assert found["etcd"] == tmp_path / "assets" / "etcd"
    assert [package.rpartition("/")[2] for package in built] == ["kube-controller-manager", "kube-scheduler"]


def test_without_go_it_says_how_to_get_it(
    built: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(controlplane.shutil, "which", lambda _name: None)

    assert controlplane.main() == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "https://go.dev/dl/" in said
    assert "KUBEBUILDER_ASSETS" in said
    assert all(name in said for name in NAMES)


def test_a_build_that_fails_leaves_nothing_half_done(built: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_go: str, _module: Path, _packages: list[str], place: Path) -> None:
        program(place / "etcd")
        raise CouldNotBuild("no")

    monkeypatch.setattr(controlplane, "compile_packages", fails)

    with pytest.raises(CouldNotBuild):
        controlplane.programs()
    assert list((controlplane.CACHE / controlplane.fingerprint()).iterdir()) == []


BINARIES = {
    "the last part": ("k8s.io/kubernetes/cmd/kube-scheduler", "kube-scheduler"),
    "a major version is no name": ("go.etcd.io/etcd/server/v3", "server"),
}


@pytest.mark.parametrize(("package", "name"), BINARIES.values(), ids=BINARIES)
def test_how_go_calls_a_program(package: str, name: str) -> None:
    assert controlplane.binary_name(package) == name


def test_the_programs_know_their_version() -> None:
    version = controlplane.kubernetes_version()

    assert f"version.gitVersion={version}" in controlplane.link_flags()
    assert f"k8s.io/kubernetes {version}" in (controlplane.MODULES / "go.mod").read_text(encoding="utf-8")
