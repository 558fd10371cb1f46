"""Two questions of whoever keeps us running: are we alive, and can we serve?"""

import structlog
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from portal import messages

log = structlog.get_logger(__name__)


@require_safe
@never_cache
def health(request: HttpRequest) -> HttpResponse:
    """200 while the process answers at all; asks nobody else."""
    return JsonResponse({"status": "ok"})


@require_safe
@never_cache
def ready(request: HttpRequest) -> HttpResponse:
    """200 when the database answers, else 503. Messages are told but do not count: the portal serves without them, and
    a proxy that turned people away would make an outage of it."""
    database, trouble = database_answers(), messages.ask()
    parts = {"database": "ok" if database else "no answer", "messages": trouble or "ok"}
    return JsonResponse(parts, status=200 if database else 503)


def database_answers() -> bool:
    try:
        ask_database()
    except DatabaseError as failure:
        log.warning("not_ready", part="database", reason=str(failure))
        return False
    return True


def ask_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
