"""A mirror answers looks: from its streams while they live, by lists where they do not, and never from the past."""

import json
import threading
from datetime import UTC, datetime
from datetime import timedelta as td

import pytest

from scheduling.cluster import kept, mirror
from scheduling.cluster.mirror import Mirror
from scheduling.cluster.port import ClusterError, Picture
from scheduling.cluster.sources import NODES as NODE_SOURCE
from scheduling.cluster.sources import PODS as POD_SOURCE
from tests.conftest import MORNING
from tests.scheduling.cluster.talking import IDENTITY, NODES, PODS, STATEFUL_SETS, Talking, event, listed, node

ROW = "0d6e6b52-7c1e-4f0e-9a53-8f1c2b7ad001"
OURS = {"app.kubernetes.io/managed-by": "berth", "berth.portal/workload": ROW}


def pod(version="1", name="p", *, where="n", ours=True, phase="Running", gpus=1, ready=True):
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {"cpu": "1"}
    return {
        "metadata": {"namespace": "ns", "name": name, "uid": f"uid-{name}", "resourceVersion": version,
                     "labels": OURS if ours else {}},
        "spec": {"nodeName": where, "containers": [{"name": "main", "resources": {"limits": limits}}]},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": str(ready)}]},
    }  # fmt: skip


class Rig:
    """A mirror whose streams are turned by hand."""

    def __init__(self, server=None):
        self.server = server or Talking()
        self.mirror = Mirror(self.server)
        self.rings = 0

    def ring(self):
        self.rings += 1

    def look(self, at_least=None):
        return self.mirror.observe(MORNING, at_least)

    def listens(self):
        """As if a thread of each kind had listed, and its watch stood open."""
        for one in self.mirror._kept.values():
            one.listening = True
            one.read(self.server)
            one.opened()
        self.mirror._know_identity()
        self.server.asked.clear()
        return self

    def hear(self, source, *lines):
        for line in lines:
            self.mirror._ring(self.mirror._kept[source.kind].hear(line), self.ring)

    def falls_silent(self, source, seconds=1e6):
        one = self.mirror._kept[source.kind]
        one.heard -= seconds
        one.heard_at = datetime.now(UTC) - td(seconds=seconds)


@pytest.fixture
def rig():
    return Rig()


# Looks


def test_without_streams_a_look_is_made_by_lists(rig):
    rig.server.lists[NODES] = [listed("7", node("5"))]
    began = datetime.now(UTC)

    seen = rig.look()

    assert [one.name for one in seen.nodes] == ["n"]
    assert (seen.complete, seen.age, seen.heard_at, seen.at) == (True, td(0), None, MORNING)
    rig.look()
    assert rig.server.asked.count(NODES) == 2
    assert rig.server.asked.count(IDENTITY) == 1
    assert began <= datetime.now(UTC)


def test_while_all_streams_live_a_look_asks_nothing(rig):
    rig.listens()
    rig.hear(NODE_SOURCE, event("ADDED", node("5")))

    seen = rig.look()

    assert ([one.name for one in seen.nodes], rig.server.asked) == (["n"], [])
    assert seen.complete
    assert seen.heard_at is not None


def test_w3_a_stream_that_is_silent_for_too_long_is_no_look_so_that_kind_is_listed(rig):
    """A pod that was deleted meanwhile is noticed within the bound; the picture is not called younger than it is."""
    rig.server.lists[PODS] = [listed("7", pod("5")), listed("9")]
    rig.listens()
    rig.falls_silent(POD_SOURCE, 89.0)
    assert [one.name for one in rig.look().pods] == ["p"]
    assert td(seconds=88) < rig.look().age < td(seconds=91)

    rig.falls_silent(POD_SOURCE, 2.0)
    seen = rig.look()

    assert (seen.pods, rig.server.asked, seen.complete) == ((), [PODS], True)
    assert seen.age < td(seconds=1)


def test_a_look_is_as_old_as_its_slowest_stream(rig):
    rig.listens()
    rig.falls_silent(POD_SOURCE, 30.0)

    seen = rig.look()

    assert td(seconds=29) < seen.age < td(seconds=32)
    assert datetime.now(UTC) - seen.heard_at > td(seconds=29)


