"""What waits to be sent to one browser. Bounded: a browser that does not read never grows this process."""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Hashable
from itertools import count

MOST_EVENTS = 200
MISSED = json.dumps({"what": "missed"})
"""Tells the browser that events were lost, so that it fetches its fragments anew."""


class Mailbox:
    """Events in the order in which they came; of a meter only the newest reading is kept."""

    def __init__(self, most: int = MOST_EVENTS) -> None:
        self._most = most
        self._events: OrderedDict[Hashable, str] = OrderedDict()
        self._numbers = count()
        self._filled = asyncio.Event()

    def __len__(self) -> int:
        return len(self._events)

    def put(self, text: str, *, newest_only: str = "") -> None:
        """Keep one event; `newest_only` names the meter whose earlier reading it replaces."""
        key = newest_only or next(self._numbers)
        if key not in self._events and len(self._events) >= self._most:
            self._events.clear()
            text, key = MISSED, next(self._numbers)
        self._events[key] = text
        self._filled.set()

    async def take(self) -> str:
        """The oldest event, as soon as there is one."""
        await self._filled.wait()
        _, text = self._events.popitem(last=False)
        if not self._events:
            self._filled.clear()
        return text
