"""The connection to an API server: what it sends, and what it makes of odd answers."""

import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from scheduling.cluster import client
from scheduling.cluster.api import Status, document_in, may_pass, pause_in, refused, status_in
from scheduling.cluster.client import Connection, KubernetesPort, Session
from scheduling.cluster.port import ClusterError
from scheduling.planning.facts import NodeFact
from scheduling.providers.static import Static
from tests.conftest import MORNING

Script = Callable[[str], bytes]


class Answering:
    """An HTTP server of one thread: hands each request to a script and sends back what it says."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[str] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with closing(connection):
                self.serve(connection)

    def serve(self, connection: socket.socket) -> None:
        request = connection.recv(65536).decode()
        self.requests.append(request)
        try:
            connection.sendall(self.script(request))
        except OSError:
            return

    def stop(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(timeout=5)


@pytest.fixture
def answering() -> Iterator[Callable[[Script], Answering]]:
    servers: list[Answering] = []

    def start(script: Script) -> Answering:
        servers.append(Answering(script))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def http(body: bytes = b"{}", status: str = "200 OK", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def asked(server: Answering, token: str = "") -> bytes:
    with closing(Session(Connection(server.url, token=token))) as session:
        return session.ask("GET", "/api/v1/nodes", query={"limit": 5, "labelSelector": "a=b,c"})


def refusal_of(call: Callable[[], object]) -> ClusterError:
    with pytest.raises(ClusterError) as refusal:
        call()
    return refusal.value


# What it sends


def test_a_call_carries_query_and_token(answering: Callable[[Script], Answering]) -> None:
    server = answering(lambda _: http(b"[]"))

    assert asked(server, token="secret") == b"[]"
    (request,) = server.requests
    assert request.startswith("GET /api/v1/nodes?limit=5&labelSelector=a%3Db%2Cc HTTP/1.1\r\n")
    assert "Authorization: Bearer secret\r\n" in request


def test_compressed_answers_are_unpacked(answering: Callable[[Script], Answering]) -> None:
    server = answering(lambda _: http(gzip.compress(b'{"a": 1}'), Content_Encoding="gzip"))

    assert asked(server) == b'{"a": 1}'


def test_a_token_that_was_renewed_on_disk_is_taken_up_once(
    answering: Callable[[Script], Answering], tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("old\n", encoding="utf-8")
    server = answering(lambda request: http() if "Bearer new" in request else http(status="401 Unauthorized"))

    with closing(Session(Connection(server.url, token_file=str(file)))) as session:
        assert refusal_of(lambda: session.ask("GET", "/")).status == 401
        assert len(server.requests) == 1  # the same token is not tried again
        file.write_text("new\n", encoding="utf-8")
        assert session.ask("GET", "/") == b"{}"


def test_a_token_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    refusal = refusal_of(lambda: Session(Connection("https://127.0.0.1:1", token_file=str(tmp_path / "token"))))

    assert refusal.for_operator
    assert str(refusal) == f"The token file {tmp_path / 'token'} cannot be read: No such file or directory."


@pytest.mark.parametrize("content", [b"", b"\n", b"two words", b"a\nb", "schlüssel".encode(), b"\xff\x00"])
def test_a_token_file_that_holds_none_is_said_without_its_content(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)

    refusal = refusal_of(lambda: Session(Connection("https://127.0.0.1:1", token_file=str(file))))

    assert str(refusal) == f"The token file {file} holds no token."


@pytest.mark.parametrize(
    "server", ["", "127.0.0.1:6443", "ftp://127.0.0.1", "https://", "javascript:alert(1)", "https://u:secret@h"]
)
def test_an_address_that_is_none_is_refused(server: str) -> None:
    refusal = refusal_of(lambda: Session(Connection(server)))

    assert refusal.retry is False
    assert "secret" not in str(refusal)


def test_no_secret_stands_in_a_sentence(answering: Callable[[Script], Answering]) -> None:
    server = answering(lambda _: http(b"who are you", status="401 Unauthorized"))

    assert "secret" not in str(refusal_of(lambda: asked(server, token="secret")))
    assert "secret" not in repr(Connection(server.url, token="secret"))


# Odd answers


def test_nobody_there_is_a_sentence_that_invites_another_try() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    with closing(Session(Connection(f"http://127.0.0.1:{port}"))) as session:
        refusal = refusal_of(lambda: session.ask("GET", "/"))

    assert (refusal.status, refusal.retry) == (None, True)
    assert str(refusal) == f"The cluster at http://127.0.0.1:{port} does not answer: [Errno 111] Connection refused."


def test_a_redirect_is_not_followed(answering: Callable[[Script], Answering]) -> None:
    server = answering(lambda _: http(status="302 Found", Location="http://169.254.169.254/latest"))

    refusal = refusal_of(lambda: asked(server))

    assert len(server.requests) == 1
    assert "is no Kubernetes API server: it sends us on to 169.254.169.254 (302)" in str(refusal)
    assert "latest" not in str(refusal)


def test_an_answer_that_is_cut_off_is_no_answer(answering: Callable[[Script], Answering]) -> None:
    server = answering(lambda _: http(b"x" * 100)[:-50])

    assert refusal_of(lambda: asked(server)).retry is True


def test_something_else_on_the_port_is_no_answer(answering: Callable[[Script], Answering]) -> None:
    server = answering(lambda _: b"SSH-2.0-OpenSSH_9.2\r\n")

    assert refusal_of(lambda: asked(server)).retry is True


def test_an_endless_answer_is_given_up(
    answering: Callable[[Script], Answering], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MOST_BYTES", 1000)
    server = answering(lambda _: http(b"x" * 100_000))

    assert "its answer does not end" in str(refusal_of(lambda: asked(server)))


def test_a_small_answer_that_unfolds_to_much_is_given_up(
    answering: Callable[[Script], Answering], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MOST_BYTES", 1_000_000)
    server = answering(lambda _: http(gzip.compress(b"0" * 50_000_000), Content_Encoding="gzip"))

    assert "its answer does not end" in str(refusal_of(lambda: asked(server)))


def test_a_dripping_answer_is_given_up(
    answering: Callable[[Script], Answering], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "WHOLE_SECONDS", -1.0)
    server = answering(lambda _: http(b"x"))

    assert refusal_of(lambda: asked(server)).retry is True


PAGES_THAT_ARE_NONE = [b"", b"<html>", b"[]", b'{"kind": "NodeList", "items": 5}', b'{"hello": "world"}', b"\xff"]


@pytest.mark.parametrize("body", PAGES_THAT_ARE_NONE)
def test_a_list_that_is_none_is_said(answering: Callable[[Script], Answering], body: bytes) -> None:
    server = answering(lambda _: http(body))
    with KubernetesPort(Connection(server.url)) as port:
        refusal = refusal_of(lambda: port.observe(MORNING))

    assert refusal.retry is True
    assert "is not a list" in str(refusal)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"5"])
def test_an_object_that_is_none_is_said(body: bytes) -> None:
    assert refusal_of(lambda: document_in(body)).retry is True


def test_odd_items_are_problems_of_a_look_and_not_its_end(answering: Callable[[Script], Answering]) -> None:
    items = {"kind": "NodeList", "items": [{"metadata": {"name": "n1"}}, {"metadata": {}}, 5]}
    server = answering(
        lambda request: (
            http(json.dumps(items).encode()) if "/nodes" in request else http(b'{"kind": "List", "items": []}')
        )
    )

    with KubernetesPort(Connection(server.url), provider=Static()) as port:
        seen = port.observe(MORNING)

    assert [type(node) for node in seen.nodes] == [NodeFact]
    assert [(problem.where, problem.field) for problem in seen.problems] == [
        ("Node", "items[1].metadata.name"),
        ("Node", "items[2]"),
    ]
    assert seen.complete


# Refusals


def test_the_servers_own_words_are_kept_short() -> None:
    body = json.dumps({"kind": "Status", "message": "no " * 500}).encode()

    text = str(refused(403, {}, body))

    assert text.startswith("The cluster refused (403): no no")
    assert len(text) < 400


@pytest.mark.parametrize("body", [b"<html>\n  <b>bad gateway</b></html>", b"\xff\xfe", b"", b"[1]"])
def test_a_refusal_without_a_status_document_still_is_a_sentence(body: bytes) -> None:
    refusal = refused(502, {}, body)

    assert (refusal.status, refusal.retry) == (502, True)
    assert "\n" not in str(refusal)
    assert str(refusal).startswith("The cluster refused (502): ")


PAUSES = {
    "the header": ({"Retry-After": "7"}, "{}", 7.0),
    "the header in lower case": ({"retry-after": "7"}, "{}", 7.0),
    "the body": ({}, '{"details": {"retryAfterSeconds": 3}}', 3.0),
    "the header before the body": ({"Retry-After": "7"}, '{"details": {"retryAfterSeconds": 3}}', 7.0),
    "a date": ({"Retry-After": "Tue, 01 Dec 2026 08:00:00 GMT"}, "{}", None),
    "a negative number": ({"Retry-After": "-7"}, '{"details": {"retryAfterSeconds": -3}}', 0.0),
    "a year": ({"Retry-After": "31536000"}, "{}", 3600.0),
    "digits without end": ({"Retry-After": "9" * 5000}, "{}", 3600.0),
    "nothing": ({}, "{}", None),
}


@pytest.mark.parametrize(("headers", "body", "seconds"), PAUSES.values(), ids=PAUSES)
def test_how_long_to_wait(headers: dict[str, str], body: str, seconds: float | None) -> None:
    assert pause_in(headers, status_in(body.encode())) == seconds


def test_a_namespace_that_is_going_is_waited_for() -> None:
    going = b'{"message": "being terminated", "details": {"causes": [{"reason": "NamespaceTerminating"}]}}'

    assert may_pass(403, status_in(going)) is True
    assert may_pass(403, Status()) is False


def test_static_pools_are_changed_by_hand() -> None:
    port = KubernetesPort(Connection("http://127.0.0.1:1"), provider=Static())

    refusal = refusal_of(lambda: port.resize("rack-4", 3, ()))

    assert (refusal.retry, str(refusal)) == (False, "Pool rack-4 is static: its nodes are added and removed by hand.")
    port.close()


def test_a_kind_that_the_cluster_does_not_define_makes_no_look_incomplete(
    answering: Callable[[Script], Answering],
) -> None:
    server = answering(
        lambda request: (
            http(b"404 page not found", status="404 Not Found")
            if "cluster.x-k8s.io" in request
            else http(b'{"kind": "List", "items": []}')
        )
    )
    with KubernetesPort(Connection(server.url)) as port:
        seen = port.observe(MORNING)

    (problem,) = seen.problems
    assert seen.complete
    assert (problem.where, problem.field) == ("MachineDeployment", "")
    assert "cannot be resized" in problem.text
