"""Since when nobody could see a cluster: what ended meanwhile is counted until then."""

from __future__ import annotations

from datetime import UTC, datetime
from datetime import timedelta as td

import pytest

from scheduling.cluster.port import Observation
from scheduling.models import Cluster
from scheduling.reconcile.steps import blind_since

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
WALL = datetime.now(UTC)


def seen(heard: bool) -> Observation:
    return Observation(NOON, (), (), (), (), complete=True, problems=(), heard_at=WALL if heard else None)


CASES = {  # minutes since the last sight, by a mirror?, trouble, hours since a worker looked -> blind?
    "looked at all the while by lists": (1, False, "", 0, False),
    "a mirror that heard nothing new for an hour of the tables' time": (60, True, "", 0, False),
    "looks that failed": (60, True, "It does not answer.", 0, True),
    "looks that failed for less than two minutes": (1, False, "It does not answer.", 0, False),
    "no mirror, and nobody looked": (60, False, "", 1, True),
    "a mirror that was started after an hour without workers": (60, True, "", 1, True),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_blind(case):
    minutes, heard, trouble, hours, blind = case
    last = NOON - td(minutes=minutes)
    cluster = Cluster(name="a", seen_at=last, trouble=trouble, looked_at=datetime.now(UTC) - td(hours=hours))

    assert blind_since(cluster, seen(heard)) == (last if blind else None)


def test_a_cluster_that_was_never_seen_is_no_outage():
    assert blind_since(Cluster(name="a"), seen(heard=True)) is None
