"""A server that answers three requests in ten with trouble, for half an hour, under a seed that is said."""

import random
from collections import Counter
from fractions import Fraction as F

import pytest

from scheduling import services
from scheduling.cluster import names
from scheduling.cluster.simulated.faults import Faults, RequestFault
from scheduling.models import Placement
from scheduling.reconcile.cycle import look_after
from scheduling.snapshot import held
from tests.world import H100

QUOTA = F(16)  # Vision's H100
QUIET = 60 * 5 + 15 * 4  # calls of a quiet half hour: five lists a look, four objects a workload
FINISHED = ("Succeeded", "Failed")
WANTED = ("h100-80gb/whole", "h100-80gb/mig-1g.10gb", "h100-80gb/mig-3g.40gb", "a10g-24gb", "a100-40gb/whole")


class Storm:
    """Stands before the simulation's own faults, and counts what is asked of it."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.blows = True
        self.asked = Counter()

    def take(self, method, path, effect):
        if path.startswith("/simulation"):
            return None
        if effect == "answer":
            self.asked["reads" if method == "GET" else "writes"] += 1
        if not self.blows:
            return None
        if effect == "answer" and self.dice.random() < 0.2:
            return RequestFault("answer", method, path, 1, self.dice.choice([409, 410, 429, 500, 503]))
        if effect == "lose" and self.dice.random() < 0.1:
            return RequestFault("lose", method, path, 1)
        return None


@pytest.fixture(params=[1, 2, 3], ids="seed {}".format)
def storm(request, harbour, monkeypatch):
    storm = Storm(request.param)
    monkeypatch.setattr(Faults, "take", lambda _, *request: storm.take(*request))
    return storm


def rules_hold(harbour):
    """At every instant: within the quota, and at most one pod and one open placement for each workload."""
    cards = sum((cards for (_, model, _), cards in held().items() if model == H100), F(0))
    open_ones = Counter(Placement.objects.filter(ended_at=None).values_list("workload", flat=True))
    assert cards <= QUOTA
    assert set(open_ones.values()) <= {1}
    assert set(pods(harbour).values()) <= {1}


def pods(harbour):
    """By workload, as the cluster has them behind its door."""
    live = [pod for pod in harbour.cluster.world.store.all("pods") if pod["status"].get("phase") not in FINISHED]
    return Counter(pod["metadata"]["labels"][names.WORKLOAD] for pod in live if is_ours(pod))


def is_ours(pod):
    return names.WORKLOAD in pod["metadata"].get("labels", {})


def look(harbour, minutes):
    for _ in range(minutes * 2):
        harbour.turn(minutes=0.5)
        look_after(harbour.world.cluster.pk)
        rules_hold(harbour)


@pytest.mark.slow
def test_it_comes_to_rest_and_breaks_no_rule_on_the_way(harbour, storm):
    rows = [harbour.open(f"w-{number}", WANTED[number % len(WANTED)]) for number in range(15)]
    look(harbour, 10)
    for row in rows[:3]:
        services.end_workload(harbour.read(row), by=harbour.robin, now=harbour.now)
    look(harbour, 20)
    stormy = sum(storm.asked.values())
    storm.blows = False
    look(harbour, 15)

    phases = [harbour.read(row).phase for row in rows]
    assert phases == ["ended"] * 3 + ["running"] * 12
    assert stormy < 3 * QUIET
    storm.asked.clear()
    look_after(harbour.world.cluster.pk)
    assert (storm.asked["writes"], storm.asked["reads"] > 0) == (0, True)
