"""A real Kubernetes control plane on loopback: etcd, kube-apiserver, kube-scheduler and kube-controller-manager.

With RBAC, certificates, admission and service accounts as in life. There are no machines and no pod network: the API
server reaches nodes and pods through a Unix socket (its own `egress selector`), behind which our stand-ins answer, so
pods and kubelets need no ports. Everything ends with the process that started it, by process id.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from portal.processes import CouldNotStart, free_port, spawn, stop, wait_until
from scheduling.cluster.client import Connection, Session
from scheduling.cluster.port import ClusterError
from tests.controlplane.papers import Papers, make_papers
from tests.controlplane.paths import collection_of
from tools.controlplane import CouldNotBuild, programs

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "rbac.yaml"
CRDS = ROOT / "tests" / "data" / "crds" / "cluster-api"
NAMESPACES = ("gpu-operator", "fleet")
MONITOR = ["--node-monitor-period=500ms", "--node-monitor-grace-period=6s"]  # a silent kubelet is noticed in seconds
LONGEST_SOCKET = 100  # bytes of a Unix socket's path, with some to spare
PATIENCE = 60.0  # on a machine that is busy with other things
USERS = {  # name -> group
    "admin": "system:masters",
    "system:kube-controller-manager": "",
    "system:kube-scheduler": "",
}


@dataclass
class ControlPlane:
    """A running control plane. `folder` holds its logs, keys and tokens."""

    folder: Path
    server: str
    papers: Papers
    egress: Path  # the Unix socket behind which nodes and pods answer
    tokens: dict[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def admin(self) -> Connection:
        """May do everything: for stand-ins, and for what others do in a test."""
        return self.connection(self.tokens["admin"])

    @property
    def berth(self) -> Connection:
        """The service account of deploy/rbac.yaml."""
        return Connection(
            self.server, token_file=str(self.folder / "berth.token"), authority_file=str(self.papers.authority)
        )

    def connection(self, token: str) -> Connection:
        return Connection(self.server, token=token, authority_file=str(self.papers.authority))


@contextmanager
def running(folder: Path) -> Iterator[ControlPlane]:
    """A fresh control plane with our rules and the CRDs applied, ready for its first node. Raises CouldNotStart."""
    try:
        found = programs()
    except CouldNotBuild as trouble:
        raise CouldNotStart(str(trouble)) from None
    with ExitStack() as ends:
        plane = prepare(folder)
        ends.callback(end, plane)
        database = start_etcd(plane, found["etcd"])
        start_api(plane, found["kube-apiserver"], database)
        start_controllers(plane, found)
        furnish(plane)
        yield plane


def end(plane: ControlPlane) -> None:
    """Nothing here is worth an orderly end, which takes the API server many seconds."""
    for process in reversed(plane.processes.values()):
        stop(process, by=signal.SIGKILL)


def prepare(folder: Path) -> ControlPlane:
    folder.mkdir(parents=True, exist_ok=True)
    tokens = {user: secrets.token_hex(16) for user in USERS}
    rows = [f'{tokens[user]},{user},{user},"{group}"' for user, group in USERS.items()]
    (folder / "tokens.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    egress = folder / "egress.sock"
    if len(os.fsencode(egress)) > LONGEST_SOCKET:
        raise CouldNotStart(f"The path of {folder} is too long for a socket in it; choose a shorter folder.")
    return ControlPlane(folder, f"https://127.0.0.1:{free_port()}", make_papers(folder / "papers"), egress, tokens)


# Processes


def start_etcd(plane: ControlPlane, program: Path) -> str:
    """Answers etcd's address."""
    clients, peers = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    where = ["--listen-client-urls", clients, "--advertise-client-urls", clients]
    among = ["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers]
    words: list[str | Path] = [
        program,
        *where,
        *among,
        "--initial-cluster",
        f"default={peers}",
        "--data-dir",
        plane.folder / "etcd",
    ]
    launch(plane, "etcd", [*words, "--unsafe-no-fsync", "--log-level", "warn"])
    return clients


def start_api(plane: ControlPlane, program: Path, database: str) -> None:
    port, papers = plane.server.rpartition(":")[2], plane.papers
    egress = plane.folder / "egress.yaml"
    egress.write_text(json.dumps(egress_document(plane.egress)), encoding="utf-8")
    flags = {
        "etcd-servers": database,
        "bind-address": "127.0.0.1",
        "secure-port": port,
        "advertise-address": "192.0.2.1",  # loopback is refused, and nobody uses it here
        "endpoint-reconciler-type": "none",
        "tls-cert-file": papers.certificate,
        "tls-private-key-file": papers.key,
        "client-ca-file": papers.authority,
        "token-auth-file": plane.folder / "tokens.csv",
        "authorization-mode": "RBAC",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": papers.accounts_key,
        "service-account-signing-key-file": papers.accounts_key,
        "service-cluster-ip-range": "10.96.0.0/16",
        "egress-selector-config-file": egress,
        "allow-privileged": "true",
        "profiling": "false",
    }
    process = launch(plane, "kube-apiserver", [program, *(f"--{name}={value}" for name, value in flags.items())])
    with closing(Session(plane.admin)) as door:
        wait_until(
            lambda: answers(door, "/readyz"), process, what="The API server", log=log_of(plane, "kube-apiserver"),
            patience=PATIENCE,
        )  # fmt: skip


def start_controllers(plane: ControlPlane, found: dict[str, Path]) -> None:
    quick = ["--kube-api-qps=500", "--kube-api-burst=1000", "--leader-elect=false", "--secure-port=0"]
    papers = plane.papers
    keys = [f"--service-account-private-key-file={papers.accounts_key}", f"--root-ca-file={papers.authority}"]
    more = {"kube-controller-manager": ["--use-service-account-credentials=true", *keys, *MONITOR]}
    for name in ("kube-controller-manager", "kube-scheduler"):
        access = plane.folder / f"{name}.kubeconfig"
        access.write_text(json.dumps(kubeconfig(plane, f"system:{name}")), encoding="utf-8")
        launch(plane, name, [found[name], f"--kubeconfig={access}", *quick, *more.get(name, [])])


def launch(
    plane: ControlPlane, name: str, words: list[str | Path], folder: Path | None = None
) -> subprocess.Popen[bytes]:
    plane.processes[name] = process = spawn(words, log=log_of(plane, name), folder=folder)
    return process


def log_of(plane: ControlPlane, name: str) -> Path:
    return plane.folder / f"{name}.log"


# Documents


def egress_document(socket: Path) -> dict[str, Any]:
    connection = {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": str(socket)}}}
    return {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": connection}],
    }


def kubeconfig(plane: ControlPlane, user: str) -> dict[str, Any]:
    cluster = {"server": plane.server, "certificate-authority": str(plane.papers.authority)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "it", "cluster": cluster}],
        "users": [{"name": "it", "user": {"token": plane.tokens[user]}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "current-context": "it",
    }


# Furniture


def furnish(plane: ControlPlane) -> None:
    """Our rules and the CRDs, and Berth's token; back when all of it is in force."""
    with closing(Session(plane.admin)) as door:
        for name in NAMESPACES:
            create(door, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for file in (RULES, *sorted(CRDS.glob("*.yaml"))):
            for document in yaml.load_all(
                file.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader)
            ):
                create(door, document)
        until(lambda: answers(door, "/apis/cluster.x-k8s.io/v1beta2/machines"), "The CRDs are not served")
        until(lambda: answers(door, "/apis/cluster.x-k8s.io/v1beta2/machinedeployments"), "The CRDs are not served")
        account = "/api/v1/namespaces/gpu-operator/serviceaccounts/default"
        until(lambda: answers(door, account), "The controller-manager makes no service accounts")
        (plane.folder / "berth.token").write_text(berth_token(door), encoding="utf-8")


def create(door: Session, document: dict[str, Any]) -> None:
    door.ask("POST", collection_of(document), body=document)


def berth_token(door: Session) -> str:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 36_000}}
    answer = door.ask("POST", "/api/v1/namespaces/berth-system/serviceaccounts/berth/token", body=body)
    token: str = json.loads(answer)["status"]["token"]
    return token


def answers(door: Session, path: str) -> bool:
    try:
        door.ask("GET", path)
    except ClusterError:
        return False
    return True


def until(holds: Callable[[], bool], trouble: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise CouldNotStart(f"{trouble} after {PATIENCE:g} s.")
        time.sleep(0.02)
