"""What a workload needs of the driver and to stop: checked before it is written down."""

from dataclasses import replace

import pytest

from scheduling import services
from scheduling.models import Node, NodePool, Workload
from scheduling.planning.facts import Kind
from scheduling.reconcile import records
from scheduling.services import Wish
from scheduling.snapshot import node_json
from tenants.errors import Refused
from tests.world import node_fact


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    monkeypatch.setattr("scheduling.wake.send", lambda cluster_id: None)


@pytest.fixture
def wish(world):
    return Wish(name="notebook", kind=Kind.WORKSPACE, flavor=world.flavors["slice"], submission="form-1")


def opened(world, wish):
    return services.open_workload(wish, team=world.vision, by=world.robin, now=world.now)


def offering(world, *versions):
    """The nodes of the sliced pool, each with the CUDA that its driver offers."""
    world.cluster.nodes.all().delete()
    for number, version in enumerate(versions):
        world.node(f"shared-{number}", "h100-shared", cuda=version)


NEW_IMAGE = "example.org/train:cuda12.8"


def test_an_image_that_is_too_new_for_every_node_is_refused_with_both_versions(world, wish):
    offering(world, (12, 4), (12, 2))
    NodePool.objects.filter(name="h100-shared").update(cuda="12.4")

    with pytest.raises(Refused) as refusal:
        opened(world, replace(wish, image=NEW_IMAGE))

    assert refusal.value.field == "image"
    assert "needs CUDA 12.8, by its tag" in refusal.value.text
    assert "12.4 at most" in refusal.value.text
    assert "say so under Advanced" in refusal.value.text
    assert not Workload.objects.exists()


def test_the_owners_own_version_is_refused_at_its_field(world, wish):
    offering(world, (12, 4))
    NodePool.objects.filter(name="h100-shared").update(cuda="12.4")

    with pytest.raises(Refused) as refusal:
        opened(world, replace(wish, cuda="12.6"))

    assert (refusal.value.field, "as was said" in refusal.value.text) == ("cuda", True)


PASSES = {  # versions of the nodes, the pool's memory, what is asked
    "one node is new enough": ([(12, 4), (13, 0)], "13.0", {"image": NEW_IMAGE}),
    "one node does not say": ([(12, 4), None], "12.4", {"image": NEW_IMAGE}),
    "nobody has ever said": ([], "", {"image": NEW_IMAGE}),
    "the owner says that less will do": ([(12, 4)], "12.4", {"image": NEW_IMAGE, "cuda": "12.0"}),
    "the tag says nothing": ([(12, 4)], "12.4", {"image": "example.org/train:latest"}),
    "exactly as new": ([(12, 8)], "12.8", {"image": NEW_IMAGE}),
}


@pytest.mark.parametrize(("versions", "memory", "facts"), PASSES.values(), ids=PASSES)
def test_what_is_not_known_to_be_too_old_is_not_refused(world, wish, versions, memory, facts):
    offering(world, *versions)
    NodePool.objects.filter(name="h100-shared").update(cuda=memory)

    assert opened(world, replace(wish, **facts)).phase == "waiting"


def test_a_pool_at_zero_is_as_its_nodes_last_were(world, wish):
    offering(world)
    NodePool.objects.filter(name="h100-shared").update(cuda="12.4")

    with pytest.raises(Refused):
        opened(world, replace(wish, image=NEW_IMAGE))


WRONG = {
    "no version": ({"cuda": "new"}, "cuda"),
    "a major alone": ({"cuda": "12"}, "cuda"),
    "an absurd one": ({"cuda": "99.0"}, "cuda"),
    "no time to stop": ({"grace_seconds": 0}, "grace_seconds"),
    "two hours to stop": ({"grace_seconds": 7200}, "grace_seconds"),
    "too little time to save": ({"grace_seconds": 2, "checkpoint": "python save.py"}, "grace_seconds"),
    "a NUL": ({"checkpoint": "a\x00b"}, "checkpoint"),
}


@pytest.mark.parametrize(("facts", "field"), WRONG.values(), ids=WRONG)
def test_what_makes_no_sense_is_refused_at_its_field(world, wish, facts, field):
    with pytest.raises(Refused) as refusal:
        opened(world, replace(wish, **facts))

    assert refusal.value.field == field


def test_a_pool_remembers_the_newest_that_its_nodes_offered(world):
    pools = {pool.name: pool for pool in world.cluster.pools.all()}
    nodes = [node_fact("a", pools["h100-shared"], cuda=(12, 4)), node_fact("b", pools["h100-shared"], cuda=(12, 10))]
    records._see_cuda(pools, [*nodes, node_fact("c", pools["h100-shared"])])

    assert NodePool.objects.get(name="h100-shared").cuda == "12.10"


def test_what_others_hold_before_the_change_is_kept_until_the_next_look(world):
    """The migration: units by resource become units of a namespace that is not known."""
    from importlib import import_module

    from django.apps import apps

    row = world.node("old", "h100-shared")
    Node.objects.filter(pk=row.pk).update(foreign={"nvidia.com/gpu": 3}, facts=node_json(node_fact("old", row.pool)))
    change = import_module("scheduling.migrations.0010_addresses_and_ceilings")

    change.by_namespace(apps, None)
    change.by_namespace(apps, None)
    assert Node.objects.get(pk=row.pk).foreign == {"": {"nvidia.com/gpu": 3}}
    change.by_resource(apps, None)
    assert Node.objects.get(pk=row.pk).foreign == {"nvidia.com/gpu": 3}
