"""Whatever happens in whatever order, some things are always so."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduling.cluster.simulated.devices import Devices
from scheduling.cluster.simulated.errors import ApiError
from scheduling.cluster.simulated.hardware import lay_out
from scheduling.cluster.simulated.quantities import pod_requests
from tests.scheduling.cluster.simulated.stories import (
    BALANCED,
    SHARED,
    TRAIN,
    UNCUT,
    Story,
    fleet_story,
    job,
    on_node,
    pod,
    stateful_set,
)

NODES = (TRAIN, BALANCED, UNCUT, SHARED)
POOLS = ("a100-burst", "h100-mig", "h100-train")
RESOURCES = ("nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb")
Step = Callable[[Story, int], None]


def name(number: int) -> str:
    return f"w{number % 6}"


def resources(number: int) -> dict[str, str]:
    return {RESOURCES[number % 3]: str(1 + number % 2)}


def start_pod(story: Story, number: int) -> None:
    node = NODES[number % 5] if number % 5 < 4 else ""
    more: dict[str, Any] = {"affinity": on_node(node)} if node else {}
    story.create(pod(name(number), resources(number // 7), **more))


def start_workspace(story: Story, number: int) -> None:
    story.create(stateful_set(name(number), resources(number)))


def start_job(story: Story, number: int) -> None:
    story.create(job(name(number), f"sleep {number % 400}; exit {number % 3}", resources(number), backoffLimit=2))


def stop(story: Story, number: int) -> None:
    plural = ("pods", "statefulsets", "jobs")[number % 3]
    for found in story.names(plural)[:1]:
        story.delete(plural, found, propagation=("Background", "Foreground", "Orphan")[number % 3])


def resize(story: Story, number: int) -> None:
    story.scale("machinedeployments", POOLS[number % 3], number % 4, "fleet")


def cut(story: Story, number: int) -> None:
    configs = ("all-1g.10gb", "all-balanced", "all-disabled", "all-3g.40gb", "nonsense")
    story.cut(NODES[number % 3], configs[number % 5])


def break_node(story: Story, number: int) -> None:
    nodes = story.names("nodes") or ["gone"]
    node = nodes[number % len(nodes)]
    (story.faults.node_not_ready, story.faults.node_ready, story.faults.node_vanish)[number % 3](node)


def break_card(story: Story, number: int) -> None:
    with suppress(ValueError):
        story.faults.card_sick(NODES[number % 4], card=number % 2, xid=(79, 31, 0)[number % 3])


def wait(story: Story, number: int) -> None:
    story.advance(seconds=number % 300)


STEPS: tuple[Step, ...] = (
    start_pod, start_workspace, start_job, stop, resize, cut, break_node, break_card, wait, wait, start_pod,
)  # fmt: skip


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 5000)), max_size=40))
def test_what_is_always_so(steps: list[tuple[Step, int]]) -> None:
    story = fleet_story()
    for step, number in steps:
        with suppress(ApiError):  # a name that is taken, a node that is gone
            step(story, number)
        check(story)
    story.faults.clear()
    story.advance(hours=2)
    check(story)


def check(story: Story) -> None:
    devices: Devices = story.world.parts["devices"]
    for node in list(devices.machines):
        nothing_is_given_twice(devices, node)
        layouts_are_legal(devices, node)
    for uid in devices.assignments:
        whoever_holds_something_runs_there(story, devices, uid)
    whoever_runs_has_what_he_asked_for(story, devices)
    no_more_is_allocatable_than_there_is(story)
    pools_count_their_machines(story)


def nothing_is_given_twice(devices: Devices, node: str) -> None:
    units = [one.unit for one in devices.on_node(node)]
    assert len(units) == len(set(units))


def layouts_are_legal(devices: Devices, node: str) -> None:
    for card in devices.machines[node].cards:
        assert lay_out([one.profile for one in card.instances]) is not None
        slots = [slot for one in card.instances for slot in range(one.start, one.start + one.profile.size)]
        assert len(slots) == len(set(slots))


def whoever_holds_something_runs_there(story: Story, devices: Devices, uid: str) -> None:
    given_out = devices.assignments[uid]
    holder = story.get("pods", given_out[0].pod, given_out[0].namespace)
    assert holder["metadata"]["uid"] == uid
    assert holder["spec"]["nodeName"] == given_out[0].node
    assert holder["status"]["phase"] in ("Pending", "Running")


def whoever_runs_has_what_he_asked_for(story: Story, devices: Devices) -> None:
    for one in story.all("pods"):
        node = one["spec"].get("nodeName")
        if one["status"]["phase"] != "Running" or node not in devices.machines:
            continue
        asked = {key: n // 1000 for key, n in pod_requests(one["spec"]).items() if key.startswith("nvidia.com/")}
        has: dict[str, int] = {}
        for given_out in devices.assignments.get(one["metadata"]["uid"], []):
            has[given_out.unit.resource] = has.get(given_out.unit.resource, 0) + 1
        assert has == asked


def no_more_is_allocatable_than_there_is(story: Story) -> None:
    for node in story.all("nodes"):
        for resource, amount in node["status"]["allocatable"].items():
            if resource.startswith("nvidia.com/"):
                assert int(amount) <= int(node["status"]["capacity"][resource])


def pools_count_their_machines(story: Story) -> None:
    for pool in story.all("machinedeployments", "fleet"):
        label = pool["metadata"]["name"]
        machines = [
            one
            for one in story.all("machines", "fleet")
            if one["metadata"]["labels"]["cluster.x-k8s.io/deployment-name"] == label
        ]
        assert pool["status"]["replicas"] == len(machines)
