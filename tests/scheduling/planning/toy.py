"""A toy cluster that does what plans say: nodes boot, cuts take time, pods start and end. For stories and properties.

It applies actions and phase moves as the cycle does, and checks at each step what must never happen.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime
from datetime import timedelta as td
from uuid import UUID

from scheduling.planning import pods as ask
from scheduling.planning.actions import Action, Cut, Note, Place, Plan, Reopen, Resize, Sleep, Stop, Withdraw
from scheduling.planning.facts import (
    HOLDING,
    Desired,
    DeviceFact,
    Kind,
    NodeFact,
    ObjectFact,
    Phase,
    PodFact,
    PoolFact,
    QuotaFact,
    Reason,
    Snapshot,
    WorkloadFact,
)
from scheduling.planning.look import Move
from scheduling.planning.order import Ledger
from scheduling.planning.packing import holds_cards
from scheduling.planning.phases import MOVES, moves
from scheduling.planning.plan import plan
from tests.scheduling.planning.builders import NOW, PoolBuilder, WorkloadBuilder, foreign, identity, node

LOOK = td(seconds=10)
BOOT = td(seconds=90)
CUT = td(seconds=60)
START = td(seconds=20)
GRACE = td(seconds=20)
REMOVAL = td(seconds=30)


class Toy:
    def __init__(self, *pools: PoolBuilder, quotas: tuple[QuotaFact, ...]) -> None:
        self.now = NOW
        self.pools: dict[str, PoolFact] = {one.fact().name: one.fact() for one in pools}
        self.nodes: dict[str, NodeFact] = {}
        self.pods: dict[str, PodFact] = {}
        self.things: dict[UUID, ObjectFact] = {}
        self.workloads: dict[UUID, WorkloadFact] = {}
        self.told: dict[UUID, Note] = {}
        self.quotas = quotas
        self.since: dict[str, datetime] = {}  # when a cut or a removal of a node began
        self.empty_since: dict[str, datetime] = {}
        self.history: Counter[str] = Counter()
        self._born = 0

    # --- What people and fate do ---

    def ask(self, wish: WorkloadBuilder) -> UUID:
        fact = replace(wish.fact(), asked_at=self.now, phase_since=self.now)
        self.workloads[fact.id] = fact
        return fact.id

    def want(self, name: str, desired: Desired) -> None:
        self._change(identity(name), desired=desired)

    def wake(self, name: str) -> None:
        """As the cycle does it for an owner who asks: back in line."""
        fact = self.workloads[identity(name)]
        if fact.phase is Phase.ASLEEP:
            self._enter(fact.id, Phase.WAITING, Reason.WOKEN, desired=Desired.RUN, idle_since=None)

    def finish(self, name: str) -> None:
        """Its program ends well."""
        if thing := self.things.get(identity(name)):
            self.things[thing.workload] = replace(thing, complete=True, finished_at=self.now)
            self._end_pods(thing.workload, phase="Succeeded", finished_at=self.now, exit_code=0)

    def delete_outside(self, name: str) -> None:
        self.things.pop(identity(name), None)
        self._end_pods(identity(name), deleting_since=self.now)

    def lose(self, name: str) -> None:
        """A machine is gone, with all pods on it."""
        self.nodes.pop(name, None)
        for key in [key for key, pod in self.pods.items() if pod.node == name]:
            del self.pods[key]

    def squat(self, name: str, host: str) -> None:
        """Somebody else's pod takes one whole card or slice of a node, if one is free."""
        for device in self.nodes[host].devices if host in self.nodes else ():
            if self._held(host, device.resource) < device.allocatable:
                self.pods[name] = foreign(name, host).holding(1, device.resource).fact()
                return

    # --- One look ---

    def look(self, *, times: int = 1) -> Plan:
        """Time passes, the cluster works, the cycle looks; answers with the last plan."""
        for _ in range(times):
            self.now += LOOK
            self._provide()
            self._run_pods()
            for move in moves(self.snapshot()):
                self._move(move)
            self._note_emptiness()
            picture = self.snapshot()
            found = plan(picture)
            self._check(picture, found)
            self.told = {}
            for action in found.actions:
                self._apply(action)
            self._check_nodes()
        return found

    def snapshot(self) -> Snapshot:
        return Snapshot(
            now=self.now,
            pools=tuple(self.pools.values()),
            nodes=tuple(self.nodes.values()),
            pods=tuple(self.pods.values()),
            objects=tuple(self.things.values()),
            workloads=tuple(self.workloads.values()),
            quotas=self.quotas,
            empty_since=dict(self.empty_since),
        )

    def phase(self, name: str) -> Phase:
        return self.workloads[identity(name)].phase

    def reason(self, name: str) -> Reason:
        return self.told[identity(name)].reason

    def size(self, pool: str) -> int:
        return sum(1 for one in self.nodes.values() if one.pool == pool)

    # --- The cluster at work ---

    def _provide(self) -> None:
        for name in [name for name, one in self.nodes.items() if one.dropped and self._old(name, REMOVAL)]:
            self.lose(name)
        for pool in self.pools.values():
            present = sum(1 for one in self.nodes.values() if one.pool == pool.name and not one.dropped)
            for _ in range((pool.wished_nodes or 0) - present):
                self._born += 1
                self._join(f"{pool.name}-{self._born}", pool)
        for name, one in list(self.nodes.items()):
            if one.usable_since is None and one.created_at and self.now - one.created_at >= BOOT:
                self.nodes[name] = replace(one, devices=self._devices(one), usable_since=self.now)
            if one.mig_state == "pending" and self._old(name, CUT):
                self.nodes[name] = replace(one, devices=self._devices(one), mig_state="success")

    def _join(self, name: str, pool: PoolFact) -> None:
        built = node(name, pool.name).cards(pool.model, pool.cards_per_node)
        built = built.having(sharing=pool.sharing, replicas=pool.replicas, capacity=pool.capacity, devices=())
        built = built.having(cpu_milli=pool.cpu_milli, host_memory_mib=pool.host_memory_mib, mig_config=pool.layout)
        self.nodes[name] = built.having(created_at=self.now, usable_since=None).fact()

    def _devices(self, host: NodeFact) -> tuple[DeviceFact, ...]:
        """What its label says, as the device plugin would tell it."""
        built = node(host.name, host.pool).cards(host.model, host.cards)
        return built.having(sharing=host.sharing, replicas=host.replicas, mig_config=host.mig_config).fact().devices

    def _old(self, name: str, span: td) -> bool:
        return self.now - self.since.get(name, self.now) >= span

    def _run_pods(self) -> None:
        for key, pod in list(self.pods.items()):
            if pod.deleting_since and self.now - pod.deleting_since >= GRACE:
                del self.pods[key]
            elif pod.phase == "Pending" and pod.created_at and self.now - pod.created_at >= START:
                self.pods[key] = replace(pod, phase="Running", ready=True, running_since=self.now)

    def _note_emptiness(self) -> None:
        used = {pod.node for pod in self.pods.values() if pod.workload and ask.holds(pod)}
        self.empty_since = {name: self.empty_since.get(name, self.now) for name in self.nodes if name not in used}

    # --- The cycle's hands ---

    def _move(self, move: Move) -> None:
        before = self.workloads[move.workload]
        assert move.to is before.phase or move.to in MOVES[before.phase]
        if move.to is before.phase:
            self._change(move.workload, reason=move.reason)
            return
        facts: dict[str, object] = {"not_before": move.not_before}
        if move.failures is not None:
            facts["failures"] = move.failures
        if move.to not in HOLDING:
            facts |= {"node": "", "pool": ""}
        if move.to is Phase.WAITING or move.to is Phase.ENDED:
            self.delete_outside(before.name)
        self._enter(move.workload, move.to, move.reason, **facts)

    def _apply(self, action: Action) -> None:
        self.history[type(action).__name__] += 1
        match action:
            case Place():
                self._place(action)
            case Stop():
                self.delete_outside(self.workloads[action.workload].name)
                self._enter(action.workload, Phase.STOPPING, action.reason, stopping_to=Phase.ENDED)
            case Sleep():
                self._put_to_sleep(action)
            case Resize():
                self._resize(action)
            case Note():
                self.told[action.workload] = action
            case _:
                self.nodes[action.node] = self._marked(self.nodes[action.node], action)

    def _put_to_sleep(self, action: Sleep) -> None:
        if thing := self.things.get(action.workload):
            self.things[action.workload] = replace(thing, replicas=0)
        self._end_pods(action.workload, deleting_since=self.now)
        self._enter(action.workload, Phase.STOPPING, action.reason, stopping_to=Phase.ASLEEP)

    def _marked(self, host: NodeFact, action: Cut | Reopen | Withdraw) -> NodeFact:
        match action:
            case Cut():
                self.since[host.name] = self.now
                cut = replace(host, cutting_to=action.after, mig_config=action.after, mig_state="pending")
                return replace(cut, schedulable=False, devices=())
            case Withdraw():
                return replace(host, schedulable=False, leaving=True)
            case Reopen():
                return replace(host, schedulable=True, cutting_to="", leaving=False)

    def _resize(self, action: Resize) -> None:
        self.pools[action.pool] = replace(self.pools[action.pool], wished_nodes=action.after)
        for name in action.drop:
            self.since[name] = self.now
            self.nodes[name] = replace(self.nodes[name], dropped=True)

    def _place(self, action: Place) -> None:
        fact = self.workloads[action.workload]
        attempt = fact.attempt + 1
        kind = "StatefulSet" if fact.kind is Kind.WORKSPACE else "Job"
        self.things[fact.id] = ObjectFact(fact.id, kind, "team", fact.name, f"{fact.name}-{attempt}", 1, attempt, None)
        self.pods[f"{fact.name}-{attempt}"] = PodFact(
            namespace="team",
            name=f"{fact.name}-0",
            uid=f"{fact.name}-{attempt}",
            node=action.node,
            phase="Pending",
            ready=False,
            workload=fact.id,
            requests={action.resource: action.count},
            cpu_milli=fact.cpu_milli,
            memory_mib=fact.memory_mib,
            created_at=self.now,
            running_since=None,
            finished_at=None,
            deleting_since=None,
        )
        self._enter(fact.id, Phase.PLACED, Reason.PLACED, node=action.node, pool=action.pool, attempt=attempt)

    def _end_pods(self, workload: UUID, **facts: object) -> None:
        for key, pod in list(self.pods.items()):
            if pod.workload == workload and ask.live(pod):
                self.pods[key] = replace(pod, **facts)

    def _change(self, workload: UUID, **facts: object) -> None:
        self.workloads[workload] = replace(self.workloads[workload], **facts)

    def _enter(self, workload: UUID, phase: Phase, reason: Reason, **facts: object) -> None:
        self._change(workload, phase=phase, reason=reason, phase_since=self.now, **facts)

    # --- What must never happen ---

    def _check(self, picture: Snapshot, found: Plan) -> None:
        """Of the plan, before it is carried out."""
        check_answers(picture, found)
        check_quota(picture, found)
        check_cuts(picture, found)
        check_sizes(picture, found)

    def _check_nodes(self) -> None:
        """Of the cluster, after it was carried out."""
        for host in self.nodes.values():
            for device in host.devices:
                assert self._held(host.name, device.resource) <= device.allocatable, f"{host.name} is over-committed"

    def _held(self, host: str, resource: str) -> int:
        pods = [pod for pod in self.pods.values() if pod.node == host and ask.holds(pod)]
        return sum(pod.requests.get(resource, 0) for pod in pods)


