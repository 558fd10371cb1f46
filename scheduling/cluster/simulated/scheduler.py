"""kube-scheduler, as far as Berth can tell: filters nodes, binds pods, and says why it cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from .kinds import Document, Key, key_of
from .nodes import UNSCHEDULABLE, untolerated
from .quantities import amounts, pod_requests
from .selectors import expressions_match
from .world import Controller, World, condition, set_condition

NAME = "default-scheduler"
ENDED = ("Succeeded", "Failed")


class Scheduler(Controller):
    """Waits until a moment is otherwise quiet, then tries every pending pod, the most important and oldest first."""

    kinds = frozenset({"nodes", "pods", "persistentvolumeclaims"})

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.stale = False

    def reconcile(self, key: Key) -> None:  # noqa: ARG002 - whatever changed, every pending pod is tried again
        self.stale = True

    def finish(self) -> None:
        if not self.stale:
            return
        self.stale = False
        waiting = [pod for pod in self.world.store.documents["pods"].values() if is_pending(pod)]
        if not waiting:
            return
        free = free_by_node(self.world)
        nodes = self.world.store.all("nodes")
        for pod in sorted(waiting, key=turn):
            self.schedule(pod, nodes, free)

    def schedule(self, pod: Document, nodes: list[Document], free: dict[str, dict[str, int]]) -> None:
        if pod["spec"].get("schedulingGates"):
            self.refuse(pod, "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")
            return
        missing = self.missing_claim(pod)
        if missing:
            text = f'0/{len(nodes)} nodes are available: persistentvolumeclaim "{missing}" not found.'
            self.refuse(pod, "Unschedulable", text)
            return
        asked = pod_requests(pod["spec"])
        reasons: Counter[str] = Counter()
        fitting: list[str] = []
        for node in nodes:
            name = node["metadata"]["name"]
            why = list(objections(pod, node, asked, free[name]))
            reasons.update(why)
            if not why:
                fitting.append(name)
        if not fitting:
            self.refuse(pod, "Unschedulable", sentence(len(nodes), reasons))
            return
        chosen = min(fitting, key=lambda name: (-room(asked, free[name]), name))
        for resource, amount in asked.items():
            free[chosen][resource] = free[chosen].get(resource, 0) - amount
        self.bind(pod, chosen)

    def bind(self, pod: Document, node: str) -> None:
        now = self.world.now

        def write(live: Document) -> None:
            live["spec"]["nodeName"] = node
            set_condition(live["status"], "PodScheduled", "True", "", "", now)

        bound = self.world.edit(key_of(pod), write)
        where = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        self.world.event(bound or pod, "Normal", "Scheduled", f"Successfully assigned {where} to {node}", NAME)

    def refuse(self, pod: Document, reason: str, message: str) -> None:
        """Say why not, once: the same sentence again changes nothing."""
        known = condition(pod, "PodScheduled")
        if known and known.get("message") == message:
            return
        now = self.world.now
        self.world.edit(
            key_of(pod), lambda live: set_condition(live["status"], "PodScheduled", "False", reason, message, now)
        )
        if reason == "Unschedulable":
            self.world.event(pod, "Warning", "FailedScheduling", message, NAME)

    def missing_claim(self, pod: Document) -> str:
        namespace = pod["metadata"]["namespace"]
        for volume in pod["spec"].get("volumes") or []:
            claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
            if claim and self.world.get("persistentvolumeclaims", namespace, claim) is None:
                return str(claim)
        return ""


def is_pending(pod: Document) -> bool:
    return (
        not pod["spec"].get("nodeName")
        and not pod["metadata"].get("deletionTimestamp")
        and pod["spec"].get("schedulerName", NAME) == NAME
        and pod["status"].get("phase") == "Pending"
    )


def turn(pod: Document) -> tuple[int, str, Key]:
    return -pod["spec"].get("priority", 0), pod["metadata"]["creationTimestamp"], key_of(pod)


def free_by_node(world: World) -> dict[str, dict[str, int]]:
    """Allocatable less what the pods on each node ask for; pods that have ended do not count, dying ones do."""
    free = {
        key.name: amounts((node.get("status") or {}).get("allocatable"))
        for key, node in world.store.documents["nodes"].items()
    }
    for pod in world.store.documents["pods"].values():
        node = pod["spec"].get("nodeName")
        if node not in free or pod["status"].get("phase") in ENDED:
            continue
        for resource, amount in pod_requests(pod["spec"]).items():
            free[node][resource] = free[node].get(resource, 0) - amount
    return free


def objections(pod: Document, node: Document, asked: dict[str, int], free: dict[str, int]) -> Iterator[str]:
    """Why the pod cannot go to the node, in the order in which the real filters ask; none: it can."""
    taints = list(untolerated(pod, node))
    if any(taint["key"] == UNSCHEDULABLE for taint in taints):
        yield "node(s) were unschedulable"
    elif taints:
        taint = taints[0]
        yield f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value') or ''}}}"
    elif not affine(pod["spec"], node):
        yield "node(s) didn't match Pod's node affinity/selector"
    else:
        yield from shortages(asked, free)


def shortages(asked: dict[str, int], free: dict[str, int]) -> Iterator[str]:
    for resource, amount in asked.items():
        if amount and amount > free.get(resource, 0):
            yield "Too many pods" if resource == "pods" else f"Insufficient {resource}"


def affine(spec: Document, node: Document) -> bool:
    """nodeSelector and the required node affinity; a term without expressions matches nothing."""
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    fields = {"metadata.name": node["metadata"]["name"]}
    return any(
        (term.get("matchExpressions") or term.get("matchFields"))
        and expressions_match(term.get("matchExpressions") or [], labels)
        and expressions_match(term.get("matchFields") or [], fields)
        for term in required.get("nodeSelectorTerms") or []
    )


def room(asked: dict[str, int], free: dict[str, int]) -> int:
    """How much of the scarcest thing asked for would be left: the scheduler spreads, as by default it does."""
    scarce = [name for name in asked if "/" in name] or ["cpu"]
    return min(free.get(name, 0) for name in scarce)


def sentence(nodes: int, reasons: Counter[str]) -> str:
    if not nodes:
        return "no nodes available to schedule pods"
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    helpless = f"preemption: 0/{nodes} nodes are available: {nodes} Preemption is not helpful for scheduling."
    return f"0/{nodes} nodes are available: {listed}. {helpless}"
