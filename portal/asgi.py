"""What an ASGI server runs: `uvicorn portal.asgi:application`."""

import os

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
pages = get_asgi_application()  # sets Django up, so it comes before anything that imports models

from portal.live.origin import OwnOrigin  # noqa: E402
from portal.live.routing import urlpatterns  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": pages,
        "websocket": OwnOrigin(AuthMiddlewareStack(URLRouter(urlpatterns))),
    }
)
