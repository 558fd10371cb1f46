"""Telling open pages what changed: one message per event, however many browsers watch.

Each web process listens to one Redis channel and passes a message on to its own sockets (`portal/live/hub.py`). A lost
message costs seconds: pages heal by asking again. So nothing here ever fails a request or a cycle.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from uuid import UUID

import redis
from django.conf import settings
from django.db import transaction

CHANNEL = "berth.live"

log = logging.getLogger(__name__)


def workload_topic(pk: UUID) -> str:
    return f"workload:{pk}"


def team_topic(pk: UUID) -> str:
    return f"team:{pk}"


def person_topic(pk: int) -> str:
    return f"person:{pk}"


def fleet_topic() -> str:
    return "fleet"


def announce(topic: str, what: str, **facts: Any) -> None:
    """Send one event now. `facts` must be JSON; `what` is phase, meter, request, fleet, ledger or pace."""
    send([{"topic": topic, "what": what, **facts}])


def announce_on_commit(topic: str, what: str, **facts: Any) -> None:
    transaction.on_commit(lambda: announce(topic, what, **facts))


def send(events: Sequence[Mapping[str, Any]]) -> None:
    """Publish many events in one round trip."""
    if not events:
        return
    try:
        pipe = connection().pipeline(transaction=False)
        for event in events:
            pipe.publish(CHANNEL, json.dumps(event))
        pipe.execute()
    except redis.RedisError as error:
        log.warning("Open pages were not told of %d events: %s", len(events), error)


@cache
def connection() -> "redis.Redis":
    """One pool per process; short time-outs, because a page must never wait for an announcement."""
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1.0, socket_connect_timeout=0.5)
