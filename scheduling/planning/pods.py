"""Questions about pods and the nodes under them. Each answer rests on what was seen; unknown is never "gone"."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from datetime import timedelta as td

from scheduling.planning.facts import NodeFact, PodFact
from scheduling.planning.wording import instant

LOST_AFTER = td(minutes=5)  # kube-controller-manager's own patience with a silent node
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)

REFUSALS = frozenset(
    {"UnexpectedAdmissionError", "AdmissionFailed", "NodeAffinity", "TopologyAffinityError", "InvalidNodeInfo"}
)
TAKEN_AWAY = frozenset(
    {"NodeLost", "NodeShutdown", "Shutdown", "Terminated", "DeletionByPodGC", "DeletionByTaintManager"}
)
BAD_IMAGE = frozenset(
    {
        "ImagePullBackOff",
        "ErrImagePull",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
    }
)


def finished(pod: PodFact) -> bool:
    return pod.phase in ("Succeeded", "Failed")


def holds(pod: PodFact) -> bool:
    """Does it still hold its cards? A terminating pod does, until it is gone."""
    return not finished(pod)


def kept(pod: PodFact) -> bool:
    """Has it ended, was told to go, and is still there? A finalizer holds it: no cards, but its name."""
    return finished(pod) and pod.deleting_since is not None


def live(pod: PodFact) -> bool:
    """Neither finished nor on its way out."""
    return holds(pod) and pod.deleting_since is None


def runs(pod: PodFact) -> bool:
    return live(pod) and pod.phase == "Running" and not pod.waiting_reason


def refused(pod: PodFact) -> bool:
    """Did the kubelet turn it away at admission? It will not be tried again by itself."""
    return pod.phase == "Failed" and (pod.reason in REFUSALS or pod.reason.startswith("OutOf"))


def taken_away(pod: PodFact) -> bool:
    """Did it end because its node went, not because of what it ran?"""
    return pod.phase == "Failed" and pod.reason in TAKEN_AWAY


def newest(pods: Iterable[PodFact]) -> PodFact | None:
    return max(pods, key=lambda pod: (pod.created_at or LONG_AGO, pod.name, pod.uid), default=None)


def node_lost(name: str, nodes: Mapping[str, NodeFact], now: datetime) -> str:
    """Why the node counts as lost, in a sentence; empty while it does not. `nodes` must be complete."""
    node = nodes.get(name)
    if node is None:
        return f"Node {name} is gone."
    if node.ready or node.not_ready_since is None or now < node.not_ready_since + LOST_AFTER:
        return ""
    return f"Node {name} has not been ready since {instant(node.not_ready_since)}."
