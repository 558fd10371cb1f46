"""The GPU models that Berth knows, and the geometry of those that can be cut into MIG slices.

The data lies beside this file in `catalog.json`, written by `tools/catalog.py`. Memory of a model is nominal, as it is
sold (80 GB = 81920 MiB); what a driver reports is a few percent less and is read from the node. Each profile carries
its evidence grade, because some boards were never seen by us: see `grades()`.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction as F
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("catalog.json")
MIXED = "cut-"
INFERRED = frozenset({"rule", "hw-family"})  # grades of what nobody has seen or written of this very board


@dataclass(frozen=True, slots=True)
class Slot:
    """Where an instance lies on the memory axis of a card: [start, start + size), in memory slices."""

    start: int
    size: int

    @property
    def mask(self) -> int:
        """One bit per memory slice."""
        return ((1 << self.size) - 1) << self.start


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of MIG slice of one board."""

    name: str  # as NVIDIA prints it: "1g.10gb", "1g.10gb+me"
    resource: str  # "nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.10gb.me"
    attributes: tuple[str, ...]  # me, me.all, gfx, -me; empty for a base profile
    compute_slices: int
    memory_slices: int
    share: F  # memory slices over the card's
    placements: tuple[Slot, ...]
    max_instances: int
    memory_mib: int | None  # of one slice, as a driver reported it; None: never seen
    multiprocessors: int | None
    grade: str  # evidence of the placements, a key of grades()

    @property
    def base(self) -> bool:
        return not self.attributes

    @property
    def inferred(self) -> bool:
        """Are its places taken over from other boards, so that they are to be confirmed on a node first?"""
        return self.grade in INFERRED


@dataclass(frozen=True, slots=True)
class MigBoard:
    """How the cards of one kind may be cut."""

    key: str
    compute_slices: int
    memory_slices: int
    profiles: tuple[Profile, ...]
    balanced: Mapping[str, int]  # what all-balanced makes of one card
    sources: tuple[str, ...]

    def profile(self, name: str) -> Profile | None:
        """By name, with `+` or `.` before the attribute; None when the board has no such profile."""
        wanted = dotted(name)
        return next((profile for profile in self.profiles if dotted(profile.name) == wanted), None)


@dataclass(frozen=True, slots=True)
class Model:
    """One GPU model. `mig` is None where cards are only whole."""

    key: str  # "h100-80gb"
    name: str  # "H100"
    title: str  # "H100 80GB"
    vendor: str  # nvidia, amd
    family: str
    memory_mib: int | None  # nominal
    mig: MigBoard | None

    @property
    def resource(self) -> str:
        """The extended resource of a whole card."""
        return f"{self.vendor}.com/gpu"


@dataclass(frozen=True, slots=True)
class Layout:
    """What one MIG config makes of each card of a node. No counts: MIG is off and the card is whole."""

    name: str
    counts: Mapping[str, int]  # profile -> instances on one card
    stranded: F  # of one card: what no instance uses

    @property
    def whole(self) -> bool:
        return not self.counts


def models() -> tuple[Model, ...]:
    """Every model, in the order of the data file."""
    return tuple(_models().values())


def model(key: str) -> Model | None:
    """The model of a catalog key such as "h100-80gb"."""
    return _models().get(key)


def title(key: str) -> str:
    """The name for people; an unknown model keeps the name by which the node called it."""
    known = model(key)
    return known.title if known else key


def grades() -> Mapping[str, str]:
    """What each evidence grade means."""
    grades: Mapping[str, str] = _data()["grades"]
    return grades


def find(product: str) -> Model | None:
    """The model of a product string of GPU Feature Discovery, GKE, AMD or DCGM; None when nobody here knows it."""
    return _products().get(_plain(re.sub(r"(-MIG-[^-]+(-me)?)?(-SHARED)?$", "", product.strip())))


def layout(model: Model, config: str) -> Layout | None:
    """What a MIG config name means on this model; None when it means nothing (or nothing certain) there.

    The names are the GPU operator's own, and `cut-1x3g.40gb_1x4g.40gb` for any other set: see `mixed_name`.
    """
    board = model.mig
    if board is not None and config.startswith(MIXED):
        return _mixed_layout(board, config)
    if board is None or not config.startswith("all-"):
        return None
    wanted = config.removeprefix("all-")
    if wanted == "disabled":
        return Layout(config, {}, F(0))
    if wanted == "balanced":
        return _layout(board, config, board.balanced)
    profile = board.profile(wanted)
    return _layout(board, config, {profile.name: profile.max_instances}) if profile else None


def mixed_name(counts: Mapping[str, int]) -> str:
    """The config name of a layout of several profiles: what it makes of each card, by name, as a label may spell it."""
    return MIXED + "_".join(f"{count}x{dotted(name)}" for name, count in sorted(counts.items()))


