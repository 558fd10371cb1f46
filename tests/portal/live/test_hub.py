import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis.asyncio

from portal.live import hub as hubs
from portal.live.hub import Hub
from portal.live.mailbox import MISSED, Mailbox
from portal.processes import find_valkey, listen, stop
from scheduling.announce import CHANNEL
from tests.conftest import Clock


@pytest.fixture
async def hub(redis_url: str) -> AsyncIterator[Hub]:
    made = Hub(redis_url)
    yield made
    for box in list(made._topics):
        made.leave(box)
    await asyncio.sleep(0.02)  # the cancelled listener closes its connection


@pytest.fixture
async def server(redis_url: str) -> AsyncIterator[redis.asyncio.Redis]:
    async with redis.asyncio.Redis.from_url(redis_url) as client:
        yield client


def event(topic: str, what: str = "phase", **facts: object) -> str:
    return json.dumps({"topic": topic, "what": what, **facts})


async def next_event(box: Mailbox) -> str:
    return await asyncio.wait_for(box.take(), 2)


async def test_an_announcement_reaches_those_who_watch_its_topic(hub: Hub, server: redis.asyncio.Redis) -> None:
    mine, other = Mailbox(), Mailbox()
    await hub.watch(mine, ["workload:a"])
    await hub.watch(other, ["workload:b"])

    await server.publish(CHANNEL, event("workload:a", phase="running"))

    assert json.loads(await next_event(mine))["phase"] == "running"
    assert len(other) == 0


async def test_many_browsers_share_one_subscription(hub: Hub, server: redis.asyncio.Redis) -> None:
    boxes = [Mailbox() for _ in range(100)]
    for box in boxes:
        await hub.watch(box, ["fleet"])

    [(_, listeners)] = await server.pubsub_numsub(CHANNEL)

    assert listeners == 1


async def test_the_last_to_leave_ends_the_subscription(hub: Hub, server: redis.asyncio.Redis) -> None:
    box = Mailbox()
    await hub.watch(box, ["fleet"])

    hub.leave(box)

    for _ in range(100):
        [(_, listeners)] = await server.pubsub_numsub(CHANNEL)
        if listeners == 0:
            break
        await asyncio.sleep(0.01)
    assert listeners == 0
    assert hub._watchers == {}


async def test_a_lost_connection_is_made_again_and_pages_are_told(
    hub: Hub, server: redis.asyncio.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hubs, "pause", lambda failures: 0.01)
    box = Mailbox()
    await hub.watch(box, ["fleet"])

    await server.client_kill_filter(_type="pubsub")

    assert await next_event(box) == MISSED
    await server.publish(CHANNEL, event("fleet", "fleet"))
    assert json.loads(await next_event(box))["what"] == "fleet"


async def test_while_the_message_server_is_away_pages_know_since_when(
    valkey: tuple[subprocess.Popen[bytes], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    process, address = valkey
    monkeypatch.setattr(hubs, "pause", lambda failures: 0.01)
    monkeypatch.setattr(hubs, "PATIENCE", 0.2)
    hub, box, late = Hub(address), Mailbox(), Mailbox()
    await hub.watch(box, ["fleet"])
    stop(process)
    told = json.loads(await next_event(box))
    await hub.watch(late, ["fleet"])

    assert told == {"what": "stale", "since": "2026-12-01T08:00:00+00:00"}
    assert json.loads(await next_event(late)) == told
    again, _ = listen(find_valkey(), tmp_path, int(urlsplit(address).port or 0))
    try:
        assert await asyncio.wait_for(until_missed(box), 5)
        assert await asyncio.wait_for(until_missed(late), 5)
    finally:
        hub.leave(box)
        hub.leave(late)
        await asyncio.sleep(0.02)
        stop(again)


async def until_missed(box: Mailbox) -> bool:
    """Whatever else a page is told, in the end it is told to ask again."""
    while await box.take() != MISSED:
        pass
    return True


async def test_a_server_that_takes_the_connection_and_says_nothing_is_no_subscription(
    valkey: tuple[subprocess.Popen[bytes], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    process, address = valkey
    monkeypatch.setattr(hubs, "pause", lambda failures: 0.01)
    monkeypatch.setattr(hubs, "PATIENCE", 0.1)
    hub, box = Hub(address), Mailbox()
    process.send_signal(signal.SIGSTOP)
    try:
        await hub.watch(box, ["fleet"])
        assert json.loads(await next_event(box))["what"] == "stale"
    finally:
        process.send_signal(signal.SIGCONT)
        hub.leave(box)
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("nonsense", ["", "{", "[]", "1", "{}", '{"topic": "fleet"}', b"\xff\xfe"])
async def test_a_senseless_announcement_is_dropped(hub: Hub, nonsense: str | bytes) -> None:
    box = Mailbox()
    await hub.watch(box, ["fleet"])

    hub.deliver(nonsense)

    assert len(box) == 0


async def test_a_new_list_of_topics_replaces_the_old_one(hub: Hub) -> None:
    box = Mailbox()
    await hub.watch(box, ["workload:a"])
    await hub.watch(box, ["workload:b"])

    hub.deliver(event("workload:a"))
    hub.deliver(event("workload:b"))

    assert json.loads(await next_event(box))["topic"] == "workload:b"
    assert len(box) == 0


def test_pauses_grow_and_stay_bounded() -> None:
    assert hubs.pause(1) <= 0.2
    assert all(5.0 <= hubs.pause(failures) <= hubs.LONGEST_PAUSE for failures in range(8, 100))
