"""The DCGM exporter of every GPU node: a pod, and the text that it serves.

The text follows dcgm-exporter's own form: whole cards one series each; MIG one per instance, with the board's figures
repeated and no *_UTIL; shared cards with `--kubernetes-virtual-gpus`: GPU_UTIL and FB_USED per pod beside one row for
the board, everything else a copy per pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from .devices import Assignment, Devices
from .errors import ApiError, bad_request
from .hardware import Card, Instance
from .kinds import Document, Key
from .load import IDLE, Load, load_of
from .machines import Machine
from .world import Controller, World, is_true

NAMESPACE = "gpu-operator"
APP = "nvidia-dcgm-exporter"
PORT = "9400"
IMAGE = "dcgm-exporter:4.6.0-4.8.3"
DEPLOY = "nvidia.com/gpu.deploy.dcgm-exporter"
RESERVED_SHARE = 0.0125  # of the memory, held by the driver


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    help: str
    type: str
    value: Callable[[Reading], str]
    mig: bool = True  # also per MIG instance
    only_mig: bool = False
    hbm: bool = False  # only of boards with stacked memory
    per_pod: bool = False  # on a shared card: per process, beside a row for the board


@dataclass(frozen=True, slots=True)
class Reading:
    """What one series is about: a card or an instance, and how it is doing."""

    busy: float
    used_mib: int
    memory_mib: int
    board_busy: float
    watts: float
    energy_mj: int
    xid: int

    @property
    def reserved_mib(self) -> int:
        return int(self.memory_mib * RESERVED_SHARE)

    @property
    def free_mib(self) -> int:
        return max(0, self.memory_mib - self.used_mib - self.reserved_mib)


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a device: the pod and the container, with its load."""

    assignment: Assignment
    load: Load


