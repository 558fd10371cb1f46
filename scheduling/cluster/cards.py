"""From a node's resources and labels to its cards and what they are given out as.

The truth is what the node advertises (`status`), the labels are hints: a label `replicas=1` beside fifty units on one
card means fifty shares. What cannot be told is set aside with a Problem; it is never counted as free.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction as F
from math import ceil

from scheduling.cluster.documents import NodeStatus, Strings, text
from scheduling.cluster.labels import COUNT_KEYS, Product, first
from scheduling.cluster.names import MIG_CONFIG
from scheduling.cluster.quantities import BadQuantity, quantity, units
from scheduling.planning.catalog import Model, Profile, dotted, layout
from scheduling.planning.facts import DeviceFact, Isolation, Problem, Sharing

WHOLE = "nvidia.com/gpu"
RENAMED = "nvidia.com/gpu.shared"
AMD = "amd.com/gpu"
CARD_RESOURCES = re.compile(r"nvidia\.com/(?:gpu|gpu\.shared|mig-.+)|amd\.com/(?:gpu|[scdq]px_.+)", re.ASCII)
OTHER_ACCELERATORS = re.compile(
    r"gpu\.intel\.com/.+|habana\.ai/gaudi|google\.com/tpu|aws\.amazon\.com/neuron.*|nvidia\.com/gpu(?:mem|cores).*",
    re.ASCII,
)
MIG_RESOURCE = re.compile(r"nvidia\.com/mig-(?P<profile>[0-9]+g\.[0-9]+gb[-.a-z]*?)(?:\.shared)?", re.ASCII)
PROFILE = re.compile(r"(?P<slices>[0-9]+)g\.(?P<gb>[0-9]+)gb(?P<rest>.*)", re.ASCII)

COUNT = "nvidia.com/gpu.count"
REPLICAS = "nvidia.com/gpu.replicas"
STRATEGY = "nvidia.com/gpu.sharing-strategy"
MEMORY = "nvidia.com/gpu.memory"
GKE_STRATEGY = "cloud.google.com/gke-gpu-sharing-strategy"
GKE_CLIENTS = "cloud.google.com/gke-max-shared-clients-per-gpu"
GKE_PARTITION = "cloud.google.com/gke-gpu-partition-size"
AMD_PARTITION = ("amd.com/compute-memory-partition", "amd.com/gpu.compute-memory-partition")
AMD_VRAM = ("amd.com/gpu.vram", "beta.amd.com/gpu.vram")


class Notes:
    """Collects what is odd about one thing."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.problems: list[Problem] = []

    def add(self, field: str, text: str) -> None:
        problem = Problem(self.where, field, text)
        if problem not in self.problems:  # a label may be looked at for more than one reason
            self.problems.append(problem)


@dataclass(frozen=True, slots=True)
class Advertised:
    """One accelerator resource. `offered` is None when the node's word about it cannot be read."""

    resource: str
    total: int
    offered: int | None


@dataclass(frozen=True, slots=True)
class Cards:
    """The physical cards of a node and how they are given out."""

    cards: int = 0
    sick: int = 0
    sharing: Sharing = Sharing.WHOLE
    replicas: int = 1
    devices: tuple[DeviceFact, ...] = ()


@dataclass(frozen=True, slots=True)
class Sight:
    """What of a node says something about its cards."""

    labels: Strings | None
    product: Product
    model: Model | None
    items: tuple[Advertised, ...]
    changing: bool  # being cut or upgraded: what it does not advertise is not sick
    notes: Notes

    def item(self, resource: str) -> Advertised | None:
        return next((item for item in self.items if item.resource == resource and item.total), None)

    def number(self, *keys: str) -> int | None:
        """The first of these labels that is a count above 0."""
        return next((found for key in keys if (found := self.measure(key, units))), None)

    def mib(self, key: str) -> int | None:
        """A label that is a memory size in MiB."""
        return self.measure(key, lambda said: int(quantity(said)))

    def measure(self, key: str, convert: Callable[[str], int]) -> int | None:
        """A label as a number above 0; None when it is missing, is 0, or is no number."""
        said = text(self.labels, key)
        if not said:
            return None
        try:
            return convert(said) or None
        except BadQuantity as error:
            self.notes.add(f"metadata.labels[{key}]", f"{error}; the label is not used")
            return None


