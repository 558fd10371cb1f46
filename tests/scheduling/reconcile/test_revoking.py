"""A3, Q10, Q11: taking away what runs, and counting what is held."""

from datetime import timedelta as td
from fractions import Fraction as F

from scheduling import services
from scheduling.models import Placement
from scheduling.snapshot import held
from tests.scheduling.reconcile.test_faults import node_of, pods_of, run
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


def test_q11_a_pod_that_does_not_go_keeps_its_card_but_neither_quota_nor_meter(harbour):
    """Its node is silent: the team may start something else, and pays no more."""
    row = run(harbour, "stuck", "h100-80gb/whole", count=8)
    node = node_of(harbour, row)
    harbour.cluster.faults.node_not_ready(node)
    services.end_workload(harbour.read(row), by=harbour.robin, now=harbour.now)
    harbour.pass_time(minutes=1, every=0.5)
    assert held() != {}
    harbour.pass_time(minutes=5, every=0.5)

    row, placement = harbour.read(row), Placement.objects.get(workload=row)
    assert row.phase == "stopping"
    assert "Its quota is free" in row.phase_text
    assert held() == {}
    assert placement.ended_at <= row.phase_since + td(minutes=3)
    harbour.cluster.faults.node_ready(node)
    other = harbour.open("other", "h100-80gb/whole", count=8)
    harbour.pass_time(minutes=5, every=0.5)
    assert (harbour.read(row).phase, harbour.read(other).phase) == ("ended", "running")
    placement.refresh_from_db()
    assert placement.ended_at <= row.phase_since + td(minutes=3)