METRICS = (
    Metric("DCGM_FI_DEV_SM_CLOCK", "SM clock (MHz)", "gauge", lambda r: str(210 + int(1600 * r.board_busy))),
    Metric("DCGM_FI_DEV_MEM_CLOCK", "memory clock (MHz)", "gauge", lambda _: "1593"),
    Metric(
        "DCGM_FI_DEV_MEMORY_TEMP",
        "memory temperature (C)",
        "gauge",
        lambda r: str(36 + int(30 * r.board_busy)),
        hbm=True,
    ),
    Metric("DCGM_FI_DEV_GPU_TEMP", "core temperature (C)", "gauge", lambda r: str(31 + int(34 * r.board_busy))),
    Metric("DCGM_FI_DEV_POWER_USAGE", "board power (W)", "gauge", lambda r: f"{r.watts:.6f}"),
    Metric(
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "energy since driver load (mJ)", "counter", lambda r: str(r.energy_mj)
    ),
    Metric("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "PCIe replays", "counter", lambda _: "0"),
    Metric(
        "DCGM_FI_DEV_GPU_UTIL", "busy time (percent)", "gauge", lambda r: str(round(100 * r.busy)), False, per_pod=True
    ),
    Metric(
        "DCGM_FI_DEV_MEM_COPY_UTIL",
        "memory controller busy (percent)",
        "gauge",
        lambda r: str(round(62 * r.board_busy)),
        False,
    ),
    Metric("DCGM_FI_DEV_ENC_UTIL", "encoder busy (percent)", "gauge", lambda _: "0", False),
    Metric("DCGM_FI_DEV_DEC_UTIL", "decoder busy (percent)", "gauge", lambda _: "0", False),
    Metric("DCGM_FI_DEV_XID_ERRORS", "last XID seen", "gauge", lambda r: str(r.xid)),
    Metric("DCGM_FI_DEV_FB_FREE", "free framebuffer (MiB)", "gauge", lambda r: str(r.free_mib)),
    Metric("DCGM_FI_DEV_FB_USED", "used framebuffer (MiB)", "gauge", lambda r: str(r.used_mib), per_pod=True),
    Metric("DCGM_FI_DEV_FB_RESERVED", "reserved framebuffer (MiB)", "gauge", lambda r: str(r.reserved_mib), False),
    Metric("DCGM_FI_DEV_ROW_REMAP_FAILURE", "row remap failed", "gauge", lambda _: "0"),
    Metric("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "graphics engine active (ratio)", "gauge", lambda r: f"{r.busy:.6f}"),
    Metric("DCGM_FI_PROF_SM_ACTIVE", "SM active (ratio)", "gauge", lambda r: f"{0.92 * r.busy:.6f}", only_mig=True),
    Metric("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "tensor pipe active (ratio)", "gauge", lambda r: f"{0.4 * r.busy:.6f}"),
    Metric("DCGM_FI_PROF_DRAM_ACTIVE", "DRAM active (ratio)", "gauge", lambda r: f"{0.45 * r.busy:.6f}"),
)


class Exporter(Controller):
    """Stands in for the exporter's DaemonSet, and for the exporters."""

    kinds = frozenset({"nodes", "pods"})

    def __init__(self, world: World, devices: Devices) -> None:
        super().__init__(world)
        self.devices = devices
        self.meters: dict[str, tuple[datetime, float]] = {}  # card uuid -> when last read, mJ until then

    def reconcile(self, key: Key) -> None:
        """An exporter pod on every node that advertises GPUs and is not paused for the MIG manager."""
        if key.plural == "pods":
            if key.namespace != NAMESPACE or not key.name.startswith(f"{APP}-"):
                return
            key = Key("nodes", "", key.name.removeprefix(f"{APP}-"))
        node, pod_key = self.world.store.get(key), Key("pods", NAMESPACE, f"{APP}-{key.name}")
        wanted = node is not None and key.name in self.devices.advertised and not is_paused(node)
        pod = self.world.store.get(pod_key)
        if wanted and pod is None:
            self.world.create(exporter_pod(key.name))
        elif not wanted and pod is not None and node is not None and not pod["metadata"].get("deletionTimestamp"):
            self.world.delete(pod_key)

    def serve(self, pod: Document, port: str, path: str) -> str:
        """What a GET through the API server's pod proxy answers; ApiError where there is no exporter to answer."""
        name = pod["metadata"]["name"]
        if pod["metadata"].get("labels", {}).get("app") != APP or port not in ("", PORT):
            raise unavailable(f"error trying to reach service: dial {name}:{port or '80'}: connection refused")
        if path.strip("/") != "metrics":
            raise ApiError(404, "NotFound", f"the exporter serves /metrics, not /{path}")
        node = self.world.get("nodes", "", pod["spec"].get("nodeName", ""))
        if node is None or not is_true(node, "Ready") or not is_true(pod, "Ready"):
            raise unavailable(f"error trying to reach service: {name} is not ready")
        return self.exposition(node["metadata"]["name"])

    def exposition(self, node: str) -> str:
        machine = self.devices.machines.get(node)
        if machine is None:
            raise bad_request(f"node {node} has no GPUs")
        holders = self.holders(node)
        rows = [row for card in machine.cards for row in self.card_rows(machine, card, holders)]
        lines: list[str] = []
        for metric in METRICS:
            if metric.hbm and not machine.board.can_mig:
                continue
            series = [text for row in rows if (text := row(metric))]
            if series:
                lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.type}", *series]
        return "\n".join(lines) + "\n"

    # Who holds what, and how busy it is

    def holders(self, node: str) -> list[Holder]:
        found = []
        for assignment in self.devices.on_node(node):
            pod = self.world.get("pods", assignment.namespace, assignment.pod)
            found.append(Holder(assignment, self.load(pod, assignment) if pod else IDLE))
        return found

    def load(self, pod: Document, assignment: Assignment) -> Load:
        container = next(one for one in pod["spec"]["containers"] if one["name"] == assignment.container)
        for status in pod["status"].get("containerStatuses") or []:
            running = (status.get("state") or {}).get("running")
            if status["name"] == assignment.container and running:
                return load_of(pod, container, datetime.fromisoformat(running["startedAt"]), self.world.now)
        return IDLE

    # Series

    def card_rows(self, machine: Machine, card: Card, holders: list[Holder]) -> Iterator[Callable[[Metric], str]]:
        """For each series of a card a function from the metric to its line; empty where it has none."""
        here = [holder for holder in holders if holder.assignment.unit.card == card.index]
        busy = board_busy(machine, card, here)
        watts = machine.board.idle_watts + (machine.board.full_watts - machine.board.idle_watts) * busy
        board = {"board_busy": busy, "watts": watts, "energy_mj": self.energy(card, watts), "xid": card.xid}
        if card.mig and card.instances:
            yield from mig_rows(machine, card, here, board)
        elif machine.sharing.is_shared and here and not card.mig:
            yield from shared_rows(machine, card, here, board)
        else:
            yield whole_row(machine, card, here[0] if here else None, board)

    def energy(self, card: Card, watts: float) -> int:
        """The card's counter: what it drew since it was last read is added at the present rate."""
        since, total = self.meters.get(card.uuid, (self.world.started, 0.0))
        total += max(0.0, (self.world.now - since).total_seconds()) * watts * 1000
        self.meters[card.uuid] = (self.world.now, total)
        return int(total)


def whole_row(machine: Machine, card: Card, holder: Holder | None, board: Document) -> Callable[[Metric], str]:
    load, memory = holder.load if holder else IDLE, machine.board.memory_mib
    reading = Reading(load.busy, used(load, memory), memory, **board)
    labels = card_labels(machine, card) + (pod_labels(holder) if holder else [])
    return lambda metric: "" if metric.only_mig else line(metric, labels, reading)


def mig_rows(machine: Machine, card: Card, holders: list[Holder], board: Document) -> Iterator[Callable[[Metric], str]]:
    for instance in card.instances:
        holder = next((one for one in holders if one.assignment.unit.instance == instance), None)
        load, memory = holder.load if holder else IDLE, instance.profile.memory_mib
        reading = Reading(load.busy, used(load, memory), memory, **board)
        labels = card_labels(machine, card, instance) + (pod_labels(holder) if holder else [])
        yield lambda metric, labels=labels, reading=reading: line(metric, labels, reading) if metric.mig else ""  # type: ignore[misc]


def shared_rows(
    machine: Machine, card: Card, holders: list[Holder], board: Document
) -> Iterator[Callable[[Metric], str]]:
    """One row for the board where a metric is per process, then one row per pod."""
    memory, part = machine.board.memory_mib, machine.board.memory_mib // machine.sharing.replicas
    busy = board["board_busy"]
    total = sum(used(holder.load, part) for holder in holders)
    whole = Reading(busy, total, memory, **board)
    plain = card_labels(machine, card)
    yield lambda metric: line(metric, plain, whole) if metric.per_pod else ""
    asked = sum(holder.load.busy for holder in holders)
    for holder in sorted(holders, key=lambda one: one.assignment.unit.replica or 0):
        share = holder.load.busy * min(1.0, 1 / asked) if asked else 0.0
        own = Reading(share, used(holder.load, part), memory, **board)
        labels = plain + pod_labels(holder, shared=True)

        def row(metric: Metric, labels: list[str] = labels, own: Reading = own) -> str:
            return "" if metric.only_mig else line(metric, labels, own if metric.per_pod else whole)

        yield row


def board_busy(machine: Machine, card: Card, holders: list[Holder]) -> float:
    """How busy the whole board is: slices count by their compute, sharers add up to at most everything."""
    if card.mig:
        return sum(
            one.load.busy * one.assignment.unit.instance.profile.compute / 7
            for one in holders
            if one.assignment.unit.instance
        )
    return min(1.0, sum(one.load.busy for one in holders))


def used(load: Load, memory_mib: int) -> int:
    """Used memory: a few MiB of an idle device are the driver's."""
    return max(3, int(memory_mib * (1 - RESERVED_SHARE) * load.memory))


def card_labels(machine: Machine, card: Card, instance: Instance | None = None) -> list[str]:
    """In the order in which the exporter prints them. On shared nodes runs a newer one, with a small `hostname`."""
    host = "hostname" if machine.sharing.is_shared else "Hostname"
    found = [
        f'gpu="{card.index}"',
        f'UUID="{card.uuid}"',
        f'pci_bus_id="{card.pci_bus_id}"',
        f'device="nvidia{card.index}"',
        f'modelName="{machine.board.name}"',
    ]
    if instance:
        found += [f'GPU_I_PROFILE="{instance.profile.name}"', f'GPU_I_ID="{instance.gi}"']
    return [*found, f'{host}="{machine.node}"', f'DCGM_FI_DRIVER_VERSION="{machine.driver}"']


def pod_labels(holder: Holder, *, shared: bool = False) -> list[str]:
    one = holder.assignment
    found = [f'container="{one.container}"', f'namespace="{one.namespace}"', f'pod="{one.pod}"']
    return [*found, f'pod_uid="{one.pod_uid}"', f'vgpu="{one.unit.replica}"'] if shared else found


def line(metric: Metric, labels: list[str], reading: Reading) -> str:
    return f"{metric.name}{{{','.join(labels)}}} {metric.value(reading)}"


def is_paused(node: Document) -> bool:
    return (node["metadata"].get("labels") or {}).get(DEPLOY, "true") != "true"


def unavailable(message: str) -> ApiError:
    return ApiError(503, "ServiceUnavailable", message)


def exporter_pod(node: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{APP}-{node}", "namespace": NAMESPACE, "labels": {"app": APP}},
        "spec": {
            "nodeName": node,
            "tolerations": [{"operator": "Exists"}],
            "containers": [
                {
                    "name": APP,
                    "image": IMAGE,
                    "ports": [{"name": "metrics", "containerPort": int(PORT)}],
                    "env": [{"name": "KUBERNETES_VIRTUAL_GPUS", "value": "true"}],
                }
            ],
        },
    }
