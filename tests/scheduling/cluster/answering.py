"""A server on loopback that says one thing to everybody: in place of an API server that is none, or is not trusted."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Server:
    """A server of one thread that answers every request alike, with TLS where it has a certificate."""

    answer: bytes
    certificate: Path | None = None
    key: Path | None = None
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if self.certificate else None
        if self.context and self.certificate:
            self.context.load_cert_chain(self.certificate, self.key)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"{'https' if self.certificate else 'http'}://127.0.0.1:{self.port}"

    def run(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with closing(connection):
                self.serve(connection)

    def serve(self, connection: socket.socket) -> None:
        try:
            secure = self.context.wrap_socket(connection, server_side=True) if self.context else connection
            with closing(secure):
                self.requests.append(secure.recv(65536).decode(errors="replace"))
                secure.sendall(self.answer)
        except OSError:  # who does not trust us hangs up
            return

    def stop(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(timeout=5)


def http(body: bytes, status: str = "200 OK", kind: str = "application/json", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", f"Content-Type: {kind}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body
