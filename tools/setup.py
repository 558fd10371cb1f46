#!/usr/bin/env python3
"""Makes .venv with everything pinned: `python3 tools/setup.py run|test|dev`. Needs only Python 3.11 and an index.

`run` is what the portal needs, `test` adds what the tests need, `dev` adds lint and types. A second call with the same
locks does nothing, and two calls at once do not harm each other.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
PLACE = VENV / ".place"
UV = "uv==0.13.9"
LOCKS = {
    "run": ["requirements.txt"],
    "test": ["requirements.txt", "requirements-test.txt"],
    "dev": ["requirements.txt", "requirements-test.txt", "requirements-dev.txt"],
}
INCLUDES = {"run": ["dev", "test", "run"], "test": ["dev", "test"], "dev": ["dev"]}


def main(arguments: list[str]) -> int:
    wanted = arguments[0] if arguments else "dev"
    if wanted not in LOCKS or len(arguments) > 1:
        print(f"Usage: {Path(__file__).name} {'|'.join(LOCKS)}", file=sys.stderr)
        return 2
    if sys.version_info < (3, 11):
        print(f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}.", file=sys.stderr)
        return 2
    if is_ready(wanted):
        return 0
    with alone(ROOT / ".cache" / "setup.lock"):
        return 0 if is_ready(wanted) else build(wanted)


def is_ready(wanted: str) -> bool:
    """Whether a set that includes the wanted one was installed from the locks as they are now."""
    return stays() and any(
        stamp(name).exists() and stamp(name).read_text() == fingerprint(name) for name in INCLUDES[wanted]
    )


def build(wanted: str) -> int:
    started = time.monotonic()
    print(f"Setting up .venv ({wanted}) …", flush=True)
    try:
        make_venv()
        install([ROOT / lock for lock in LOCKS[wanted]], PYTHON)
    except subprocess.CalledProcessError as failure:
        print(
            f"Setting up failed: {' '.join(map(str, failure.cmd[:4]))} … ended with {failure.returncode}.",
            file=sys.stderr,
        )
        return 2
    for name in LOCKS:
        stamp(name).unlink(missing_ok=True)
    stamp(wanted).write_text(fingerprint(wanted))
    print(f"Set up in {time.monotonic() - started:.0f} s.", flush=True)
    return 0


def make_venv() -> None:
    """A working .venv: kept where its Python still starts, made anew where it does not, or where it was moved here."""
    if stays() and subprocess.run([PYTHON, "-c", ""], check=False).returncode == 0:
        return
    if VENV.exists():
        shutil.rmtree(VENV)
    try:
        command(sys.executable, "-m", "venv", VENV)
    except subprocess.CalledProcessError:
        print("Python could not make a virtual environment; on Debian, install python3-venv.", file=sys.stderr)
        raise
    PLACE.write_text(str(VENV))


def stays() -> bool:
    """Whether .venv was made at this path; its programs have the path written into them."""
    return PYTHON.exists() and PLACE.exists() and PLACE.read_text() == str(VENV)


def install(locks: list[Path], python: Path) -> None:
    """Install locks for a Python, hashes checked, bytecode compiled: with uv, or with pip where uv cannot do it."""
    files = [part for lock in locks for part in ("-r", lock)]
    if has_uv():
        uv: list[str | Path] = [VENV / "bin" / "uv", "pip", "install", "--python", python, "--compile-bytecode"]
        for certificates in ([], ["--system-certs"]):  # its own authorities, then those that this machine trusts
            try:
                command(*uv, *certificates, "--quiet", "--require-hashes", *files)
            except subprocess.CalledProcessError:
                continue
            return
    print("uv could not do it; pip does the same in some ninety seconds.", flush=True)
    command(python, "-m", "pip", "install", "--quiet", "--require-hashes", *files)


def has_uv() -> bool:
    uv = VENV / "bin" / "uv"
    if not uv.exists():
        subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", UV], check=False, env=environment())
    return uv.exists()


def command(*words: str | Path) -> None:
    subprocess.run(list(words), check=True, env=environment(), cwd=ROOT)


def environment() -> dict[str, str]:
    """Ours, without what would leave modules uncompiled or lead the installers to another environment."""
    dropped = {"PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV", "PYTHONHOME", "PYTHONPATH"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def stamp(name: str) -> Path:
    return VENV / f".{name}"


def fingerprint(name: str) -> str:
    """A digest of all that decides what is installed."""
    digest = hashlib.sha256(UV.encode())
    for lock in LOCKS[name]:
        digest.update((ROOT / lock).read_bytes())
    return digest.hexdigest()


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait until no other call is in here; the lock ends with the process, however it ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
