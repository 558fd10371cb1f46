from scheduling.models import Placement, Transition, Workload
from scheduling.snapshot import node_fact
from tenants.access import standing
from tenants.models import Role
from tests.world import World


def test_a_workload_has_the_past_that_its_phase_implies(world: World) -> None:
    row = world.workload("notebook", phase="running")

    steps = Transition.objects.filter(workload=row).values_list("before", "after")
    assert list(steps) == [("", "waiting"), ("waiting", "placed"), ("placed", "starting"), ("starting", "running")]
    placement = Placement.objects.get(workload=row)
    assert placement.running_at is not None
    assert placement.ended_at is None
    assert placement.node == "shared-1"


def test_what_waits_has_no_placement_and_what_sleeps_has_an_ended_one(world: World) -> None:
    world.workload("new")
    world.workload("resting", phase="asleep")

    assert [placement.workload.name for placement in Placement.objects.exclude(ended_at=None)] == ["resting"]
    assert Workload.objects.count() == 2


def test_roles_reach_down_the_tree(world: World) -> None:
    assert standing(world.lena).has(Role.LEAD, world.vision.pk)
    assert not standing(world.dana).has(Role.LEAD, world.speech.pk)
    assert standing(world.farah).closes_months()


def test_a_node_reads_back_as_the_fact_it_was(world: World) -> None:
    row = world.node("train-2", "h100-train", sick_cards=1)

    assert node_fact(row).sick_cards == 1
    assert node_fact(row).devices[0].capacity == 8
