"""`manage.py demo`: the whole product on this machine; `--once`: the whole story, driven without a browser."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from portal.demo import people
from portal.demo.launcher import (
    CLUSTERS,
    CONTROL_PLANE,
    REAL_TIME,
    SIMULATED,
    Demo,
    Stopped,
    check_port,
    empty_folder,
    running,
    stay,
    stoppable,
)
from portal.demo.tell import outcome, step_line
from portal.processes import CouldNotStart, free_port
from tenants.clock import MAX_RATE

DONE, FINDINGS, COULD_NOT = 0, 1, 2
QUICK = {"BERTH_SAMPLE_SECONDS": "0.5", "BERTH_TICK_SECONDS": "0.5"}


class Command(BaseCommand):
    help = "Runs the whole product on this machine until Ctrl-C; with --once, tells the whole story and ends."
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--port", type=int, default=None, help="of the portal on 127.0.0.1 (8000; --once: a free one)"
        )
        parser.add_argument("--folder", type=Path, help="for tables and logs; emptied first, and kept afterwards")
        parser.add_argument("--rate", type=float, default=None, help="simulated seconds per second (60)")
        parser.add_argument(
            "--cluster", choices=CLUSTERS, default=SIMULATED, help="simulated, or a real control plane in real time"
        )
        parser.add_argument("--once", action="store_true", help="drive the whole story without a browser, then end")
        parser.add_argument("--json", action="store_true", help="say it in JSON on standard output")

    def handle(self, *_: Any, **options: Any) -> None:
        sys.exit(self.run(**options))

    def run(
        self,
        *,
        port: int | None,
        folder: Path | None,
        rate: float | None,
        once: bool,
        json: bool,
        cluster: str,
        **_: Any,
    ) -> int:
        try:
            check_cluster(cluster)
            with stoppable(), workplace(folder) as place:
                pace, quick = checked_rate(rate, cluster), QUICK if once else {}
                demo = Demo(place, chosen_port(port, once=once), pace, quick=quick, cluster=cluster)
                return self.tell(demo, as_json=json) if once else self.show(demo, as_json=json)
        except CouldNotStart as fault:
            self.stderr.write(str(fault))
            return COULD_NOT
        except Stopped:
            return DONE

    def show(self, demo: Demo, *, as_json: bool) -> int:
        """Run until somebody stops us; a child that ends by itself is a failure."""
        started = time.monotonic()
        if not as_json:
            self.say(f"Starting the demo in {demo.folder} …")
        with running(demo):
            seconds = round(time.monotonic() - started, 1)
            self.say(json.dumps(facts(demo, seconds)) if as_json else welcome(demo, seconds))
            stay(demo)
        return COULD_NOT

    def tell(self, demo: Demo, *, as_json: bool) -> int:
        """The story, step by step. 0 only if every step really happened."""
        from portal.demo.story import tell  # noqa: PLC0415 (a visitor's tools, which the plain demo does not need)

        started = time.monotonic()
        with running(demo):
            begun = time.monotonic() - started
            steps, figures = tell(demo, begun, on_step=None if as_json else lambda step: self.say(step_line(step)))
        found = outcome(steps, time.monotonic() - started, figures)
        self.say(json.dumps(found) if as_json else f"{'Done' if found['ok'] else 'Failed'} in {found['seconds']} s.")
        return DONE if found["ok"] else FINDINGS

    def say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


@contextmanager
def workplace(folder: Path | None) -> Iterator[Path]:
    """The demo's folder: the named one, emptied and kept; else one of our own, which goes when we go."""
    if folder is not None:
        empty_folder(folder.resolve())
        yield folder.resolve()
        return
    own = Path(tempfile.mkdtemp(prefix="berth-demo-"))
    try:
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)


def chosen_port(port: int | None, *, once: bool) -> int:
    """Raises CouldNotStart for a port that is taken or none."""
    if port is None and once:
        return free_port()
    wanted = 8000 if port is None else port
    if not 1 <= wanted <= 65535:
        raise CouldNotStart(f"--port is {wanted}; choose 1 to 65535.")
    check_port(wanted)
    return wanted


def check_cluster(cluster: str) -> None:
    """Raises CouldNotStart where the control plane's programs are not there: nobody waits minutes for a demo."""
    from tools.controlplane import lacking  # noqa: PLC0415 (of the project's checkout, for this one kind of demo)

    if cluster == CONTROL_PLANE and (missing := lacking()):
        raise CouldNotStart(f"{', '.join(missing)} have not been built yet: make controlplane builds them, once.")


def checked_rate(rate: float | None, cluster: str) -> float:
    if cluster == CONTROL_PLANE:
        if rate not in {None, REAL_TIME}:
            raise CouldNotStart(f"--rate is {rate:g}, but a real control plane lives in real time; leave it out.")
        return REAL_TIME
    if rate is None:
        return 60.0
    if not 0 < rate <= MAX_RATE:
        raise CouldNotStart(
            f"--rate is {rate:g}; choose more than 0 and at most {MAX_RATE:g} simulated seconds a second."
        )
    return rate


def welcome(demo: Demo, seconds: float) -> str:
    """Where to look and who to be; one line of it says only that the portal answers."""
    guises = [
        f"  {fact.username:<6} {fact.name}, {guise.role[:1].lower()}{guise.role[1:]}: {guise.does}"
        for fact, guise in people.four()
    ]
    lines = [
        f"ready {demo.url}",
        "",
        f"Started in {seconds} s. Open {demo.url} and be one of four invented people:",
        *guises,
        f"The log-in page offers them; by name, each one's password is {people.PASSWORD}.",
        f"{pace_words(demo)} Logs: {demo.logs}",
        f"Other commands look at it after: . {demo.folder}/environment",
        "Ctrl-C ends all of it.",
    ]
    return "\n".join(lines)


def pace_words(demo: Demo) -> str:
    if demo.is_real:
        return "The cluster is a real control plane, in real time; its machines are played, and quick."
    return f"Simulated time passes {demo.rate:g} times as fast as yours; Omar can change that."


def facts(demo: Demo, seconds: float) -> dict[str, Any]:
    return {
        "url": demo.url,
        "folder": str(demo.folder),
        "cluster": demo.cluster,
        "rate": demo.rate,
        "seconds": seconds,
        "password": people.PASSWORD,
        "people": [
            {"username": fact.username, "name": fact.name, "role": guise.role, "does": guise.does}
            for fact, guise in people.four()
        ],
    }
