#!/usr/bin/env python3
"""Builds a Kubernetes control plane for the tests from pinned Go modules: `make controlplane`. Needs Python and Go.

What is built is said by the go.mod files under tests/controlplane/. It goes into .cache/controlplane/, each set of
programs in a folder named by a digest of all that decides it, so a second call does nothing. A folder that
KUBEBUILDER_ASSETS names (the convention of envtest) is asked first, and whatever it lacks is built. Kueue is a set of
its own, looked for in KUEUE_ASSETS: a pin of one set does not build the other anew.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULES = ROOT / "tests" / "controlplane"
CACHE = ROOT / ".cache" / "controlplane"
KUBERNETES = "k8s.io/kubernetes"
HOW_TO_GET_GO = (
    "Go is needed to build the control plane and is not installed: get it from https://go.dev/dl/, or let "
    "{variable} name a folder with {programs}; then run make controlplane."
)


class CouldNotBuild(Exception):
    """The text is a sentence for people."""


@dataclass(frozen=True, slots=True)
class Program:
    """One program of the control plane: its name, the module that pins it, its package, and what else it needs.

    `documents` is a folder of the package's own module, kept beside the program as NAME-documents.
    """

    name: str
    module: Path
    package: str
    documents: str = ""

    def ready_in(self, folder: Path) -> bool:
        return runs(folder / self.name) and (not self.documents or documents_of(folder / self.name).is_dir())


PROGRAMS = (
    Program("etcd", MODULES / "etcd", "go.etcd.io/etcd/server/v3"),
    Program("kube-apiserver", MODULES, f"{KUBERNETES}/cmd/kube-apiserver"),
    Program("kube-controller-manager", MODULES, f"{KUBERNETES}/cmd/kube-controller-manager"),
    Program("kube-scheduler", MODULES, f"{KUBERNETES}/cmd/kube-scheduler"),
)
KUEUE = (Program("kueue", MODULES / "kueue", "sigs.k8s.io/kueue/cmd/kueue", "config/components"),)
SETS = (PROGRAMS, KUEUE)
ASSETS = {PROGRAMS: "KUBEBUILDER_ASSETS", KUEUE: "KUEUE_ASSETS"}


def main() -> int:
    started = time.monotonic()
    try:
        found = {name: path for wanted in SETS for name, path in programs(wanted).items()}
    except CouldNotBuild as trouble:
        print(trouble, file=sys.stderr)
        return 2
    for name, path in found.items():
        print(f"{name:24} {path}")
    print(f"The control plane is ready ({time.monotonic() - started:.0f} s).", flush=True)
    return 0


def programs(wanted: tuple[Program, ...] = PROGRAMS) -> dict[str, Path]:
    """The path of each program of one set by name, built where it has to be. Raises CouldNotBuild."""
    assets = os.environ.get(ASSETS.get(wanted, ""), "")
    found = {one.name: Path(assets) / one.name for one in wanted if assets and one.ready_in(Path(assets))}
    own = [one for one in wanted if one.name not in found]
    folder = CACHE / fingerprint(wanted)
    if all(one.ready_in(folder) for one in own):  # nothing to wait for while somebody else builds
        return found | {one.name: folder / one.name for one in own}
    with alone(CACHE / "lock"):
        missing = [one for one in own if not one.ready_in(folder)]
        if missing:
            build(missing, folder)
    return found | {one.name: folder / one.name for one in own}


def lacking(wanted: tuple[Program, ...] = PROGRAMS) -> list[str]:
    """The names of the programs that would have to be built first."""
    assets = os.environ.get(ASSETS.get(wanted, ""), "")
    folders = [CACHE / fingerprint(wanted), *([Path(assets)] if assets else [])]
    return [one.name for one in wanted if not any(runs(folder / one.name) for folder in folders)]


def build(wanted: list[Program], folder: Path) -> None:
    """Build the programs into the folder, each as a whole or not at all; then forget what older pins had built."""
    go = shutil.which("go")
    if go is None:
        variable = ASSETS[KUEUE] if set(wanted) <= set(KUEUE) else ASSETS[PROGRAMS]
        raise CouldNotBuild(HOW_TO_GET_GO.format(variable=variable, programs=", ".join(one.name for one in wanted)))
    print(f"Building {', '.join(one.name for one in wanted)} (some minutes, once) …", flush=True)
    for module in dict.fromkeys(one.module for one in wanted):
        with scratch(folder) as place:
            packages = [one.package for one in wanted if one.module == module]
            compile_packages(go, module, packages, place)
            for one in (one for one in wanted if one.module == module):
                keep_documents(go, one, folder)
                (place / binary_name(one.package)).rename(folder / one.name)
    current = {CACHE / fingerprint(one) for one in SETS}
    for old in CACHE.iterdir():
        if old.is_dir() and old not in current:
            shutil.rmtree(old, ignore_errors=True)


def compile_packages(go: str, module: Path, packages: list[str], place: Path) -> None:
    words = [go, "build", "-mod=readonly", "-buildvcs=false", "-trimpath", f"-ldflags={link_flags()}"]
    environment = {**os.environ, "CGO_ENABLED": "0"}
    done = subprocess.run([*words, "-o", f"{place}/", *packages], cwd=module, env=environment, check=False)
    if done.returncode:
        raise CouldNotBuild(f"Go could not build {', '.join(packages)}; what it said stands above.")


def keep_documents(go: str, program: Program, folder: Path) -> None:
    """Copy what a program needs beside it, as its definitions of kinds: so that only a build needs Go."""
    if not program.documents:
        return
    module = program.package.partition("/cmd/")[0]
    words = [go, "list", "-m", "-f", "{{.Dir}}", module]
    found = subprocess.run(words, cwd=program.module, capture_output=True, text=True, check=False)
    if found.returncode:
        raise CouldNotBuild(f"Go does not say where {module} is: {found.stderr.strip()}")
    kept = documents_of(folder / program.name)
    shutil.rmtree(kept, ignore_errors=True)
    source = Path(found.stdout.strip()) / program.documents
    for file in source.rglob("*.yaml"):
        (kept / file.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, kept / file.relative_to(source))  # without its rights: Go's own copies are read-only


def documents_of(program: Path) -> Path:
    """Where the documents of a program lie."""
    return program.with_name(f"{program.name}-documents")


def binary_name(package: str) -> str:
    """What `go build` calls a program: the last part of its path that is no major version."""
    parts = package.split("/")
    return parts[-2] if re.fullmatch(r"v\d+", parts[-1]) else parts[-1]


def link_flags() -> str:
    """Small programs that know their version; without it clients see v0.0.0."""
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".", 2)
    told = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return "-s -w " + " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in told.items())


def kubernetes_version() -> str:
    """The version that tests/controlplane/go.mod pins, as v1.36.3."""
    found = re.search(rf"{KUBERNETES} (v\S+)", (MODULES / "go.mod").read_text(encoding="utf-8"))
    if found is None:
        raise CouldNotBuild(f"{MODULES.relative_to(ROOT)}/go.mod pins no {KUBERNETES}.")
    return found[1]


def fingerprint(wanted: tuple[Program, ...] = PROGRAMS) -> str:
    """A digest of all that decides what is built of one set."""
    digest = hashlib.sha256(link_flags().encode())
    for module in dict.fromkeys(one.module for one in wanted):
        for name in ("go.mod", "go.sum"):
            digest.update((module / name).read_bytes())
    return digest.hexdigest()[:16]


def runs(program: Path) -> bool:
    return program.is_file() and os.access(program, os.X_OK)


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """A folder beside the finished programs, gone afterwards."""
    place = folder / "half-done"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait until no other call is in here; the lock ends with the process, however it ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main())
