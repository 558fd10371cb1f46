"""Shares and flavors: what a pool can offer, under which sku, and in which words.

A flavor is GPU model x sharing x profile x capacity type; its sku spells that, "h100-80gb/mig-1g.10gb/on-demand".
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction as F

from scheduling.planning import catalog
from scheduling.planning.catalog import Model
from scheduling.planning.facts import Capacity, FlavorFact, Isolation, PoolFact, Sharing

ISOLATION = {
    Sharing.WHOLE: Isolation.HARDWARE,
    Sharing.MIG: Isolation.HARDWARE,
    Sharing.MPS: Isolation.PROCESS,
    Sharing.TIME_SLICE: Isolation.NONE,
}
PARTS = {2: "Half", 3: "Third", 4: "Quarter", 5: "Fifth", 6: "Sixth", 7: "Seventh", 8: "Eighth", 10: "Tenth"}
SPELLED_WITH_A_VOWEL = "AEFHILMNORSX"


@dataclass(frozen=True, slots=True)
class Sku:
    """A flavor's name, taken apart."""

    model: str
    sharing: Sharing
    profile: str = ""
    replicas: int = 1
    capacity: Capacity = Capacity.ON_DEMAND

    def __str__(self) -> str:
        return f"{self.model}/{self._kind()}/{self.capacity}"

    def _kind(self) -> str:
        if self.sharing is Sharing.MIG:
            return f"mig-{catalog.dotted(self.profile)}"
        if self.sharing is Sharing.WHOLE:
            return "whole"
        return f"{self.sharing}-{self.replicas}"


def isolation_of(sharing: Sharing | str) -> Isolation:
    return ISOLATION[Sharing(sharing)]


def sku(model: str, sharing: Sharing, profile: str, replicas: int, capacity: Capacity) -> str:
    """ "h100-80gb/whole/on-demand", "h100-80gb/mig-1g.10gb/on-demand", "a10g-24gb/time-slice-4/spot"."""
    return str(Sku(model, Sharing(sharing), profile, replicas, Capacity(capacity)))


def parse_sku(text: str) -> Sku:
    """The parts of a sku; a ValueError with a sentence when it is none."""
    model, kind, capacity = _three_parts(text)
    if capacity not in set(Capacity):
        raise ValueError(f"“{text}” ends in “{capacity}”; a sku ends in {' or '.join(Capacity)}.")
    if kind == "whole":
        return Sku(model, Sharing.WHOLE, capacity=Capacity(capacity))
    if kind.startswith("mig-"):
        return Sku(model, Sharing.MIG, kind.removeprefix("mig-"), capacity=Capacity(capacity))
    shared = re.fullmatch(r"(time-slice|mps)-([1-9]\d{0,3})", kind)
    if shared is None or int(shared[2]) < 2:
        raise ValueError(
            f"“{text}” names the kind “{kind}”; known are whole, mig-PROFILE, time-slice-N and mps-N from N = 2."
        )
    return Sku(model, Sharing(shared[1]), replicas=int(shared[2]), capacity=Capacity(capacity))


def flavor_of(name: Sku, *, card_mib: int | None = None) -> FlavorFact | None:
    """The flavor behind a sku. None when the model has no such slice, or nobody knows how much memory its card has.

    `card_mib` is what the nodes report of one whole card; the catalog's nominal figure is used where it is missing.
    """
    model = catalog.model(name.model)
    whole_mib = model.memory_mib if model and model.memory_mib else card_mib
    if name.sharing is Sharing.MIG:
        return _slice_flavor(name, model)
    if whole_mib is None:
        return None
    share = F(1) if name.sharing is Sharing.WHOLE else F(1, name.replicas)
    # Time-slices see the whole card's memory and must get along; MPS limits each to its part.
    memory_mib = whole_mib // name.replicas if name.sharing is Sharing.MPS else whole_mib
    return _flavor(name, share, memory_mib)


def flavors_of(pool: PoolFact, *, card_mib: int | None = None) -> tuple[FlavorFact, ...]:
    """Everything that a pool can offer, now or after a cut that it allows; biggest share first."""
    names = _mig_names(pool) if pool.sharing is Sharing.MIG else [_pool_name(pool)]
    found = {flavor for name in names if (flavor := flavor_of(name, card_mib=card_mib))}
    return tuple(sorted(found, key=lambda flavor: (-flavor.share, flavor.sku)))


def flavor_words(flavor: FlavorFact, model: Model | None = None) -> str:
    """What one unit is, for people: "1g.10gb slice of an H100: 10 GiB, isolated in hardware"."""
    model = model or catalog.model(flavor.model)
    spot = " (spot: may be taken back at short notice)" if flavor.capacity is Capacity.SPOT else ""
    return _words(flavor, model) + spot


