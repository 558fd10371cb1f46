"""Watches ring for what matters, and start anew after whatever breaks them."""

import json
from itertools import islice

import pytest

from scheduling.cluster import mirror
from scheduling.cluster.mirror import NODES, PODS, Watch, gist
from scheduling.cluster.port import ClusterError


def event(change, **item):
    return json.dumps({"type": change, "object": item}).encode()


def node(version="1", *, ready="True", heartbeat="t0", **changes):
    return {
        "metadata": {"uid": "u", "name": "n", "resourceVersion": version, "labels": {"a": "b"}},
        "spec": {},
        "status": {"conditions": [{"type": "Ready", "status": ready, "lastHeartbeatTime": heartbeat}]},
        **changes,
    }


RINGS = {
    "a new node": ([event("ADDED", **node())], 1),
    "a heartbeat": ([event("ADDED", **node()), event("MODIFIED", **node("2", heartbeat="t1"))], 1),
    "no longer ready": ([event("ADDED", **node()), event("MODIFIED", **node("2", ready="False"))], 2),
    "gone": ([event("ADDED", **node()), event("DELETED", **node("2"))], 2),
    "gone and back the same": ([event("ADDED", **node()), event("DELETED", **node()), event("ADDED", **node())], 3),
    "a bookmark": ([event("BOOKMARK", metadata={"resourceVersion": "9"})], 0),
    "an empty line": ([b"", b"  "], 0),
    "a line that is no JSON": ([b"{nonsense"], 1),
    "an event without an object": ([b'{"type": "ADDED"}'], 1),
    "an object that is none": ([b'{"type": "ADDED", "object": null}', b'{"type": "DELETED", "object": "x"}'], 2),
    "parts of the wrong kind": ([event("ADDED", metadata=[1], status="odd", spec=7)], 1),
    "no object but a list": ([b"[1, 2]", b"7", b'"ADDED"'], 3),
    "nested without end": ([b"[" * 100_000], 1),
    "an error without words": ([b'{"type": "ERROR", "object": null}'], 1),
    "an unknown type": ([event("WHATEVER", **node())], 1),
}


class Scripted:
    """A port whose watch says these lines."""

    def __init__(self, lines):
        self.said = lines

    def version(self, path, query):
        return "1"

    def lines(self, path, *, query, silence):
        assert query["resourceVersion"] == "1"
        yield from self.said


@pytest.mark.parametrize("case", RINGS)
def test_what_rings(case):
    lines, expected = RINGS[case]

    assert len(list(Watch(Scripted(lines), NODES).rings())) - 1 == expected


def test_gone_as_an_event_ends_the_watch_with_its_words():
    """W1: 410 arrives as an ERROR event too."""
    gone = event("ERROR", kind="Status", code=410, message="too old resource version")

    with pytest.raises(ClusterError, match="too old resource version"):
        list(Watch(Scripted([gone]), NODES).rings())


def test_the_gist_knows_no_heartbeats():
    assert gist(node("1")) == gist(node("2", heartbeat="t9"))
    assert gist(node("1")) != gist(node("1", ready="Unknown"))


def test_a_change_in_the_cluster_rings(harbour):
    rings = Watch(harbour.port, NODES).rings()
    next(rings)
    name = harbour.port.observe(harbour.now).nodes[0].name
    harbour.port.cordon(name, on=True, marks={})

    assert next(rings) is None
    rings.close()


def test_only_our_pods_ring(harbour):
    rings = Watch(harbour.port, PODS).rings()
    next(rings)
    harbour.open("notebook", "h100-80gb/whole")
    harbour.settle()

    assert list(islice(rings, 1)) == [None]
    rings.close()


def test_a_silent_stream_is_given_up(harbour, monkeypatch):
    """W3: the server takes the watch and never says anything."""
    monkeypatch.setattr(mirror, "SILENCE", 0.2)
    rings = Watch(harbour.port, PODS).rings()
    next(rings)

    with pytest.raises(ClusterError, match="went silent"):
        next(rings)
