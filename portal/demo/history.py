"""Thirty days of the demo's past: who held which cards from when until when. Pure; the same seed gives the same month.

Everybody's asks (`habits`) are taken in order of time. Each gets the first free units that are enough on one node,
waits a while where there are none, and is dropped where it would exceed its team's quota or wait too long. So no card
is ever given out twice and no quota is exceeded: the tables would not have allowed it either.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from datetime import timedelta as td
from fractions import Fraction as F
from zoneinfo import ZoneInfo

from portal.demo.fleet import Era, Machine, burst_machine
from portal.demo.habits import Ask, asks
from scheduling.planning.facts import Kind, PoolFact
from scheduling.planning.shares import flavor_of, parse_sku

PATIENCE = td(hours=9)  # after which an ask is given up
GAP = td(seconds=15)  # between two holders of one unit
WAKES_IN = td(seconds=215)  # a node from nothing to usable cards
LINGERS = td(minutes=17)  # an empty node, until it is given back
SHORTEST = td(minutes=30)  # of a stay that the end of the history cuts short
LATEST = td(minutes=4)  # before the end of the history the last stay has ended


@dataclass(frozen=True, slots=True)
class Stay:
    """One placement: units of one node, from the decision until they were free again."""

    machine: Machine
    resource: str
    asked_at: datetime  # when this stay was asked for: the workload's beginning, or its being woken
    placed_at: datetime
    running_at: datetime
    quiet_at: datetime  # from here on it did nothing; ended_at where it worked to the end
    ended_at: datetime
    fails: bool = False

    @property
    def waited(self) -> td:
        return self.placed_at - self.asked_at


@dataclass(slots=True)
class Past:
    """One workload of the past with all its stays, oldest first."""

    name: str
    kind: Kind
    owner: str
    team: str
    sku: str
    count: int
    share: F  # cards, all units together
    stays: list[Stay] = field(default_factory=list)
    ended: bool = False  # False: it sleeps

    def holds_at(self, instant: datetime) -> bool:
        return any(stay.asked_at <= instant < stay.ended_at for stay in self.stays)


@dataclass(frozen=True, slots=True)
class History:
    """What was held, and the nodes that were there."""

    workloads: list[Past]
    machines: list[Machine]
    dropped: int  # asks that found no room


@dataclass(frozen=True, slots=True)
class Setting:
    """What the past plays on. `quotas` are cards by (team, model); `bursts` are the pools that sleep at zero nodes."""

    since: datetime
    until: datetime
    zone: ZoneInfo
    machines: Sequence[Machine]
    bursts: Sequence[PoolFact]
    quotas: Mapping[tuple[str, str], F]
    seed: str = "meridian"


def write_history(setting: Setting) -> History:
    """The month, from the asks of everybody."""
    yard = Yard(setting)
    workloads: dict[tuple[str, str], Past] = {}
    dropped = 0
    for ask in asks(setting.seed, setting.since, setting.until, setting.zone):
        known = workloads.get((ask.owner, ask.name))
        stay = None if known and known.holds_at(ask.at) else yard.place(ask)
        if stay is None:
            dropped += 1
            continue
        row = workloads.setdefault((ask.owner, ask.name), _past(ask))
        row.stays.append(stay)
        row.ended = ask.last or ask.kind is Kind.JOB
    return History(list(workloads.values()), [*setting.machines, *yard.woken], dropped)


def held_at(history: History, instant: datetime) -> Iterator[tuple[Past, Stay]]:
    """Who held what at an instant."""
    for row in history.workloads:
        yield from ((row, stay) for stay in row.stays if stay.placed_at <= instant < stay.ended_at)


class Yard:
    """The units of the fleet, each with the time from which it is free."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.dice = random.Random(f"{setting.seed}/yard")  # noqa: S311 (a plausible past, no secret)
        self.units: dict[str, list[_Bay]] = defaultdict(list)
        self.woken: list[Machine] = []
        self.holds: dict[tuple[str, str], list[tuple[datetime, datetime, F]]] = defaultdict(list)
        self.images: set[tuple[str, str]] = set()  # (node, kind of image) pulled before
        for machine in setting.machines:
            for bay in _bays(machine):
                self.units[bay.sku].append(bay)

    def place(self, ask: Ask) -> Stay | None:
        """Give the ask its units and write its stay; None where nothing fits in time or the quota is used up."""
        pool = self._burst_pool(ask.sku)
        cold = td(seconds=self.dice.randint(35, 80))
        stay = self._on_a_woken_node(ask, pool, cold) if pool else self._on_a_standing_node(ask, cold)
        if stay is None:
            return None
        self.holds[ask.team, _model(ask.sku)].append((stay.placed_at, stay.ended_at, _share(ask)))
        return stay

    def _burst_pool(self, sku: str) -> PoolFact | None:
        name = parse_sku(sku)
        kinds = ((pool, (pool.model, pool.sharing, pool.capacity)) for pool in self.setting.bursts)
        return next((pool for pool, kind in kinds if kind == (name.model, name.sharing, name.capacity)), None)

    def _on_a_standing_node(self, ask: Ask, cold: td) -> Stay | None:
        found = min(self._choices(ask), key=lambda choice: choice.starts_at, default=None)
        if found is None or found.starts_at - ask.at > PATIENCE:
            return None
        warm = (found.bay.machine.name, ask.kind) in self.images
        stay = self._stay(ask, found.bay.machine, found.bay.resource, found.starts_at, cold / 3 if warm else cold)
        if stay is None or any(stay.ended_at > bay.until for bay in found.bays) or not self._within_quota(ask, stay):
            return None
        for bay in found.bays:
            bay.free_at = stay.ended_at + GAP
        self.images.add((found.bay.machine.name, ask.kind))
        return stay

    def _on_a_woken_node(self, ask: Ask, pool: PoolFact, cold: td) -> Stay | None:
        """A node of its own, which comes for this ask and goes after it."""
        up = sum(1 for machine in self.woken if machine.pool == pool.name and machine.until > ask.at)
        usable = ask.at + WAKES_IN
        draft = burst_machine(pool, len(self.woken) + 1, usable, self.setting.until)
        stay = self._stay(ask, draft, draft.eras[0].offers[0].resource, usable, cold)
        if stay is None or up >= pool.max_nodes or not self._within_quota(ask, stay):
            return None
        goes = min(stay.ended_at + LINGERS, self.setting.until)
        machine = replace(draft, eras=(replace(draft.eras[0], until=goes),))
        self.woken.append(machine)
        return replace(stay, machine=machine)

    def _choices(self, ask: Ask) -> Iterator[_Choice]:
        """For each node that could hold the ask, its units that are free first, in the order of the fleet."""
        by_era: dict[int, list[_Bay]] = defaultdict(list)
        ends = min(ask.at + ask.lasts, self.setting.until - LATEST)
        for bay in self.units[ask.sku]:
            if bay.until > ends:
                by_era[id(bay.era)].append(bay)
        for bays in by_era.values():
            if len(bays) >= ask.count:
                soonest = sorted(bays, key=lambda bay: bay.free_at)[: ask.count]
                yield _Choice(soonest, max(ask.at, soonest[-1].free_at))

    def _stay(self, ask: Ask, machine: Machine, resource: str, from_: datetime, cold: td) -> Stay | None:
        """The stay that begins then, cut short where the history ends; None where too little is left of it."""
        placed = from_ + td(seconds=self.dice.randint(1, 6))
        running = placed + td(seconds=int(cold.total_seconds()))
        ended = running + ask.lasts
        latest = self.setting.until - LATEST - td(seconds=self.dice.randint(0, 2400))
        if ended > latest:
            ended = latest
        if ended - running < min(ask.lasts, SHORTEST):
            return None
        quiet = ended - min(ask.quiet, (ended - running) / 2)
        quiet = quiet.replace(microsecond=0)
        return Stay(machine, resource, ask.at, placed, running, quiet, ended, ask.fails)

    def _within_quota(self, ask: Ask, stay: Stay) -> bool:
        """Whether the team's holds, with this one, stay within its quota at every instant of the stay."""
        key = (ask.team, _model(ask.sku))
        quota = self.setting.quotas.get(key, F(0))
        meanwhile = [hold for hold in self.holds[key] if hold[0] < stay.ended_at and hold[1] > stay.placed_at]
        instants = [stay.placed_at, *(hold[0] for hold in meanwhile if hold[0] > stay.placed_at)]
        return all(_sum_at(meanwhile, instant) + _share(ask) <= quota for instant in instants)


