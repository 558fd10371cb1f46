"""One listener per process: it hears every announcement and drops it into the mailboxes of its own sockets.

However many browsers watch, this process holds one Redis subscription. A lost connection is made again with growing
pauses. While it is lost every page says since when it hears nothing; afterwards it is told that it may have missed
something, and asks again.
"""

import asyncio
import json
import logging
import random
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from weakref import WeakKeyDictionary

import redis.asyncio
from django.conf import settings

from portal.live.mailbox import MISSED, Mailbox
from scheduling.announce import CHANNEL
from tenants import clock
from tenants.billing import house

log = logging.getLogger(__name__)

PATIENCE = 2.0  # seconds that a newcomer waits for the subscription to stand
SILENCE = 15.0  # seconds without a word before the listener asks whether the server is still there
LONGEST_PAUSE = 10.0  # seconds between two attempts to connect
LOST = 2  # attempts in a row that have to fail before pages are told: a mere hiccup is none of their business
FAULTS = (redis.RedisError, OSError, asyncio.TimeoutError)


class Hub:
    """Passes announcements on to the mailboxes that watch their topic. Lives on one event loop."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._watchers: dict[str, set[Mailbox]] = defaultdict(set)
        self._topics: dict[Mailbox, frozenset[str]] = {}
        self._listener: asyncio.Task[None] | None = None
        self._stands = asyncio.Event()
        self._lost_at: datetime | None = None

    async def watch(self, box: Mailbox, topics: Iterable[str]) -> None:
        """From now on the mailbox gets the events of exactly these topics."""
        self._forget(box)
        self._topics[box] = frozenset(topics)
        for topic in self._topics[box]:
            self._watchers[topic].add(box)
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen())
        try:
            await asyncio.wait_for(self._stands.wait(), PATIENCE)
        except TimeoutError:
            box.put(stale(self._lost_at or clock.now()))

    def leave(self, box: Mailbox) -> None:
        """The mailbox gets nothing more; the last one to leave ends the subscription."""
        self._forget(box)
        if not self._topics and self._listener is not None:
            self._listener.cancel()
            self._listener = None
            self._stands.clear()

    def deliver(self, data: bytes | str) -> None:
        """Drop one announcement into the mailboxes that watch its topic; nonsense is dropped and logged."""
        try:
            event = json.loads(data)
            topic, what = event["topic"], event["what"]
        except (ValueError, KeyError, TypeError):
            log.warning("An announcement makes no sense: %.200r", data)
            return
        text = data.decode() if isinstance(data, bytes) else data
        for box in self._watchers.get(topic, ()):
            box.put(text, newest_only=topic if what == "meter" else "")

    def _forget(self, box: Mailbox) -> None:
        for topic in self._topics.pop(box, frozenset()):
            self._watchers[topic].discard(box)
            if not self._watchers[topic]:
                del self._watchers[topic]

    async def _listen(self) -> None:
        """Stay subscribed for as long as anybody watches."""
        failures = 0
        while True:
            try:
                await self._subscribe(again=failures > 0)
            except FAULTS as fault:
                was_standing = self._stands.is_set()
                self._stands.clear()
                failures = 1 if was_standing else failures + 1
                self._lost_at = clock.now() if failures == 1 or self._lost_at is None else self._lost_at
                if failures == LOST:
                    self._tell_all(stale(self._lost_at))
                log.warning("The listener for open pages lost its connection (%d): %s", failures, fault)
                await asyncio.sleep(pause(failures))

    async def _subscribe(self, *, again: bool) -> None:
        """Subscribe and pass on what comes, until the connection fails."""
        client = redis.asyncio.Redis.from_url(self._url, socket_connect_timeout=PATIENCE)
        async with client, client.pubsub() as subscription:
            await subscription.subscribe(CHANNEL)
            if await subscription.get_message(timeout=PATIENCE) is None:
                raise redis.ConnectionError("the message server does not confirm the subscription")
            self._stands.set()
            if again:
                self._tell_all(MISSED)
            await self._pass_on(subscription)

    async def _pass_on(self, subscription: redis.asyncio.client.PubSub) -> None:
        asked = False
        while True:
            message = await subscription.get_message(ignore_subscribe_messages=True, timeout=SILENCE)
            if message is None and asked:
                raise redis.ConnectionError("the message server does not answer")
            asked = message is None
            if asked:
                await subscription.ping()
            elif message["type"] == "message":
                self.deliver(message["data"])

    def _tell_all(self, text: str) -> None:
        for box in self._topics:
            box.put(text)


def stale(since: datetime) -> str:
    """Tells a browser since when nothing is heard; in the organisation's zone, as the page's own clock."""
    return json.dumps({"what": "stale", "since": since.astimezone(house.zone()).isoformat(timespec="seconds")})


def pause(failures: int) -> float:
    """Seconds before the next attempt: doubling, bounded, and spread so that processes do not return in step."""
    return min(LONGEST_PAUSE, 0.1 * 2 ** min(failures, 10)) * random.uniform(0.5, 1.0)  # noqa: S311


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def hub() -> Hub:
    """The hub of the running event loop: one per process that serves pages."""
    loop = asyncio.get_running_loop()
    if loop not in _hubs:
        _hubs[loop] = Hub(settings.REDIS_URL)
    return _hubs[loop]
