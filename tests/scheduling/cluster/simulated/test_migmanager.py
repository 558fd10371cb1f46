"""Cutting a node: what the MIG manager says, when, and what it refuses."""

from typing import Any

import pytest

from tests.scheduling.cluster.simulated.stories import BALANCED, SHARED, TRAIN, UNCUT, Story, config_map, on_node, pod

STATE = "nvidia.com/mig.config.state"
EXPORTER = f"nvidia-dcgm-exporter-{UNCUT}"


def state(story: Story, node: str = UNCUT) -> str:
    return story.labels(node)[STATE]


def test_a_cut_goes_from_a_stale_success_over_pending_to_success(fleet: Story) -> None:
    fleet.cut(UNCUT, "all-1g.10gb")
    assert state(fleet) == "success"  # nobody has looked at the label yet

    fleet.advance(seconds=1)
    assert state(fleet) == "pending"

    fleet.advance(seconds=39)
    assert state(fleet) == "pending"
    fleet.advance(seconds=1)
    assert state(fleet) == "success"
    assert fleet.allocatable(UNCUT) == {"gpu": 0, "mig-1g.10gb": 14}


def test_labels_follow_the_cut(fleet: Story) -> None:
    fleet.cut(UNCUT, "all-balanced")
    fleet.advance(minutes=1)

    ours, theirs = fleet.labels(UNCUT), fleet.labels(BALANCED)
    differing = {key for key in ours | theirs if ours.get(key) != theirs.get(key)}
    assert differing == {"kubernetes.io/hostname", "nvidia.com/gfd.timestamp"}


def test_while_it_cuts_nothing_can_be_placed_and_nothing_is_measured(fleet: Story) -> None:
    fleet.cut(UNCUT, "all-1g.10gb")
    fleet.advance(seconds=10)

    assert fleet.allocatable(UNCUT) == {"gpu": 0}
    assert fleet.node(UNCUT)["status"]["capacity"]["nvidia.com/gpu"] == "2"
    assert fleet.labels(UNCUT)["nvidia.com/gpu.deploy.device-plugin"] == "paused-for-mig-change"
    assert fleet.find("pods", EXPORTER, "gpu-operator") is None

    fleet.advance(minutes=1)
    assert fleet.labels(UNCUT)["nvidia.com/gpu.deploy.device-plugin"] == "true"
    assert fleet.phase(EXPORTER, "gpu-operator") == "Running"


def test_a_pod_that_waited_for_the_slice_gets_it(fleet: Story) -> None:
    fleet.create(pod("p", {"nvidia.com/mig-1g.10gb": "1"}, affinity=on_node(UNCUT)))
    assert "Insufficient nvidia.com/mig-1g.10gb" in fleet.refusal("p")

    fleet.cut(UNCUT, "all-1g.10gb")
    fleet.advance(minutes=2)

    assert fleet.phase("p") == "Running"


def test_it_neither_cordons_nor_drains_and_fails_on_a_gpu_in_use(fleet: Story) -> None:
    fleet.create(pod("p", {"nvidia.com/gpu": "1"}, affinity=on_node(UNCUT)))
    fleet.advance(minutes=1)

    fleet.cut(UNCUT, "all-1g.10gb")
    fleet.advance(minutes=1)

    assert state(fleet) == "failed"
    assert "unschedulable" not in fleet.node(UNCUT)["spec"]
    assert fleet.phase("p") == "Running"
    assert fleet.allocatable(UNCUT) == {"gpu": 2}


def test_after_a_failure_another_wish_is_tried(fleet: Story) -> None:
    fleet.cut(UNCUT, "all-9g.90gb")
    fleet.advance(minutes=1)
    assert state(fleet) == "failed"

    fleet.cut(UNCUT, "all-3g.40gb")
    fleet.advance(minutes=1)

    assert state(fleet) == "success"
    assert fleet.allocatable(UNCUT) == {"gpu": 0, "mig-3g.40gb": 4}


def test_the_same_wish_again_is_not_tried_by_itself(fleet: Story) -> None:
    fleet.cut(UNCUT, "all-9g.90gb")
    fleet.advance(minutes=1)

    fleet.merge("nodes", UNCUT, {"metadata": {"labels": {"touched": "yes"}}})
    fleet.advance(minutes=5)

    assert state(fleet) == "failed"


def test_a_wish_that_changes_while_it_cuts_is_worked_after(fleet: Story) -> None:
    fleet.cut(UNCUT, "all-1g.10gb")
    fleet.advance(seconds=20)
    fleet.cut(UNCUT, "all-3g.40gb")

    fleet.advance(seconds=30)
    assert state(fleet) == "pending"

    fleet.advance(minutes=1)
    assert fleet.allocatable(UNCUT) == {"gpu": 0, "mig-3g.40gb": 4}


