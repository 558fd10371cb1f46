"""What GPU Feature Discovery and the device plugin say of a machine: labels, and resources by count. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .hardware import Card, Instance, Profile
from .kinds import Document
from .machines import PREFIX, Machine

OWNED = re.compile(
    r"^nvidia\.com/(mig-.+|mig\.(capable|strategy)|mps\.capable|vgpu\.present|gfd\.timestamp|cuda\..+"
    r"|gpu\.(product|count|replicas|memory|sharing-strategy|family|machine|mode|multiprocessors|compute\..+"
    r"|slices\..+|engines\..+))$"
)
RUNTIME = "13.0"
HARMLESS_XIDS = frozenset({0, 13, 31, 43, 45, 68, 109})
OPERANDS = (
    "container-toolkit", "dcgm", "dcgm-exporter", "device-plugin", "driver", "gpu-feature-discovery", "mig-manager",
    "node-status-exporter", "operator-validator",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing that a pod can be given: a card, a MIG instance, or one replica of a shared card."""

    resource: str
    card: int
    instance: Instance | None = None
    replica: int | None = None


def units(machine: Machine) -> list[Unit]:
    """Everything that the device plugin hands out, sick cards included."""
    found: list[Unit] = []
    if machine.strategy == "single" and machine.is_cut and uniform_profile(machine) is None:
        return []
    for card in machine.cards:
        if not card.mig:
            found += replicated(machine, Unit(f"{PREFIX}/gpu", card.index))
            continue
        for instance in card.instances:
            name = "gpu" if machine.strategy == "single" else f"mig-{instance.profile.resource_name}"
            found += replicated(machine, Unit(f"{PREFIX}/{name}", card.index, instance))
    return found


def replicated(machine: Machine, unit: Unit) -> Iterator[Unit]:
    if not machine.sharing.is_shared:
        yield unit
        return
    for replica in range(machine.sharing.replicas):
        yield Unit(unit.resource, unit.card, unit.instance, replica)


def is_healthy(card: Card) -> bool:
    return card.xid in HARMLESS_XIDS


def resources(machine: Machine) -> tuple[dict[str, int], dict[str, int]]:
    """Capacity and allocatable by resource. A sick card leaves allocatable only."""
    capacity: dict[str, int] = {f"{PREFIX}/gpu": 0}
    allocatable: dict[str, int] = {f"{PREFIX}/gpu": 0}
    for unit in units(machine):
        capacity[unit.resource] = capacity.get(unit.resource, 0) + 1
        healthy = is_healthy(machine.cards[unit.card])
        allocatable[unit.resource] = allocatable.get(unit.resource, 0) + int(healthy)
    return capacity, allocatable


def uniform_profile(machine: Machine) -> Profile | None:
    """With strategy `single`: the one profile of all instances; None when the layout is invalid for it."""
    profiles = {instance.profile for card in machine.cards for instance in card.instances}
    valid = len(profiles) == 1 and all(card.instances for card in machine.cards)
    return profiles.pop() if valid else None


def labels(machine: Machine, at: int) -> dict[str, str]:
    """All labels that GPU Feature Discovery writes. `at` is its timestamp, in unix seconds."""
    if not machine.labelled:
        return {}
    board = machine.board
    found = {
        "gfd.timestamp": str(at),
        **version_labels(machine.driver),
        "gpu.machine": machine.type,
        "gpu.mode": "compute",
        "gpu.family": board.family,
        "gpu.compute.major": str(board.compute_capability[0]),
        "gpu.compute.minor": str(board.compute_capability[1]),
        "mig.capable": str(board.can_mig).lower(),
        "mps.capable": str(machine.sharing.method == "mps").lower(),
        "vgpu.present": "false",
    }
    if machine.strategy:
        found["mig.strategy"] = machine.strategy
    found |= card_labels(machine)
    return {f"{PREFIX}/{name}": value for name, value in found.items()}


def card_labels(machine: Machine) -> dict[str, str]:
    if not machine.is_cut:
        return described("gpu", machine, machine.board.product, len(machine.cards), machine.board.memory_mib)
    if machine.strategy != "single":
        return mixed_labels(machine)
    profile = uniform_profile(machine)
    if profile is None:
        product = f"{machine.board.product}-MIG-INVALID"
        return {"gpu.product": product, "gpu.count": "0", "gpu.replicas": "0", "gpu.memory": "0",
                "gpu.sharing-strategy": ""}  # fmt: skip
    count = sum(len(card.instances) for card in machine.cards)
    product = f"{machine.board.product}-MIG-{profile.name}"
    return described("gpu", machine, product, count, profile.memory_mib) | slice_labels("gpu", profile)