def check_answers(picture: Snapshot, found: Plan) -> None:
    """Exactly one Place or Note for everybody in line, and none for anybody else."""
    gone = {one.workload for one in found.actions if isinstance(one, Stop | Sleep)}
    line = {one.id for one in picture.workloads if one.phase is Phase.WAITING and one.desired is Desired.RUN} - gone
    answers = Counter(one.workload for one in found.actions if isinstance(one, Place | Note))
    assert answers == Counter(line)
    assert all(one.text.endswith(".") for one in found.actions if isinstance(one, Note))


def check_quota(picture: Snapshot, found: Plan) -> None:
    """Each placement had room when its turn came."""
    ledger = Ledger(picture)
    facts = {one.id: one for one in picture.workloads}
    placed = [facts[one.workload] for one in found.actions if isinstance(one, Place)]
    for fact in placed:
        assert fact.share <= ledger.room(fact), f"{fact.name} is beyond its quota"
        ledger.take(fact)


def check_cuts(picture: Snapshot, found: Plan) -> None:
    """Nothing is cut, withdrawn or given back while something holds cards on it or is sent there."""
    held = {pod.node for pod in picture.pods if ask.holds(pod) and (pod.workload or holds_cards(pod))}
    sent = {one.node for one in found.actions if isinstance(one, Place)}
    touched = [one.node for one in found.actions if isinstance(one, Cut | Withdraw)]
    dropped = [name for one in found.actions if isinstance(one, Resize) for name in one.drop]
    reopened = {one.node for one in found.actions if isinstance(one, Reopen)}
    assert not (held | sent | reopened) & {*touched, *dropped}
    assert len(touched) == len(set(touched))


def check_sizes(picture: Snapshot, found: Plan) -> None:
    """Within the pool's bounds, once per pool, and never below what stays."""
    pools = {one.name: one for one in picture.pools}
    names = [one.pool for one in found.actions if isinstance(one, Resize)]
    assert len(names) == len(set(names))
    for one in found.actions:
        if isinstance(one, Resize):
            pool = pools[one.pool]
            assert one.before == pool.wished_nodes
            assert one.after != one.before
            assert one.after <= pool.max_nodes or one.after < one.before
            assert one.after >= pool.min_nodes
            assert len(one.drop) == max(0, one.before - one.after)