@dataclass(slots=True, eq=False)
class _Bay:
    """One unit of one node in one era: free from an instant on, until the era or a fault ends it."""

    machine: Machine
    era: Era
    sku: str
    resource: str
    free_at: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class _Choice:
    bays: Sequence[_Bay]
    starts_at: datetime

    @property
    def bay(self) -> _Bay:
        return self.bays[0]


def _bays(machine: Machine) -> Iterator[_Bay]:
    for era in machine.eras:
        for offer in era.offers:
            share = _unit_share(offer.sku)
            for number in range(offer.units):
                for since, until in _fit_times(machine, era, number, share):
                    yield _Bay(machine, era, offer.sku, offer.resource, since, until)


def _fit_times(machine: Machine, era: Era, number: int, share: F) -> Iterator[tuple[datetime, datetime]]:
    """When unit `number` can be given out in the era: faults take the first units away for their time."""
    begins = era.since
    for fault in machine.faults:
        taken = (fault.out_of_service + fault.foreign) / share
        if number < taken and era.since <= fault.since < era.until:
            yield begins, fault.since - GAP
            begins = fault.until + GAP
    yield begins, era.until - GAP


def _past(ask: Ask) -> Past:
    return Past(ask.name, ask.kind, ask.owner, ask.team, ask.sku, ask.count, _share(ask))


def _share(ask: Ask) -> F:
    return _unit_share(ask.sku) * ask.count


def _unit_share(sku: str) -> F:
    flavor = flavor_of(parse_sku(sku))
    if flavor is None:
        raise LookupError(f"No card can offer {sku}.")
    return flavor.share


def _model(sku: str) -> str:
    return sku.partition("/")[0]


def _sum_at(holds: Iterable[tuple[datetime, datetime, F]], instant: datetime) -> F:
    return sum((share for since, until, share in holds if since <= instant < until), F(0))
