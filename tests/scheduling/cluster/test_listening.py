"""An ear lists, listens, and begins again after whatever breaks; it is never in haste."""

import json
import threading

import pytest

from scheduling.cluster import listening
from scheduling.cluster.kept import Kept
from scheduling.cluster.listening import Ear
from scheduling.cluster.port import ClusterError, WentSilent
from scheduling.cluster.sources import NODES as SOURCE
from scheduling.providers.cluster_api import DEPLOYMENTS
from tests.scheduling.cluster.talking import NODES, Talking, bookmark, event, listed, node

GONE = ClusterError("too old", status=410)
GONE_EVENT = event("ERROR", kind="Status", code=410, message="too old resource version")


class Rig:
    """One ear, turned by hand. `pauses` are what it would rest."""

    def __init__(self, source=SOURCE):
        self.server = Talking()
        self.rings = []
        self.kept = Kept(source, lambda changes: None, threading.Condition(threading.RLock()))
        self.ear = Ear(self.kept, self.server, 90.0, threading.Event(), self.rings.extend, lambda: False)
        self.kept.listening = True

    def turn(self, *stream):
        self.server.streams[NODES] = [list(stream)]
        return self.ear.turn()

    @property
    def names(self):
        return [fact.name for fact in self.kept.shelf.facts]

    @property
    def watched_from(self):
        return [version for _, version in self.server.watched]


@pytest.fixture
def rig(monkeypatch):
    monkeypatch.setattr(listening.random, "uniform", lambda low, high: 1.0)
    return Rig()


def test_it_watches_from_where_the_list_stood_and_goes_on_where_the_stream_ended(rig):
    rig.server.lists[NODES] = [listed("7", node("5"))]
    rig.turn(event("ADDED", node("8", "m")), bookmark("12"))
    rig.turn(event("DELETED", node("13", "m")))
    rig.turn()

    assert rig.watched_from == ["7", "12", "13"]
    assert rig.server.asked == [NODES]
    assert rig.names == ["n"]


SAID = {  # lines after a list with the node n of version 5 -> what is known, and how many changes were told
    "nothing": ([], ["n"], 0),
    "an empty line": ([b"", b"  "], ["n"], 0),
    "another node": ([event("ADDED", node("8", "m"))], ["m", "n"], 1),
    "a heartbeat": ([event("MODIFIED", node("8", heartbeat="t1"))], ["n"], 0),
    "no longer ready": ([event("MODIFIED", node("8", ready="False"))], ["n"], 1),
    "gone": ([event("DELETED", node("8"))], [], 1),
    "gone and back": ([event("DELETED", node("8")), event("ADDED", node("9", uid="new"))], ["n"], 2),
    "the same twice": ([event("ADDED", node("8", "m"))] * 2, ["m", "n"], 1),
    "gone twice": ([event("DELETED", node("8"))] * 2, [], 1),
    "an older word after a newer": (
        [event("MODIFIED", node("9", ready="False")), event("MODIFIED", node("8"))], ["n"], 1,
    ),
    "an older word after its end": ([event("DELETED", node("9")), event("MODIFIED", node("8"))], [], 1),
    "two nodes in the wrong order": (
        [event("ADDED", node("9", "m")), event("ADDED", node("8", "l"))], ["l", "m", "n"], 2,
    ),
    "a word that nobody knows": ([event("WHATEVER", node("8", "m"))], ["n"], 0),
    "an object without uid": ([event("ADDED", {"metadata": {"name": "m", "resourceVersion": "8"}})], ["m", "n"], 1),
    "an object of two megabytes": (
        [event("ADDED", node("8", "m") | {"annotations": {"x": "y" * 2**21}})], ["m", "n"], 1,
    ),
    "parts of the wrong kind": (
        [event("ADDED", {"metadata": {"name": "m", "uid": "u", "labels": 7}, "spec": 7, "status": "odd"})],
        ["m", "n"], 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SAID)
def test_what_is_made_of_what_is_said(rig, case):
    lines, names, changes = SAID[case]
    rig.server.lists[NODES] = [listed("7", node("5"))]
    rig.turn()
    rig.rings.clear()

    rig.turn(*lines)

    assert (rig.names, len(rig.rings)) == (names, changes)
    assert rig.server.asked == [NODES]


UNREADABLE = {
    "no JSON": b"{nonsense",
    "half an object": event("ADDED", node("8", "m"))[:-9],
    "no object but a list": b"[1, 2]",
    "nested without end": b"[" * 100_000,
    "no object": b'{"type": "ADDED", "object": null}',
    "an object without a name": event("ADDED", {"metadata": {"uid": "u"}}),
    "bytes that are no text": b'{"type": "ADDED", "object": {"metadata": {"name": "\xff"}}}',
}


@pytest.mark.parametrize("line", UNREADABLE.values(), ids=UNREADABLE)
def test_a_line_that_cannot_be_read_may_have_been_a_change_so_it_is_listed(rig, line):
    rig.server.lists[NODES] = [listed("7", node("5")), listed("9", node("5"), node("8", "m"))]

    pause = rig.turn(line, event("ADDED", node("99", "never heard")))
    rig.turn()

    assert pause > 0
    assert rig.names == ["m", "n"]
    assert rig.kept.odd is not None


def test_unknown_words_are_a_problem_to_be_told(rig):
    rig.turn(event("WHATEVER", node("8")))

    assert rig.kept.odd.text == "the watch says 'WHATEVER', which is ignored"


# Streams that break


@pytest.mark.parametrize("end", [GONE, GONE_EVENT], ids=["as a status", "as an event"])
def test_w1_after_410_it_lists_anew_at_once_and_sees_what_happened_meanwhile(rig, end):
    """D31: what changed between is seen, what vanished is removed, and then it watches from the new list."""
    rig.server.lists[NODES] = [listed("7", node("5"), node("6", "m")), listed("50", node("40", ready="False"))]
    pause = rig.turn(bookmark("12"), end)
    rig.rings.clear()
    rig.turn()

    assert pause == 0.0
    assert rig.names == ["n"]
    assert [(change.before.name, change.after and change.after.ready) for change in rig.rings] == [
        ("m", None), ("n", False),
    ]  # fmt: skip
    assert rig.watched_from == ["7", "50"]


def test_a_server_that_always_says_410_is_not_run_down(rig):
    assert [rig.turn(GONE) for _ in range(5)] == [0.0, 1.0, 2.0, 4.0, 8.0]


def test_w3_a_stream_that_went_silent_is_listed(rig):
    """D32: a half-open connection."""
    rig.server.lists[NODES] = [listed("7", node("5")), listed("9")]
    rig.turn(WentSilent("The cluster went silent."))

    assert not rig.kept.is_current(90.0)
    rig.turn()

    assert rig.names == []
    assert rig.kept.is_current(90.0)


def test_a_stream_that_was_cut_goes_on_where_it_was_without_a_list(rig):
    rig.turn(bookmark("12"), ClusterError("connection reset"))
    assert not rig.kept.is_current(90.0)
    rig.turn()

    assert (rig.server.asked, rig.watched_from) == ([NODES], ["1", "12"])


def test_a_watch_that_goes_back_in_time_is_not_believed(rig):
    """Another server answers, one that was restored or is behind."""
    rig.server.lists[NODES] = [listed("700", node("5"))]

    assert rig.turn(bookmark("12")) == 0.0
    assert rig.kept.resume == ""


def test_a_server_that_hangs_up_at_once_is_asked_less_and_less_often(rig):
    assert [rig.turn() for _ in range(9)] == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]


