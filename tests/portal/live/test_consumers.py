import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.test import Client

from portal.asgi import application
from portal.live import consumers
from scheduling.announce import announce
from tenants.models import Membership, User
from tests.world import World

pytestmark = pytest.mark.django_db(transaction=True)
OWN = b"http://127.0.0.1:8000"
Connect = Callable[..., Awaitable[WebsocketCommunicator]]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Opens a socket as somebody; whatever is open at the end is closed."""
    opened: list[WebsocketCommunicator] = []

    async def dial(person: User | None, *, origin: bytes = OWN, client: Client | None = None) -> WebsocketCommunicator:
        client = client or await logged_in(person)
        cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
        headers = [(b"origin", origin), (b"host", b"127.0.0.1:8000"), (b"cookie", cookies.encode())]
        socket = WebsocketCommunicator(application, "/live/", headers=headers)
        opened.append(socket)
        return socket

    yield dial
    for socket in opened:
        await socket.disconnect()
    await asyncio.sleep(0.02)  # the hub closes its connection once nobody listens


async def logged_in(person: User | None) -> Client:
    client = Client()
    if person is not None:
        await client.aforce_login(person)
    return client


async def watching(socket: WebsocketCommunicator, *topics: str) -> dict[str, Any]:
    connected, _ = await socket.connect()
    assert connected
    await socket.send_json_to({"watch": list(topics)})
    return await socket.receive_json_from(timeout=3)


async def closing_code(socket: WebsocketCommunicator) -> int:
    message = await socket.receive_output(timeout=3)
    assert message["type"] == "websocket.close", message
    return int(message["code"])


async def test_an_event_reaches_the_open_page(world: World, connect: Connect) -> None:
    row = await sync_to_async(world.workload)("notebook")
    socket = await connect(world.robin)

    answer = await watching(socket, f"workload:{row.pk}")
    await sync_to_async(announce)(f"workload:{row.pk}", "phase", phase="running", version=3)

    assert answer == {"what": "watching", "topics": [f"workload:{row.pk}"], "refused": []}
    event = await socket.receive_json_from(timeout=2)
    assert (event["what"], event["phase"]) == ("phase", "running")


async def test_what_one_may_not_see_is_refused_and_never_sent(world: World, connect: Connect) -> None:
    row = await sync_to_async(world.workload)("secret", by=world.sasha, team=world.speech)
    socket = await connect(world.robin)

    answer = await watching(socket, f"workload:{row.pk}", "fleet")
    await sync_to_async(announce)(f"workload:{row.pk}", "phase", phase="running")
    await sync_to_async(announce)("fleet", "fleet")

    assert answer["refused"] == [f"workload:{row.pk}"]
    assert (await socket.receive_json_from(timeout=2))["topic"] == "fleet"


async def test_nobody_connects_without_logging_in(connect: Connect) -> None:
    connected, _ = await (await connect(None)).connect()

    assert not connected


async def test_a_page_of_another_site_cannot_connect(world: World, connect: Connect) -> None:
    socket = await connect(world.robin, origin=b"https://elsewhere.example")

    connected, _ = await socket.connect()

    assert not connected


@pytest.mark.parametrize(
    "nonsense",
    [" ", "watch", "[]", "{}", '{"watch": "fleet"}', '{"watch": [1]}', '{"watch": [""]}', '{"watch": [null]}',
     json.dumps({"watch": ["fleet"] * 51}), json.dumps({"watch": ["x" * 61]}), "[" * 8000],
)  # fmt: skip
async def test_nonsense_ends_the_talk(world: World, connect: Connect, nonsense: str) -> None:
    socket = await connect(world.robin)
    await socket.connect()

    await socket.send_to(text_data=nonsense)

    assert await closing_code(socket) in (consumers.NONSENSE, consumers.TOO_LONG)


async def test_long_and_binary_messages_end_the_talk(world: World, connect: Connect) -> None:
    for message in ({"text_data": "x" * 9000}, {"bytes_data": b"\x00"}):
        socket = await connect(world.robin)
        await socket.connect()
        await socket.send_to(**message)
        assert await closing_code(socket) == consumers.TOO_LONG


async def leave(client: Client, person: User) -> None:
    await client.alogout()


async def expire(client: Client, person: User) -> None:
    session = await client.asession()
    await session.aset_expiry(-1)
    await session.asave()


async def deactivate(client: Client, person: User) -> None:
    await User.objects.filter(pk=person.pk).aupdate(is_active=False)


async def change_password(client: Client, person: User) -> None:
    await User.objects.filter(pk=person.pk).aupdate(password="!another")


@pytest.mark.parametrize("end", [leave, expire, deactivate, change_password])
async def test_a_socket_does_not_outlive_its_session(
    world: World, connect: Connect, monkeypatch: pytest.MonkeyPatch, end: Callable[[Client, User], Awaitable[None]]
) -> None:
    monkeypatch.setattr(consumers, "RECHECK_SECONDS", 0.05)
    client = await logged_in(world.robin)
    socket = await connect(world.robin, client=client)
    await watching(socket, "fleet")

    await end(client, world.robin)

    assert await closing_code(socket) == consumers.LOGGED_OUT


async def test_who_leaves_a_team_hears_no_more_of_it(
    world: World, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "RECHECK_SECONDS", 0.05)
    socket = await connect(world.robin)
    topic = f"team:{world.vision.pk}"
    await watching(socket, topic, "fleet")

    await Membership.objects.filter(user=world.robin).adelete()

    assert await socket.receive_json_from(timeout=3) == {"what": "lost", "topics": [topic]}
    await sync_to_async(announce)(topic, "phase")
    await sync_to_async(announce)("fleet", "fleet")
    assert (await socket.receive_json_from(timeout=2))["topic"] == "fleet"


def test_the_bound_for_a_dead_session_is_below_a_minute() -> None:
    assert consumers.RECHECK_SECONDS <= 30
    assert settings.SESSION_COOKIE_HTTPONLY
