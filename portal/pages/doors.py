"""What every page does first: who asks, by which verb, and what time it is."""

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any, cast

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from tenants import clock
from tenants.access import Standing, standing
from tenants.models import User

View = Callable[..., HttpResponse]


def page(view: View) -> View:
    """A page that is only read: GET, for people who are logged in."""
    return _door(view, "GET", "HEAD")


def action(view: View) -> View:
    """Something that changes the world: POST with a CSRF token, for people who are logged in."""
    return _door(view, "POST")


def form(view: View) -> View:
    """A page with a form of its own: GET shows it, POST sends it."""
    return _door(view, "GET", "HEAD", "POST")


def person(request: HttpRequest) -> User:
    """Who asks; the doors let nobody else in."""
    return cast("User", request.user)


def stand_of(request: HttpRequest) -> Standing:
    """The person's roles over the tree; two queries, once per request."""
    found = getattr(request, "standing", None)
    if found is None:
        found = request.standing = standing(person(request))  # type: ignore[attr-defined]
    return cast("Standing", found)


def now_of(request: HttpRequest) -> datetime:
    """The time of the request: one now for everything on a page."""
    found = getattr(request, "now", None)
    if found is None:
        found = request.now = clock.now()  # type: ignore[attr-defined]
    return cast("datetime", found)


def show(
    request: HttpRequest, template: str, context: dict[str, Any], *, part: str = "", status: int = 200
) -> HttpResponse:
    """The page, or for a script that refreshes an open page only its `part`, the page's own include."""
    wanted = part if part and request.headers.get("HX-Request") == "true" else template
    response = render(request, wanted, context, status=status)
    response.headers["Vary"] = "Cookie, HX-Request"
    return response


def _door(view: View, *methods: str) -> View:
    return never_cache(_logged_in(require_http_methods(methods)(view)))


def _logged_in(view: View) -> View:
    """Nobody passes without a session; an open page whose session is over is led away as a whole."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **named: Any) -> HttpResponse:
        if request.user.is_authenticated:
            return view(request, *args, **named)
        if request.headers.get("HX-Request") == "true":
            return HttpResponse(headers={"HX-Redirect": reverse("login")})
        return redirect_to_login(request.get_full_path() if request.method in ("GET", "HEAD") else "/")

    return guarded
