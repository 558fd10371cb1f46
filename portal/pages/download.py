"""Files that are made while they are sent, so that no month is too long for memory."""

from collections.abc import AsyncIterator, Iterator
from itertools import islice

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse

LINES_AT_ONCE = 1000


def download(request: HttpRequest, pieces: Iterator[str], name: str, kind: str) -> HttpResponse:
    """The pieces as one attachment."""
    body = _in_threads(pieces) if isinstance(request, ASGIRequest) else _blocks(pieces)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(body, content_type=kind, headers=headers)  # type: ignore[return-value]


def _blocks(pieces: Iterator[str]) -> Iterator[str]:
    while block := _next_block(pieces):
        yield block


async def _in_threads(pieces: Iterator[str]) -> AsyncIterator[str]:
    """An event loop must not wait for a database."""
    while block := await sync_to_async(_next_block)(pieces):
        yield block


def _next_block(pieces: Iterator[str]) -> str:
    return "".join(islice(pieces, LINES_AT_ONCE))
