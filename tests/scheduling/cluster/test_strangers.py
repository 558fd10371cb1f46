"""Servers that are no Kubernetes or that we must not trust, as real ones on loopback: each is one sentence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scheduling.cluster.circuit import FAILURES, Circuit
from scheduling.cluster.client import Connection, KubernetesPort, Session
from scheduling.cluster.port import ClusterError
from scheduling.cluster.strangers import forbidden
from tests.controlplane.papers import Papers, make_papers, sign
from tests.scheduling.cluster.answering import Server, http

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
NODES = "/api/v1/nodes"
EMPTY = json.dumps({"kind": "NodeList", "metadata": {"resourceVersion": "1"}, "items": []}).encode()


@pytest.fixture
def serving() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(answer: bytes, certificate: Path | None = None, key: Path | None = None) -> Server:
        servers.append(Server(answer, certificate, key))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return make_papers(tmp_path_factory.mktemp("papers"))


def look_at(server: str, **credentials: str) -> ClusterError:
    with KubernetesPort(Connection(server, **credentials)) as port, pytest.raises(ClusterError) as trouble:
        port.observe(NOON)
    assert "\n" not in str(trouble.value)
    assert str(trouble.value).endswith(".")
    return trouble.value


# Not Kubernetes

PAGE = b"<!doctype html><title>Welcome</title>"
STRANGERS = {
    "a web page": (http(PAGE, kind="text/html; charset=utf-8"), "it answers with a web page (200)"),
    "a page that is not found": (http(PAGE, "404 Not Found", "text/html"), "it answers with a web page (404)"),
    "a forbidding page": (http(PAGE, "403 Forbidden", "text/html"), "it answers with a web page (403)"),
    "a redirect to a log-in": (
        http(b"", "302 Found", "text/html", Location="https://login.example/?state=s3cret"),
        "it sends us on to login.example (302), as a log-in does",
    ),
    "another JSON API": (http(b'{"status": "ok", "items": []}'), "its server is no Kubernetes API server"),
    "JSON that is no object": (http(b"[]"), "something that is not a list"),
    "no JSON at all": (http(b"hello", kind="text/plain"), "something that is not a list"),
}


@pytest.mark.parametrize(("answer", "said"), STRANGERS.values(), ids=STRANGERS)
def test_a_server_that_is_no_kubernetes_is_never_taken_for_an_empty_cluster(
    serving: Callable[..., Server], answer: bytes, said: str
) -> None:
    server = serving(answer)

    trouble = look_at(server.url)

    assert said in str(trouble)
    assert "s3cret" not in str(trouble)
    assert len(server.requests) == 1  # not followed, not tried again in the same look


def test_a_gateways_error_page_does_not_say_that_there_is_no_kubernetes(serving: Callable[..., Server]) -> None:
    server = serving(http(PAGE, "503 Service Unavailable", "text/html", Retry_After="7"))

    trouble = look_at(server.url)

    assert (trouble.status, trouble.retry, trouble.after) == (503, True, 7.0)
    assert "(503): a web page, as a gateway sends" in str(trouble)
    assert "<" not in str(trouble)


def test_a_stranger_is_asked_less_and_less_often(serving: Callable[..., Server]) -> None:
    server, now = serving(http(PAGE, kind="text/html")), [0.0]
    with closing(Session(Connection(server.url), Circuit(clock=lambda: now[0]))) as session:
        for _ in range(5 * FAILURES):
            with pytest.raises(ClusterError, match="no Kubernetes API server"):
                session.ask("GET", NODES)

    assert len(server.requests) == FAILURES


# Certificates


def test_a_server_that_the_authority_signed_is_trusted(serving: Callable[..., Server], papers: Papers) -> None:
    server = serving(http(EMPTY), papers.certificate, papers.key)
    with closing(Session(Connection(server.url, authority_file=str(papers.authority)))) as session:
        assert session.ask("GET", NODES) == EMPTY


@pytest.mark.parametrize(
    ("purpose", "days", "said"),
    [
        ("server", "-1", "has expired; it has to be renewed there."),
        ("elsewhere", "2", "is for another name; give the cluster an address that stands in it."),
    ],
    ids=["expired", "for another name"],
)
def test_a_certificate_that_does_not_hold(
    serving: Callable[..., Server], papers: Papers, purpose: str, days: str, said: str
) -> None:
    odd = sign(papers.authority.parent, f"odd{days}", "/CN=odd", purpose, days)
    server = serving(http(EMPTY), *odd)

    trouble = look_at(server.url, authority_file=str(papers.authority))

    assert str(trouble) == f"The certificate of the server at {server.url} {said}"
    assert trouble.for_operator
    assert server.requests == []  # no token went there


def test_an_authority_that_did_not_sign_it(serving: Callable[..., Server], papers: Papers, tmp_path: Path) -> None:
    server, other = serving(http(EMPTY), papers.certificate, papers.key), make_papers(tmp_path)

    named = look_at(server.url, authority_file=str(other.authority))
    system = look_at(server.url)

    assert f"is not signed by the authority in {other.authority};" in str(named)
    assert "is not signed by any authority that this system knows;" in str(system)
    assert server.requests == []


def test_an_authority_that_was_rotated_is_taken_up_without_a_new_session(
    serving: Callable[..., Server], papers: Papers, tmp_path: Path
) -> None:
    authority = tmp_path / "rotated.crt"
    shutil.copy(make_papers(tmp_path / "before").authority, authority)
    server = serving(http(EMPTY), papers.certificate, papers.key)

    with closing(Session(Connection(server.url, authority_file=str(authority)))) as session:
        with pytest.raises(ClusterError, match="is not signed by the authority"):
            session.ask("GET", NODES)
        shutil.copy(papers.authority, authority)

        assert session.ask("GET", NODES) == EMPTY


@pytest.mark.parametrize(
    ("content", "said"), [(None, "cannot be read."), ("not a certificate", "holds no certificate.")]
)
def test_an_authority_file_that_is_none(
    serving: Callable[..., Server], papers: Papers, tmp_path: Path, content: str | None, said: str
) -> None:
    file = tmp_path / "ca.crt"
    if content is not None:
        file.write_text(content)
    server = serving(http(EMPTY), papers.certificate, papers.key)

    trouble = look_at(server.url, authority_file=str(file))

    assert str(trouble) == f"The authority file {file} of {server.url} {said}"


def test_plain_http_where_tls_was_expected(serving: Callable[..., Server]) -> None:
    server = serving(http(EMPTY))
    secure = server.url.replace("http://", "https://")

    assert str(look_at(secure)) == (
        f"The server at {secure} does not speak TLS; its address may have to begin with http://."
    )


# Rights

WHO = "system:serviceaccount:berth-system:berth"
FORBIDDEN = {
    "in the whole cluster": (
        f'jobs.batch is forbidden: User "{WHO}" cannot list resource "jobs" in API group "batch" at the cluster scope',
        (
            f"The cluster does not let {WHO} list jobs.batch in the whole cluster (403); "
            "deploy/rbac.yaml has this right: apply it there."
        ),
    ),
    "in a namespace, of the core group": (
        (
            f'pods "x" is forbidden: User "{WHO}" cannot get resource "pods/proxy" in API group "" '
            'in the namespace "gpu-operator"'
        ),
        (
            f"The cluster does not let {WHO} get pods/proxy in namespace gpu-operator (403); "
            "deploy/rbac.yaml has this right: apply it there."
        ),
    ),
    "nobody": (
        'nodes is forbidden: User "system:anonymous" cannot list resource "nodes" in API group "" at the cluster scope',
        "The cluster knows us as nobody (403): its row needs a token file, with a token of Berth's account.",
    ),
    "a quota is no right": ('pods "x" is forbidden: exceeded quota: berth, requested: pods=1, used: pods=1', ""),
    "nor is Pod Security": ('pods "x" is forbidden: violates PodSecurity "restricted:latest": privileged', ""),
}


@pytest.mark.parametrize(("message", "said"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_what_a_refusal_says_about_our_rights(message: str, said: str) -> None:
    assert forbidden(message) == said
