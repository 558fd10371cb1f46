"""Two questions of whoever keeps us running: are we alive, and can we serve?"""

from collections.abc import Callable

import redis
import structlog
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

log = structlog.get_logger(__name__)
PATIENCE = 2  # seconds that the message server has to answer


@require_safe
@never_cache
def health(request: HttpRequest) -> HttpResponse:
    """200 while the process answers at all; asks nobody else."""
    return JsonResponse({"status": "ok"})


@require_safe
@never_cache
def ready(request: HttpRequest) -> HttpResponse:
    """200 when database and message server answer, else 503 with the parts that do not."""
    parts = {"database": answers(ask_database, DatabaseError), "messages": answers(ask_messages, redis.RedisError)}
    return JsonResponse({name: "ok" if good else "no answer" for name, good in parts.items()}, status=status(parts))


def status(parts: dict[str, bool]) -> int:
    return 200 if all(parts.values()) else 503


def answers(ask: Callable[[], None], fault: type[Exception]) -> bool:
    try:
        ask()
    except fault as failure:
        log.warning("not_ready", part=ask.__name__, reason=str(failure))
        return False
    return True


def ask_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def ask_messages() -> None:
    client = redis.Redis.from_url(settings.REDIS_URL, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE)
    with client:
        client.ping()
