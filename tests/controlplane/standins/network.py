"""The road from the API server to nodes and pods: a Unix socket that speaks HTTP CONNECT (its `egress selector`).

Behind it answer the kubelets (logs, over TLS) and the DCGM exporters (metrics), found by the address that the API
server wants to reach. So nothing here listens on a port, and pod addresses may be what they are in a cluster.
"""

from __future__ import annotations

import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from scheduling.cluster.simulated.errors import ApiError
from scheduling.cluster.simulated.kinds import Document, Key
from tests.controlplane.papers import Papers

KUBELET_PORT = "10250"
LONGEST_HEAD = 65536


class Network(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """`world` is whoever plays the machines now; tests put a new one there."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, path: Path, papers: Papers) -> None:
        super().__init__(str(path), Tunnel)
        self.world: Any = None
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(papers.certificate, papers.key)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that breaks is the API server's own business."""


class Tunnel(socketserver.BaseRequestHandler):
    """One CONNECT, and whatever HTTP is spoken through it."""

    def handle(self) -> None:
        connection: socket.socket = self.request
        host, _, port = read_target(connection).rpartition(":")
        if not host or not self.server.world:
            connection.sendall(b"HTTP/1.1 503 Service Unavailable\r\n\r\n")
            return
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        if port != KUBELET_PORT:
            PodDoor(connection, (host, port), self.server)
            return
        with self.server.tls.wrap_socket(connection, server_side=True) as secure:
            KubeletDoor(secure, (host, port), self.server)


class Door(BaseHTTPRequestHandler):
    """Answers GET; what is at an address is decided by its heirs."""

    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        world = self.server.world
        try:
            with world.lock:
                status, text = 200, self.answer(world, self.path)
        except ApiError as error:
            status, text = error.code, error.message
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer(self, world: Any, path: str) -> str:
        raise NotImplementedError

    def log_message(self, *arguments: Any) -> None:
        """Nothing: the API server keeps a log of its own."""


class PodDoor(Door):
    """A pod, by its address."""

    def answer(self, world: Any, path: str) -> str:
        address, port = self.client_address
        pods = world.store.documents["pods"].values()
        pod = next((one for one in pods if one["status"].get("podIP") == address), None)
        if pod is None:
            raise ApiError(502, "BadGateway", f"nobody answers at {address}")
        found: str = world.parts["exporter"].serve(pod, port, urlsplit(path).path)
        return found


class KubeletDoor(Door):
    """A kubelet: its logs, at /containerLogs/NAMESPACE/POD/CONTAINER."""

    def answer(self, world: Any, path: str) -> str:
        where = urlsplit(path)
        match where.path.strip("/").split("/"):
            case ["containerLogs", namespace, name, container]:
                pod = world.get("pods", namespace, name)
                return log_text(world, pod, container, parse_qs(where.query)) if pod else missing(namespace, name)
        raise ApiError(404, "NotFound", f"this kubelet serves no {where.path}")


def log_text(world: Any, pod: Document, container: str, query: dict[str, list[str]]) -> str:
    stamps = query.get("timestamps") == ["true"]
    lines = [text for _, text in world.parts["kubelet"].log_of(pod, container, stamps=stamps)]
    if "tailLines" in query:
        count = int(query["tailLines"][0])
        lines = lines[-count:] if count else []
    text = "".join(f"{line}\n" for line in lines)
    return text[: int(query["limitBytes"][0])] if "limitBytes" in query else text


def missing(namespace: str, name: str) -> str:
    raise ApiError(404, "NotFound", f"pod {Key('pods', namespace, name)} is not here")


def read_target(connection: socket.socket) -> str:
    """The host and port of a CONNECT. Read byte by byte: what follows the head belongs to somebody else."""
    head = b""
    while not head.endswith(b"\r\n\r\n") and len(head) < LONGEST_HEAD:
        byte = connection.recv(1)
        if not byte:
            return ""
        head += byte
    words = head.decode("latin-1").split()
    return words[1] if words[:1] == ["CONNECT"] else ""


@contextmanager
def serving(path: Path, papers: Papers) -> Iterator[Network]:
    with Network(path, papers) as network:
        thread = threading.Thread(target=network.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield network
        finally:
            network.shutdown()
            thread.join(timeout=5)