def test_pauses_are_not_the_same_for_all_who_failed_together(monkeypatch):
    rigs = [Rig() for _ in range(20)]

    assert len({one.turn() for one in rigs}) > 10


@pytest.mark.parametrize("status", [401, 403])
def test_who_may_not_is_not_in_haste(rig, status):
    rig.server.lists[NODES] = [ClusterError("you may not", status=status, retry=False)]

    assert [rig.turn() for _ in range(6)] == [30, 60, 120, 240, 300, 300]
    assert rig.kept.error.status == status
    assert not rig.kept.is_current(1e9)


def test_a_server_that_says_when_is_taken_at_its_word(rig):
    rig.server.lists[NODES] = [ClusterError("too many", status=429, after=70.0)]

    assert rig.turn() == 70.0


def test_what_nobody_foresaw_does_not_end_the_loop(rig, caplog):
    pause = rig.turn(RuntimeError("a fault of ours"))
    rig.server.lists[NODES] = [listed("9", node("8"))]
    rig.turn()

    assert (pause, rig.names) == (0.5, ["n"])
    assert "it begins anew" in caplog.text


def test_a_kind_that_is_not_served_is_said_and_looked_for_rarely(monkeypatch):
    rig = Rig(DEPLOYMENTS)

    assert rig.ear.turn() == listening.RARELY
    assert rig.server.asked == list(DEPLOYMENTS.paths)
    assert [problem.text for problem in rig.kept.problems] == [DEPLOYMENTS.missing]
    assert (rig.server.watched, rig.kept.is_current(90.0)) == ([], True)


def test_a_kind_that_is_served_later_is_found(monkeypatch):
    rig = Rig(DEPLOYMENTS)
    rig.ear.turn()
    rig.server.lists[DEPLOYMENTS.paths[1]] = [listed("9", {"metadata": {"name": "md", "namespace": "fleet"}})]

    rig.ear.turn()

    assert [size.pool for size in rig.kept.shelf.facts] == ["md"]
    assert (rig.kept.problems, rig.server.watched) == ((), [(DEPLOYMENTS.paths[1], "9")])


def test_versions_that_are_no_numbers_are_handed_back_as_they_are(rig):
    rig.server.lists[NODES] = [listed("abc", node("x"))]
    rig.turn(event("MODIFIED", node("y", ready="False")), bookmark("def"))
    rig.turn()

    assert rig.watched_from == ["abc", "def"]
    assert not rig.kept.shelf.facts[0].ready


def test_listening_ends_when_it_is_told_to(rig):
    rig.ear.stop.set()

    rig.ear.listen()

    assert (rig.server.asked, rig.kept.listening) == ([], False)


def test_memory_follows_the_objects_and_not_the_talk(rig):
    rig.server.lists[NODES] = [listed("7", node("5"))]
    rig.turn(*[event("MODIFIED", node(str(10 + n), heartbeat=f"t{n}")) for n in range(2_000)])

    assert len(rig.kept.shelf.items) == 1
    assert len(json.dumps(str(rig.kept.shelf.items))) < 5_000