NAMES: dict[str, tuple[str, dict[str, int] | None]] = {
    "off": ("all-disabled", {"gpu": 2}),
    "on and empty": ("all-enabled", {"gpu": 0}),
    "one profile": ("all-2g.20gb", {"gpu": 0, "mig-2g.20gb": 6}),
    "a media profile": ("all-1g.10gb.me", {"gpu": 0, "mig-1g.10gb.me": 2}),
    "balanced": ("all-balanced", {"gpu": 0, "mig-1g.10gb": 4, "mig-2g.20gb": 2, "mig-3g.40gb": 2}),
    "a profile of another board": ("all-1g.5gb", None),
    "a name that nobody knows": ("notebooks", None),
}


@pytest.mark.parametrize(("name", "expected"), NAMES.values(), ids=NAMES)
def test_config_names(fleet: Story, name: str, expected: dict[str, int] | None) -> None:
    before = fleet.allocatable(BALANCED)

    fleet.cut(BALANCED, name)
    fleet.advance(minutes=1)

    assert state(fleet, BALANCED) == ("failed" if expected is None else "success")
    assert fleet.allocatable(BALANCED) == (before if expected is None else expected)


def configs(text: str, name: str = "berth-mig-parted-config") -> dict[str, Any]:
    return config_map(name, {"config.yaml": text}, namespace="gpu-operator")


OWN = """
version: v1
mig-configs:
  berth-1:
    - devices: [0]
      mig-enabled: true
      mig-devices: {"3g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2}
    - devices: [1]
      mig-enabled: false
  too-much:
    - devices: all
      mig-enabled: true
      mig-devices: {"3g.40gb": 2, "1g.10gb": 1}
  for-others:
    - devices: all
      device-filter: "0x20B010DE"
      mig-enabled: true
      mig-devices: {"1g.5gb": 7}
  for-us:
    - devices: all
      device-filter: ["0x20B010DE", "0x233010DE"]
      mig-enabled: true
      mig-devices: {"7g.80gb": 1}
  no-such-card:
    - devices: [5]
      mig-enabled: true
  unknown-field:
    - devices: all
      mig-enabled: true
      colour: blue
  unknown-profile:
    - devices: all
      mig-enabled: true
      mig-devices: {"1g.5gb": 1}
"""
CUSTOM: dict[str, tuple[str, dict[str, int] | None]] = {
    "card by card": ("berth-1", {"gpu": 1, "mig-3g.40gb": 1, "mig-2g.20gb": 1, "mig-1g.10gb": 2}),
    "more than fits": ("too-much", None),
    "a filter for another board": ("for-others", {"gpu": 2}),
    "a filter that names this board": ("for-us", {"gpu": 0, "mig-7g.80gb": 2}),
    "a card that is not there": ("no-such-card", None),
    "a field that the schema does not have": ("unknown-field", None),
    "a profile that the board does not have": ("unknown-profile", None),
}


@pytest.mark.parametrize(("name", "expected"), CUSTOM.values(), ids=CUSTOM)
def test_custom_configs(fleet: Story, name: str, expected: dict[str, int] | None) -> None:
    fleet.create(configs(OWN))

    fleet.cut(UNCUT, name)
    fleet.advance(minutes=1)

    assert state(fleet) == ("failed" if expected is None else "success")
    assert fleet.allocatable(UNCUT) == ({"gpu": 2} if expected is None else expected)


def test_the_operators_own_map_is_read_too(fleet: Story) -> None:
    fleet.create(configs(OWN, "default-mig-parted-config"))

    fleet.cut(UNCUT, "berth-1")
    fleet.advance(minutes=1)

    assert state(fleet) == "success"


BROKEN = {
    "no YAML": "{",
    "no version": "mig-configs: {a: []}",
    "no configs": "version: v1",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_broken_map_fails_the_cut_and_says_why(fleet: Story, text: str) -> None:
    fleet.create(configs(text))

    fleet.cut(UNCUT, "a")
    fleet.advance(minutes=1)

    assert state(fleet) == "failed"
    assert fleet.events(UNCUT) == ["MigConfigFailed"]


def test_boards_without_mig_are_left_alone(fleet: Story) -> None:
    fleet.cut(SHARED, "all-1g.5gb")
    fleet.advance(minutes=1)

    assert STATE not in fleet.labels(SHARED)


def test_a_whole_pool_can_be_cut_where_mig_is_mixed(fleet: Story) -> None:
    fleet.cut(TRAIN, "all-1g.10gb")
    fleet.advance(minutes=1)

    assert fleet.allocatable(TRAIN) == {"gpu": 0, "mig-1g.10gb": 56}
