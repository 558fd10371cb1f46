"""Whether the message server takes messages. The portal serves without it, so this is an alert, never a refusal."""

import threading
import time
from dataclasses import dataclass, field

import redis
import structlog
from django.conf import settings

KEY = "berth:takes-messages"
PATIENCE = 1.0  # seconds that the server has to answer
KEPT = 5.0  # seconds for which an answer is good, so that a server that hangs does not hold up each page

log = structlog.get_logger(__name__)


def trouble() -> str:
    """What is wrong with the message server, in a sentence; empty when nothing is. Asks at most every few seconds."""
    return _last.ask()


def ask() -> str:
    """As `trouble`, asked now. A full server and a replica answer a ping: only a write shows that they take nothing."""
    where = redis.Redis.from_url(settings.REDIS_URL, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE)
    try:
        with where as client:
            client.set(KEY, 1, ex=60)
    except redis.ResponseError as refusal:
        text = f"The message server takes nothing: {refusal}."
    except redis.RedisError:
        text = "The message server does not answer."
    else:
        return ""
    log.error("messages_do_not_work", reason=text)
    return f"{text} Requests are taken and worked off; pages move only when they ask."


@dataclass
class Last:
    """The last answer and when it was given."""

    text: str = ""
    until: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self) -> str:
        if time.monotonic() >= self.until and self.lock.acquire(blocking=False):
            try:
                self.text = ask()
                self.until = time.monotonic() + KEPT
            finally:
                self.lock.release()
        return self.text


_last = Last()
