"""How a workload started, told from its transitions."""

from __future__ import annotations

from datetime import UTC, datetime
from datetime import timedelta as td

import pytest

from scheduling.models import Transition
from scheduling.planning.facts import Phase, Reason
from scheduling.story import NEXT, SPENT, TITLES, Story, story_of

START = datetime(2026, 12, 1, 14, 2, 10, tzinfo=UTC)
NOW = START + td(minutes=10)
FULL = [  # seconds after the start, phase, reason
    (0, "waiting", "Submitted"),
    (1, "waiting", "WaitingForNode"),
    (210, "waiting", "WaitingForCut"),
    (251, "placed", "Placed"),
    (252, "starting", "PullingImage"),
    (292, "starting", "Creating"),
    (295, "running", "Running"),
]


def told(*rows: tuple[int, str, str]) -> Story:
    before = ""
    transitions = []
    for version, (seconds, after, reason) in enumerate(rows):
        at = START + td(seconds=seconds)
        transitions.append(Transition(version=version, at=at, before=before, after=after, reason=reason))
        before = after
    return story_of(transitions, NOW)


def outline(story: Story) -> list[tuple[str, str]]:
    return [(step.title, step.state) for step in story.steps]


def test_a_whole_start_with_its_longest_wait() -> None:
    story = told(*FULL)

    assert [title for title, _ in outline(story)] == [
        "Asked", "Wakes a node", "Cuts a card", "Placed", "Pulls the image", "Makes the container", "Running",
    ]  # fmt: skip
    assert {state for _, state in outline(story)} == {"done"}
    assert story.lasted == td(seconds=295)
    assert story.longest is not None
    assert (story.longest.title, story.longest.lasted) == ("Wakes a node", td(seconds=209))
    assert story.longest.spent == "waking a node"


def test_what_is_still_ahead_is_shown_while_it_starts() -> None:
    story = told(*FULL[:2])

    assert outline(story) == [
        ("Asked", "done"), ("Wakes a node", "now"), ("Placed", "ahead"), ("Pulls the image", "ahead"),
        ("Running", "ahead"),
    ]  # fmt: skip
    assert story.steps[1].lasted == NOW - START - td(seconds=1)
    assert story.lasted is None


def test_the_latest_start_counts() -> None:
    story = told(*FULL, (400, "stopping", "Idle"), (410, "asleep", "Idle"), (500, "waiting", "Woken"),
                 (501, "placed", "Placed"), (520, "running", "Running"))  # fmt: skip

    assert outline(story) == [("Woken", "done"), ("Placed", "done"), ("Running", "done")]
    assert story.lasted == td(seconds=20)


def test_a_lost_node_begins_a_new_start() -> None:
    story = told(*FULL, (400, "waiting", "NodeLost"), (401, "waiting", "WaitingForCapacity"))

    assert outline(story)[:2] == [("Node lost", "done"), ("Waits for a free card", "now")]


def test_the_same_step_twice_is_told_once() -> None:
    story = told((0, "waiting", "Submitted"), (5, "waiting", "WaitingForQuota"), (65, "waiting", "WaitingForQuota"),
                 (125, "waiting", "WaitingForQuota"))  # fmt: skip

    assert outline(story)[1] == ("Waits for quota", "now")
    assert story.steps[1].lasted == NOW - START - td(seconds=5)


def test_what_was_ended_before_it_ran_has_nothing_ahead() -> None:
    story = told((0, "waiting", "Submitted"), (5, "waiting", "WaitingForQuota"), (60, "ended", "AskedToEnd"))

    assert outline(story) == [("Asked", "done"), ("Waits for quota", "done")]


def test_there_may_be_nothing_to_tell() -> None:
    assert story_of([], NOW) == Story([], None, None)


def test_an_unknown_reason_is_told_as_it_stands() -> None:
    assert outline(told((0, "waiting", "SomethingNew")))[0] == ("SomethingNew", "now")


WAITING = [
    Reason.WAITING_FOR_APPROVAL, Reason.WAITING_FOR_QUOTA, Reason.WAITING_FOR_CAPACITY, Reason.WAITING_FOR_NODE,
    Reason.WAITING_FOR_CUT, Reason.UNKNOWN_FLAVOR, Reason.BACKING_OFF, Reason.IMAGE_UNAVAILABLE,
]  # fmt: skip


@pytest.mark.parametrize("reason", WAITING)
def test_every_reason_to_wait_says_what_would_change_it(reason: Reason) -> None:
    assert NEXT[reason].endswith(".")


def test_phases_of_the_story_are_real() -> None:
    assert {after for _, after, _ in FULL} <= set(Phase)


def test_every_step_can_say_what_its_time_went_into() -> None:
    assert set(SPENT) == set(TITLES.values())