def legal_places(board: MigBoard, profiles: Sequence[Profile]) -> tuple[Slot, ...] | None:
    """One slot for each profile such that all fit on one card together; None proves that no arrangement does."""
    if sum(profile.compute_slices for profile in profiles) > board.compute_slices:
        return None
    if sum(takes_media_engines(profile) for profile in profiles) > 1:
        return None
    hardest_first = sorted(range(len(profiles)), key=lambda i: len(profiles[i].placements))
    places = _arrange([profiles[i].placements for i in hardest_first], 0)
    if places is None:
        return None
    by_position = dict(zip(hardest_first, places, strict=True))
    return tuple(by_position[i] for i in range(len(profiles)))


def takes_media_engines(profile: Profile) -> bool:
    """Does it take the engines that only one slice of a card can have?"""
    return any(attribute in ("me", "me.all") for attribute in profile.attributes)


def dotted(profile: str) -> str:
    """A profile as resource and config names spell it: "1g.10gb+me" -> "1g.10gb.me"."""
    return profile.replace("+", ".")


def _arrange(choices: Sequence[Sequence[Slot]], taken: int) -> tuple[Slot, ...] | None:
    """One free slot per choice, by trying; `taken` is a mask of memory slices."""
    if not choices:
        return ()
    for slot in choices[0]:
        if taken & slot.mask:
            continue
        rest = _arrange(choices[1:], taken | slot.mask)
        if rest is not None:
            return (slot, *rest)
    return None


def _mixed_layout(board: MigBoard, config: str) -> Layout | None:
    """Only under the one name that it has, and only if it fits on a card."""
    counts: dict[str, int] = {}
    profiles: list[Profile] = []
    for part in config.removeprefix(MIXED).split("_"):
        count, _, name = part.partition("x")
        profile = board.profile(name)
        if profile is None or not re.fullmatch("[1-9]", count):
            return None
        counts[profile.name] = int(count)
        profiles += [profile] * int(count)
    if mixed_name(counts) != config or legal_places(board, profiles) is None:
        return None
    return _layout(board, config, counts)


def _layout(board: MigBoard, config: str, counts: Mapping[str, int]) -> Layout:
    used = sum((profile.share * counts.get(profile.name, 0) for profile in board.profiles), F(0))
    return Layout(config, dict(counts), 1 - used)


def _plain(product: str) -> str:
    return re.sub(r"[\s_-]+", "-", product.strip()).lower()


@cache
def _data() -> Mapping[str, Any]:
    data: Mapping[str, Any] = json.loads(DATA.read_text(encoding="utf-8"))
    return data


@cache
def _models() -> Mapping[str, Model]:
    boards = {key: _board(key, raw) for key, raw in _data()["boards"].items()}
    return {raw["key"]: _model(raw, boards) for raw in _data()["models"]}


@cache
def _products() -> Mapping[str, Model]:
    """Every spelling that names a model: products, and our own key and title."""
    names: dict[str, Model] = {}
    for raw in _data()["models"]:
        known = _models()[raw["key"]]
        names.update((_plain(spelling), known) for spelling in (*raw["products"], known.key, known.title))
    return names


def _model(raw: Mapping[str, Any], boards: Mapping[str, MigBoard]) -> Model:
    board = boards.get(raw["board"] or "")
    return Model(
        key=raw["key"],
        name=raw["name"],
        title=f"{raw['name']} {raw['memory_gb']}GB",
        vendor=raw["vendor"],
        family=raw["family"],
        memory_mib=raw["memory_gb"] * 1024,
        mig=_without_processors(board) if board and raw["other_chip"] else board,
    )


def _board(key: str, raw: Mapping[str, Any]) -> MigBoard:
    return MigBoard(
        key=key,
        compute_slices=raw["compute_slices"],
        memory_slices=raw["memory_slices"],
        profiles=tuple(_profile(entry, raw["memory_slices"]) for entry in raw["profiles"]),
        balanced=raw["balanced"],
        sources=tuple(raw["sources"]),
    )


def _profile(raw: Mapping[str, Any], memory_slices: int) -> Profile:
    return Profile(
        name=raw["name"],
        resource=raw["resource"],
        attributes=tuple(raw["attributes"]),
        compute_slices=raw["compute_slices"],
        memory_slices=raw["memory_slices"],
        share=F(raw["memory_slices"], memory_slices),
        placements=_slots(raw["starts"], raw["memory_slices"]),
        max_instances=raw["max_instances"],
        memory_mib=raw["memory_mib"],
        multiprocessors=raw["multiprocessors"],
        grade=raw["placements"],
    )


def _slots(starts: Iterable[int], size: int) -> tuple[Slot, ...]:
    return tuple(Slot(start, size) for start in starts)


def _without_processors(board: MigBoard) -> MigBoard:
    """The same geometry on a smaller chip: how many multiprocessors a slice has there is not known."""
    profiles = tuple(replace(profile, multiprocessors=None) for profile in board.profiles)
    return replace(board, profiles=profiles)
