"""What a server may do to a watch, by the fault proxy before either cluster; numbered as in docs/reliability.md.

Whatever it says or does not say: in the end the mirror is what a list shows, and what happened meanwhile is in it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from scheduling.cluster.api import MERGE
from scheduling.cluster.client import KubernetesPort
from tests.contract.conftest import Rig
from tests.contract.launches import NOTEBOOK, WORKSPACE_REF, put_all
from tests.contract.test_watches import eventually, facts_of, listed
from tests.faults import deeds
from tests.faults.deeds import Answer, Shape
from tests.faults.proxy import Proxy, between

KINDS = 5  # streams of one mirror
MUCH = "x" * 2_000_000


def line(word: str, **meta: Any) -> bytes:
    return json.dumps({"type": word, "object": {"metadata": meta}}).encode()


HUGE = {"name": "huge", "namespace": "default", "uid": "huge", "annotations": {"example.org/all": MUCH}}
NAMELESS = {"name": "a", "namespace": "b"}
ODD_LINES: dict[str, tuple[bytes, ...]] = {
    "no JSON": (b'{"type": "MODIFIED", "object": {"metadata": ',),
    "an unknown type": (line("TELEPORTED", name="a", uid="b"),),
    "no object": (b'{"type": "ADDED"}',),
    "a list": (b"[1, 2, 3]",),
    "null": (b"null",),
    "deleted, and nobody knew it": (line("DELETED", name="a", uid="never-seen"),),
    "a bookmark without a version": (line("BOOKMARK"),),
    "an error without a code": (b'{"type": "ERROR", "object": null}',),
    "without a uid": (line("ADDED", **NAMELESS) + b"\n" + line("DELETED", **NAMELESS),),
    "two megabytes of nothing": (line("ODD", name=MUCH),),
    "an object of two megabytes": (line("ADDED", **HUGE) + b"\n" + line("DELETED", **HUGE),),
}


@contextmanager
def listening(cluster: Rig, prepare: Callable[[Proxy], Any], *, silence: float = 60.0) -> Iterator[tuple[Rig, Proxy]]:
    """The rig with a port that watches through a proxy with this script."""
    straight = cluster.port._api._connection
    with between(straight.server, authority_file=straight.authority_file, seed=31) as proxy:
        prepare(proxy)
        here = replace(straight, server=proxy.url, authority_file="")
        with KubernetesPort(here, silence=silence) as port:
            port.watch(Event().set)
            yield replace(cluster, port=port), proxy


def change(cluster: Rig, number: int) -> None:
    """What others do, past the proxy: nodes are cordoned and opened."""
    nodes = sorted(node.name for node in listed(cluster).nodes)
    body = {"spec": {"unschedulable": number % 2 == 0 or None}}
    cluster.door.ask("PATCH", f"/api/v1/nodes/{nodes[number % len(nodes)]}", body=body, content=MERGE)


def comes_right(rig: Rig, cluster: Rig) -> None:
    """The mirror, watching, is what a list past the proxy shows."""
    eventually(lambda: rig.look().heard_at is not None and facts_of(rig.look()) == facts_of(listed(cluster)), cluster)


GONE: dict[str, Any] = {
    "as an HTTP status": Answer(410, message="too old resource version", reason="Expired"),
    "as an ERROR event": Shape(deeds.begun_with(deeds.error_event(410, "Expired"))),
}


@pytest.mark.parametrize("gone", GONE.values(), ids=GONE)
def test_31_410_lists_anew_and_shows_what_changed_in_between(cluster: Rig, gone: Any) -> None:
    def script(proxy: Proxy) -> None:
        proxy.on(gone, watch=True, times=KINDS)

    with listening(cluster, script) as (rig, proxy):
        change(cluster, 0)
        put_all(cluster.port, replace(NOTEBOOK, node="nowhere"))
        eventually(lambda: proxy.met()[type(gone).__name__.lower()] == KINDS, cluster)
        comes_right(rig, cluster)
        watches = sum(call.watch for call in proxy.history)
        cluster.port.remove(WORKSPACE_REF)
        change(cluster, 1)
        comes_right(rig, cluster)

        assert watches <= 4 * KINDS, "no hot loop"


def test_32_a_stream_that_says_nothing_is_given_up_and_listed_anew(cluster: Rig) -> None:
    def script(proxy: Proxy) -> None:
        proxy.on(Shape(deeds.silent_after(0)), watch=True, times=KINDS)

    with listening(cluster, script, silence=1.5) as (rig, proxy):
        eventually(lambda: proxy.met()["shape"] == KINDS, cluster)
        change(cluster, 0)
        began = time.monotonic()
        comes_right(rig, cluster)
        assert time.monotonic() - began < 20.0


@pytest.mark.parametrize("shape", [deeds.twice, deeds.swapped], ids=["duplicated", "reordered"])
def test_33_events_that_come_twice_or_in_the_wrong_order_do_no_harm(cluster: Rig, shape: Any) -> None:
    def script(proxy: Proxy) -> None:
        proxy.on(Shape(shape), watch=True, times=None)

    with listening(cluster, script) as (rig, _proxy):
        for number in range(8):
            change(cluster, number)
        comes_right(rig, cluster)


@pytest.mark.parametrize("said", ODD_LINES.values(), ids=ODD_LINES)
def test_33_odd_lines_end_nothing(cluster: Rig, said: tuple[bytes, ...]) -> None:
    def script(proxy: Proxy) -> None:
        proxy.on(Shape(deeds.among(*said)), watch=True, times=None)

    with listening(cluster, script) as (rig, proxy):
        for number in range(4):
            change(cluster, number)
        proxy.calm()  # the next stream is a good one; this one may be given up or gone on with
        for number in (4, 5):
            change(cluster, number)
        comes_right(rig, cluster)