def mixed_labels(machine: Machine) -> dict[str, str]:
    board = machine.board
    found = described("gpu", machine, board.product, len(machine.cards), board.memory_mib)
    if all(card.mig for card in machine.cards):
        found["gpu.replicas"] = "0"
    for profile in board.profiles:
        count = sum(instance.profile == profile for card in machine.cards for instance in card.instances)
        if not count:
            continue
        prefix = f"mig-{profile.resource_name}"
        product = f"{board.product}-MIG-{profile.name.replace('+', '.')}"
        found |= described(prefix, machine, product, count, profile.memory_mib) | slice_labels(prefix, profile)
    return found


def described(prefix: str, machine: Machine, product: str, count: int, memory_mib: int) -> dict[str, str]:
    sharing = machine.sharing
    return {
        f"{prefix}.product": product + ("-SHARED" if sharing.is_shared else ""),
        f"{prefix}.count": str(count),
        f"{prefix}.replicas": str(sharing.replicas),
        f"{prefix}.sharing-strategy": sharing.method,
        f"{prefix}.memory": str(memory_mib),
    }


def slice_labels(prefix: str, profile: Profile) -> dict[str, str]:
    engines = profile.engines
    return {
        f"{prefix}.multiprocessors": str(profile.multiprocessors),
        f"{prefix}.slices.gi": str(profile.compute),
        f"{prefix}.slices.ci": str(profile.compute),
        f"{prefix}.engines.copy": str(engines.copy),
        f"{prefix}.engines.decoder": str(engines.decoder),
        f"{prefix}.engines.encoder": str(engines.encoder),
        f"{prefix}.engines.jpeg": str(engines.jpeg),
        f"{prefix}.engines.ofa": str(engines.ofa),
    }


def version_labels(driver: str) -> dict[str, str]:
    major, minor, revision = [*driver.split("."), "", ""][:3]
    runtime_major, runtime_minor = RUNTIME.split(".")
    return {
        "cuda.driver-version.full": driver, "cuda.driver-version.major": major, "cuda.driver-version.minor": minor,
        "cuda.driver-version.revision": revision, "cuda.driver.major": major, "cuda.driver.minor": minor,
        "cuda.driver.rev": revision, "cuda.runtime-version.full": RUNTIME,
        "cuda.runtime-version.major": runtime_major, "cuda.runtime-version.minor": runtime_minor,
        "cuda.runtime.major": runtime_major, "cuda.runtime.minor": runtime_minor,
    }  # fmt: skip


def operator_labels(machine: Machine, config: str) -> dict[str, str]:
    """What the GPU Operator itself writes on a fresh node."""
    operands = [name for name in OPERANDS if name != "mig-manager" or machine.board.can_mig]
    found = {f"{PREFIX}/gpu.deploy.{name}": "true" for name in operands}
    found |= {f"{PREFIX}/gpu.present": "true", f"{PREFIX}/gpu-driver-upgrade-state": "upgrade-done"}
    if machine.board.can_mig:
        found |= {f"{PREFIX}/mig.config": config, f"{PREFIX}/mig.config.state": "success"}
    return found


def write_labels(document: Document, wanted: dict[str, str]) -> None:
    """Replace the labels of GPU Feature Discovery; those of others stay."""
    kept = {key: value for key, value in (document["metadata"].get("labels") or {}).items() if not OWNED.match(key)}
    document["metadata"]["labels"] = kept | wanted


def write_resources(document: Document, capacity: dict[str, int], allocatable: dict[str, int]) -> None:
    """Put GPU resources into the node's status; kinds of slices that no longer exist are removed."""
    status = document.setdefault("status", {})
    for part, counts in (("capacity", capacity), ("allocatable", allocatable)):
        kept = {
            name: quantity
            for name, quantity in (status.get(part) or {}).items()
            if name != f"{PREFIX}/gpu" and not name.startswith(f"{PREFIX}/mig-")
        }
        status[part] = kept | {name: str(count) for name, count in counts.items()}
