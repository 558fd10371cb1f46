"""Refusals become pages: the sentence, what it is about, and a way on."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from tenants.errors import AlreadyDecided, NotAllowed, Refused

TITLES = {
    400: "That is not possible",
    403: "Not yours to do",
    409: "Somebody was first",
}


class Refusals:
    """Middleware: a rule that says no anywhere below a page answers with its sentence and the right status."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, Refused):
            return None
        status = status_of(exception)
        context = {"title": TITLES[status], "text": exception.text, "field": exception.field}
        return render(request, "refused.html", context, status=status)


def status_of(refusal: Refused) -> int:
    if isinstance(refusal, AlreadyDecided):
        return 409
    return 403 if isinstance(refusal, NotAllowed) else 400