def unit_words(flavor: FlavorFact, count: int = 1) -> str:
    """So many units within a sentence: "2 whole cards of H100 80GB", "1 slice 1g.10gb of H100 80GB"."""
    title = catalog.title(flavor.model)
    several = "" if count == 1 else "s"
    if flavor.sharing is Sharing.WHOLE:
        return f"{count} whole card{several} of {title}"
    if flavor.sharing is Sharing.MIG:
        return f"{count} slice{several} {flavor.profile} of {title}"
    kind = "MPS share" if flavor.sharing is Sharing.MPS else "time-slice"
    return f"{count} {kind}{several} (1/{flavor.replicas} card) of {title}"


def share_words(share: F) -> str:
    """ "1/8 card", "1 card", "3 1/2 cards"."""
    return f"{number(share)} card{'' if 0 < share <= 1 else 's'}"


def number(value: F) -> str:
    """An exact fraction as people write it: 7/2 -> "3 1/2"."""
    if value < 0:
        return f"-{number(-value)}"
    units, rest = divmod(value, 1)
    if not rest:
        return str(units)
    return f"{units} {rest}" if units else str(rest)


def _words(flavor: FlavorFact, model: Model | None) -> str:
    title = model.title if model else f"{flavor.model} (a model that Berth does not know)"
    if flavor.sharing is Sharing.WHOLE:
        return f"Whole {title}: {_gibibytes(flavor.memory_mib)} GiB, isolated in hardware"
    card = _a(_short(flavor, model)) if model else f"a {title}"
    if flavor.sharing is Sharing.MIG:
        return f"{flavor.profile} slice of {card}: {_gibibytes(flavor.memory_mib)} GiB, isolated in hardware"
    part = f"{PARTS.get(flavor.replicas, flavor.share)} of {card}"
    if flavor.sharing is Sharing.MPS:
        return f"{part}, by MPS: {_gibibytes(flavor.memory_mib)} GiB, isolated by process: faults are shared"
    return f"{part}, time-sliced: {_gibibytes(flavor.memory_mib)} GiB shared by {flavor.replicas}, no isolation"


def _short(flavor: FlavorFact, model: Model) -> str:
    """The model's name, with its memory only where the same words would also fit another model."""
    namesakes = (other for other in catalog.models() if other.name == model.name and other.key != model.key)
    if flavor.sharing is Sharing.MIG:
        namesakes = (other for other in namesakes if other.mig and other.mig.profile(flavor.profile))
    return model.title if any(True for _ in namesakes) else model.name


def _a(name: str) -> str:
    """With its article, as spoken: an H100, a V100, a GeForce."""
    first = name.split(maxsplit=1)[0]
    vowels = SPELLED_WITH_A_VOWEL if first == first.upper() else "AEIOU"
    return f"{'an' if name[0] in vowels else 'a'} {name}"


def _gibibytes(mebibytes: int) -> int:
    """Rounded half up to whole GiB, for words only."""
    return (mebibytes + 512) // 1024


def _three_parts(text: str) -> tuple[str, str, str]:
    parts = text.split("/")
    if len(parts) != 3 or not all(parts):
        raise ValueError(f"“{text}” is no sku; write MODEL/KIND/CAPACITY, such as h100-80gb/mig-1g.10gb/on-demand.")
    return parts[0], parts[1], parts[2]


def _pool_name(pool: PoolFact) -> Sku:
    return Sku(pool.model, pool.sharing, "", pool.replicas, pool.capacity)


def _mig_names(pool: PoolFact) -> Iterable[Sku]:
    """The base profiles of each layout; whole cards where the pool may be cut back to them."""
    model = catalog.model(pool.model)
    if model is None or model.mig is None:
        return
    for config in (pool.layout, *pool.layouts):
        layout = catalog.layout(model, config)
        if layout is None:
            continue
        if layout.whole and config in pool.layouts:
            yield Sku(pool.model, Sharing.WHOLE, capacity=pool.capacity)
        for profile in model.mig.profiles:
            if profile.base and layout.counts.get(profile.name):
                yield Sku(pool.model, Sharing.MIG, profile.name, capacity=pool.capacity)


def _slice_flavor(name: Sku, model: Model | None) -> FlavorFact | None:
    profile = model.mig.profile(name.profile) if model and model.mig else None
    if profile is None:
        return None
    named = re.search(r"\.(\d+)gb", profile.name)
    # Where no driver's figure is known, the profile's own name says how much it is meant to be.
    memory_mib = profile.memory_mib or (int(named[1]) * 1024 if named else None)
    return None if memory_mib is None else _flavor(name, profile.share, memory_mib)


def _flavor(name: Sku, share: F, memory_mib: int) -> FlavorFact:
    return FlavorFact(
        sku=str(name),
        model=name.model,
        sharing=name.sharing,
        profile=name.profile,
        replicas=name.replicas,
        share=share,
        memory_mib=memory_mib,
        capacity=name.capacity,
    )
