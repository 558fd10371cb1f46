"""The one way a phase changes."""

from datetime import timedelta as td

import pytest

from scheduling.changes import Change, Step, move, move_all, note
from scheduling.models import Workload
from scheduling.planning.facts import Phase, Reason


def step(world, to=Phase.PLACED, reason=Reason.PLACED, text="Placed on train-1."):
    return Step(to, reason, text, world.now)


@pytest.fixture
def told(monkeypatch):
    events = []
    monkeypatch.setattr("scheduling.announce.send", events.extend)
    return events


def test_a_step_writes_the_row_and_its_transition(world):
    row = world.workload("notebook")

    assert move(row, step(world), attempt=1)

    assert (row.phase, row.phase_reason, row.phase_since, row.version, row.attempt) == (
        "placed",
        "Placed",
        world.now,
        1,
        1,
    )
    last = row.transitions.last()
    assert (last.before, last.after, last.version, last.text) == ("waiting", "placed", 1, "Placed on train-1.")


def test_who_comes_second_changes_nothing(world):
    row = world.workload("notebook")
    stale = Workload.objects.get(pk=row.pk)
    move(row, step(world))

    assert not move(stale, step(world, Phase.ENDED, Reason.ASKED_TO_END))
    row.refresh_from_db()
    assert (row.phase, row.transitions.count()) == ("placed", 2)


def test_time_never_goes_back_between_two_steps(world):
    """A look has one time, at its begin; who asks while it lasts asks later than that."""
    row = world.workload("notebook")
    asked = row.phase_since

    assert move(row, Step(Phase.PLACED, Reason.PLACED, "Placed.", asked - td(seconds=1)))

    assert row.phase_since == row.transitions.last().at == asked


def test_a_step_that_is_not_in_the_table_is_an_error(world):
    row = world.workload("notebook", phase="ended")

    with pytest.raises(ValueError, match="does not go from ended to running"):
        move(row, step(world, Phase.RUNNING))


def test_the_same_reason_is_not_noted_twice(world):
    row = world.workload("notebook")
    assert note(row, Reason.WAITING_FOR_QUOTA, "3 of 4 cards are held.", world.now)

    assert not note(row, Reason.WAITING_FOR_QUOTA, "3 of 4 cards are held.", world.now)
    assert row.transitions.count() == 2


def test_a_note_keeps_the_time_since_when_the_phase_holds(world):
    row = world.workload("notebook")
    since = row.phase_since
    note(row, Reason.WAITING_FOR_QUOTA, "3 of 4 cards are held.", world.now)

    assert row.phase_since == since


def test_open_pages_are_told_after_commit(world, told, django_capture_on_commit_callbacks):
    row = world.workload("notebook")
    with django_capture_on_commit_callbacks(execute=True):
        move(row, step(world))
        assert told == []

    assert [event["topic"] for event in told] == [f"workload:{row.pk}", f"team:{world.vision.pk}"]
    assert {event["phase"] for event in told} == {"placed"}


def test_a_page_server_that_is_down_fails_nothing(world, settings, django_capture_on_commit_callbacks, caplog):
    from scheduling import announce

    settings.REDIS_URL = "redis://127.0.0.1:9/0"
    announce.connection.cache_clear()
    row = world.workload("notebook")
    with django_capture_on_commit_callbacks(execute=True):
        assert move(row, step(world))
    announce.connection.cache_clear()

    assert "Open pages were not told" in caplog.text


@pytest.fixture(params=[3, 20], ids="{} rows".format)
def rows(request, world):
    """Few are written one by one, many together; the rules are the same."""
    return [world.workload(f"row-{number}") for number in range(request.param)]


def test_many_steps_are_each_one_transition(world, rows, told, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        moved = move_all([Change(row, step(world), {"attempt": number}) for number, row in enumerate(rows)])

    assert [row.pk for row in moved] == [row.pk for row in rows]
    for number, row in enumerate(rows):
        found = Workload.objects.get(pk=row.pk)
        assert (found.phase, found.attempt, found.version) == (Phase.PLACED, number, 1)
        assert (row.phase, row.attempt, row.version) == (Phase.PLACED, number, 1)
        assert row.transitions.get(version=1).before == Phase.WAITING
    assert len(told) == 2 * len(rows)


def test_of_many_those_that_have_moved_on_are_left_alone(world, rows):
    move(Workload.objects.get(pk=rows[1].pk), step(world, Phase.ASLEEP))

    moved = move_all([Change(row, step(world)) for row in rows])

    assert {row.pk for row in moved} == {row.pk for row in rows} - {rows[1].pk}
    assert Workload.objects.get(pk=rows[1].pk).phase == Phase.ASLEEP
    assert rows[1].transitions.count() == 2


def test_a_wish_that_came_meanwhile_is_kept(world, rows):
    Workload.objects.filter(pk=rows[0].pk).update(desired="end")
    move_all([Change(row, step(world)) for row in rows])

    assert Workload.objects.get(pk=rows[0].pk).desired == "end"


def test_many_steps_cost_a_few_queries(world, django_assert_max_num_queries):
    rows = [world.workload(f"row-{number}") for number in range(30)]
    with django_assert_max_num_queries(8):
        move_all([Change(row, step(world)) for row in rows])
