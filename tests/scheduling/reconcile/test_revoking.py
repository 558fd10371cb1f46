"""A3, Q10: taking away what runs, and counting all of what is asked for."""

from fractions import Fraction as F

from scheduling import services
from scheduling.models import Placement
from scheduling.snapshot import held
from tests.scheduling.reconcile.test_faults import pods_of, run
from tests.world import H100


def test_a3_a_lead_ends_what_runs_and_all_of_it_goes(harbour):
    """Pod, quota and meter; and its owner reads who did it."""
    row = run(harbour)
    asked_at = harbour.now
    services.end_workload(harbour.read(row), by=harbour.dana, now=asked_at)
    harbour.pass_time(minutes=2, every=0.25)

    row, placement = harbour.read(row), Placement.objects.get(workload=row)
    assert (row.phase, row.phase_reason) == ("ended", "AskedToEnd")
    assert row.transitions.get(after="stopping").by == harbour.dana
    assert pods_of(harbour, row) == []
    assert held() == {}
    assert 0 <= (placement.ended_at - asked_at).total_seconds() <= 60


def test_q10_cards_times_share_is_what_counts(harbour):
    """Two whole cards are two, not one; with one and a half left they wait for the quota."""
    for grant in harbour.vision.grants.filter(model=H100):
        grant.ends_at = harbour.now
        grant.save()
    harbour.grant(harbour.vision, H100, F(3, 2))
    row = harbour.open("two", "h100-80gb/whole", count=2)
    harbour.settle()

    assert harbour.read(row).phase_reason == "WaitingForQuota"
    harbour.grant(harbour.vision, H100, F(1, 2))
    harbour.settle()
    assert held() == {(harbour.vision.pk, H100, harbour.robin.pk): 2}
