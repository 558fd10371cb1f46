"""Refusing MIG layouts before a node has to: which field, which rule, and what would do.

A config is what stands under one name in `mig-configs`: a list of entries with devices, mig-enabled and mig-devices.
"""

from collections.abc import Iterable, Mapping, Sequence

from scheduling.planning import catalog
from scheduling.planning.catalog import MigBoard, Model, Profile
from scheduling.planning.facts import Problem
from scheduling.planning.wording import listed

FIELDS = frozenset({"device-filter", "devices", "mig-enabled", "mig-devices"})


def refused_names(model: Model, names: Sequence[str], *, field: str = "layouts") -> Problem | None:
    """The first of a pool's layout names that means nothing on its model."""
    for position, name in enumerate(names):
        if catalog.layout(model, name) is None:
            text = f"{name or 'An empty name'} is no layout of {model.title}. Known are {listed(known(model), most=9)}."
            return Problem(model.title, f"{field}[{position}]", text)
    return None


def known(model: Model) -> list[str]:
    """The layout names that the planner may cut this model to; none where cards are only whole."""
    if model.mig is None:
        return []
    profiles = [f"all-{catalog.dotted(profile.name)}" for profile in model.mig.profiles if profile.base]
    return ["all-disabled", *profiles, "all-balanced"]


def config_file(model: Model, names: Sequence[str]) -> dict[str, object]:
    """What the MIG manager has to be given (config.yaml) so that it knows these layouts, the mixed ones too.

    Raises ValueError with a sentence where a name means nothing on this model.
    """
    if problem := refused_names(model, names):
        raise ValueError(problem.text)
    configs = {name: [_entry(found.counts)] for name in names if (found := catalog.layout(model, name))}
    return {"version": "v1", "mig-configs": configs}


def inferred_profiles(model: Model, names: Iterable[str]) -> Mapping[str, str]:
    """Profiles of these layouts whose places nobody has confirmed on this board, with what is known instead."""
    found = [layout for name in names if (layout := catalog.layout(model, name))]
    wanted = {name for layout in found for name in layout.counts}
    profiles = model.mig.profiles if model.mig else ()
    return {one.name: catalog.grades()[one.grade] for one in profiles if one.name in wanted and one.inferred}


def refused_config(model: Model, name: str, config: object) -> Problem | None:
    """Why this config cannot be saved for nodes of this model; None when it can."""
    field = f"mig-configs.{name}"
    if not isinstance(config, list) or not config:
        return Problem(model.title, field, "Give a list with at least one entry.")
    for position, entry in enumerate(config):
        if problem := _refused_entry(model, f"{field}[{position}]", entry):
            return problem
    return None


def refused_slices(model: Model, counts: Mapping[str, object], *, field: str) -> Problem | None:
    """Why so many slices of these profiles cannot lie on one card together; None when they can."""
    board = model.mig
    if board is None:
        return Problem(model.title, field, f"{model.title} cannot be cut; leave its slices empty.")
    profiles: list[Profile] = []
    for name, count in counts.items():
        found = _profile(board, model, name, count, f"{field}.{name}")
        if isinstance(found, Problem):
            return found
        profiles += found
    if catalog.legal_places(board, profiles) is None:
        return Problem(model.title, field, _no_room(board, model, counts))
    return None


def _entry(counts: Mapping[str, int]) -> dict[str, object]:
    if not counts:
        return {"devices": "all", "mig-enabled": False, "mig-devices": {}}
    return {"devices": "all", "mig-enabled": True, "mig-devices": dict(counts)}


def _refused_entry(model: Model, field: str, entry: object) -> Problem | None:
    if not isinstance(entry, Mapping):
        return Problem(model.title, field, "Give fields such as devices, mig-enabled and mig-devices.")
    if strangers := sorted(str(key) for key in entry.keys() - FIELDS):
        return Problem(
            model.title, f"{field}.{strangers[0]}", f"No such field. Known are {listed(sorted(FIELDS), most=9)}."
        )
    if problem := _refused_devices(model, f"{field}.devices", entry.get("devices")):
        return problem
    if not isinstance(entry.get("mig-enabled"), bool):
        return Problem(model.title, f"{field}.mig-enabled", "Say true or false.")
    slices = entry.get("mig-devices") or {}
    if not isinstance(slices, Mapping):
        return Problem(model.title, f"{field}.mig-devices", 'Give profiles with counts, such as {"1g.10gb": 7}.')
    if slices and not entry["mig-enabled"]:
        return Problem(model.title, f"{field}.mig-devices", "MIG is off in this entry, so it has no slices.")
    return refused_slices(model, slices, field=f"{field}.mig-devices") if slices else None


def _refused_devices(model: Model, field: str, devices: object) -> Problem | None:
    if devices == "all":
        return None
    good = isinstance(devices, list) and all(type(index) is int and index >= 0 for index in devices)
    if good and isinstance(devices, list) and devices and len(set(devices)) == len(devices):
        return None
    return Problem(model.title, field, f'{devices!r} does not say which cards: write "all", or a list such as [0, 1].')


def _profile(board: MigBoard, model: Model, name: str, count: object, field: str) -> list[Profile] | Problem:
    profile = board.profile(name)
    if profile is None:
        names = listed((one.name for one in board.profiles), most=20)
        return Problem(model.title, field, f"{model.title} has no profile {name}. It has {names}.")
    if type(count) is not int or count < 1:
        return Problem(model.title, field, f"{count!r} is no number of slices: write 1 or more.")
    if count > profile.max_instances:
        return Problem(
            model.title, field, f"{count} of {name} do not fit on one card: at most {profile.max_instances} do."
        )
    return [profile] * count


def _no_room(board: MigBoard, model: Model, counts: Mapping[str, object]) -> str:
    wanted = listed((f"{count} of {name}" for name, count in counts.items()), most=9)
    room = f"{board.compute_slices} compute and {board.memory_slices} memory slices at fixed places"
    return f"{wanted} do not fit on one {model.title} together: it has {room}. Take fewer, or smaller ones."
