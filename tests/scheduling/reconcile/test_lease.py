"""One cycle per cluster; a worker that was asleep does no harm."""

from datetime import UTC, datetime
from datetime import timedelta as td

import pytest

from scheduling.cluster.port import Picture
from scheduling.models import Cluster
from scheduling.reconcile.lease import lease, wanted_since
from scheduling.wake import wake_cycle


def test_only_one_holds_it(world):
    with lease(world.cluster.pk) as first:
        with lease(world.cluster.pk) as second:
            assert first is not None
            assert second is None
        assert first.holds()


def test_it_is_given_back(world):
    with lease(world.cluster.pk):
        pass
    with lease(world.cluster.pk) as again:
        assert again is not None


def test_it_is_given_back_when_the_holder_fails(world):
    try:
        with lease(world.cluster.pk):
            raise RuntimeError("The holder fails.")
    except RuntimeError:
        pass

    with lease(world.cluster.pk) as again:
        assert again is not None


def test_a_holder_that_slept_past_its_lease_loses_it(world):
    with lease(world.cluster.pk) as slept:
        Cluster.objects.update(lease_until=datetime.now(UTC) - td(seconds=1))
        with lease(world.cluster.pk) as fresh:
            assert fresh is not None
            assert not slept.holds()
            assert not slept.prolong()
            assert fresh.prolong()


def test_a_late_holder_does_not_give_back_somebody_elses_lease(world):
    with lease(world.cluster.pk):
        Cluster.objects.update(lease_token="another", lease_until=datetime.now(UTC) + td(seconds=60))

    assert Cluster.objects.get().lease_token == "another"


def test_a_wake_up_in_mid_cycle_is_not_lost(world):
    started = datetime.now(UTC)
    assert not wanted_since(world.cluster.pk, started)

    wake_cycle(world.cluster.pk)

    assert wanted_since(world.cluster.pk, started)


@pytest.mark.django_db(transaction=True)
def test_a_holder_that_lives_keeps_it_however_slow_the_cluster_is(world, monkeypatch):
    monkeypatch.setattr("scheduling.reconcile.lease.BEAT", td(milliseconds=5))
    with lease(world.cluster.pk):
        nearly_over = datetime.now(UTC) + td(seconds=5)
        Cluster.objects.update(lease_until=nearly_over)
        while Cluster.objects.get().lease_until <= nearly_over:
            assert datetime.now(UTC) < nearly_over, "Nobody prolonged it."


@pytest.mark.django_db(transaction=True)
def test_a_dead_holder_is_waited_for_half_a_minute_at_most(world):
    with lease(world.cluster.pk):
        assert Cluster.objects.get().lease_until <= datetime.now(UTC) + td(seconds=30)


def test_what_the_last_holder_saw_is_handed_to_the_next(world):
    seen = Picture("mirror", "cluster", {"Pod": 17})
    with lease(world.cluster.pk) as first:
        assert first.at_least is None
        first.picture = seen
    with lease(world.cluster.pk) as second:
        assert second.at_least == seen
    with lease(world.cluster.pk) as third:  # the second saw nothing whole, so the first one's holds
        assert third.at_least == seen


def test_it_is_handed_on_when_the_look_broke_in_the_middle(world):
    """What was written by then must be in the next one's picture."""
    seen = Picture("mirror", "cluster", {"Pod": 17})

    def broken():
        with lease(world.cluster.pk) as first:
            first.picture = seen
            raise RuntimeError

    with pytest.raises(RuntimeError):
        broken()

    with lease(world.cluster.pk) as second:
        assert second.at_least == seen


def test_who_died_in_the_middle_may_have_written_more_than_it_said(world):
    with lease(world.cluster.pk) as first:
        first.picture = Picture("mirror", "cluster", {"Pod": 17})
    past = datetime.now(UTC) - td(seconds=1)
    Cluster.objects.update(lease_token="a dead one's", lease_until=past, rest_until=None)

    with lease(world.cluster.pk) as second:
        assert second.at_least == Picture("mirror", "cluster", {"Pod": 17}, torn=True)


def test_a_late_holder_leaves_no_picture(world):
    with lease(world.cluster.pk) as late:
        Cluster.objects.update(lease_token="another", lease_until=datetime.now(UTC) + td(seconds=60))
        late.picture = Picture("mirror", "cluster", {"Pod": 17})

    assert Cluster.objects.get().picture == {}
