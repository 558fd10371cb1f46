"""A harbour whose road to the API server leads through a fault proxy; at the end it rests and nothing is broken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from scheduling.cluster.client import KubernetesPort
from scheduling.connect import forget_ports
from scheduling.models import Cluster
from tests.faults.invariants import broken
from tests.faults.proxy import Proxy, between

MOST_LOOKS = 60


@contextmanager
def behind_a_proxy(harbour: Any, seed: int) -> Iterator[Proxy]:
    """Both the harbour's own port and those that the product opens go through it."""
    straight = harbour.port._api._connection
    with between(straight.server, authority_file=straight.authority_file, seed=seed) as proxy:
        here = replace(straight, server=proxy.url, authority_file="")
        Cluster.objects.filter(pk=harbour.world.cluster.pk).update(server=proxy.url, authority_file="")
        harbour.world.cluster.refresh_from_db()
        old = harbour.port
        with KubernetesPort(here) as port:
            harbour.port = port
            yield proxy
            harbour.port = old
        forget_ports()


def comes_to_rest(harbour: Any, proxy: Proxy) -> None:
    """Without faults, after some looks, a further one writes nothing (I8), and every other invariant holds."""
    proxy.calm()
    for _ in range(MOST_LOOKS):
        before = len(proxy.history)
        harbour.world.cluster.refresh_from_db()
        report = harbour.cycle()
        if not (report.again or report.failures or proxy.writes(before)):
            assert broken(harbour.port.observe(harbour.now)) == []
            return
        let_time_pass(harbour)
    raise AssertionError(f"I8: it does not come to rest: {report}; {proxy.history[-8:]}")


def let_time_pass(harbour: Any) -> None:
    if hasattr(harbour, "wait"):
        harbour.wait()
    else:
        harbour.turn(seconds=30)


def sentences(row: Any) -> list[str]:
    """What its owner was told, in order."""
    return list(row.transitions.order_by("version").values_list("text", flat=True))
