"""What comes with a placed workload, and what bounds its team's namespace, through the cycle and the real adapter."""

import json
from fractions import Fraction as F

from scheduling import services
from scheduling.cluster.belongings import FACTS_FILE
from scheduling.cluster.writing import object_name
from scheduling.models import Ceiling, Node, Placement, Workload
from scheduling.reconcile import launch
from tenants.selectors import quotas

VISION = "team-vision"


def run(harbour, name="notebook", flavor="h100-80gb/whole", **facts):
    row = harbour.open(name, flavor, **facts)
    harbour.pass_time(minutes=6, every=0.5)
    assert harbour.read(row).phase == "running", harbour.read(row).phase_text
    return harbour.read(row)


def there(harbour, plural, row):
    return harbour.cluster.world.get(plural, VISION, object_name(row.name, row.pk))


# Belongings


def test_a_workload_can_read_what_it_got_until_when_and_where_its_page_is(harbour):
    row = run(harbour, hours=4)
    facts = json.loads(there(harbour, "configmaps", row)["data"][FACTS_FILE])

    assert facts["holds"] == "1 card of h100-80gb"
    assert facts["ends"] == "4 hours after it first ran"
    assert facts["page"].endswith(f"/workloads/{row.pk}/")
    assert facts["node"] == Placement.objects.get(workload=row).node
    assert row.furnished == row.attempt == 1


def test_a_put_that_broke_off_after_its_object_is_finished_by_the_next_look(harbour):
    harbour.cluster.faults.answer(503, "POST", "configmaps", times=2)  # they are created
    row = run(harbour)

    assert harbour.cluster.faults.requests == [], "both were met"
    assert there(harbour, "configmaps", row)
    assert there(harbour, "services", row)
    assert Placement.objects.filter(workload=row).count() == 1


def test_an_ended_workload_leaves_nothing(harbour):
    row = run(harbour)
    services.end_workload(row, by=harbour.robin, now=harbour.now)
    harbour.pass_time(minutes=3, every=0.5)

    assert harbour.read(row).phase == "ended"
    kinds = ("statefulsets", "services", "configmaps", "persistentvolumeclaims", "pods")
    assert [kind for kind in kinds if harbour.cluster.world.store.all(kind, VISION)] == []


def test_what_the_form_said_of_stopping_is_in_the_pod(harbour):
    row = run(harbour, grace_seconds=90, checkpoint="python save.py")
    (pod,) = harbour.cluster.world.store.all("pods", VISION)

    assert pod["spec"]["terminationGracePeriodSeconds"] == 90
    assert pod["spec"]["containers"][0]["lifecycle"]["preStop"]["exec"]["command"] == ["sh", "-c", "python save.py"]
    assert launch.ref_of(row).name in pod["metadata"]["name"]


# Ways in


def test_a_workspace_has_an_address_where_the_cluster_has_ways_in(harbour):
    harbour.world.cluster.route_kind, harbour.world.cluster.route_domain = "ingress", "lab.example.org"
    harbour.world.cluster.save()
    row = run(harbour)

    assert row.address == f"https://{there(harbour, 'ingresses', row)['spec']['rules'][0]['host']}/"
    assert row.address.endswith(".lab.example.org/")
    assert row.address_problem == ""


def test_without_the_gateway_api_it_runs_and_says_why_it_has_no_address(harbour):
    harbour.world.cluster.route_kind, harbour.world.cluster.route_domain = "httproute", "lab.example.org"
    harbour.world.cluster.save()
    row = run(harbour)

    assert row.address == ""
    assert (
        row.address_problem
        == "The cluster knows no objects of kind HTTPRoute, so this workspace has no address of its own."
    )


def test_a_cluster_that_asks_for_none_has_none(harbour):
    row = run(harbour)

    assert (row.address, row.address_problem) == ("", "")
    assert harbour.cluster.world.store.all("ingresses") == []


# Ceilings


def bound(harbour):
    found = harbour.cluster.world.get("resourcequotas", VISION, "berth")
    return found and found["spec"]["hard"]


def test_q12_a_namespace_is_bound_in_every_dimension_by_the_teams_grants(harbour):
    run(harbour)
    cards = quotas(harbour.now)[harbour.vision.pk, "h100-80gb"].total

    hard = bound(harbour)
    assert all(key.startswith("requests.nvidia.com/") for key in hard)
    assert int(hard["requests.nvidia.com/mig-1g.10gb"]) == cards * 8
    assert int(hard["requests.nvidia.com/mig-3g.40gb"]) == cards * 2


def test_a_quiet_cluster_is_not_bound_again(harbour):
    run(harbour)
    before = harbour.cluster.world.get("resourcequotas", VISION, "berth")["metadata"]["resourceVersion"]
    written = Ceiling.objects.get().written_at
    harbour.pass_time(minutes=10)

    assert Ceiling.objects.get().written_at == written
    assert harbour.cluster.world.get("resourcequotas", VISION, "berth")["metadata"]["resourceVersion"] == before


def test_a_bound_that_somebody_deleted_is_back_within_the_hour(harbour):
    run(harbour)
    harbour.cluster.world.forget(next(iter(key for key in harbour.cluster.world.store.documents["resourcequotas"])))
    assert bound(harbour) is None
    harbour.pass_time(minutes=65, every=5)

    assert bound(harbour)


