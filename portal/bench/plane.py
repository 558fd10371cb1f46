"""Machines on a real control plane that play nothing: node objects that stay alive, for schedulers to bind pods to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from portal.bench.machines import node_document, node_status
from scheduling.cluster.api import MERGE
from scheduling.cluster.client import Connection, Session

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
BEAT = 2.0  # seconds; the tests' control plane waits six


@dataclass(frozen=True, slots=True)
class Plane:
    """Where a control plane is, and who may do what there."""

    server: str
    token_file: str
    authority_file: str
    admin_certificate: str
    admin_key: str

    @property
    def admin(self) -> Connection:
        return Connection(
            self.server, certificate_file=self.admin_certificate, key_file=self.admin_key,
            authority_file=self.authority_file,
        )  # fmt: skip


def read_plane(file: Path) -> Plane:
    return Plane(**json.loads(file.read_text(encoding="utf-8")))


@contextmanager
def machines(plane: Plane, nodes: int, cards: int) -> Iterator[None]:
    """So many nodes of so many cards, whose kubelets report as long as this lasts."""
    over = threading.Event()
    with closing(Session(plane.admin)) as door:
        names = [f"bench-{number}" for number in range(nodes)]
        for name in names:
            door.ask("POST", "/api/v1/nodes", body=node_document(name, cards))
            door.ask("POST", LEASES, body=lease_of(name))
            door.ask("PATCH", f"/api/v1/nodes/{name}/status", body={"status": node_status(cards)}, content=MERGE)
        thread = threading.Thread(target=report, args=(door, names, over), name="kubelets", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(timeout=BEAT)


def report(door: Session, names: list[str], over: threading.Event) -> None:
    while not over.wait(BEAT):
        for name in names:
            door.ask("PATCH", f"{LEASES}/{name}", body={"spec": {"renewTime": instant()}}, content=MERGE)


def lease_of(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": instant()},
    }


def instant() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
