"""The real Kueue beside the tests' control plane, with its own rights, webhooks and certificates.

There is no pod network, so the API server reaches the webhooks on loopback: each names an address and our authority in
place of a service, for the conversion of the CRDs too. Only the webhooks of Kueue's own kinds and of Jobs are
installed, because nothing serves the other kinds here.
"""

from __future__ import annotations

import base64
import json
import shutil
import signal
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import yaml

from portal.processes import CouldNotStart, free_port, stop, wait_until
from scheduling.cluster.client import Session
from scheduling.cluster.port import ClusterError
from tests.controlplane.paths import collection_of, path_of
from tests.controlplane.plane import PATIENCE, ControlPlane, answers, create, launch, log_of, until
from tools.controlplane import KUEUE, CouldNotBuild, documents_of, programs

ROOT = Path(__file__).resolve().parents[3]
RULES = ROOT / "deploy" / "rbac-kueue.yaml"
NAMESPACE = "kueue-system"
ACCOUNT = "kueue-controller-manager"
GROUP = "/apis/kueue.x-k8s.io/v1beta2"
KINDS = ("workloads", "localqueues", "clusterqueues", "cohorts", "resourceflavors", "admissionchecks", "topologies")
OURS = ("kueue-x-k8s-io", "batch-v1-job")  # parts of the paths of the webhooks that are kept
CERTIFICATES = b"/etc/kueue/metrics/certs"  # where it looks for the metrics' certificate; no setting changes that
HERE = b"./certs".ljust(len(CERTIFICATES), b"/")
CONVERTED = ("clusterqueues", "cohorts", "localqueues", "workloads", "multikueueclusters")
CONFLICT, NOT_FOUND = 409, 404
TRIES = 3  # the API server may serve its kinds and not yet tell of them, and then Kueue ends


@contextmanager
def running(plane: ControlPlane) -> Iterator[None]:
    """Kueue on a running control plane, and Berth's rights to it. Raises CouldNotStart."""
    try:
        program = programs(KUEUE)["kueue"]
    except CouldNotBuild as trouble:
        raise CouldNotStart(str(trouble)) from None
    folder = plane.folder / "kueue"
    folder.mkdir(exist_ok=True)
    with closing(Session(plane.admin)) as door:
        port = free_port()
        install(door, documents_of(program), f"https://127.0.0.1:{port}", plane.papers.authority.read_bytes())
        (folder / "kubeconfig").write_text(json.dumps(kubeconfig(plane, token_of(door))), encoding="utf-8")
        for attempt in range(TRIES):
            try:
                start(plane, program, port)
                break
            except CouldNotStart:
                if attempt == TRIES - 1:
                    raise
        hooks = webhooks(documents_of(program), f"https://127.0.0.1:{port}", plane.papers.authority.read_bytes())
        for document in hooks:
            put(door, document)
        until(lambda: takes_queues(door), "Kueue's webhooks do not answer")
        try:
            yield
        finally:  # without Kueue its webhooks would refuse every Job
            for document in hooks:
                door.ask("DELETE", path_of(document))
            stop(plane.processes.pop("kueue"), by=signal.SIGKILL)


def install(door: Session, documents: Path, address: str, authority: bytes) -> None:
    """Its kinds, its own account with its own role, and Berth's rights to it; back when the kinds are served."""
    put(door, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    for file in sorted((documents / "crd" / "bases").glob("*.yaml")):
        for document in read(file):
            put(door, converted_by(document, address, authority))
    account = {"name": ACCOUNT, "namespace": NAMESPACE}
    put(door, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    for name in ("role.yaml", "manager_secrets_role.yaml"):
        for document in read(documents / "rbac" / name):
            document["metadata"]["namespace"] = NAMESPACE
            put(door, document)
            put(door, binding(document, account))
    for document in read(RULES):
        put(door, document)
    for kind in KINDS:
        until(lambda kind=kind: answers(door, f"{GROUP}/{kind}"), f"Kueue's {kind} are not served")
    until(lambda: set(KINDS) <= discovered(door), "The API server does not tell of Kueue's kinds")


def start(plane: ControlPlane, program: Path, port: int) -> None:
    folder = plane.folder / "kueue"
    for place in (folder / "certs", folder / "hooks"):
        place.mkdir(exist_ok=True)
        shutil.copyfile(plane.papers.certificate, place / "tls.crt")
        shutil.copyfile(plane.papers.key, place / "tls.key")
    health = free_port()
    (folder / "config.yaml").write_text(json.dumps(configuration(folder, port, health)), encoding="utf-8")
    words: list[str | Path] = [portable(program, folder), "--config", folder / "config.yaml"]
    words += ["--kubeconfig", folder / "kubeconfig", "--feature-gates=VisibilityOnDemand=false"]
    process = launch(plane, "kueue", words, folder=folder)
    log, address = log_of(plane, "kueue"), f"http://127.0.0.1:{health}/readyz"
    wait_until(lambda: says_ready(address), process, what="Kueue", log=log, patience=PATIENCE)


def portable(program: Path, folder: Path) -> Path:
    """A copy that finds the metrics' certificate in its working folder: /etc is not a test's to write to."""
    found = program.read_bytes()
    if CERTIFICATES not in found:
        raise CouldNotStart(f"{program} is no Kueue that we know: it does not name {CERTIFICATES.decode()}.")
    copy = folder / "kueue"
    copy.write_bytes(found.replace(CERTIFICATES, HERE))
    copy.chmod(0o755)
    return copy


def sweep(door: Session) -> None:
    """Remove every object of Kueue's kinds, whatever holds it."""
    for kind in KINDS:
        for item in json.loads(door.ask("GET", f"{GROUP}/{kind}"))["items"]:
            meta = item["metadata"]
            inside = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
            release(door, f"{GROUP}{inside}/{kind}/{meta['name']}")
    for kind in KINDS:
        until(lambda kind=kind: not json.loads(door.ask("GET", f"{GROUP}/{kind}"))["items"], f"{kind} do not go")


# Documents


def configuration(folder: Path, port: int, health: int) -> dict[str, Any]:
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(folder / "hooks")},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "clientConnection": {"qps": 500, "burst": 1000},
        "integrations": {"frameworks": ["batch/job"]},
    }


