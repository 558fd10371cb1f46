"""The wall itself: the port, spoken over HTTP to any Kubernetes API server.

Import this module only where a connection is opened: it brings the package `kubernetes` along. Of that we use the
connection (TLS, proxies, keep-alive); lists are decoded straight from bytes.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.client.rest import RESTClientObject
from urllib3.exceptions import HTTPError, ReadTimeoutError

from scheduling.cluster import names
from scheduling.cluster.api import JSON, MERGE, Query, path_of, refused
from scheduling.cluster.circuit import Circuit
from scheduling.cluster.events import events_of
from scheduling.cluster.exporters import expositions
from scheduling.cluster.forcing import remove_by_force
from scheduling.cluster.kueue_reading import Queues
from scheduling.cluster.mirror import SILENCE, Mirror
from scheduling.cluster.port import ClusterError, Document, EventFact, Exposition, Observation, Picture, Ref, WentSilent
from scheduling.cluster.queues import look_at_queues
from scheduling.cluster.strangers import certificate_trouble, is_web_page, not_known, stranger
from scheduling.cluster.writes import Writes
from scheduling.cluster.writing import MAIN
from scheduling.providers import Provider
from scheduling.providers.cluster_api import ClusterApi

CONNECT_SECONDS = 3.0
READ_SECONDS = 15.0
WHOLE_SECONDS = 60.0  # for an answer that arrives drop by drop
MOST_BYTES = 256 * 2**20
CHUNK = 2**16
MOST_LOG_BYTES = 2**20
AT_ONCE = 8
OK, NOT_FOUND, UNAUTHORIZED = 200, 404, 401
WEB_PAGE = b"a web page, as a gateway sends when what stands behind it is down."
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a cluster is and who we are there. Files are read when the connection is opened; a token file again when
    the server no longer takes the token."""

    server: str  # "https://10.0.0.1:6443"; plain http only for a cluster on this machine
    token: str = field(default="", repr=False)
    token_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    authority_file: str = ""  # of the server's certificate; "": the system's authorities
    verify: bool = True


