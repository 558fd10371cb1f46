"""The history as rows: workloads, their transitions and placements, what the meters showed, and the cards' spans."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from datetime import timedelta as td
from itertools import pairwise

from portal.demo import estate
from portal.demo.fleet import Machine, stretches
from portal.demo.history import History, Past, Stay
from scheduling.models import CardSpan, Cluster, Flavor, Placement, Sample, Transition, UsageHour, Workload
from scheduling.planning.facts import Desired, Kind, Phase, Reason
from scheduling.services import IMAGES
from tenants.billing.rating import hour_marks
from tenants.models import Team, User

AT_ONCE = 1000  # rows of one INSERT
SAMPLE_EVERY = td(seconds=30)  # what an hour's rollup counts
KEPT = td(hours=6)  # the last of the samples themselves
KEPT_EVERY = td(minutes=2)
STOPS_IN = td(seconds=8)
WAIT_WORTH_SAYING = td(seconds=45)
SUBMITTED = "Submitted; the next look at the cluster decides."
RESTING = "Asleep: its storage is kept, its cards and quota are free. Wake it when you need it."
COMMANDS = {Kind.JOB: "python train.py --config {name}.yaml", Kind.WORKSPACE: ""}


@dataclass(frozen=True, slots=True)
class Book:
    """The rows that the history refers to, by the names that it uses."""

    cluster: Cluster
    teams: Mapping[str, Team]
    people: Mapping[str, User]
    flavors: Mapping[str, Flavor]


@dataclass(frozen=True, slots=True)
class Event:
    """One transition to be."""

    at: datetime
    after: Phase
    reason: Reason
    text: str
    by_owner: bool = False


def write(history: History, book: Book, *, seed: str, until: datetime) -> None:
    """Write it all. `until` is the end of the history: the spans of the nodes that are still there end then."""
    dice = random.Random(f"{seed}/meters")  # noqa: S311 (a plausible past, no secret)
    pasts = sorted(history.workloads, key=lambda past: past.stays[0].asked_at)
    pairs = [(past, workload(past, book, number)) for number, past in enumerate(pasts)]
    Workload.objects.bulk_create([row for _, row in pairs], batch_size=AT_ONCE)
    Transition.objects.bulk_create([step for pair in pairs for step in transitions(*pair)], batch_size=AT_ONCE)
    placed = [found for pair in pairs for found in placements(*pair, book)]
    Placement.objects.bulk_create([row for _, row in placed], batch_size=AT_ONCE)
    hours = [hour for stay, row in placed for hour in usage_hours(stay, row, dice)]
    UsageHour.objects.bulk_create(hours, batch_size=AT_ONCE)
    recent = [pair for pair in placed if pair[0].ended_at > until - KEPT]
    Sample.objects.bulk_create(
        [one for pair in recent for one in samples(*pair, until - KEPT, dice)], batch_size=AT_ONCE
    )
    CardSpan.objects.bulk_create(card_spans(history.machines, book.cluster), batch_size=AT_ONCE)


def workload(past: Past, book: Book, number: int) -> Workload:
    owner = book.people[past.owner]
    steps = events(past)
    asked, last = past.stays[-1].asked_at, steps[-1]
    desired, desired_at = _wish(past, asked, steps)
    flavor = book.flavors[past.sku]
    cpu_milli, memory_mib = estate.sizes_of(flavor.sharing, past.count)
    return Workload(
        name=past.name,
        kind=past.kind,
        team=book.teams[past.team],
        owner=owner,
        cluster=book.cluster,
        flavor=flavor,
        count=past.count,
        cpu_milli=cpu_milli,
        memory_mib=memory_mib,
        image=IMAGES[past.kind],
        command=COMMANDS[past.kind].format(name=past.name),
        storage_gib=50 if past.kind is Kind.WORKSPACE else 0,
        submission=f"history-{number}",
        asked_at=past.stays[0].asked_at,
        desired=desired,
        desired_at=desired_at,
        desired_by=owner,
        phase=last.after,
        phase_since=last.at,
        phase_reason=last.reason,
        phase_text=last.text,
        version=len(steps) - 1,
        attempt=len(past.stays),
        first_ran_at=past.stays[0].running_at,
    )


def transitions(past: Past, row: Workload) -> Iterator[Transition]:
    before = ""
    for version, step in enumerate(events(past)):
        yield Transition(
            workload=row,
            version=version,
            at=step.at,
            before=before,
            after=step.after,
            reason=step.reason,
            text=step.text,
            by=row.owner if step.by_owner else None,
        )
        before = step.after


def events(past: Past) -> list[Event]:
    """All that the cycle would have written about the workload, in order."""
    found: list[Event] = []
    for number, stay in enumerate(past.stays):
        again = number > 0
        found += _coming_up(stay, again=again)
        found += _going_down(past, stay, last=number == len(past.stays) - 1)
    return found


def _coming_up(stay: Stay, *, again: bool) -> Iterator[Event]:
    if again:
        text = "Woken; it passes the quota check again."
        yield Event(stay.asked_at, Phase.WAITING, Reason.WOKEN, text, by_owner=True)
    else:
        yield Event(stay.asked_at, Phase.WAITING, Reason.SUBMITTED, SUBMITTED, by_owner=True)
    machine = stay.machine
    if machine.woken:
        text = f"Pool {machine.pool} wakes a node for it; that takes some four minutes."
        yield Event(stay.asked_at + td(seconds=3), Phase.WAITING, Reason.WAITING_FOR_NODE, text)
    elif stay.waited > WAIT_WORTH_SAYING:
        text = f"All that fits it in pool {machine.pool} is held; it is next in line."
        yield Event(stay.asked_at + td(seconds=3), Phase.WAITING, Reason.WAITING_FOR_CAPACITY, text)
    place = f"Placed on {machine.name} in pool {machine.pool}."
    yield Event(stay.placed_at, Phase.PLACED, Reason.PLACED, place)
    pulls = f"Node {machine.name} pulls its image and creates its container."
    yield Event(min(stay.placed_at + td(seconds=2), stay.running_at), Phase.STARTING, Reason.PULLING_IMAGE, pulls)
    yield Event(stay.running_at, Phase.RUNNING, Reason.RUNNING, f"It runs on node {machine.name}.")


def _going_down(past: Past, stay: Stay, *, last: bool) -> Iterator[Event]:
    if past.kind is Kind.JOB:
        reason, code = (Reason.FAILED, 1) if stay.fails else (Reason.SUCCEEDED, 0)
        text = "It ended with exit code 1." if code else "It finished with exit code 0."
        yield Event(stay.ended_at, Phase.ENDED, reason, text)
        return
    if last and past.ended:
        text = "Its owner ended it."
        yield Event(stay.ended_at - STOPS_IN, Phase.STOPPING, Reason.ASKED_TO_END, text, by_owner=True)
        yield Event(stay.ended_at, Phase.ENDED, Reason.ASKED_TO_END, text)
        return
    reason, text = _why_it_sleeps(stay)
    yield Event(stay.ended_at - STOPS_IN, Phase.STOPPING, reason, text, by_owner=reason is Reason.ASKED_TO_SLEEP)
    yield Event(stay.ended_at, Phase.ASLEEP, reason, RESTING)


def _why_it_sleeps(stay: Stay) -> tuple[Reason, str]:
    quiet = (stay.ended_at - stay.quiet_at) // td(minutes=1)
    if quiet >= 90:
        return Reason.IDLE, f"It has been quiet for {quiet} min; its pool lets workspaces sleep after 90 min."
    return Reason.ASKED_TO_SLEEP, "Its owner put it to sleep."


def _wish(past: Past, asked: datetime, steps: list[Event]) -> tuple[Desired, datetime]:
    """What the owner wanted last, and since when."""
    reason = steps[-1].reason
    if reason is Reason.ASKED_TO_END:
        return Desired.END, past.stays[-1].ended_at - STOPS_IN
    if reason is Reason.ASKED_TO_SLEEP:
        return Desired.SLEEP, past.stays[-1].ended_at - STOPS_IN
    return Desired.RUN, asked


def placements(past: Past, row: Workload, book: Book) -> Iterator[tuple[Stay, Placement]]:
    for number, stay in enumerate(past.stays, start=1):
        yield (
            stay,
            Placement(
                workload=row,
                attempt=number,
                cluster=book.cluster,
                pool=stay.machine.pool,
                node=stay.machine.name,
                resource=stay.resource,
                flavor=row.flavor,
                share=past.share,
                namespace=row.team.namespace,
                pod=f"{row.name}-0",
                pod_uid=f"past-{row.submission}-{number}",
                placed_at=stay.placed_at,
                running_at=stay.running_at,
                ended_at=stay.ended_at,
            ),
        )


def usage_hours(stay: Stay, row: Placement, dice: random.Random) -> Iterator[UsageHour]:
    """One rollup for each hour that it ran in: busy until it grew quiet."""
    eager = dice.uniform(0.82, 0.97) if row.workload.kind == Kind.JOB else dice.uniform(0.25, 0.75)
    memory = int(row.flavor.memory_mib * dice.uniform(0.35, 0.92))
    marks = [stay.running_at, *hour_marks(stay.running_at, stay.ended_at), stay.ended_at]
    for since, until in pairwise(marks):
        count = max(1, (until - since) // SAMPLE_EVERY)
        active = max(td(0), min(until, stay.quiet_at) - since) / (until - since)
        busiest = min(1.0, eager * dice.uniform(1.0, 1.15))
        yield UsageHour(
            placement=row,
            hour=since.replace(minute=0, second=0, microsecond=0),
            samples=count,
            busy_samples=count,
            busy_sum=round(count * eager * active * dice.uniform(0.92, 1.0), 4),
            busy_max=round(busiest, 4) if active else 0.0,
            memory_max_mib=memory,
        )


def samples(stay: Stay, row: Placement, since: datetime, dice: random.Random) -> Iterator[Sample]:
    """What the meter showed since then, until it ended."""
    at = max(stay.running_at, since)
    job = row.workload.kind == Kind.JOB
    while at < stay.ended_at:
        works = at < stay.quiet_at
        busy = dice.uniform(0.85, 0.98) if job else dice.uniform(0.3, 0.9) if works else dice.uniform(0.0, 0.008)
        used = int(row.flavor.memory_mib * (0.7 if works else 0.42) * dice.uniform(0.97, 1.0))
        watts = round(70 + 430 * busy * float(row.share), 1)
        yield Sample(
            placement=row,
            at=at,
            busy=round(busy, 4),
            memory_used_mib=used * (row.workload.count or 1),
            memory_total_mib=row.flavor.memory_mib * (row.workload.count or 1),
            watts=watts,
        )
        at += KEPT_EVERY


def card_spans(machines: Iterable[Machine], cluster: Cluster) -> list[CardSpan]:
    parts = (part for machine in machines for part in stretches(machine))
    return [
        CardSpan(
            cluster=cluster,
            pool=part.machine.pool,
            node=part.machine.name,
            node_uid=part.machine.uid,
            model=part.machine.model,
            cards=part.machine.cards,
            out_of_service=part.out_of_service,
            stranded=part.stranded,
            foreign=part.foreign,
            started_at=part.since,
            ended_at=part.until,
        )
        for part in sorted(parts, key=lambda part: part.since)
    ]
