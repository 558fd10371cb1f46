"""Only our own pages open a socket: a browser sends its cookie along for any site, and to every port of this host."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host

FOREIGN = 4403

Application = Callable[[Any, Any, Any], Awaitable[None]]


class OwnOrigin:
    """Refuses a connection before it is accepted. Asks nobody: a refused one costs no connection of ours."""

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if is_own(scope["headers"]):
            await self.application(scope, receive, send)
            return
        await receive()
        await send({"type": "websocket.close", "code": FOREIGN})


def is_own(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether the one Origin is the portal's address, or that of the allowed host that was called."""
    said = [(name, value.decode("latin1")) for name, value in headers]
    origins = [value for name, value in said if name == b"origin"]
    hosts = [value for name, value in said if name == b"host"]
    if len(origins) != 1 or len(hosts) != 1:
        return False
    return origins[0] == settings.BERTH_URL or is_address_of(hosts[0], origins[0])


def is_address_of(host: str, origin: str) -> bool:
    """Scheme, name and port: what is served on another port of this machine is another site."""
    try:
        said = urlsplit(origin)
    except ValueError:
        return False
    called = validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS)
    return called and said.scheme == settings.ORIGIN.scheme and said.netloc.lower() == host.lower()