def advertised(status: NodeStatus, notes: Notes) -> tuple[Advertised, ...]:
    """The accelerator resources of a node that can be placed by their numbers."""
    total, offered = status.capacity or {}, status.allocatable or {}
    resources = sorted({*total, *offered})
    for resource in filter(OTHER_ACCELERATORS.fullmatch, resources):
        notes.add(f"status.allocatable[{resource}]", "Berth cannot place this kind of accelerator; it is not offered")
    if any(resource.startswith("nvidia.com/gpumem") for resource in resources):
        return ()  # HAMi replaces the device plugin: its nvidia.com/gpu counts pods, not cards
    return tuple(
        advertised_one(resource, total, offered, notes) for resource in filter(CARD_RESOURCES.fullmatch, resources)
    )


def advertised_one(resource: str, total: Strings, offered: Strings, notes: Notes) -> Advertised:
    free = units_in(offered, resource, "status.allocatable", notes)
    whole = units_in(total, resource, "status.capacity", notes) if resource in total else None
    if free is not None and whole is not None and free > whole:
        notes.add(f"status.allocatable[{resource}]", f"{free} units are offered of {whole}; {whole} are counted")
        free = whole
    return Advertised(resource, whole if whole is not None else free or 0, free)


def units_in(strings: Strings, resource: str, field: str, notes: Notes) -> int | None:
    if resource not in strings:
        notes.add(f"{field}[{resource}]", "the node does not say how many units there are; none are offered")
        return None
    try:
        return units(strings[resource])
    except BadQuantity as error:
        notes.add(f"{field}[{resource}]", f"{error}; the resource is not offered")
        return None


def read_cards(sight: Sight) -> Cards:
    """Cards and devices of one node, by the way in which it is set up."""
    if any(item.resource.startswith("amd.com/") and item.total for item in sight.items):
        return amd_cards(sight)
    if sight.product.invalid:
        field = f"metadata.labels[{sight.product.key}]"
        sight.notes.add(field, "the node's cards are not all cut alike, as the strategy single needs; none are offered")
        return Cards(sight.number(*COUNT_KEYS) or 0, sharing=Sharing.MIG)
    slices = tuple(item for item in sight.items if item.total and item.resource.startswith("nvidia.com/mig-"))
    if slices:
        return mixed_cards(sight, slices)
    profile = sight.product.profile or text(sight.labels, GKE_PARTITION)
    item = sight.item(WHOLE)
    if profile and item:
        return single_cards(sight, item, profile)
    return plain_cards(sight)


def plain_cards(sight: Sight) -> Cards:
    """Cards that are whole, or shared by time or MPS."""
    count = sight.number(COUNT, *COUNT_KEYS)
    hint = sight.number(REPLICAS, GKE_CLIENTS)
    item = sight.item(RENAMED) or sight.item(WHOLE)
    if item is None:
        if count and not sight.changing and not any(item.offered is None for item in sight.items):
            sight.notes.add(
                f"status.allocatable[{WHOLE}]", f"the labels tell of {count} cards, but none is advertised yet"
            )
        return Cards(count or 0, sharing=sharing_of(sight, hint or 1), replicas=hint or 1)
    if sight.item(RENAMED) and sight.item(WHOLE):
        sight.notes.add(f"status.capacity[{RENAMED}]", "shared and whole cards stand side by side; none are offered")
        return Cards(count or 0)
    cards, replicas = divided(sight, item, count, hint)
    sharing = sharing_of(sight, replicas)
    device = device_of(sight, item, "", F(1, replicas), isolation_of(sharing), part(card_memory(sight), replicas))
    sick = min(cards, ceil(F(withheld(sight, item.resource), replicas)) + missing_cards(sight, item, cards, replicas))
    return Cards(cards, sick, sharing, replicas, tuple(device))


def divided(sight: Sight, item: Advertised, count: int | None, hint: int | None) -> tuple[int, int]:
    """Cards, and units per card: the units over the cards; the label decides only where the division does not."""
    if count is None:
        replicas = hint if hint and item.total % hint == 0 else 1
        return item.total // replicas, replicas
    if item.total >= count and item.total % count == 0:
        replicas = item.total // count
    elif hint:
        replicas = hint
    else:
        replicas = ceil(F(item.total, count))
        if replicas > 1:
            sight.notes.add(f"metadata.labels[{COUNT}]", f"{item.total} units cannot be shared evenly by {count} cards")
    if hint and hint != replicas:
        where = REPLICAS if text(sight.labels, REPLICAS) else GKE_CLIENTS
        words = (
            f"the label says {hint} per card, but {item.total} units on {count} cards are {replicas} each; that counts"
        )
        sight.notes.add(f"metadata.labels[{where}]", words.replace("on 1 cards are", "on one card are"))
    return count, replicas


