"""Brings in the judges, each pinned, in .judges: none of them touches our own environment."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from tools import browser, setup
from tools.judges.findings import CouldNotJudge

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / ".judges"
LOCK = ROOT / "requirements-judges.txt"
VNU = "vnu-jar@26.9.27"
VNU_SHA256 = "5970d3ffca91a627cf0965e5d91bb2e4242307c29292998de0b419d6a901b2b7"
PROGRAMS = {"java": "default-jre-headless", "npm": "npm"}  # and the Debian packages that bring them


@dataclass(frozen=True, slots=True)
class Equipment:
    vnu: list[str]
    schemathesis: str
    chromium: str


def prepare() -> Equipment:
    """Install what is not there yet. Raises CouldNotJudge with what is missing and cannot be installed here."""
    with setup.alone(ROOT / ".cache" / "judges.lock"):
        chromium = find_chromium()
        java = program("java")
        jar = FOLDER / "vnu" / "vnu.jar"
        if not is_fresh("vnu", VNU_SHA256):
            fetch_vnu(FOLDER / "vnu")
            stamp("vnu", VNU_SHA256)
        lock = hashlib.sha256(LOCK.read_bytes()).hexdigest()
        if not is_fresh("python", lock):
            make_environment(FOLDER / "python")
            stamp("python", lock)
    return Equipment(
        vnu=[java, "-jar", str(jar)], schemathesis=str(FOLDER / "python" / "bin" / "st"), chromium=chromium
    )


def find_chromium() -> str:
    if browser.main():
        raise CouldNotJudge("axe needs Chromium.")
    return str(browser.find_browser())


def program(name: str) -> str:
    """The path of a program, installed where that is possible."""
    if not shutil.which(name) and browser.can_install():
        print(f"Installing {PROGRAMS[name]} …", flush=True)
        browser.install(PROGRAMS[name])
    found = shutil.which(name)
    if not found:
        raise CouldNotJudge(f"The judges need {name}: install {PROGRAMS[name]}.")
    return found


def fetch_vnu(folder: Path) -> None:
    """The Nu Html Checker, out of its package; the digest is checked and none of the package's scripts runs."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    words = [program("npm"), "pack", "--silent", VNU, "--pack-destination", str(folder)]
    if subprocess.run(words, cwd=folder, stdout=subprocess.DEVNULL, check=False).returncode:
        raise CouldNotJudge(f"npm could not bring {VNU}.")
    package = next(folder.glob("*.tgz"))
    if hashlib.sha256(package.read_bytes()).hexdigest() != VNU_SHA256:
        raise CouldNotJudge(f"{VNU} is not the package that we know: its digest differs.")
    with tarfile.open(package) as archive:
        jar = archive.extractfile("package/build/dist/vnu.jar")
        (folder / "vnu.jar").write_bytes(jar.read() if jar else b"")
    package.unlink()


def make_environment(folder: Path) -> None:
    """An environment of its own for schemathesis, from its lock."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        setup.command(sys.executable, "-m", "venv", folder)
        setup.install([LOCK], folder / "bin" / "python")
    except subprocess.CalledProcessError as failure:
        raise CouldNotJudge(f"The judges' packages could not be installed (exit {failure.returncode}).") from None


def is_fresh(name: str, fingerprint: str) -> bool:
    file = FOLDER / f".{name}"
    return (FOLDER / name).exists() and file.exists() and file.read_text() == f"{FOLDER} {fingerprint}"


def stamp(name: str, fingerprint: str) -> None:
    (FOLDER / f".{name}").write_text(f"{FOLDER} {fingerprint}")
