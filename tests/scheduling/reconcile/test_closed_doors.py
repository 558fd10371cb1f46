"""A cluster whose address leads somewhere else: the operator reads why, and nothing of what is known is touched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from scheduling.connect import forget_ports
from scheduling.models import Cluster, CycleReport, Node, Placement, Transition
from scheduling.reconcile.cycle import look_after
from tests.scheduling.cluster.answering import Server, http

PAGE = b"<!doctype html><title>Sign in</title>"
OTHERS = {
    "a web page": (http(PAGE, kind="text/html"), "it answers with a web page (200)."),
    "a log-in": (
        http(b"", "302 Found", Location="https://login.example/?next=x"),
        "sends us on to login.example (302)",
    ),
    "another API": (http(b'{"items": []}'), "its server is no Kubernetes API server."),
    "nobody that knows us": (
        http(b'{"kind": "Status", "message": "Unauthorized"}', "401 Unauthorized"),
        "does not take our token (401); its row needs a token file.",
    ),
}


@contextmanager
def leading_to(cluster: Cluster, answer: bytes) -> Iterator[Server]:
    """The cluster's row leads there meanwhile."""
    server, before = Server(answer), Cluster.objects.get(pk=cluster.pk).server
    Cluster.objects.filter(pk=cluster.pk).update(server=server.url)
    try:
        yield server
    finally:
        Cluster.objects.filter(pk=cluster.pk).update(server=before)
        forget_ports()
        server.stop()


def everything_known() -> list[Any]:
    return [list(model.objects.order_by("pk").values()) for model in (Node, Placement, Transition, CycleReport)]


@pytest.mark.parametrize(("answer", "said"), OTHERS.values(), ids=OTHERS)
def test_a_stranger_behind_the_address_is_told_and_changes_nothing(harbour: Any, answer: bytes, said: str) -> None:
    row = harbour.open("notebook", "h100-80gb/whole")
    harbour.pass_time(minutes=4)
    assert harbour.read(row).phase == "running"
    known, seen_at = everything_known(), Cluster.objects.get().seen_at

    with leading_to(harbour.world.cluster, answer) as server:
        for _ in range(3):
            harbour.world.clock.advance(minutes=1)
            look_after(harbour.world.cluster.pk)
        told = Cluster.objects.get()

    assert said in told.trouble
    assert (told.seen_at, told.failed_looks) == (seen_at, 3)  # each failed look makes the pause before the next longer
    assert everything_known() == known
    assert all("bearer" not in request.lower() for request in server.requests)
    look_after(harbour.world.cluster.pk)
    assert Cluster.objects.get().trouble == ""