def sharing_of(sight: Sight, replicas: int) -> Sharing:
    if replicas == 1:
        return Sharing.WHOLE
    strategies = {text(sight.labels, STRATEGY), text(sight.labels, GKE_STRATEGY)}
    return Sharing.MPS if "mps" in strategies else Sharing.TIME_SLICE


def isolation_of(sharing: Sharing) -> Isolation:
    return {Sharing.TIME_SLICE: Isolation.NONE, Sharing.MPS: Isolation.PROCESS}.get(sharing, Isolation.HARDWARE)


def single_cards(sight: Sight, item: Advertised, spelled: str) -> Cards:
    """All cards cut into the same slices, which are called nvidia.com/gpu (strategy single, or GKE's own way)."""
    profile = profile_of(sight.model, spelled)
    boards = sight.number(*COUNT_KEYS)
    if profile is None:
        sight.notes.add(f"metadata.labels[{sight.product.key}]", unknown_profile(sight, spelled))
        return Cards(boards or 1, sharing=Sharing.MIG)
    slices = slices_of(sight, item)
    each = per_card(sight, profile)
    cards = boards or ceil(F(slices, each))
    if slices != cards * each and not sight.changing:
        sight.notes.add(
            f"status.capacity[{item.resource}]", f"{slices} slices {profile.name} are not {cards} cards of {each} each"
        )
    device = slice_device(sight, item, profile, MEMORY, replicas=max(1, item.total // slices))
    sick = ceil(F(withheld(sight, item.resource), each * max(1, item.total // slices)))
    return Cards(cards, min(cards, sick), Sharing.MIG, 1, tuple(device))


def slices_of(sight: Sight, item: Advertised) -> int:
    """MIG devices behind the units; time-slicing may offer each of them several times."""
    count = sight.number(COUNT)
    hint = sight.number(REPLICAS, GKE_CLIENTS) or 1
    if count and item.total >= count and item.total % count == 0:
        return count
    return item.total // hint if item.total % hint == 0 else item.total


def per_card(sight: Sight, profile: Profile) -> int:
    """How many of these slices one card of the node holds."""
    wished = layout(sight.model, text(sight.labels, MIG_CONFIG)) if sight.model else None
    return (wished.counts.get(profile.name) if wished else None) or profile.max_instances


def mixed_cards(sight: Sight, slices: tuple[Advertised, ...]) -> Cards:
    """Slices under names of their own, perhaps beside cards that are whole (strategy mixed)."""
    parts = tuple(mixed_devices(sight, slices))
    devices = tuple(device for device, _ in parts)
    held = sum((device.share * device.capacity for device in devices), F(0))
    count = sight.number(COUNT, *COUNT_KEYS)
    if count is None or held > count:
        words = f"the slices need at least {ceil(held)} cards; the labels tell of {count or 'none'}"
        sight.notes.add(f"metadata.labels[{COUNT}]", words)
    cards = max(count or 0, ceil(held), 1)
    lost = sum((device.share * withheld(sight, device.resource) for device in devices), F(0))
    return Cards(cards, min(cards, ceil(lost)), Sharing.MIG, 1, devices)


def mixed_devices(sight: Sight, slices: tuple[Advertised, ...]) -> Iterator[tuple[DeviceFact, Profile | None]]:
    whole = sight.item(WHOLE)
    if whole:
        replicas = sight.number(REPLICAS) or 1
        isolation = Isolation.NONE if replicas > 1 else Isolation.HARDWARE
        for device in device_of(sight, whole, "", F(1, replicas), isolation, part(card_memory(sight), replicas)):
            yield device, None
    for item in slices:
        match = MIG_RESOURCE.fullmatch(item.resource)
        profile = profile_of(sight.model, match["profile"]) if match else None
        if match is None or profile is None:
            spelled = match["profile"] if match else item.resource.removeprefix("nvidia.com/mig-")
            sight.notes.add(f"status.allocatable[{item.resource}]", unknown_profile(sight, spelled))
            continue
        prefix = f"nvidia.com/mig-{dotted(match['profile'])}"
        count = sight.number(f"{prefix}.count")
        replicas = item.total // count if count and item.total % count == 0 else 1
        for device in slice_device(sight, item, profile, f"{prefix}.memory", replicas=max(1, replicas)):
            yield device, profile


def amd_cards(sight: Sight) -> Cards:
    """AMD cards are given out whole; partitions of them are not handled yet and set aside."""
    item = sight.item(AMD)
    partition = first(sight.labels, AMD_PARTITION)[1].lower()
    if item is None or (partition and not partition.startswith("spx")):
        odd = next(item.resource for item in sight.items if item.total)
        sight.notes.add(f"status.allocatable[{odd}]", "partitions of AMD cards are not handled; they are not offered")
        return Cards(cards=1)
    device = device_of(sight, item, "", F(1), Isolation.HARDWARE, card_memory(sight))
    return Cards(item.total, withheld(sight, item.resource), Sharing.WHOLE, 1, tuple(device))


def device_of(
    sight: Sight, item: Advertised, profile: str, share: F, isolation: Isolation, memory: int | None
) -> Iterator[DeviceFact]:
    """The device behind a resource, or none when its numbers cannot be read."""
    if item.offered is not None:
        yield DeviceFact(item.resource, profile, share, isolation, item.total, item.offered, memory)


def slice_device(
    sight: Sight, item: Advertised, profile: Profile, memory_label: str, *, replicas: int
) -> Iterator[DeviceFact]:
    isolation = Isolation.HARDWARE if replicas == 1 else Isolation.NONE
    memory = part(sight.mib(memory_label) or profile.memory_mib, replicas)
    return device_of(sight, item, profile.name, profile.share / replicas, isolation, memory)


def withheld(sight: Sight, resource: str) -> int:
    """Units that the node has and does not offer, as a device plugin does with those of a sick card."""
    item = sight.item(resource)
    if item is None or item.offered is None or item.offered == item.total or sight.changing:
        return 0
    words = f"{item.total - item.offered} of {item.total} units are withheld, as when a card is sick"
    sight.notes.add(f"status.allocatable[{resource}]", words)
    return item.total - item.offered


def missing_cards(sight: Sight, item: Advertised, cards: int, replicas: int) -> int:
    """Cards that the labels tell of and that the node does not advertise at all."""
    missing = cards - ceil(F(item.total, replicas))
    if missing <= 0 or sight.changing:
        return 0
    sight.notes.add(f"status.capacity[{item.resource}]", f"of {cards} cards {missing} are not advertised")
    return missing


def profile_of(model: Model | None, spelled: str) -> Profile | None:
    """The profile of this name, or a close neighbour: drivers compute the names from memory sizes."""
    if model is None or model.mig is None:
        return None
    exact = model.mig.profile(spelled)
    wanted = PROFILE.fullmatch(dotted(spelled))
    if exact or wanted is None:
        return exact
    for profile in model.mig.profiles:
        match = PROFILE.fullmatch(dotted(profile.name))
        alike = match and (match["slices"], match["rest"]) == (wanted["slices"], wanted["rest"])
        if match and alike and abs(int(match["gb"]) - int(wanted["gb"])) * 10 <= int(match["gb"]):
            return profile
    return None


def unknown_profile(sight: Sight, spelled: str) -> str:
    where = sight.model.title if sight.model else sight.product.name or "an unknown model"
    return f"{spelled} is no profile that the catalog knows of {where}; its slices are not offered"


def card_memory(sight: Sight) -> int | None:
    """MiB of one whole card: as the driver says, else as the catalog has it."""
    nominal = sight.model.memory_mib if sight.model else None
    if sight.product.profile:
        return nominal
    said = sight.mib(MEMORY)
    vram = re.fullmatch(r"([0-9]{1,4})Gi?B?", first(sight.labels, AMD_VRAM)[1], re.ASCII)
    return said or nominal or (int(vram[1]) * 1024 if vram else None)


def part(memory: int | None, replicas: int) -> int | None:
    """One sharer's even part. Only MPS enforces it; the isolation class says so."""
    return None if memory is None else memory // replicas


def counted(devices: tuple[DeviceFact, ...]) -> Mapping[str, int]:
    """Slices by profile."""
    found: dict[str, int] = {}
    for device in devices:
        if device.profile:
            found[device.profile] = found.get(device.profile, 0) + device.capacity
    return found