def test_a_kind_that_cannot_be_listed_makes_the_look_incomplete_and_nodes_are_needed(rig):
    rig.server.lists[PODS] = [ClusterError("no")]
    seen = rig.look()
    assert (seen.complete, [(one.where, one.text) for one in seen.problems]) == (False, [("Pod", "no")])

    rig.server.lists[NODES] = [ClusterError("nobody")]
    with pytest.raises(ClusterError, match="nobody"):
        rig.look()


def test_a_right_that_is_missing_is_asked_for_by_its_own_thread_only(rig):
    rig.listens()
    one = rig.mirror._kept["Pod"]
    one.open, one.error = False, ClusterError("you may not", status=403, retry=False)

    seen = rig.look()

    assert (rig.server.asked, seen.complete, seen.problems[0].text) == ([], False, "you may not")


# What changed


def test_changed_counts_from_the_last_look_that_was_written_down(rig):
    rig.listens()
    first = rig.look()
    rig.mirror.taken(first)
    rig.hear(NODE_SOURCE, event("ADDED", node("5", "a")), event("ADDED", node("6", "b")))
    rig.hear(POD_SOURCE, event("ADDED", pod("7", where="c")))
    lost = rig.look()  # its cycle dies
    rig.hear(NODE_SOURCE, event("MODIFIED", node("8", "b", heartbeat="t1")))

    seen = rig.look()

    assert (first.changed, lost.changed, seen.changed) == (None, {"a", "b", "c"}, {"a", "b", "c"})
    rig.mirror.taken(seen)
    quiet = rig.look()
    assert (quiet.changed, quiet.revision, quiet.nodes is seen.nodes) == (frozenset(), seen.revision, True)


def test_what_changes_while_a_look_is_written_down_is_not_lost(rig):
    rig.listens()
    rig.mirror.taken(rig.look())
    seen = rig.look()
    rig.hear(NODE_SOURCE, event("ADDED", node("5", "late")))
    rig.mirror.taken(seen)

    assert rig.look().changed == {"late"}


def test_a_pod_that_moves_touches_both_its_nodes(rig):
    rig.listens()
    rig.hear(POD_SOURCE, event("ADDED", pod("5", where="a")))
    rig.mirror.taken(rig.look())
    rig.hear(POD_SOURCE, event("DELETED", pod("6", where="a")), event("ADDED", pod("7", where="b")))

    assert rig.look().changed == {"a", "b"}


