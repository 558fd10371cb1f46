"""Where the demo's cluster is and what lets us in: one small file, which who needs it waits for. Knows no Django."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster's address and files. The demo speaks with the token; who looks behind the curtain, as admin."""

    server: str
    token_file: str = ""
    authority_file: str = ""
    admin_certificate: str = ""
    admin_key: str = ""

    @property
    def listens(self) -> bool:
        return listens(urlsplit(self.server).port or 0)

    def as_admin(self) -> ssl.SSLContext | None:
        """For looking at the cluster directly; None where it speaks without TLS and asks nobody who he is."""
        if not self.authority_file:
            return None
        context = ssl.create_default_context(cafile=self.authority_file)
        context.load_cert_chain(self.admin_certificate, self.admin_key)
        return context


def write_place(file: Path, place: Place) -> None:
    file.write_text(json.dumps(asdict(place)), encoding="utf-8")


def read_place(file: Path) -> Place | None:
    """None as long as the file is not there."""
    try:
        found: Mapping[str, str] = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return Place(**found)


def listens(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True