def test_a_new_grant_raises_the_bound_before_its_work_comes(harbour):
    run(harbour)
    before = int(bound(harbour)["requests.nvidia.com/mig-1g.10gb"])
    harbour.grant(harbour.organisation, "h100-80gb", F(1))
    harbour.grant(harbour.research, "h100-80gb", F(1))
    harbour.grant(harbour.vision, "h100-80gb", F(1))
    harbour.settle()

    assert int(bound(harbour)["requests.nvidia.com/mig-1g.10gb"]) == before + 8


def test_a_bound_below_what_is_held_covers_it_and_stops_nobody(harbour):
    row = run(harbour)
    for grant in harbour.vision.grants.all():
        services.end_grant(grant, now=harbour.now)
    harbour.pass_time(minutes=2)

    hard = bound(harbour)
    assert int(hard["requests.nvidia.com/mig-1g.10gb"]) == 0
    assert int(hard["requests.nvidia.com/gpu"]) >= 1
    assert harbour.read(row).phase == "running"


def test_a_bound_that_cannot_be_written_is_said_and_stops_no_work(harbour):
    harbour.cluster.faults.answer(403, "PATCH", "resourcequotas", times=None)
    row = harbour.open("notebook", "h100-80gb/whole")
    said = harbour.pass_time(minutes=6, every=0.5)

    assert harbour.read(row).phase == "running"
    failures = [line for line in said if line.startswith("bound the namespace team-vision")]
    assert 1 <= len(failures) <= 7, "tried again once a minute"


# Foreign use


def wears_our_labels(harbour, row, **facts):
    (ours,) = harbour.cluster.world.store.all("pods", VISION)
    labels = dict(ours["metadata"]["labels"])
    spec = {
        "nodeName": ours["spec"]["nodeName"],
        "tolerations": [{"operator": "Exists"}],
        "containers": [{
            "name": "main", "image": "example.org/miner:1",
            "resources": {"limits": {"nvidia.com/gpu": "2"}},
        }],
    }  # fmt: skip
    harbour.cluster.world.create(
        {"apiVersion": "v1", "kind": "Pod", "spec": spec,
         "metadata": {"name": "mine", "namespace": VISION, "labels": labels, **facts}}
    )  # fmt: skip


def test_a_foreign_pod_that_wears_our_labels_is_nobodys_placement(harbour):
    row = run(harbour)
    before = Placement.objects.get(workload=row)
    wears_our_labels(harbour, row)
    harbour.pass_time(minutes=2)

    placement = Placement.objects.get(workload=row)
    assert (placement.pod, placement.pod_uid, placement.ended_at) == (before.pod, before.pod_uid, None)
    assert placement.share == 1
    assert Node.objects.get(name=placement.node).foreign == {VISION: {"nvidia.com/gpu": 2}}
    assert harbour.read(row).phase == "running"


def test_a_forged_owner_makes_a_pod_no_placement_either(harbour):
    row = run(harbour)
    owner = there(harbour, "statefulsets", row)["metadata"]
    forged = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": owner["name"],
        "uid": owner["uid"],
        "controller": True,
    }
    wears_our_labels(harbour, row, ownerReferences=[forged])
    harbour.cycle()

    assert Placement.objects.get(workload=row).pod == f"{owner['name']}-0"
    assert Node.objects.get(name=Placement.objects.get(workload=row).node).foreign == {VISION: {"nvidia.com/gpu": 2}}


def test_cards_that_others_hold_are_not_given_out(harbour):
    row = run(harbour)
    wears_our_labels(harbour, row)
    harbour.settle()
    harbour.open("eight", "h100-80gb/whole", count=6)
    harbour.settle()

    assert Workload.objects.get(name="eight").phase_reason == "WaitingForNode"


# Refused pods


def test_a_pod_that_the_namespaces_bound_keeps_out_says_so(harbour):
    """Others hold the team's cards in its namespace; what Kubernetes says of it reaches the owner."""
    row = run(harbour)
    cards = int(quotas(harbour.now)[harbour.vision.pk, "h100-80gb"].total)
    bound_to = {"requests.nvidia.com/gpu": "1"}
    harbour.cluster.world.edit(
        next(iter(harbour.cluster.world.store.documents["resourcequotas"])),
        lambda live: live["spec"].update(hard=bound_to),
    )
    second = harbour.open("second", "h100-80gb/whole")
    harbour.pass_time(minutes=1, every=0.25)

    assert cards >= 2
    second = harbour.read(second)
    assert (second.phase, second.phase_reason) == ("placed", "PodRefused")
    assert "The bound of the team's namespace keeps its pod out: exceeded quota: berth" in second.phase_text
    steps = second.transitions.filter(reason="PodRefused").count()
    harbour.pass_time(minutes=2, every=0.25)
    assert second.transitions.filter(reason="PodRefused").count() == steps == 1, "said once"
    assert harbour.read(row).phase == "running"


def test_a_runtime_class_that_nobody_made_is_the_reason(harbour):
    harbour.pools["h100-train"].runtime_class = "nvidia"
    harbour.pools["h100-train"].save()
    row = harbour.open("notebook", "h100-80gb/whole")
    harbour.pass_time(minutes=1, every=0.25)

    row = harbour.read(row)
    assert row.phase_reason == "PodRefused"
    assert 'RuntimeClass "nvidia" not found' in row.phase_text