RINGS = {  # after pods of ours, of others with a card, and of others without
    "our pod's reason": ([event("MODIFIED", pod("20", phase="Pending"))], 1, {"n"}),
    "our pod as it was": ([event("MODIFIED", pod("20"))], 0, set()),
    "a foreign pod with a card that goes": ([event("DELETED", pod("20", "theirs", ours=False))], 1, {"n"}),
    "a foreign pod with a card that is not ready": (
        [event("MODIFIED", pod("20", "theirs", ours=False, ready=False))], 0, set(),
    ),
    "a foreign pod with a card that is over": (
        [event("MODIFIED", pod("20", "theirs", ours=False, phase="Succeeded"))], 1, {"n"},
    ),
    "a foreign pod without a card: seen, but nobody is woken": (
        [event("DELETED", pod("20", "small", ours=False, gpus=0))], 0, {"n"},
    ),
    "a foreign pod without a card that restarts": (
        [event("MODIFIED", pod("20", "small", ours=False, gpus=0, ready=False))], 0, set(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", RINGS)
def test_what_rings_and_what_counts_as_changed(rig, case):
    lines, rings, changed = RINGS[case]
    pods = [pod("5"), pod("6", "theirs", ours=False), pod("7", "small", ours=False, gpus=0)]
    rig.server.lists[PODS] = [listed("9", *pods)]
    rig.listens()
    rig.mirror.taken(rig.look())

    rig.hear(POD_SOURCE, *lines)

    assert (rig.rings, rig.look().changed) == (rings, changed)


# Our own writes


def test_our_own_write_is_seen_at_once_and_its_echo_changes_nothing(rig):
    rig.server.lists[NODES] = [listed("7", node("5"))]
    rig.listens()
    rig.mirror.taken(rig.look())
    written = node("9") | {"spec": {"unschedulable": True}}

    rig.mirror.wrote("Node", json.dumps(written).encode())

    assert rig.look().changed == {"n"}
    assert not rig.look().nodes[0].schedulable
    revision = rig.look().revision
    rig.hear(NODE_SOURCE, event("MODIFIED", node("8")), event("MODIFIED", written))
    assert (rig.rings, rig.look().revision) == (0, revision)


def test_what_we_removed_stays_removed_whatever_the_stream_still_says(rig):
    rig.server.lists[PODS] = [listed("7", pod("5"))]
    rig.listens()

    rig.mirror.removed("Pod", ("ns", "p"), "uid-p")
    rig.hear(POD_SOURCE, event("MODIFIED", pod("8", ready=False)))

    assert rig.look().pods == ()


def test_a_part_of_an_object_is_amended(rig):
    item = {"metadata": {"namespace": "ns", "name": "s", "uid": "u", "resourceVersion": "5", "labels": OURS},
            "spec": {"replicas": 1}}  # fmt: skip
    rig.server.lists[STATEFUL_SETS] = [listed("7", item)]
    rig.listens()

    rig.mirror.amended("StatefulSet", ("ns", "s"), "8", replicas=0)
    rig.mirror.amended("StatefulSet", ("ns", "not there"), "9", replicas=0)

    assert [found.replicas for found in rig.look().objects] == [0]
    assert rig.mirror.find("StatefulSet", ("ns", "s")).version == 8


# After other processes


def pictured(**versions):
    return Picture("another mirror", "this cluster", {"Node": 1, "Pod": 1, "StatefulSet": 1, "Job": 1} | versions)


def test_who_is_not_behind_asks_nothing(rig):
    rig.listens()

    rig.look(at_least=pictured())

    assert rig.server.asked == []


def test_r5_who_is_behind_what_another_wrote_lists_before_it_looks(rig, monkeypatch):
    monkeypatch.setattr(mirror, "PATIENCE", 0.0)
    rig.server.lists[PODS] = [listed("7"), listed("21", pod("20"))]
    rig.listens()

    seen = rig.look(at_least=pictured(Pod=20))

    assert ([one.name for one in seen.pods], rig.server.asked) == (["p"], [PODS])
    rig.server.asked.clear()
    rig.look(at_least=pictured(Pod=20))
    assert rig.server.asked == []


def test_who_is_about_to_hear_of_it_waits_a_moment(rig, monkeypatch):
    monkeypatch.setattr(mirror, "PATIENCE", 10.0)
    rig.listens()
    late = threading.Timer(0.05, rig.hear, [POD_SOURCE, event("ADDED", pod("20"))])
    late.start()

    seen = rig.look(at_least=pictured(Pod=20))
    late.join()

    assert ([one.name for one in seen.pods], rig.server.asked) == (["p"], [])


def test_what_is_handed_on_is_not_less_than_what_was_asked_for(rig):
    rig.listens()
    rig.mirror._kept["Pod"].shelf.heard(99)

    rig.look(at_least=pictured(Pod=50))

    assert rig.mirror.picture().versions["Pod"] == 50
    assert rig.mirror.picture().by == rig.mirror.token


def test_after_one_that_died_in_the_middle_everything_is_listed(rig):
    rig.listens()

    rig.look(at_least=Picture("another mirror", "this cluster", {}, torn=True))

    assert rig.server.asked == [NODES, PODS, STATEFUL_SETS, "/apis/batch/v1/jobs"]


def test_who_looked_last_itself_is_not_behind_its_own_writes(rig):
    rig.listens()
    rig.mirror.wrote("Node", json.dumps(node("500")).encode())

    rig.look(at_least=rig.mirror.picture())

    assert rig.server.asked == []


def test_versions_that_cannot_be_compared_are_listed(rig, monkeypatch):
    monkeypatch.setattr(mirror, "PATIENCE", 0.0)
    rig.server.lists[PODS] = [listed("abc")]
    rig.listens()

    rig.look(at_least=Picture("another mirror", "this cluster", {"Node": 1, "StatefulSet": 1, "Job": 1}))

    assert rig.server.asked == [PODS]


# A server that answers from its past


def test_r5_an_old_list_is_not_a_look(rig):
    """The list shows the cluster as it was before our own write; a second card would be given out on it."""
    rig.server.lists[PODS] = [listed("7"), listed("7"), listed("21", pod("20"))]
    rig.look()
    rig.mirror.wrote("Pod", json.dumps(pod("20")).encode())

    stale = rig.look()

    assert not stale.complete
    assert "answered from its past: its Pod list is of version 7, and 20 was seen before" in stale.problems[0].text
    assert [one.name for one in stale.pods] == ["p"]
    assert rig.look().complete


def test_r5_an_old_list_of_nodes_is_no_look_at_all(rig):
    rig.server.lists[NODES] = [listed("20", node("20")), listed("7")]
    rig.look()

    with pytest.raises(ClusterError, match="answered from its past"):
        rig.look()


def test_r5_a_list_that_is_older_than_what_another_process_saw_is_not_a_look_either(rig):
    rig.server.lists[PODS] = [listed("7")]

    assert not rig.look(at_least=pictured(Pod=20)).complete


def test_a_server_that_insists_was_restored_from_a_backup(rig, monkeypatch):
    rig.server.lists[NODES] = [listed("20", node("20"), node("19", "m")), listed("7", node("5"))]
    rig.look()
    with pytest.raises(ClusterError):
        rig.look()
    monkeypatch.setattr(kept, "PAST", 0.0)

    assert [one.name for one in rig.look().nodes] == ["n"]
    assert rig.mirror.picture().versions["Node"] == 7


def test_another_cluster_at_the_same_address_is_taken_as_it_is(rig):
    """A simulation that was started anew counts from one again."""
    rig.server.lists[NODES] = [listed("20", node("20"), node("19", "m")), listed("7", node("5"))]
    rig.server.lists[PODS] = [listed("20", pod("20")), listed("7")]
    rig.look()
    rig.server.lists[IDENTITY] = [{"metadata": {"uid": "another cluster"}}]

    seen = rig.look()

    assert ([one.name for one in seen.nodes], seen.pods, seen.complete) == (["n"], (), True)
    assert rig.mirror.picture().identity == "another cluster"


def test_what_was_seen_of_another_cluster_binds_nobody(rig):
    rig.server.lists[IDENTITY] = [{"metadata": {"uid": "another cluster"}}]

    assert rig.look(at_least=pictured(Pod=9_000, Node=9_000)).complete


# Real threads on the simulation


def test_a_change_in_the_cluster_rings_and_is_seen_without_a_call(harbour, monkeypatch):
    rung = threading.Event()
    harbour.port.watch(rung.set)
    until(lambda: harbour.port.observe(harbour.now).heard_at)
    name = harbour.port.observe(harbour.now).nodes[0].name
    rung.clear()

    harbour.cluster.faults.card_sick(name)

    assert rung.wait(10)
    monkeypatch.setattr(harbour.port._api, "ask", None)
    assert [one.sick_cards for one in harbour.port.observe(harbour.now).nodes if one.name == name] == [1]


def test_the_whole_of_berth_runs_on_a_mirror(harbour):
    """The story of a workspace, with looks that are answered from watches."""
    harbour.port.watch(lambda: None)
    until(lambda: harbour.port.observe(harbour.now).heard_at)
    row = harbour.open("notebook", "h100-80gb/whole")
    for _ in range(40):
        harbour.turn(seconds=15)
        harbour.settle()
        if harbour.read(row).phase == "running":
            break
        threading.Event().wait(0.02)

    assert harbour.read(row).phase == "running"


def until(holds):
    for _ in range(1_000):
        if holds():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it did not come to pass")
