"""GPU boards as a table, and the law by which MIG instances are laid out on one.

Kept apart from the planner's own catalog on purpose: a mistake in one of the two shows as a disagreement in a test.
Memory is MiB. Profile figures are those that GPU Feature Discovery shows for the board, where such labels were seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

COMPUTE_SLICES = 7
# How each kind of profile lies on the eight memory slices of a seven-slice board: compute, size, starts, at most.
PLACES = {
    "1g": (1, 1, (0, 1, 2, 3, 4, 5, 6), 7),
    "1g+me": (1, 1, (0, 1, 2, 3, 4, 5, 6), 1),
    "1g double": (1, 2, (0, 2, 4, 6), 4),
    "2g": (2, 2, (0, 2, 4), 3),
    "3g": (3, 4, (4, 0), 2),  # the driver fills the upper half first
    "4g": (4, 4, (0,), 1),
    "7g": (7, 8, (0,), 1),
}
KINDS = ("1g", "1g double", "2g", "3g", "4g", "7g")


@dataclass(frozen=True, slots=True)
class Engines:
    copy: int
    decoder: int
    jpeg: int
    ofa: int
    encoder: int = 0


@dataclass(frozen=True, slots=True)
class Profile:
    name: str  # 1g.10gb, 1g.10gb+me
    compute: int
    size: int  # memory slices of eight
    starts: tuple[int, ...]
    most: int  # per card
    memory_mib: int
    multiprocessors: int
    engines: Engines

    @property
    def resource_name(self) -> str:
        """As in resources and config names: `+` becomes `.`."""
        return self.name.replace("+", ".")

    def instance_id(self, start: int) -> int:
        """The GPU instance id that the driver gives to this place."""
        first = {7: 0, 4: 1, 3: 1, 2: 3}.get(self.compute, 7)
        return 3 + start // 2 if (self.compute, self.size) == (1, 2) else first + start // self.size


@dataclass(frozen=True)
class Board:
    product: str  # as in nvidia.com/gpu.product
    name: str  # as DCGM says it
    memory_mib: int
    family: str
    compute_capability: tuple[int, int]
    pci_id: str
    idle_watts: int
    full_watts: int
    profiles: tuple[Profile, ...] = ()

    @cached_property
    def by_name(self) -> dict[str, Profile]:
        """Profiles under both spellings."""
        return {name: profile for profile in self.profiles for name in (profile.name, profile.resource_name)}

    @property
    def can_mig(self) -> bool:
        return bool(self.profiles)

    @cached_property
    def balanced(self) -> tuple[str, ...]:
        """What all-balanced cuts a card into."""
        by_kind = {
            profile.compute: profile.name for profile in self.profiles if profile.size != 2 or profile.compute == 2
        }
        one = self.profiles[0].name
        return (by_kind[3], by_kind[2], one, one)


@dataclass(frozen=True, slots=True)
class Instance:
    """One MIG instance in its place."""

    profile: Profile
    start: int

    @property
    def gi(self) -> int:
        return self.profile.instance_id(self.start)


@dataclass(slots=True)
class Card:
    index: int
    uuid: str
    pci_bus_id: str
    mig: bool = False
    instances: list[Instance] = field(default_factory=list)
    xid: int = 0  # the last one; 0: none

    def instance_uuid(self, instance: Instance) -> str:
        return f"MIG-{self.uuid[4:-6]}{instance.start:02x}{instance.profile.size:02x}{instance.gi:02x}"


@dataclass(frozen=True, slots=True)
class SharingPlan:
    """How the device plugin multiplies the cards of a node."""

    method: str = "none"  # none, time-slicing, mps
    replicas: int = 1
    strict: bool = True  # failRequestsGreaterThanOne

    @property
    def is_shared(self) -> bool:
        return self.replicas > 1


def lay_out(profiles: Sequence[Profile]) -> list[Instance] | None:
    """A legal place for each of these profiles on one card; None when they do not fit together."""
    if sum(profile.compute for profile in profiles) > COMPUTE_SLICES:
        return None
    if any(list(profiles).count(profile) > profile.most for profile in profiles):
        return None
    largest_first = sorted(profiles, key=lambda profile: (-profile.size, -profile.compute, profile.name))
    return put(largest_first, 0)


def put(profiles: Sequence[Profile], taken: int) -> list[Instance] | None:
    """Place the first, then the rest, going back where that leads nowhere. `taken` has one bit per memory slice."""
    if not profiles:
        return []
    first, rest = profiles[0], profiles[1:]
    for start in first.starts:
        mask = ((1 << first.size) - 1) << start
        if taken & mask:
            continue
        others = put(rest, taken | mask)
        if others is not None:
            return [Instance(first, start), *others]
    return None


def mig_profiles(
    gigabytes: Sequence[int],
    memory: Sequence[int],
    multiprocessors: Sequence[int],
    engines: Sequence[tuple[int, int, int, int]],  # copy, decoder, jpeg, ofa
) -> tuple[Profile, ...]:
    """The profiles of a seven-slice board from four rows of figures, one figure per kind."""
    found = []
    for kind, size, mib, count, (copies, decoders, jpegs, ofas) in zip(
        KINDS, gigabytes, memory, multiprocessors, engines, strict=True
    ):
        name = f"{kind.split()[0]}.{size}gb"
        found.append(Profile(name, *PLACES[kind], mib, count, Engines(copies, decoders, jpegs, ofas)))
        if kind == "1g":
            found.append(Profile(f"{name}+me", *PLACES["1g+me"], mib, count, Engines(copies, 1, 1, 1)))
    return tuple(found)


AMPERE_ENGINES = ((1, 0, 0, 0), (1, 1, 0, 0), (2, 1, 0, 0), (3, 2, 0, 0), (4, 2, 0, 0), (7, 5, 1, 1))
HOPPER_ENGINES = ((1, 1, 1, 0), (1, 1, 1, 0), (2, 2, 2, 0), (3, 3, 3, 0), (4, 4, 4, 0), (8, 7, 7, 1))
BLACKWELL_ENGINES = ((2, 1, 1, 0), (2, 1, 1, 0), (3, 1, 1, 0), (6, 1, 1, 0), (8, 1, 1, 0), (16, 1, 1, 1))
AMPERE_SM = (14, 14, 28, 42, 56, 98)
HOPPER_SM = (16, 26, 32, 60, 64, 132)

A100_40 = mig_profiles((5, 10, 10, 20, 20, 40), (4864, 9856, 9856, 19968, 19968, 40192), AMPERE_SM, AMPERE_ENGINES)
A100_80 = mig_profiles((10, 20, 20, 40, 40, 80), (9728, 19968, 19968, 40192, 40192, 80896), AMPERE_SM, AMPERE_ENGINES)
H100_80 = mig_profiles((10, 20, 20, 40, 40, 80), (9984, 20096, 20096, 40320, 40320, 81152), HOPPER_SM, HOPPER_ENGINES)
H100_94 = mig_profiles((12, 24, 24, 47, 47, 94), (11008, 22144, 22144, 47488, 47488, 95360), HOPPER_SM, HOPPER_ENGINES)
H200 = mig_profiles((18, 35, 35, 71, 71, 141), (16384, 33024, 33280, 71168, 71168, 143104), HOPPER_SM, HOPPER_ENGINES)
B200 = mig_profiles(
    (23, 45, 45, 90, 90, 180), (22272, 45312, 45312, 91136, 91136, 182784), (18, 30, 36, 70, 72, 148), BLACKWELL_ENGINES
)

BOARDS = {
    board.product: board
    for board in (
        Board("Tesla-T4", "Tesla T4", 15360, "turing", (7, 5), "0x1EB8", 9, 70),
        Board("NVIDIA-A10G", "NVIDIA A10G", 23028, "ampere", (8, 6), "0x2237", 16, 300),
        Board("NVIDIA-L4", "NVIDIA L4", 23034, "ada-lovelace", (8, 9), "0x27B8", 12, 72),
        Board("NVIDIA-A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB", 40960, "ampere", (8, 0), "0x20B0", 52, 400, A100_40),
        Board("NVIDIA-A100-PCIE-40GB", "NVIDIA A100-PCIE-40GB", 40960, "ampere", (8, 0), "0x20F1", 35, 250, A100_40),
        Board("NVIDIA-A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB", 81920, "ampere", (8, 0), "0x20B2", 60, 400, A100_80),
        Board("NVIDIA-A100-80GB-PCIe", "NVIDIA A100 80GB PCIe", 81920, "ampere", (8, 0), "0x20B5", 45, 300, A100_80),
        Board("NVIDIA-H100-80GB-HBM3", "NVIDIA H100 80GB HBM3", 81559, "hopper", (9, 0), "0x2330", 70, 700, H100_80),
        Board("NVIDIA-H100-PCIe", "NVIDIA H100 PCIe", 81559, "hopper", (9, 0), "0x2331", 48, 350, H100_80),
        Board("NVIDIA-H100-NVL", "NVIDIA H100 NVL", 95830, "hopper", (9, 0), "0x2321", 62, 400, H100_94),
        Board("NVIDIA-H200", "NVIDIA H200", 143771, "hopper", (9, 0), "0x2335", 78, 700, H200),
        Board("NVIDIA-B200", "NVIDIA B200", 183359, "blackwell", (10, 0), "0x2901", 140, 1000, B200),
    )
}
GKE_ACCELERATORS = {
    "nvidia-tesla-t4": "Tesla-T4",
    "nvidia-l4": "NVIDIA-L4",
    "nvidia-tesla-a100": "NVIDIA-A100-SXM4-40GB",
    "nvidia-a100-80gb": "NVIDIA-A100-SXM4-80GB",
    "nvidia-h100-80gb": "NVIDIA-H100-80GB-HBM3",
    "nvidia-h200-141gb": "NVIDIA-H200",
    "nvidia-b200": "NVIDIA-B200",
}
