"""What an earlier cycle began and did not finish, as far as a complete look shows it: done again, by the same verbs."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from scheduling.models import Placement, Workload
from scheduling.planning.actions import Place, Plan, Sleep, Stop
from scheduling.planning.facts import NodeFact, Phase
from scheduling.reconcile import forced, launch, queue_work
from scheduling.reconcile.chores import Chore, attempt, parts, still_ours
from scheduling.reconcile.drift import drifts
from scheduling.reconcile.hands import Hands
from scheduling.reconcile.podless import podless
from scheduling.reconcile.putting import put_again, put_together
from scheduling.reconcile.steps import arrived
from scheduling.reconcile.stopping import clearing, orphans_removal, stands, taking_down

COMING_UP = (Phase.PLACED, Phase.STARTING, Phase.RUNNING)


def repair(hands: Hands, planned: Plan) -> None:
    """Everything that is left over, several pieces at a time; puts that may have killed a worker go alone, and last."""
    if not hands.look.seen.complete:
        return
    _one_by_one(forced.removals(hands.cluster, hands.port, hands.look.seen, hands.now), hands)
    for chores in parts([*_unfinished(hands, planned), *_leftovers(hands), *podless(hands)], hands.ours):
        hands.work_off(chores)
    for node in _to_cut(hands):
        still_ours(hands.ours)
        attempt(f"ask node {node.name} for layout {node.cutting_to}", partial(_ask_for, node, hands), hands.done)
    if hands.look.queue is not None:
        _one_by_one(queue_work.repairs(hands.look.queue, hands), hands)
        return
    _put_again(list(_not_arrived(hands)), hands)
    _one_by_one(drifts(hands), hands)


def _one_by_one(acts: Iterable[tuple[str, Callable[[], bool]]], hands: Hands) -> None:
    for what, act in acts:
        still_ours(hands.ours)
        attempt(what, act, hands.done)


def _put_again(lost: list[tuple[Workload, Placement]], hands: Hands) -> None:
    wanted = [(f"put {row.name} again", row, placement) for row, placement in lost]
    for part in parts([one for one in wanted if not one[1].unfinished_puts], hands.ours):
        put_together(part, hands)
    suspects = sorted((one for one in wanted if one[1].unfinished_puts), key=lambda one: one[1].unfinished_puts)
    for what, row, placement in suspects:
        still_ours(hands.ours)
        put_again(what, row, placement, hands)


def _not_arrived(hands: Hands) -> Iterator[tuple[Workload, Placement]]:
    """Placed by an earlier look, and not in the cluster."""
    for row in hands.look.rows.values():
        placement = hands.look.placements.get(row.pk)
        missing = row.phase == Phase.PLACED and not arrived(row, hands.object_of(row))
        if missing and placement is not None and row.phase_since < hands.now:
            yield row, placement


def _unfinished(hands: Hands, planned: Plan) -> Iterator[Chore]:
    """What stops or waits and still stands. What this very plan has stopped or placed is left to the next look."""
    touched = {action.workload for action in planned.actions if isinstance(action, Place | Stop | Sleep)}
    for row in hands.look.rows.values():
        if row.pk in touched or (hands.queued and row.phase in (Phase.PLACED, Phase.WAITING)):
            continue  # Kueue and the Job's controller go on with what waits in the queue
        item = hands.object_of(row)
        if row.phase in COMING_UP and row.furnished != row.attempt and arrived(row, item):
            yield from _furnishing(row, hands)
        elif row.phase == Phase.STOPPING and stands(item):
            yield Chore(f"stop {row.name} again", taking_down(row, hands))
        elif row.phase == Phase.STOPPING and item is None and (orphans := hands.orphans_of(row)):
            yield Chore(f"remove the pods that {row.name} left behind", orphans_removal(orphans, hands.port))
        elif row.phase == Phase.WAITING and stands(item):
            yield Chore(f"clear the last attempt of {row.name}", clearing(row, hands.port))


def _furnishing(row: Workload, hands: Hands) -> Iterator[Chore]:
    """What belongs to an object that is there, when the put broke off between the two: its pod waits for that."""
    placement, item = hands.look.placements.get(row.pk), hands.object_of(row)
    node = hands.found.nodes.get(placement.node) if placement else None
    if placement is None or item is None or node is None or item.deleting_since is not None:
        return
    call = launch.furnishing(launch.launch_of(row, placement, node, hands.runtime_classes), item, hands.port)
    yield Chore(f"put what belongs to {row.name}", call, then=partial(_furnished, row))


def _furnished(row: Workload, found: tuple[str, str]) -> bool:
    launch.write_furnished(row, *found)
    return True


def _to_cut(hands: Hands) -> Iterator[NodeFact]:
    """Nodes cordoned for a cut that are seen to hold nothing: now the layout is asked for."""
    held = {pod.node for pod in hands.look.seen.pods if pod.requests and pod.phase not in ("Succeeded", "Failed")}
    for node in hands.look.snapshot.nodes:
        if node.cutting_to and node.mig_config != node.cutting_to and node.name not in held:
            yield node


def _ask_for(node: NodeFact, hands: Hands) -> bool:
    hands.port.cut(node.name, node.cutting_to)
    return True


def _leftovers(hands: Hands) -> Iterator[Chore]:
    """Objects whose workload has ended: removed again. An object without a row is shown, never touched."""
    standing = {item.workload for item in hands.look.seen.objects if not item.deleting_since}
    if strange := standing - hands.look.rows.keys():
        for row in Workload.objects.filter(pk__in=strange, phase=Phase.ENDED).select_related("team", "cluster"):
            yield Chore(f"remove what is left of {row.name}", launch.removal(row, hands.port, storage=True))
