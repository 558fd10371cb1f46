"""MIG configurations by name: the built-in ones, and those of a ConfigMap in mig-parted's schema. Pure.

A layout is one entry per card: the profiles to cut, or None for MIG off.
"""

from __future__ import annotations

from typing import Any

import yaml

from .hardware import Board, Profile
from .kinds import Document
from .machines import Machine

Layout = list[list[Profile] | None]
FIELDS = frozenset({"device-filter", "devices", "mig-enabled", "mig-devices"})


class BadLayout(Exception):
    """The configuration cannot be used; the text is for the MIG manager's log."""


def layout_of(name: str, machine: Machine, config_maps: list[Document]) -> Layout:
    """The layout that a config name means for this machine; BadLayout when there is none."""
    for config_map in config_maps:
        configs = read_configs(config_map)
        if name in configs:
            return custom(configs[name], machine)
    return built_in(name, machine.board, len(machine.cards))


def built_in(name: str, board: Board, cards: int) -> Layout:
    word = name.removeprefix("all-")
    if word == name or not board.can_mig:
        raise BadLayout(f"no configuration {name!r} for {board.product}")
    if word == "disabled":
        return [None] * cards
    if word == "enabled":
        return [[] for _ in range(cards)]
    if word == "balanced":
        return [[board.by_name[one] for one in board.balanced] for _ in range(cards)]
    profile = board.by_name.get(word)
    if profile is None:
        raise BadLayout(f"{board.product} has no profile {word!r}")
    return [[profile] * profile.most for _ in range(cards)]


def read_configs(config_map: Document) -> dict[str, Any]:
    """The mig-configs of a ConfigMap's config.yaml; BadLayout when it is not in the schema."""
    text = (config_map.get("data") or {}).get("config.yaml", "")
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadLayout(f"config.yaml is no YAML: {error}") from None
    if not isinstance(content, dict) or content.get("version") != "v1":
        raise BadLayout("config.yaml needs `version: v1`")
    configs = content.get("mig-configs")
    if not isinstance(configs, dict):
        raise BadLayout("config.yaml needs a map `mig-configs`")
    return configs


def custom(entries: Any, machine: Machine) -> Layout:
    """Later entries overrule earlier ones for the cards that they name."""
    layout: Layout = [None] * len(machine.cards)
    for entry in entries if isinstance(entries, list) else []:
        unknown = set(entry) - FIELDS
        if unknown:
            raise BadLayout(f"unknown field {min(unknown)!r}")
        if not fits(entry.get("device-filter"), machine.board):
            continue
        for index in chosen(entry.get("devices"), len(machine.cards)):
            layout[index] = slices(entry, machine.board)
    return layout


def fits(wanted: Any, board: Board) -> bool:
    """A device filter is the board's PCI id, or a list of such; none fits all."""
    if not wanted:
        return True
    names = wanted if isinstance(wanted, list) else [wanted]
    return any(str(name).lower().startswith(board.pci_id.lower()) for name in names)


def chosen(devices: Any, count: int) -> list[int]:
    if devices == "all":
        return list(range(count))
    if not isinstance(devices, list) or not all(isinstance(index, int) and 0 <= index < count for index in devices):
        raise BadLayout(f"devices: {devices!r} is neither `all` nor a list of cards that exist")
    return devices


def slices(entry: Document, board: Board) -> list[Profile] | None:
    if not entry.get("mig-enabled"):
        return None
    found: list[Profile] = []
    for name, count in (entry.get("mig-devices") or {}).items():
        profile = board.by_name.get(str(name))
        if profile is None:
            raise BadLayout(f"{board.product} has no profile {name!r}")
        found += [profile] * int(count)
    return found
