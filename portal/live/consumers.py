"""One open page's socket: `{"watch": [topics]}` in, events out. Nothing is decided here."""

import asyncio
import json
import logging
from collections.abc import Coroutine
from contextlib import suppress
from importlib import import_module
from typing import Any

from channels.auth import get_user
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.conf import settings
from django.db import DatabaseError

from portal.live.hub import hub
from portal.live.mailbox import Mailbox
from portal.live.topics import LONGEST_TOPIC, MOST_TOPICS, allowed

log = logging.getLogger(__name__)

LONGEST_MESSAGE = 8 * 1024  # characters that a browser may send at once
RECHECK_SECONDS = 20.0  # how often session and topics are looked at again, on the wall clock
THROTTLE_SECONDS = 0.2  # between two changes of the topics

NONSENSE = 4400
LOGGED_OUT = 4401
TOO_LONG = 4413
TRY_LATER = 1013


class LiveConsumer(AsyncJsonWebsocketConsumer):
    """Passes on the events of the topics that the person may know of, until the session ends."""

    channel_layer_alias = "none"  # the hub is enough; a channel layer would hold a connection per socket

    async def connect(self) -> None:
        self.box = Mailbox()
        self.topics: list[str] = []
        self.running: list[asyncio.Task[None]] = []
        if not self.scope["user"].is_authenticated:
            await self.close()
            return
        await self.accept()
        self.running = [asyncio.create_task(self._guarded(work())) for work in (self._pass_on, self._recheck)]

    async def disconnect(self, _code: int) -> None:
        for task in self.running:
            task.cancel()
        hub().leave(self.box)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None, **_: Any) -> None:
        if bytes_data or text_data is None or len(text_data) > LONGEST_MESSAGE:
            await self.close(TOO_LONG, "Messages are text of at most 8 KiB.")
            return
        topics = asked_topics(text_data)
        if topics is None:
            await self.close(NONSENSE, f'Send {{"watch": [...]}} with at most {MOST_TOPICS} topics.')
            return
        await self._watch(topics)

    async def _watch(self, topics: list[str]) -> None:
        if self.topics:
            await asyncio.sleep(THROTTLE_SECONDS)
        self.topics = await database_sync_to_async(allowed)(self.scope["user"], topics)
        await hub().watch(self.box, self.topics)
        refused = [topic for topic in topics if topic not in self.topics]
        await self.send_json({"what": "watching", "topics": self.topics, "refused": refused})

    async def _pass_on(self) -> None:
        while True:
            await self.send(text_data=await self.box.take())

    async def _recheck(self) -> None:
        """A log-out, an expired session, a lost membership: each takes effect here, even if nobody told us."""
        while True:
            await asyncio.sleep(RECHECK_SECONDS)
            user = await get_user({"session": session_store()(self.scope["session"].session_key)})
            if user.pk != self.scope["user"].pk:
                await self.close(LOGGED_OUT, "You are no longer logged in.")
                return
            await self._narrow(user)

    async def _narrow(self, user: Any) -> None:
        kept = await database_sync_to_async(allowed)(user, self.topics)
        lost = [topic for topic in self.topics if topic not in kept]
        if lost:
            self.topics = kept
            await hub().watch(self.box, kept)
            await self.send_json({"what": "lost", "topics": lost})

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """The socket's own work: a browser that has gone is no fault, a database that does not answer ends the talk."""
        try:
            await work
        except DatabaseError as error:
            log.warning("A socket could not be checked again: %s", error)
            with suppress(OSError, RuntimeError):
                await self.close(TRY_LATER, "The portal is busy; come back in a moment.")
        except (OSError, RuntimeError):
            log.debug("A browser went away.")


def asked_topics(text: str) -> list[str] | None:
    """The topics out of a browser's message; None where it makes no sense."""
    try:
        topics = json.loads(text)["watch"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(topics, list) or len(topics) > MOST_TOPICS:
        return None
    sound = all(isinstance(topic, str) and 0 < len(topic) <= LONGEST_TOPIC for topic in topics)
    return topics if sound else None


def session_store() -> Any:
    return import_module(settings.SESSION_ENGINE).SessionStore
