"""How a workload started, told from its transitions. No queries: rows in, steps out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from datetime import timedelta as td
from typing import Literal

from scheduling.models import Transition
from scheduling.planning.facts import Phase, Reason

TITLES = {
    Reason.SUBMITTED: "Asked",
    Reason.WOKEN: "Woken",
    Reason.WAITING_FOR_APPROVAL: "Waits for the lead",
    Reason.WAITING_FOR_QUOTA: "Waits for quota",
    Reason.WAITING_FOR_CAPACITY: "Waits for a free card",
    Reason.WAITING_FOR_NODE: "Wakes a node",
    Reason.WAITING_FOR_CUT: "Cuts a card",
    Reason.BACKING_OFF: "Tries again later",
    Reason.NODE_LOST: "Node lost",
    Reason.POD_LOST: "Pod lost",
    Reason.REJECTED_BY_NODE: "Refused by the node",
    Reason.PLACED: "Placed",
    Reason.PULLING_IMAGE: "Pulls the image",
    Reason.IMAGE_UNAVAILABLE: "Image not found",
    Reason.CREATING: "Makes the container",
    Reason.POD_REFUSED: "Refused by the cluster",
    Reason.RUNNING: "Running",
}
SPENT = {  # the same, as what the time went into
    "Asked": "until the next look",
    "Woken": "until the next look",
    "Waits for the lead": "waiting for the lead",
    "Waits for quota": "waiting for quota",
    "Waits for a free card": "waiting for a free card",
    "Wakes a node": "waking a node",
    "Cuts a card": "cutting a card",
    "Tries again later": "before trying again",
    "Node lost": "after a lost node",
    "Pod lost": "after a lost pod",
    "Refused by the node": "after a node's refusal",
    "Placed": "until the node took it",
    "Pulls the image": "pulling the image",
    "Image not found": "without its image",
    "Refused by the cluster": "refused by the cluster",
    "Makes the container": "making the container",
    "Running": "running",
}
AHEAD = ((Phase.PLACED, "Placed"), (Phase.STARTING, "Pulls the image"), (Phase.RUNNING, "Running"))
ORDER = {Phase.WAITING: 0, Phase.PLACED: 1, Phase.STARTING: 2, Phase.RUNNING: 3}

NEXT = {  # what would change it, and who can do that
    Reason.SUBMITTED: "That takes seconds.",
    Reason.WAITING_FOR_APPROVAL: "It starts when a lead of the team approves the request, or accepts less.",
    Reason.WAITING_FOR_QUOTA: "Put one of the team's workloads to sleep or end it, or ask for more quota.",
    Reason.WAITING_FOR_CAPACITY: "It starts when somebody gives back a card; another flavor may be free now.",
    Reason.WAITING_FOR_NODE: "Nothing to do: the provider is starting a node.",
    Reason.WAITING_FOR_CUT: "Nothing to do: an empty node is being cut to the slices it needs.",
    Reason.UNKNOWN_FLAVOR: "No pool offers this flavor any more: end it and ask for another.",
    Reason.BACKING_OFF: "It is tried again by itself, each time a little later.",
    Reason.IMAGE_UNAVAILABLE: "Check the image's name and whether the cluster may pull it; then end it and ask anew.",
    Reason.REJECTED_BY_NODE: "Another node is tried by itself.",
    Reason.NODE_LOST: "It is placed anew by itself; what it kept in its storage is still there.",
    Reason.POD_LOST: "It is placed anew by itself; what it kept in its storage is still there.",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a start: since when, for how long, and whether it is over, going on or still ahead."""

    title: str
    at: datetime | None
    lasted: td | None
    text: str
    state: Literal["done", "now", "ahead"]

    @property
    def spent(self) -> str:
        return SPENT.get(self.title, self.title.lower())


@dataclass(frozen=True, slots=True)
class Story:
    """The latest start of a workload."""

    steps: list[Step]
    lasted: td | None  # from asking until it ran; None while it does not run yet
    longest: Step | None  # what took most of that time


def story_of(transitions: Sequence[Transition], now: datetime) -> Story:
    """The start that the latest transitions (oldest first) tell of; no steps where they tell of none."""
    chapter = _merged(_latest_start(transitions))
    if not chapter:
        return Story([], None, None)
    over = transitions[-1].after not in ORDER or chapter[-1].after == Phase.RUNNING
    steps = [_step(row, following, now=now, over=over) for row, following in _pairs(chapter)]
    if chapter[-1].after != Phase.RUNNING:
        return Story(steps + ([] if over else _ahead(chapter[-1].after)), None, None)
    waits = [step for step in steps if step.lasted]
    longest = max(waits, key=lambda step: step.lasted or td(0), default=None)
    return Story(steps, chapter[-1].at - chapter[0].at, longest)


def _latest_start(transitions: Sequence[Transition]) -> list[Transition]:
    """From the last time it began to wait until it ran, or until it went elsewhere."""
    begins = [
        index for index, row in enumerate(transitions) if row.after == Phase.WAITING and row.before != Phase.WAITING
    ]
    chapter = []
    for row in transitions[begins[-1] if begins else 0 :]:
        if row.after not in ORDER:
            break
        chapter.append(row)
        if row.after == Phase.RUNNING:
            break
    return chapter


def _merged(chapter: Sequence[Transition]) -> list[Transition]:
    """Without repeats of the same step: the first of each run counts."""
    return [row for index, row in enumerate(chapter) if not index or _title(row) != _title(chapter[index - 1])]


def _pairs(rows: Sequence[Transition]) -> list[tuple[Transition, Transition | None]]:
    return list(zip(rows, [*rows[1:], None], strict=True))


def _step(row: Transition, following: Transition | None, *, now: datetime, over: bool) -> Step:
    if following is not None:
        return Step(_title(row), row.at, following.at - row.at, row.text, "done")
    if row.after == Phase.RUNNING or over:
        return Step(_title(row), row.at, None, row.text, "done")
    return Step(_title(row), row.at, now - row.at, row.text, "now")


def _ahead(phase: str) -> list[Step]:
    here = ORDER[Phase(phase)]
    return [Step(title, None, None, "", "ahead") for ahead, title in AHEAD if ORDER[ahead] > here]


def _title(row: Transition) -> str:
    return TITLES.get(Reason(row.reason), row.reason) if row.reason in set(Reason) else row.reason
