"""Which pages may open a socket."""

import pytest

from portal.live.origin import OwnOrigin, is_own

HOST = b"127.0.0.1:8000"
ORIGINS = {
    "the portal's own address": (b"http://127.0.0.1:8000", True),
    "another site": (b"http://evil.example", False),
    "a site whose name begins like ours": (b"http://127.0.0.1:8000.evil.example", False),
    "another port of this machine": (b"http://127.0.0.1:8888", False),
    "this machine by another name": (b"http://localhost:8888", False),
    "another scheme": (b"https://127.0.0.1:8000", False),
    "no site at all": (b"null", False),
    "somebody's name in it": (b"http://me@127.0.0.1:8000", False),
    "nonsense": (b"http://[::1", False),
    "no text": (b"\xff\xfe", False),
}


@pytest.mark.parametrize(("origin", "own"), ORIGINS.values(), ids=ORIGINS.keys())
def test_a_socket_is_opened_by(origin, own):
    assert is_own([(b"host", HOST), (b"origin", origin)]) is own


def test_the_portal_may_be_called_by_another_name_of_its_own():
    assert is_own([(b"host", b"localhost:8000"), (b"origin", b"http://localhost:8000")])


def test_a_host_that_is_not_ours_is_no_excuse():
    """A name that its owner lets point at this machine."""
    assert not is_own([(b"host", b"evil.example"), (b"origin", b"http://evil.example")])


@pytest.mark.parametrize("origins", [[], [b"http://127.0.0.1:8000", b"http://evil.example"]], ids=["none", "two"])
def test_there_is_exactly_one_origin(origins):
    assert not is_own([(b"host", HOST), *((b"origin", origin) for origin in origins)])


async def test_a_foreign_page_is_refused_before_anything_is_asked():
    said = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        said.append(message)

    async def application(*_):
        raise AssertionError("The socket was opened.")

    await OwnOrigin(application)({"headers": [(b"host", HOST), (b"origin", b"http://evil.example")]}, receive, send)

    assert [message["type"] for message in said] == ["websocket.close"]
