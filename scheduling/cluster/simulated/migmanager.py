"""The MIG manager: sees the label, says pending, cuts, and says success or failed.

It neither cordons nor drains. Pods that hold a GPU of the node when the cut comes make it fail, and the cards stay
as they were.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from . import machines
from .devices import Devices
from .kinds import Document, Key
from .layouts import BadLayout, layout_of
from .machines import PREFIX
from .world import Controller, World

CONFIG = f"{PREFIX}/mig.config"
STATE = f"{PREFIX}/mig.config.state"
PAUSED = "paused-for-mig-change"
CLIENTS = tuple(
    f"{PREFIX}/gpu.deploy.{name}" for name in ("device-plugin", "gpu-feature-discovery", "dcgm-exporter", "dcgm")
)
DEFAULT_MAP = Key("configmaps", "gpu-operator", "default-mig-parted-config")
OWN_MAP = "berth-mig-parted-config"


@dataclass(slots=True)
class Work:
    """One change of one node's layout on its way."""

    config: str
    begins: datetime  # until then the label has not been seen, and the state is the stale one
    cuts: datetime
    begun: bool = False


class MigManager(Controller):
    kinds = frozenset({"nodes"})

    def __init__(self, world: World, devices: Devices) -> None:
        super().__init__(world)
        self.devices = devices
        self.settled: dict[str, str] = {}  # node -> the config last worked through, well or badly
        self.work: dict[str, Work] = {}

    def reconcile(self, key: Key) -> None:
        name, node = key.name, self.world.store.get(key)
        machine = self.devices.machines.get(name)
        if node is None or machine is None or not machine.board.can_mig or name not in self.devices.advertised:
            if node is None:
                self.settled.pop(name, None)
                self.work.pop(name, None)
            return
        config = (node["metadata"].get("labels") or {}).get(CONFIG, "")
        if name not in self.settled:
            self.settled[name] = config  # as the node came up, so it is cut
        if name in self.work:
            self.go_on(key, self.work[name])
        elif config and config != self.settled[name]:
            begins = self.world.after("mig_notice")
            self.work[name] = Work(config, begins, begins + self.world.delays.of("mig_cut"))
            self.world.wake(begins, self, key)

    def go_on(self, key: Key, work: Work) -> None:
        if not work.begun and work.begins <= self.world.now:
            work.begun = True
            self.devices.pause(key.name, on=True)
            self.world.edit(key, begin)
            self.world.wake(work.cuts, self, key)
        if work.begun and work.cuts <= self.world.now:
            del self.work[key.name]
            self.settled[key.name] = work.config
            done = self.cut(key.name, work.config)
            self.devices.pause(key.name, on=False)
            self.world.edit(key, lambda node: end(node, "success" if done else "failed"))

    def cut(self, name: str, config: str) -> bool:
        """Apply the layout; False when somebody uses a GPU of the node, or the layout is none."""
        if self.devices.on_node(name):
            return False
        machine = self.devices.machines[name]
        try:
            return machines.cut(machine, layout_of(config, machine, self.config_maps()))
        except BadLayout as error:
            node = self.world.get("nodes", "", name)
            if node is not None:
                self.world.event(node, "Warning", "MigConfigFailed", str(error), "nvidia-mig-manager")
            return False

    def config_maps(self) -> list[Document]:
        """Berth's own map first, then the operator's."""
        own = [key for key in self.world.store.documents["configmaps"] if key.name == OWN_MAP]
        found = [self.world.store.get(key) for key in [*sorted(own), DEFAULT_MAP]]
        return [config_map for config_map in found if config_map is not None]


def begin(node: Document) -> None:
    labels = node["metadata"]["labels"]
    labels[STATE] = "pending"
    labels |= {name: PAUSED for name in CLIENTS if name in labels}


def end(node: Document, state: str) -> None:
    labels = node["metadata"]["labels"]
    labels |= {name: "true" for name in CLIENTS if labels.get(name) == PAUSED}
    labels[STATE] = state
