"""One look at the Kueue of a cluster: our queues as they stand there, and what it says of each workload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from scheduling.cluster import names
from scheduling.cluster.api import Api, document_in, list_path, pages
from scheduling.cluster.documents import Page
from scheduling.cluster.kueue import KINDS
from scheduling.cluster.kueue_reading import Queues, decode_workload, usages, with_borrowers
from scheduling.cluster.port import ClusterError

GROUP = "kueue.x-k8s.io"
SERVED = "v1beta2"
NOT_FOUND = 404
OURS = f"{names.MANAGED_BY}={names.MANAGER}"


def look_at_queues(api: Api) -> Queues:
    """Five lists. Raises a ClusterError when one of them cannot be read; a missing Kueue is told, not raised."""
    try:
        documents = tuple(found for kind in KINDS for found in listed(api, kind))
        workloads = [fact for item in items(api, "Workload") if (fact := decode_workload(item)) is not None]
    except ClusterError as error:
        if error.status != NOT_FOUND:
            raise
        return Queues(trouble=missing(api))
    used = tuple(one for queue in documents if queue["kind"] == "ClusterQueue" for one in usages(queue))
    return Queues(documents, with_borrowers(workloads, used), used)


def listed(api: Api, kind: str) -> Iterator[Mapping[str, Any]]:
    """Our own objects of a kind; items of a list may not say what they are."""
    for item in items(api, kind, {"labelSelector": OURS}):
        yield {**msgspec.json.decode(item), "kind": kind}


def items(api: Api, kind: str, query: Mapping[str, str] | None = None) -> Iterator[msgspec.Raw]:
    for page in pages(api, list_path(kind), query):
        yield from msgspec.json.decode(page, type=Page).items or ()


def missing(api: Api) -> str:
    """Why its kinds are not there, in a sentence."""
    cure = "Install Kueue 0.15 or newer there, or let the cluster queue directly."
    try:
        found = document_in(api.ask("GET", f"/apis/{GROUP}"))
    except ClusterError as error:
        if error.status != NOT_FOUND:
            raise
        return f"It is to queue with Kueue, and serves no {GROUP}: nothing is started there. {cure}"
    served = sorted(str(one.get("version")) for one in found.get("versions") or () if isinstance(one, dict))
    if SERVED in served:
        return f"Its Kueue lacks a kind that Berth needs: nothing is started there. {cure}"
    return f"Its Kueue serves {', '.join(served) or 'nothing'} and not {SERVED}: nothing is started there. {cure}"
