"""How the demo's people work: who asks for what, when, and for how long. Pure; the same seed gives the same month."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from datetime import timedelta as td
from itertools import count
from zoneinfo import ZoneInfo

from scheduling.planning.facts import Kind

SATURDAY = 5
KEPT = td(days=6)
SLICE = "h100-80gb/mig-1g.10gb/on-demand"
QUARTER = "h100-80gb/mig-2g.20gb/on-demand"
HALF = "h100-80gb/mig-3g.40gb/on-demand"
H100 = "h100-80gb/whole/on-demand"
A10G = "a10g-24gb/time-slice-4/spot"
A100 = "a100-40gb/whole/on-demand"


@dataclass(frozen=True, slots=True)
class Ask:
    """One wish to hold cards: a new workload, or a sleeping workspace that is woken (the same `name` of one owner)."""

    at: datetime
    owner: str
    team: str
    kind: Kind
    name: str
    sku: str
    count: int
    lasts: td  # how long it runs
    quiet: td = td(0)  # of that, at the end, doing nothing
    fails: bool = False
    last: bool = True  # False: it sleeps afterwards, and is woken again


@dataclass(frozen=True, slots=True)
class Habit:
    """One person's manner of working."""

    owner: str
    team: str
    topics: tuple[str, ...]
    workspace: tuple[str, ...]  # skus of notebooks, the usual one first
    jobs: tuple[tuple[str, int], ...]  # (sku, units)
    jobs_a_day: float
    hours: float  # of a usual job
    comes_in: float = 0.85  # the chance on a weekday


HABITS = (
    Habit("robin", "vision", ("depth", "segmentation"), (SLICE, HALF), ((H100, 1), (SLICE, 1), (H100, 2)), 2.6, 11.0),
    Habit("mina", "vision", ("pose", "tracking"), (HALF, SLICE, HALF), ((H100, 2), (HALF, 1), (H100, 3)), 2.6, 15.0),
    Habit("tomas", "vision", ("retrieval", "detector"), (A10G, SLICE), ((H100, 1), (A10G, 1), (HALF, 1)), 3.3, 11.0),
    Habit("priya", "speech", ("diarisation", "wakeword"), (SLICE, HALF), ((H100, 1), (SLICE, 1), (A10G, 1)), 3.6, 13.0),
    Habit("jonas", "speech", ("transcripts", "voices"), (A10G, SLICE), ((H100, 2), (HALF, 1), (H100, 1)), 3.2, 15.0),
    Habit("kofi", "robotics", ("grasping", "gait"), (A10G, SLICE), ((A10G, 1), (SLICE, 1), (A10G, 1)), 4.8, 11.0),
    Habit("sana", "robotics", ("simulator", "policies"), (SLICE, A10G), ((H100, 2), (A10G, 1), (A100, 2)), 3.9, 13.0),
    Habit("ivo", "language", ("tokens", "evaluation"), (QUARTER, SLICE), ((H100, 3), (HALF, 1), (A100, 1)), 3.0, 17),
    Habit("noor", "language", ("pretrain", "distil"), (HALF, QUARTER), ((H100, 3), (HALF, 1), (A100, 2)), 2.6, 22),
)
VERBS = ("finetune", "sweep", "evaluate", "ablation", "export", "train")


def asks(seed: str, since: datetime, until: datetime, zone: ZoneInfo) -> list[Ask]:
    """Everything that everybody asks for in [since, until), in order of time."""
    found: list[Ask] = []
    for habit in HABITS:
        dice = random.Random(f"{seed}/{habit.owner}")  # noqa: S311 (a plausible past, no secret)
        found += (ask for ask in _of_one(habit, dice, since, until, zone) if since <= ask.at < until)
    return sorted(found, key=lambda ask: (ask.at, ask.owner, ask.name))


def _of_one(habit: Habit, dice: random.Random, since: datetime, until: datetime, zone: ZoneInfo) -> Iterator[Ask]:
    notebooks = _Notebooks(habit, kept_from=until.astimezone(zone).date() - KEPT)
    numbers = count(1)
    for day in days(since, until, zone):
        weekend = day.weekday() >= SATURDAY
        if dice.random() < (0.12 if weekend else habit.comes_in):
            yield from notebooks.of_day(day, dice, zone)
        for _ in range(_poisson(habit.jobs_a_day * (0.3 if weekend else 1.0), dice)):
            yield _job(habit, next(numbers), day, dice, zone)


class _Notebooks:
    """The workspaces of one person: woken day after day, and replaced by a new one now and then.

    Those of the last days are kept: everybody has one that sleeps as the demo begins.
    """

    def __init__(self, habit: Habit, kept_from: date) -> None:
        self.habit = habit
        self.kept_from = kept_from
        self.number = 0
        self.days_left = 0
        self.sku = habit.workspace[0]

    def of_day(self, day: date, dice: random.Random, zone: ZoneInfo) -> Iterator[Ask]:
        if self.days_left == 0:
            self.number += 1
            self.days_left = dice.randint(4, 9)
            self.sku = dice.choice(self.habit.workspace)
        self.days_left -= 1
        topic = self.habit.topics[self.number % len(self.habit.topics)]
        forgets = dice.random() < 0.6  # leaves it open: ninety quiet minutes later it falls asleep
        quiet = td(minutes=90) if forgets else td(minutes=dice.randint(2, 20))
        works = td(minutes=dice.randint(150, 540))
        yield Ask(
            at=_at(day, dice.gauss(9.4, 0.7), zone),
            owner=self.habit.owner,
            team=self.habit.team,
            kind=Kind.WORKSPACE,
            name=f"{topic}-notebook-{self.number}",
            sku=self.sku,
            count=1,
            lasts=works + quiet,
            quiet=quiet,
            last=self.days_left == 0 and day < self.kept_from,
        )


def _job(habit: Habit, number: int, day: date, dice: random.Random, zone: ZoneInfo) -> Ask:
    sku, units = dice.choice(habit.jobs)
    fails = dice.random() < 0.08
    hours = min(34.0, max(0.2, dice.lognormvariate(math.log(habit.hours), 0.7)))
    lasts = td(minutes=dice.randint(3, 25)) if fails else td(seconds=int(hours * 3600))
    return Ask(
        at=_at(day, dice.triangular(8.5, 21.0, 15.0), zone),
        owner=habit.owner,
        team=habit.team,
        kind=Kind.JOB,
        name=f"{dice.choice(habit.topics)}-{dice.choice(VERBS)}-{number}",
        sku=sku,
        count=units,
        lasts=lasts,
        fails=fails,
    )


def days(since: datetime, until: datetime, zone: ZoneInfo) -> Sequence[date]:
    """The zone's days that [since, until) touches."""
    first, last = since.astimezone(zone).date(), until.astimezone(zone).date()
    return [first + td(days=number) for number in range((last - first).days + 1)]


def _at(day: date, hour: float, zone: ZoneInfo) -> datetime:
    """A time of the day, to the second, as UTC. An hour that the clocks skip or repeat is read as the earlier one."""
    seconds = int(min(23.9, max(0.0, hour)) * 3600)
    midnight = datetime.combine(day, time(), tzinfo=zone)
    return (midnight + td(seconds=seconds)).astimezone(ZoneInfo("UTC"))


def _poisson(mean: float, dice: random.Random) -> int:
    limit, product, number = math.exp(-mean), dice.random(), 0
    while product > limit:
        product *= dice.random()
        number += 1
    return number
