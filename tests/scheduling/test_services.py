"""What people do with workloads: one row, one transition, and a sentence where a rule says no."""

from dataclasses import replace
from fractions import Fraction as F

import pytest

from scheduling import services
from scheduling.models import NodePool, Transition, Workload
from scheduling.planning.facts import Kind
from scheduling.services import Wish
from tenants.errors import AlreadyDecided, Refused
from tenants.models import QuotaRequest


@pytest.fixture(autouse=True)
def woken(monkeypatch):
    """The cycle is not what is tested here; who was woken is."""
    calls = []
    monkeypatch.setattr("scheduling.wake.send", calls.append)
    return calls


@pytest.fixture
def wish(world):
    return Wish(
        name="notebook", kind=Kind.WORKSPACE, flavor=world.flavors["slice"], reason="A paper.", submission="form-1"
    )


def opened(world, wish, **facts):
    return services.open_workload(wish, team=world.vision, by=world.robin, now=world.now, **facts)


def test_opening_writes_a_row_and_a_transition_and_wakes_the_cycle_after_commit(
    world, wish, woken, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        row = opened(world, wish)
        assert woken == []

    assert (row.phase, row.desired, row.phase_reason, row.owner) == ("waiting", "run", "Submitted", world.robin)
    assert [(step.before, step.after, step.by) for step in row.transitions.all()] == [("", "waiting", world.robin)]
    assert set(woken) == {world.cluster.pk}


def test_a_double_click_is_one_row(world, wish):
    first, second = opened(world, wish), opened(world, wish)

    assert first.pk == second.pk
    assert Workload.objects.count() == Transition.objects.count() == 1


def test_the_same_form_with_other_values_is_refused(world, wish):
    opened(world, wish)

    with pytest.raises(Refused, match="already been sent with other values"):
        opened(world, replace(wish, name="another"))


def test_a_double_click_asks_the_lead_once(world, wish):
    opened(world, wish, ask=F(1))
    opened(world, wish, ask=F(1))

    assert QuotaRequest.objects.count() == 1


REFUSALS = {
    "an empty name": ({"name": ""}, "name"),
    "a name with capitals": ({"name": "Notebook"}, "name"),
    "a name with a slash": ({"name": "../etc"}, "name"),
    "a name that ends with a dash": ({"name": "a-"}, "name"),
    "a name that is too long": ({"name": "a" * 41}, "name"),
    "none of it": ({"count": 0}, "count"),
    "two slices in one pod (S6)": ({"count": 2}, "count"),
    "an image that is none": ({"image": "x y; rm -rf /"}, "image"),
    "no hours": ({"hours": 0}, "hours"),
    "hours beyond a month": ({"hours": 10_000}, "hours"),
    "storage below nothing": ({"storage_gib": -1}, "storage_gib"),
    "memory beyond all nodes": ({"memory_mib": 10**12}, "memory_mib"),
    "more CPU than a node has": ({"cpu_milli": 200_000}, "cpu_milli"),
    "a job without a command": ({"kind": Kind.JOB}, "command"),
    "a NUL in the command": ({"command": "a\x00b"}, "command"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_nonsense_is_refused_with_its_field_and_writes_nothing(world, wish, case):
    facts, field = REFUSALS[case]

    with pytest.raises(Refused) as refusal:
        opened(world, replace(wish, **facts))

    assert refusal.value.field == field
    assert not Workload.objects.exists()


def test_two_shared_units_are_refused_for_every_kind_of_sharing(world, wish):
    quarter = replace(wish, flavor=world.flavors["quarter"], count=2)

    with pytest.raises(Refused, match="at most 1 time-slice"):
        opened(world, quarter)


def test_more_cards_than_any_node_has_are_refused_with_the_largest(world, wish):
    with pytest.raises(Refused, match="the largest has 8"):
        opened(world, replace(wish, flavor=world.flavors["whole"], count=9))


def test_a_flavor_that_no_pool_offers_any_more_is_refused(world, wish):
    NodePool.objects.filter(sharing="mig").update(max_nodes=0, min_nodes=0)

    with pytest.raises(Refused, match="No pool offers"):
        opened(world, wish)


def test_sleep_and_wake_write_the_wish_only(world):
    row = world.workload("notebook", phase="running")
    services.sleep_workload(row, by=world.robin, now=world.now)
    assert (row.desired, row.phase) == ("sleep", "running")

    asleep = world.workload("sleeper", phase="asleep", desired="sleep")
    services.wake_workload(asleep, by=world.robin, now=world.now)
    assert (asleep.desired, asleep.phase, asleep.desired_at) == ("run", "asleep", world.now)


def test_a_job_does_not_sleep(world):
    job = world.workload("job", kind="job", phase="running")

    with pytest.raises(Refused, match="Only workspaces sleep"):
        services.sleep_workload(job, by=world.robin, now=world.now)


def test_the_wish_to_end_is_final(world):
    row = world.workload("notebook", phase="running")
    services.end_workload(row, by=world.robin, now=world.now)

    with pytest.raises(Refused, match="cannot be taken back"):
        services.sleep_workload(row, by=world.robin, now=world.now)
    row.refresh_from_db()
    assert row.desired == "end"


def test_a_denied_request_ends_what_waited_for_it(world, wish):
    row = opened(world, wish, ask=F(1))
    services.deny_request(row.quota_request, by=world.dana, now=world.now, note="Use the shared pool.")

    row.refresh_from_db()
    assert row.desired == "end"


def test_a_second_decision_is_refused_and_changes_nothing(world, wish):
    row = opened(world, wish, ask=F(1))
    services.approve_request(row.quota_request, by=world.dana, now=world.now)

    with pytest.raises(AlreadyDecided, match="Already approved by Dana"):
        services.deny_request(row.quota_request, by=world.lena, now=world.now, note="No.")
    row.refresh_from_db()
    assert row.desired == "run"


def test_an_approval_wakes_every_cluster(world, wish, woken, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        row = opened(world, wish, ask=F(1))
    woken.clear()

    with django_capture_on_commit_callbacks(execute=True):
        services.approve_request(row.quota_request, by=world.dana, now=world.now)

    assert woken == [world.cluster.pk]