def webhooks(documents: Path, address: str, authority: bytes) -> list[dict[str, Any]]:
    """The two configurations, with the webhooks that something here needs."""
    found = []
    for document in read(documents / "webhook" / "manifests.yaml"):
        kept = [hook for hook in document["webhooks"] if any(part in path_in(hook) for part in OURS)]
        for hook in kept:
            hook["clientConfig"] = client_config(address + path_in(hook), authority)
        document["metadata"]["name"] = f"kueue-{document['metadata']['name']}"
        found.append(document | {"webhooks": kept})
    return found


def converted_by(document: dict[str, Any], address: str, authority: bytes) -> dict[str, Any]:
    """The same kind; where its versions differ, Kueue's webhook converts it."""
    if document["spec"]["names"]["plural"] in CONVERTED:
        hook = {"clientConfig": client_config(f"{address}/convert", authority), "conversionReviewVersions": ["v1"]}
        document["spec"]["conversion"] = {"strategy": "Webhook", "webhook": hook}
    return document


def client_config(url: str, authority: bytes) -> dict[str, str]:
    return {"url": url, "caBundle": base64.b64encode(authority).decode()}


def binding(role: Mapping[str, Any], account: Mapping[str, str]) -> dict[str, Any]:
    """Gives Kueue's account a role, within its namespace where the role is one of a namespace."""
    kind, name = role["kind"], role["metadata"]["name"]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": f"{kind}Binding",
        "metadata": {"name": f"kueue-{name}", "namespace": NAMESPACE},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", **account}],
    }


def kubeconfig(plane: ControlPlane, token: str) -> dict[str, Any]:
    cluster = {"server": plane.server, "certificate-authority": str(plane.papers.authority)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "it", "cluster": cluster}],
        "users": [{"name": "it", "user": {"token": token}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "current-context": "it",
    }


# Small helpers


def path_in(hook: Mapping[str, Any]) -> str:
    path: str = hook["clientConfig"]["service"]["path"]
    return path


def read(file: Path) -> list[dict[str, Any]]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [document for document in yaml.load_all(file.read_text(encoding="utf-8"), loader) if document]


def put(door: Session, document: dict[str, Any]) -> None:
    """Create it; what an earlier Kueue on this control plane has left stays."""
    try:
        create(door, document)
    except ClusterError as error:
        if error.status != CONFLICT:
            raise


def token_of(door: Session) -> str:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 36_000}}
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ACCOUNT}/token"
    token: str = json.loads(door.ask("POST", path, body=body))["status"]["token"]
    return token


def discovered(door: Session) -> set[str]:
    return {one["name"] for one in json.loads(door.ask("GET", GROUP))["resources"]}


def says_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=1) as answer:  # noqa: S310  loopback
            return bool(answer.status == 200)
    except OSError:
        return False


def takes_queues(door: Session) -> bool:
    """Whether its webhooks answer: a queue in a dry run passes them."""
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "probe"}, "spec": {}}
    try:
        door.ask("POST", collection_of(queue), query={"dryRun": "All"}, body=queue)
    except ClusterError:
        return False
    return True


def release(door: Session, path: str) -> None:
    """Delete it, and let it go."""
    for method, body, content in (
        ("DELETE", {"propagationPolicy": "Background"}, "application/json"),
        ("PATCH", {"metadata": {"finalizers": None}}, "application/merge-patch+json"),
    ):
        try:
            door.ask(method, path, body=body, content=content)
        except ClusterError as error:
            if error.status != NOT_FOUND:
                raise
