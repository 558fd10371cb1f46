"""What is really in a node: its cards, how they are cut and shared. Read from a Node document, or made for a fresh one.

This is the record behind the curtain. Berth sees it only through what `gfd.py` publishes and what pods can get.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from .hardware import BOARDS, GKE_ACCELERATORS, Board, Card, Profile, SharingPlan, lay_out
from .kinds import Document

DRIVER = "580.95.05"
PREFIX = "nvidia.com"


@dataclass(slots=True)
class Machine:
    """The GPUs of one node."""

    node: str
    board: Board
    cards: list[Card]
    sharing: SharingPlan
    strategy: str = ""  # MIG: "", single, mixed
    type: str = "unknown"  # nvidia.com/gpu.machine
    driver: str = DRIVER
    labelled: bool = True  # False: a native GKE node, without GPU Feature Discovery

    @property
    def is_cut(self) -> bool:
        return any(card.mig for card in self.cards)


def build(
    node: str, board: Board, count: int, *, sharing: SharingPlan, strategy: str = "", type_: str = "unknown"
) -> Machine:
    """A fresh machine with uncut cards."""
    return Machine(node, board, [card_of(node, index) for index in range(count)], sharing, strategy, type_)


def card_of(node: str, index: int) -> Card:
    digest = hashlib.sha256(f"{node}/{index}".encode()).hexdigest()
    uuid = f"GPU-{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"
    return Card(index, uuid, f"00000000:{0x04 + 0x11 * index:02X}:00.0")


def cut(machine: Machine, layouts: Sequence[Sequence[Profile] | None]) -> bool:
    """Cut the cards, one layout each (None: MIG off). False, and nothing changed, when one of them is illegal."""
    planned = [lay_out(layout) if layout is not None else [] for layout in layouts]
    if len(planned) != len(machine.cards) or any(instances is None for instances in planned):
        return False
    for card, layout, instances in zip(machine.cards, layouts, planned, strict=True):
        card.mig = layout is not None
        card.instances = sorted(instances or [], key=lambda instance: instance.start)
    return True


def read(node: Document) -> Machine | None:
    """The machine that a Node document describes; None when it has no GPUs that we know."""
    labels = node["metadata"].get("labels") or {}
    product = labels.get(f"{PREFIX}/gpu.product", "")
    native = not product
    product = product or GKE_ACCELERATORS.get(labels.get("cloud.google.com/gke-accelerator", ""), "")
    base, _, slice_name = product.removesuffix("-SHARED").partition("-MIG-")
    board = BOARDS.get(base)
    if board is None:
        return None
    name = node["metadata"]["name"]
    sliced = cut_profiles(board, labels, slice_name)
    machine = build(
        name,
        board,
        card_count(board, labels, slice_name),
        sharing=sharing_of(labels),
        strategy=labels.get(f"{PREFIX}/mig.strategy", ""),
        type_=labels.get(f"{PREFIX}/gpu.machine", "unknown"),
    )
    machine.driver = labels.get(f"{PREFIX}/cuda.driver-version.full", DRIVER)
    machine.labelled = not native
    if sliced and not cut(machine, spread(sliced, len(machine.cards))):
        raise ValueError(f"Node {name}: the MIG slices that its labels count do not fit on its cards.")
    return machine


def card_count(board: Board, labels: dict[str, str], slice_name: str) -> int:
    """Physical cards. With strategy `single` the count label counts slices, seven or fewer to a card."""
    count = int(labels.get(f"{PREFIX}/gpu.count") or labels.get("cloud.google.com/gke-accelerator-count") or 1)
    if slice_name in board.by_name:
        return -(-count // board.by_name[slice_name].most)
    return count


def cut_profiles(board: Board, labels: dict[str, str], slice_name: str) -> list[Profile]:
    """All slices that the labels count, over all cards."""
    if slice_name in board.by_name:
        return [board.by_name[slice_name]] * int(labels.get(f"{PREFIX}/gpu.count", "0"))
    found: list[Profile] = []
    for name in dict.fromkeys(profile.resource_name for profile in board.profiles):
        found += [board.by_name[name]] * int(labels.get(f"{PREFIX}/mig-{name}.count", "0"))
    return found


def spread(profiles: list[Profile], cards: int) -> list[list[Profile] | None]:
    """Give the slices out over the cards: evenly where the counts allow, else each to the first card with room."""
    counts = {profile: profiles.count(profile) for profile in profiles}
    if all(count % cards == 0 for count in counts.values()):
        each = [profile for profile, count in counts.items() for _ in range(count // cards)]
        return [list(each) for _ in range(cards)]
    given: list[list[Profile]] = [[] for _ in range(cards)]
    for profile in sorted(profiles, key=lambda profile: -profile.size):
        for layout in given:
            if lay_out([*layout, profile]) is not None:
                layout.append(profile)
                break
    return [layout or None for layout in given]


def sharing_of(labels: dict[str, str]) -> SharingPlan:
    method = labels.get(f"{PREFIX}/gpu.sharing-strategy", "none")
    replicas = int(labels.get(f"{PREFIX}/gpu.replicas") or 1)
    return SharingPlan(method, replicas) if method in ("time-slicing", "mps") and replicas > 1 else SharingPlan()
