"""The node lifecycle: whether a kubelet is heard from, the taints that follow, and the pods that must leave."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from .clock import moment, stamp
from .faults import Faults
from .kinds import Document, Key, key_of
from .world import Controller, World, condition, set_condition

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
UNREACHABLE = "node.kubernetes.io/unreachable"
NOT_READY = "node.kubernetes.io/not-ready"
FOLLOWED = frozenset({UNSCHEDULABLE, UNREACHABLE, NOT_READY})
KUBELET_CONDITIONS = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")


class Nodes(Controller):
    kinds = frozenset({"nodes", "pods"})

    def __init__(self, world: World, faults: Faults) -> None:
        super().__init__(world)
        self.faults = faults
        self.missing: dict[Key, datetime] = {}  # pods of nodes that are gone, since when

    def look_at(self, name: str) -> None:
        self.world.wake(self.world.now, self, Key("nodes", "", name))

    def reconcile(self, key: Key) -> None:
        if key.plural == "nodes":
            self.node(key)
        else:
            self.pod(key)

    def node(self, key: Key) -> None:
        self.world.edit(key, self.follow)
        for pod in pods_on(self.world, key.name):
            self.pod(key_of(pod))

    def follow(self, node: Document) -> None:
        """Bring Ready and the taints in line with the kubelet and with spec.unschedulable."""
        dead = node["metadata"]["name"] in self.faults.dead
        ready = condition(node, "Ready")
        if dead and (ready is None or ready["status"] == "True"):
            for name in KUBELET_CONDITIONS:
                text = "Kubelet stopped posting node status."
                set_condition(node.setdefault("status", {}), name, "Unknown", "NodeStatusUnknown", text, self.world.now)
        elif not dead and (ready is None or ready["status"] != "True"):
            healthy_conditions(node, self.world.now)
        self.taint(node)

    def taint(self, node: Document) -> None:
        ready = condition(node, "Ready")
        wanted: list[tuple[str, str]] = []
        if node.get("spec", {}).get("unschedulable"):
            wanted.append((UNSCHEDULABLE, "NoSchedule"))
        if ready and ready["status"] != "True":
            key = UNREACHABLE if ready["status"] == "Unknown" else NOT_READY
            wanted += [(key, "NoSchedule"), (key, "NoExecute")]
        spec = node.setdefault("spec", {})
        taints = spec.get("taints") or []
        kept = [t for t in taints if t["key"] not in FOLLOWED or (t["key"], t["effect"]) in wanted]
        there = {(taint["key"], taint["effect"]) for taint in kept}
        now = stamp(self.world.now)
        kept += [{"key": k, "effect": e, "timeAdded": now} for k, e in wanted if (k, e) not in there]
        if kept != taints:
            spec["taints"] = kept
            if not kept:
                del spec["taints"]

    def pod(self, key: Key) -> None:
        """Evict a pod whose node does not want it any more; collect one whose node is gone."""
        pod = self.world.store.get(key)
        name = pod["spec"].get("nodeName") if pod else None
        node = self.world.get("nodes", "", name) if name else None
        if pod is None or not name:
            self.missing.pop(key, None)
        elif node is None:
            self.collect(key, pod)
        elif not pod["metadata"].get("deletionTimestamp"):
            leave_at = eviction_time(pod, node)
            if leave_at is not None and leave_at <= self.world.now:
                self.evict(key)
            elif leave_at is not None:
                self.world.wake(leave_at, self, key)

    def evict(self, key: Key) -> None:
        text = "Taint manager: deleting due to NoExecute taint"
        self.world.edit(key, lambda pod: disrupt(pod, "DeletionByTaintManager", text, self.world.now))
        self.world.delete(key)

    def collect(self, key: Key, pod: Document) -> None:
        """The node object is gone: after a grace the pod is declared failed and removed."""
        since = self.missing.setdefault(key, self.world.now)
        due = since + self.world.delays.of("node_grace")
        if due > self.world.now:
            self.world.wake(due, self, key)
            return
        text = "PodGC: node no longer exists"

        def fail(live: Document) -> None:
            disrupt(live, "DeletionByPodGC", text, self.world.now)
            live["status"]["phase"] = "Failed"

        self.missing.pop(key, None)
        if pod["status"].get("phase") not in ("Succeeded", "Failed"):
            self.world.edit(key, fail)
        self.world.forget(key)


def pods_on(world: World, node: str) -> list[Document]:
    """The pods that are bound to a node, whatever their phase."""
    return [pod for pod in world.store.documents["pods"].values() if pod["spec"].get("nodeName") == node]


def disrupt(pod: Document, reason: str, message: str, now: datetime) -> None:
    set_condition(pod["status"], "DisruptionTarget", "True", reason, message, now)


def eviction_time(pod: Document, node: Document) -> datetime | None:
    """When the pod must leave this node because of NoExecute taints; None: it may stay."""
    times = [
        time
        for taint in (node.get("spec") or {}).get("taints") or []
        if taint["effect"] == "NoExecute"
        for time in [stay_until(pod, taint)]
        if time is not None
    ]
    return min(times, default=None)


def stay_until(pod: Document, taint: Document) -> datetime | None:
    since = moment(taint.get("timeAdded") or "1970-01-01T00:00:00+00:00")
    matching = [t for t in pod["spec"].get("tolerations") or [] if tolerates(t, taint)]
    if not matching:
        return since
    seconds = [t["tolerationSeconds"] for t in matching if t.get("tolerationSeconds") is not None]
    return since + timedelta(seconds=min(seconds)) if len(seconds) == len(matching) else None


def tolerates(toleration: Document, taint: Document) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")


def untolerated(pod: Document, node: Document) -> Iterator[Document]:
    """The taints that keep a pod from being scheduled onto a node."""
    tolerations = pod["spec"].get("tolerations") or []
    for taint in (node.get("spec") or {}).get("taints") or []:
        if taint["effect"] in ("NoSchedule", "NoExecute") and not any(tolerates(t, taint) for t in tolerations):
            yield taint


def healthy_conditions(node: Document, now: datetime) -> None:
    status = node.setdefault("status", {})
    for name, reason, text in (
        ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ):
        set_condition(status, name, "False", reason, text, now)
    set_condition(status, "Ready", "True", "KubeletReady", "kubelet is posting ready status", now)
