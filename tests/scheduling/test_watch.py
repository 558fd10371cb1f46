"""How often a cluster is listened to that hangs up, and when patience begins anew."""

from types import SimpleNamespace

import pytest

from scheduling import watch
from scheduling.cluster.port import ClusterError
from scheduling.watch import Bell, Ear

HANGS_UP = [None]
SPEAKS = [None, None]


class Patience:
    """In place of an event: notes how long somebody would wait, and stops after so many times."""

    def __init__(self, most):
        self.most = most
        self.pauses = []

    def is_set(self):
        return len(self.pauses) >= self.most

    def wait(self, seconds):
        self.pauses.append(seconds)


@pytest.fixture
def listened(monkeypatch):
    """The pauses between streams; each stream is a list of rings, or a fault."""

    def listen(*streams):
        left, stop = list(streams), Patience(len(streams))

        def rings():
            stream = left.pop(0)
            if isinstance(stream, Exception):
                raise stream
            yield from stream

        monkeypatch.setattr(watch, "port_of", lambda cluster_id: None)
        monkeypatch.setattr(watch, "Watch", lambda port, collection: SimpleNamespace(rings=rings))
        bell = Bell(1, stop)
        Ear("harbour-1", 0, bell).listen()
        assert bell.pulled.is_set()
        return stop.pauses

    return listen


def test_a_server_that_hangs_up_at_once_is_asked_less_and_less_often(listened):
    assert listened(*[HANGS_UP] * 8) == [0.5, 1, 2, 4, 8, 16, 30, 30]


def test_so_is_one_that_refuses(listened):
    assert listened(HANGS_UP, *[ClusterError("no")] * 3) == [0.5, 1, 2, 4]


def test_news_are_worth_a_quick_return(listened):
    assert listened(HANGS_UP, HANGS_UP, SPEAKS, HANGS_UP) == [0.5, 1, 0.5, 1]
