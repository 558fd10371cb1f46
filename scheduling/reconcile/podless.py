"""Why a placed workload has no pod, in the cluster's own words: a quota of the namespace, a RuntimeClass that nobody
made, a rule of the site. Kubernetes says it in an event of the StatefulSet or Job and nowhere else.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from datetime import timedelta as td
from functools import partial
from itertools import islice

from scheduling.changes import note
from scheduling.cluster.bounds import NAME
from scheduling.cluster.port import ClusterError, ClusterPort, EventFact
from scheduling.models import Workload
from scheduling.planning.facts import Phase, Reason
from scheduling.planning.wording import sentence
from scheduling.reconcile.chores import Chore
from scheduling.reconcile.hands import Hands
from scheduling.reconcile.steps import arrived

WORTH_ASKING = td(seconds=15)  # a pod that is merely on its way is there by then
MOST_ASKED = 5  # in one look
REFUSED = "FailedCreate"


def podless(hands: Hands) -> Iterator[Chore]:
    """Ask for those that have been without a pod for a while. None in a quiet cluster."""
    found = (row for row in hands.look.rows.values() if has_no_pod(row, hands))
    for row in islice(found, MOST_ASKED):
        item = hands.object_of(row)
        if item is not None:
            call = partial(refusals, hands.port, item.namespace, item.name)
            yield Chore(f"ask why {row.name} has no pod", call, then=partial(tell, row, hands.now))


def has_no_pod(row: Workload, hands: Hands) -> bool:
    if hands.queued or row.phase not in (Phase.PLACED, Phase.STARTING) or hands.found.pods.get(row.pk):
        return False
    return arrived(row, hands.object_of(row)) and hands.now - row.phase_since >= WORTH_ASKING


def refusals(port: ClusterPort, namespace: str, name: str) -> list[EventFact]:
    """Not being told is no failure of the look."""
    try:
        return [event for event in port.events(namespace, name) if event.reason == REFUSED]
    except ClusterError:
        return []


def tell(row: Workload, now: datetime, said: Sequence[EventFact]) -> bool:
    """Note the newest refusal; nothing was done in the cluster."""
    if said:
        note(row, Reason.POD_REFUSED, words_of(said[-1]), now)
    return False


def words_of(event: EventFact) -> str:
    why = sentence(event.text.rpartition("is forbidden: ")[2] or event.text)
    if f"exceeded quota: {NAME}," in event.text:
        return (
            f"The bound of the team's namespace keeps its pod out: {why} "
            "Pods that were not started here hold cards of the team; it starts when they are gone."
        )
    return f"The cluster makes no pod for it: {why} The operator of the cluster can help."
