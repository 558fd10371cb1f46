"""How a placed workload comes up, and what may happen to it on the way: refused, lost, without a pod."""

from dataclasses import replace
from datetime import timedelta as td

from scheduling.planning import pods as ask
from scheduling.planning.endings import unseen_words
from scheduling.planning.facts import Kind, NodeFact, Phase, PodFact, Reason
from scheduling.planning.look import Look, Move
from scheduling.planning.retries import try_again
from scheduling.planning.wording import sentence

UNBOUND_GRACE = td(seconds=15)  # the picture of the node may be a little older than that of the pod
PODLESS_LIMIT = td(minutes=10)  # the Job controller itself waits up to six minutes between two tries


def refused(look: Look) -> Move | None:
    """A node that already stands among the shunned has been dealt with."""
    pod = ask.newest(pod for pod in look.pods if ask.refused(pod) and pod.node not in look.workload.shunned)
    if pod is None or any(ask.runs(other) for other in look.pods):
        return None
    words = sentence(pod.message or pod.reason).rstrip(".")
    return try_again(look, Reason.REJECTED_BY_NODE, f"Node {pod.node} refused it: {words}", pod=pod, shun=pod.node)


def lost(look: Look) -> Move | None:
    text = _loss(look)
    if not text:
        return None
    unseen = unseen_words(look, None)
    return look.step(
        Phase.WAITING, Reason.NODE_LOST, f"{text} It is placed again on another node.{unseen}", at=look.seen_before
    )


def _loss(look: Look) -> str:
    """A sentence when the ground under the newest pod is gone; a finished object needs no ground."""
    if look.thing is not None and look.thing.complete:
        return ""
    pod = ask.newest(look.pods)
    if pod is not None and ask.taken_away(pod) and look.workload.phase is not Phase.PLACED:
        return f"Node {pod.node} was taken away ({pod.reason})."
    name = (pod.node if pod is not None else "") or look.workload.node
    if not look.complete or look.nodes is None or not name or (pod is not None and ask.finished(pod)):
        return ""
    return ask.node_lost(name, look.nodes, look.now)


def unbound(look: Look) -> Move | None:
    """Its pod waits for a node that takes nothing new (`kubectl drain`), or has waited too long for any reason. The
    meter stops when that pod was made: nobody pays for a card that another holds."""
    pod, name = look.newest_live, look.workload.node
    if pod is None or pod.node or pod.created_at is None or not name or not look.complete:
        return None
    waited = look.now - pod.created_at
    node = (look.nodes or {}).get(name)
    if node is not None and closed(node) and waited >= UNBOUND_GRACE:
        text = f"Node {name} takes no new work, as when it is drained, and its pod was not bound there."
        return look.step(Phase.WAITING, Reason.NODE_LOST, f"{text} It is placed again elsewhere.", at=pod.created_at)
    if waited < PODLESS_LIMIT:
        return None
    words = sentence(pod.message).rstrip(" .")
    text = f"The cluster has not bound its pod to node {name}" + (f": {words}" if words else "")
    move = try_again(look, Reason.POD_LOST, text, pod=pod)
    return replace(move, at=max(look.workload.phase_since, pod.created_at))


def closed(node: NodeFact) -> bool:
    """Cordoned by somebody else: what we close ourselves is empty, and is looked at once more before it goes."""
    return node.ready and not node.schedulable and not node.leaving and not node.cutting_to


def rising(look: Look) -> Move | None:
    """By its newest live pod: bound, pulling, running."""
    pod = look.newest_live
    if pod is None or pod.phase == "Unknown":
        return None
    if ask.runs(pod) and (pod.ready or look.workload.phase is Phase.RUNNING):
        return _running(look, pod)
    if look.workload.phase is Phase.RUNNING and pod.phase == "Running":
        return look.step(Phase.RUNNING, Reason.RUNNING, _restart_words(pod), pod=pod)
    reason, text = _starting_words(pod, look.workload.node)
    to = Phase.STARTING if pod.node or look.workload.phase is not Phase.PLACED else Phase.PLACED
    return look.step(to, reason, text, pod=pod)


def _running(look: Look, pod: PodFact) -> Move | None:
    if look.workload.phase is Phase.RUNNING:
        return None
    text = f"It runs on node {pod.node}."
    move = look.step(Phase.RUNNING, Reason.RUNNING, text, at=pod.running_since, pod=pod)
    return replace(move, running_since=move.at, failures=0)


def _starting_words(pod: PodFact, node: str) -> tuple[Reason, str]:
    if not pod.node:
        words = sentence(pod.message)
        return Reason.CREATING, f"The cluster has it, but has not yet bound its pod to node {node}. {words}".strip()
    if pod.waiting_reason in ask.BAD_IMAGE:
        words = sentence(pod.message or pod.waiting_reason)
        return Reason.IMAGE_UNAVAILABLE, f"Node {pod.node} cannot pull its image: {words} Check the image's name."
    if pod.waiting_reason == "CrashLoopBackOff":
        return Reason.CREATING, _restart_words(pod)
    if pod.waiting_reason and pod.waiting_reason not in ("ContainerCreating", "PodInitializing"):
        words = sentence(f"{pod.waiting_reason}: {pod.message}".rstrip(": "))
        return Reason.CREATING, f"Node {pod.node} cannot start its container yet. {words}"
    if pod.phase == "Running":
        return Reason.CREATING, f"Its container has started on node {pod.node} and is not ready yet."
    return Reason.PULLING_IMAGE, f"Node {pod.node} pulls its image and creates its container."


def _restart_words(pod: PodFact) -> str:
    code = "" if pod.exit_code is None else f" with exit code {pod.exit_code}"
    return f"Its program ended{code}; node {pod.node} starts it again after a pause."


def podless(look: Look) -> Move | None:
    """The object stands, but no pod does: the cluster makes a new one, or does not manage to."""
    thing = look.thing
    if thing is None or not look.complete or look.holding:
        return None
    if look.workload.phase is Phase.RUNNING:
        return _pod_gone(look)
    words = sentence(thing.message)
    if look.age >= PODLESS_LIMIT:
        return try_again(look, Reason.POD_LOST, f"The cluster made no pod for it. {words}".rstrip(" ."))
    if look.workload.phase is Phase.PLACED and look.workload.reason is not Reason.POD_REFUSED:
        return look.step(Phase.PLACED, Reason.CREATING, f"The cluster has it and makes its pod. {words}".strip())
    return None


def _pod_gone(look: Look) -> Move | None:
    """A job's finished pod is its controller's to judge; a workspace's pod is made anew."""
    last = ask.newest(look.pods)
    if look.workload.kind is Kind.JOB and last is not None and not _overdue(last, look):
        return None
    return look.step(Phase.STARTING, Reason.CREATING, "Its pod is gone; the cluster makes a new one.")


def _overdue(finished: PodFact, look: Look) -> bool:
    return finished.finished_at is not None and look.now - finished.finished_at >= PODLESS_LIMIT
