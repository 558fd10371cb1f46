"""How the Kubernetes API is spoken: paths, pages, and refusals in sentences. Knows no HTTP library."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from scheduling.cluster.documents import Page, Part
from scheduling.cluster.port import ClusterError
from scheduling.cluster.strangers import forbidden

JSON = "application/json"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"

FORBIDDEN, GONE, TOO_MANY = 403, 410, 429
CONFLICT = 409
SERVER_ERRORS = 500  # and above

PAGE = 500  # items of one page of a list
MOST_PAGES = 2_000
RESTARTS = 3  # of a list whose continuation the server has forgotten; the last try asks for all at once
LONGEST_MESSAGE = 300
LONGEST_PAUSE = 3_600.0  # seconds that we let a server ask for

KINDS: Mapping[str, tuple[str, str, bool]] = {  # kind -> group and version, plural, namespaced
    "Node": ("api/v1", "nodes", False),
    "Namespace": ("api/v1", "namespaces", False),
    "Pod": ("api/v1", "pods", True),
    "Service": ("api/v1", "services", True),
    "ConfigMap": ("api/v1", "configmaps", True),
    "PersistentVolumeClaim": ("api/v1", "persistentvolumeclaims", True),
    "ResourceQuota": ("api/v1", "resourcequotas", True),
    "StatefulSet": ("apis/apps/v1", "statefulsets", True),
    "Job": ("apis/batch/v1", "jobs", True),
    "ResourceFlavor": ("apis/kueue.x-k8s.io/v1beta2", "resourceflavors", False),
    "Cohort": ("apis/kueue.x-k8s.io/v1beta2", "cohorts", False),
    "ClusterQueue": ("apis/kueue.x-k8s.io/v1beta2", "clusterqueues", False),
    "LocalQueue": ("apis/kueue.x-k8s.io/v1beta2", "localqueues", True),
    "Workload": ("apis/kueue.x-k8s.io/v1beta2", "workloads", True),  # Kueue's own, one for each Job in a queue
    "Event": ("api/v1", "events", True),
    "Ingress": ("apis/networking.k8s.io/v1", "ingresses", True),
    "HTTPRoute": ("apis/gateway.networking.k8s.io/v1", "httproutes", True),
}

Query = Mapping[str, str | int]


class Api(Protocol):
    """One connection to one API server."""

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Mapping[str, Any] | None = None,
        content: str = JSON,
        timeout: float | None = None,
    ) -> bytes:
        """The answer's body; anything but 2xx is a ClusterError. `timeout` in seconds, for this call alone."""


class Cause(Part, frozen=True, kw_only=True):
    reason: str = ""
    field: str = ""


class Details(Part, frozen=True, kw_only=True):
    retry_after_seconds: int | None = None
    causes: list[Cause] | None = None


class Status(Part, frozen=True, kw_only=True):
    """Kubernetes' own document about a failed call."""

    message: str = ""
    reason: str = ""
    details: Details | None = None


def path_of(kind: str, namespace: str, name: str) -> str:
    """The path of one object. Without a name it would be that of all of them, so none is refused."""
    return f"{list_path(kind, namespace)}/{segment(name)}"


def list_path(kind: str, namespace: str = "") -> str:
    """The path of a kind in a namespace; "" means all namespaces."""
    if kind not in KINDS:
        raise ClusterError(f"Berth has no business with objects of kind {kind!r}.", retry=False)
    group, plural, namespaced = KINDS[kind]
    inside = f"/namespaces/{segment(namespace)}" if namespaced and namespace else ""
    return f"/{group}{inside}/{plural}"


def segment(name: str) -> str:
    """A name as one step of a path. The API server takes a quoted slash for a slash, so quoting alone holds nothing."""
    if name in {"", ".", ".."} or "/" in name or "%" in name:
        raise ClusterError(f"{name!r} is no name of an object.", retry=False)
    return quote(name, safe="")


def pages(api: Api, path: str, query: Query | None = None) -> Iterator[bytes]:
    """A whole list, page by page; begun anew when the server has forgotten where we were (410).

    Nothing is handed out before the list is whole, so that no half of an old list mixes with a new one.
    """
    for attempt in range(1, RESTARTS + 1):
        asked = dict(query or {}) | ({"limit": PAGE} if attempt < RESTARTS else {})
        try:
            yield from whole_list(api, path, asked)
        except ClusterError as error:
            if error.status != GONE or attempt == RESTARTS:
                raise
        else:
            return


def whole_list(api: Api, path: str, query: Query) -> list[bytes]:
    found = [api.ask("GET", path, query=query)]
    while token := token_in(found[-1]):
        if len(found) == MOST_PAGES:
            raise ClusterError(f"The cluster's list has more than {MOST_PAGES} pages of {PAGE}; it is not read.")
        found.append(api.ask("GET", path, query={**query, "continue": token}))
    return found


def token_in(page: bytes) -> str:
    """Where the list goes on, "" at its end. Raises ClusterError for what no Kubernetes API server would send."""
    try:
        found = msgspec.json.decode(page, type=Page)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ClusterError(f"The cluster answered with something that is not a list: {error}.") from None
    if not found.kind.endswith("List"):  # any other JSON would pass for an empty cluster
        text = "The cluster answered with something that is not a list: its server is no Kubernetes API server."
        raise ClusterError(text)
    return found.metadata.continue_


def document_in(body: bytes) -> dict[str, Any]:
    """One object of an answer."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ClusterError(f"The cluster answered with something that is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise ClusterError("The cluster answered with something that is not an object.")
    return found


def refused(status: int, headers: Mapping[str, str], body: bytes) -> ClusterError:
    """What a failed call means: a sentence, whether trying again can help, and when."""
    said = status_in(body)
    words = said.message or f"HTTP {status}"
    ours = forbidden(words) if status == FORBIDDEN else ""
    text = ours or f"The cluster refused ({status}): {shortened(words)}"
    retry = bool(ours) or may_pass(status, said)  # a right that is missing is no fault of what was asked
    return ClusterError(text, status=status, retry=retry, after=pause_in(headers, said), for_operator=bool(ours))


def may_pass(status: int, said: Status) -> bool:
    """Can the same call succeed later without anybody changing it?"""
    if status in {CONFLICT, GONE, TOO_MANY} or status >= SERVER_ERRORS:
        return True
    causes = said.details.causes or () if said.details else ()
    # A patch that names another object's uid is refused as a change of it: the object that we knew is gone.
    return any(cause.reason == "NamespaceTerminating" or cause.field == "metadata.uid" for cause in causes)


def status_in(body: bytes) -> Status:
    try:
        return msgspec.json.decode(body, type=Status)
    except (msgspec.DecodeError, RecursionError):
        return Status(message=re.sub(r"\s+", " ", body[:LONGEST_MESSAGE].decode(errors="replace")).strip())


def pause_in(headers: Mapping[str, str], said: Status) -> float | None:
    """Seconds that the server asks us to wait, from its header or its Status."""
    text = next((value for name, value in headers.items() if name.lower() == "retry-after"), "")
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), LONGEST_PAUSE)
    seconds = said.details.retry_after_seconds if said.details else None
    return min(float(max(seconds, 0)), LONGEST_PAUSE) if seconds else None


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 1] + "…"