class Session:
    """HTTP calls to one API server, each with an end. Safe to use from several threads."""

    def __init__(self, connection: Connection, circuit: Circuit | None = None) -> None:
        """With a `circuit` calls are not made while the cluster is to be left alone."""
        where = urlsplit(connection.server)
        if where.scheme not in {"http", "https"} or not where.hostname or where.username:
            shown = connection.server.rpartition("@")[2]
            raise ClusterError(f"{shown!r} is no address of an API server, as https://10.0.0.1:6443 is.", retry=False)
        self._connection = connection
        self._circuit = circuit
        self._server = connection.server.rstrip("/")
        self._token = token_of(connection)
        settings = Configuration(
            host=self._server,
            verify_ssl=connection.verify,
            ssl_ca_cert=connection.authority_file or None,
            cert_file=connection.certificate_file or None,
            key_file=connection.key_file or None,
            connection_pool_maxsize=AT_ONCE,
            proxy="" if where.hostname in LOOPBACK else None,
            retries=False,  # the next look tries again; here it would only double the load
        )
        self._http = RESTClientObject(settings)
        self._streams: set[Any] = set()  # open ones, that `close` has to end

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
        """The answer's body; anything but 2xx is a ClusterError."""
        url = self._server + path + (f"?{urlencode(query)}" if query else "")
        with self._frame(path) as most:
            bounds = (min(most, timeout or READ_SECONDS), timeout or WHOLE_SECONDS)
            used = self._token
            status, headers, answer = self._once(method, url, body, content, *bounds)
            if status == UNAUTHORIZED and self._renewed(used):
                status, headers, answer = self._once(method, url, body, content, *bounds)
            if not 200 <= status < 300 or is_web_page(headers):
                raise self._refused(status, headers, answer)
        return answer

    def lines(
        self, path: str, *, query: Query, silence: float, begun: Callable[[], None] = lambda: None
    ) -> Iterator[bytes]:
        """The answer's lines as they come; `begun` when it has begun. Raises WentSilent after so many seconds (W3)."""
        try:
            with closing(self._stream(path, query, silence)) as answer, self._listed(answer):
                begun()
                yield from lines_in(answer.stream(None, decode_content=True))
        except ReadTimeoutError:
            raise WentSilent(f"The cluster at {self._server} went silent: nothing came for {silence:g} s.") from None
        except (HTTPError, OSError) as error:
            raise self._unreachable("went silent", error) from None

    def close(self) -> None:
        """Who listens in another thread hears the end of the stream."""
        for stream in tuple(self._streams):
            with suppress(OSError, ValueError, RuntimeError):  # it has just ended by itself
                stream.shutdown()
        self._http.close()

    @contextmanager
    def _listed(self, stream: Any) -> Iterator[None]:
        self._streams.add(stream)
        try:
            yield
        finally:
            self._streams.discard(stream)

    def _stream(self, path: str, query: Query, silence: float) -> Any:
        """An answer that has begun."""
        url, used = f"{self._server}{path}?{urlencode(query)}", self._token
        bounds = (CONNECT_SECONDS, silence)
        with self._frame(path, tries=False):
            try:
                answer = self._http.request("GET", url, headers=self._headers(), _request_timeout=bounds).response
                if answer.status != OK or is_web_page(answer.headers):
                    if answer.status == UNAUTHORIZED:
                        self._renewed(used)  # for the next try
                    raise self._refused(answer.status, answer.headers, whole_body(answer, WHOLE_SECONDS))
            except (HTTPError, ApiException, OSError) as error:
                raise self._unreachable("went silent", error) from None
        return answer

    def _frame(self, path: str, *, tries: bool = True) -> AbstractContextManager[float]:
        return self._circuit.call(path, tries=tries) if self._circuit else nullcontext(math.inf)

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json, */*;q=0.1", "Accept-Encoding": "gzip", "User-Agent": "berth"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        return headers

    def _once(
        self, method: str, url: str, body: Mapping[str, Any] | None, content: str, patience: float, whole: float
    ) -> tuple[int, Mapping[str, str], bytes]:
        headers = self._headers()
        if body is not None:
            headers["Content-Type"] = content
        bounds = (CONNECT_SECONDS, patience)
        try:
            answer = self._http.request(method, url, headers=headers, body=body, _request_timeout=bounds).response
            return answer.status, answer.headers, whole_body(answer, whole)
        except (HTTPError, ApiException, OSError) as error:
            raise self._unreachable("does not answer", error) from None

    def _renewed(self, used: str) -> bool:
        """Is there another token by now than the one that was used? Several threads may ask at once."""
        self._token = token_of(self._connection)
        return self._token != used

    def _refused(self, status: int, headers: Mapping[str, str], body: bytes) -> ClusterError:
        """A stranger's status says nothing: it counts as no answer at all."""
        if text := stranger(self._server, status, headers):
            return ClusterError(text, for_operator=True)
        if status == UNAUTHORIZED:
            text = not_known(self._server, self._connection.token_file)
            return ClusterError(text, status=status, for_operator=True)
        return refused(status, headers, WEB_PAGE if is_web_page(headers) else body)

    def _unreachable(self, how: str, error: Exception) -> ClusterError:
        """The authority's file is read with every new connection, so a rotated one needs no word from anybody."""
        text = certificate_trouble(self._server, self._connection.authority_file, error)
        text = text or f"The cluster at {self._server} {how}: {reason_of(error)}."
        return ClusterError(text, for_operator=True)


class KubernetesPort:
    """The port of one cluster. Keep it, and close it at the end: one client, no threads but those that watch."""

    def __init__(
        self,
        connection: Connection,
        *,
        provider: Provider | None = None,
        metrics_namespace: str = "",
        circuit: Circuit | None = None,
        silence: float = SILENCE,
    ) -> None:
        """`metrics_namespace` is where the exporters run; "" looks for them everywhere."""
        self._api = Session(connection, circuit or Circuit())
        self._provider = provider or ClusterApi()
        self.mirror = Mirror(self._api, self._provider.source, silence)
        self._writes = Writes(self._api, self.mirror)
        self._metrics_namespace = metrics_namespace

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.mirror.stop()
        self._api.close()
        self.mirror.join()

    # Looking

    def observe(self, now: datetime, at_least: Picture | None = None) -> Observation:
        return self.mirror.observe(now, at_least)

    def taken(self, seen: Observation) -> None:
        self.mirror.taken(seen)

    def picture(self) -> Picture:
        return self.mirror.picture()

    def watch(self, ring: Callable[[], None], name: str = "") -> None:
        """From now on looks are answered from watches; `ring` at what matters. `close` ends it."""
        self.mirror.watch(ring, name)

    def metrics(self, nodes: Iterable[str]) -> list[Exposition]:
        return expositions(self._api, nodes, self._metrics_namespace)

    def logs(self, namespace: str, pod: str, *, lines: int) -> str:
        query: Query = {"container": MAIN, "tailLines": max(0, lines), "limitBytes": MOST_LOG_BYTES}
        return self._api.ask("GET", path_of("Pod", namespace, pod) + "/log", query=query).decode(errors="replace")

    def queues(self) -> Queues:
        return look_at_queues(self._api)

    def events(self, namespace: str, name: str) -> list[EventFact]:
        return events_of(self._api, namespace, name)

    # Workloads

    def put(self, document: Document) -> str:
        return self._writes.put(document)

    def remove(self, ref: Ref) -> bool:
        return self._writes.remove(ref)

    def remove_by_force(self, ref: Ref) -> bool:
        was_there = remove_by_force(self._api, ref)
        if was_there:
            self.mirror.removed(ref.kind, (ref.namespace, ref.name), ref.uid)
        return was_there

    def scale(self, ref: Ref, replicas: int) -> None:
        self._writes.scale(ref, replicas)

    # Nodes

    def cordon(self, node: str, *, on: bool, marks: Mapping[str, str | None]) -> None:
        foreign = [key for key in marks if not key.startswith(names.PREFIX)]
        if foreign:
            raise ValueError(f"{foreign[0]} is not one of our own marks")
        if not on and marks and not self._bears_one_of(node, marks):
            return  # somebody else's cordon, or our own that is long gone
        self._patch_node(
            node, {"metadata": {"annotations": dict(marks)}, "spec": {"unschedulable": True if on else None}}
        )

    def cut(self, node: str, config: str) -> None:
        labels, annotations = {names.MIG_CONFIG: config}, {names.CUTTING_TO: config}
        self._patch_node(node, {"metadata": {"labels": labels, "annotations": annotations}})

    def label(self, node: str, labels: Mapping[str, str | None]) -> None:
        foreign = [key for key in labels if not key.startswith(names.PREFIX)]
        if foreign:
            raise ValueError(f"{foreign[0]} is not one of our own labels")
        self._patch_node(node, {"metadata": {"labels": dict(labels)}})

    def resize(self, pool: str, nodes: int, drop: Iterable[str]) -> None:
        dropped = tuple(drop)
        done = self._provider.resize(self._api, pool, nodes, dropped)
        if done is not None:
            self.mirror.amended(done.kind, done.key, done.version, wished=nodes)
        for node in dropped:
            try:
                self._patch_node(node, {"metadata": {"annotations": {names.DROPPED: "true"}}})
            except ClusterError as error:
                if error.status != NOT_FOUND:
                    raise

    # Helpers

    def _bears_one_of(self, node: str, marks: Iterable[str]) -> bool:
        there = self._writes.find("Node", "", node) or {}
        annotations = there.get("metadata", {}).get("annotations") or {}
        return any(mark in annotations for mark in marks)

    def _patch_node(self, node: str, body: Mapping[str, Any]) -> None:
        self.mirror.wrote("Node", self._api.ask("PATCH", path_of("Node", "", node), body=body, content=MERGE))


def token_of(connection: Connection) -> str:
    if not connection.token_file:
        return connection.token
    file = connection.token_file
    try:
        token = Path(file).read_text(encoding="ascii").strip()
    except OSError as error:
        text = f"The token file {file} cannot be read: {error.strerror}."
        raise ClusterError(text, for_operator=True) from None
    except UnicodeDecodeError:
        token = ""
    if not token or any(not sign.isprintable() or sign.isspace() for sign in token):
        raise ClusterError(f"The token file {file} holds no token.", for_operator=True)
    return token


def whole_body(answer: Any, seconds: float) -> bytes:
    """The answer's bytes. An endless or dripping answer is given up, and its connection is not used again."""
    end = time.monotonic() + seconds
    parts: list[bytes] = []
    size = 0
    try:
        for part in answer.stream(CHUNK, decode_content=True):
            parts.append(part)
            size += len(part)
            if size > MOST_BYTES or time.monotonic() > end:
                raise TimeoutError("its answer does not end")
    except BaseException:
        answer.close()
        raise
    answer.release_conn()
    return b"".join(parts)


def lines_in(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Whole lines out of pieces; a line beyond all measure is a ClusterError."""
    rest = b""
    for part in parts:
        *whole, rest = (rest + part).split(b"\n")
        yield from whole
        if len(rest) > MOST_BYTES:
            raise ClusterError("The cluster sends a line that does not end.")


def reason_of(error: Exception) -> str:
    """A library's message as a few words: without object addresses, in one line."""
    text = " ".join(str(error).split())
    return text.rpartition(": ")[2].rstrip(".")[:200] or type(error).__name__
