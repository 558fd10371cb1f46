"""What becomes of people's work on a cluster that lives by itself, from the wish to the end."""

from scheduling import services
from scheduling.models import Placement, Transition
from tests.controlplane.harbour import Harbour


def phases(row):
    seen = list(Transition.objects.filter(workload=row).values_list("after", flat=True))
    return [phase for index, phase in enumerate(seen) if index == 0 or seen[index - 1] != phase]


def test_a_workspace_sleeps_and_wakes_and_keeps_its_home(harbour: Harbour) -> None:
    row = harbour.run(storage_gib=10)
    home = f"/api/v1/namespaces/team-vision/persistentvolumeclaims/home-{harbour.pods_of(row)[0].name}"
    before = harbour.document(home)["metadata"]["uid"]

    services.sleep_workload(harbour.read(row), by=harbour.robin, now=harbour.now)
    harbour.until(lambda: harbour.phase(row) == "asleep", "asleep")
    assert harbour.pods_of(row) == []
    services.wake_workload(harbour.read(row), by=harbour.robin, now=harbour.now)
    harbour.until(lambda: harbour.phase(row) == "running", "running again")

    assert harbour.document(home)["metadata"]["uid"] == before
    first, second = Placement.objects.filter(workload=row).order_by("placed_at")
    assert first.placed_at <= first.running_at <= first.ended_at <= second.placed_at <= second.running_at
    services.end_workload(harbour.read(row), by=harbour.robin, now=harbour.now)
    harbour.until(lambda: harbour.phase(row) == "ended", "ended")
    harbour.until(lambda: harbour.there(home) is None, "its home removed")
    assert harbour.failures() == []
