"""Lists are paged; a page that does not exist is the nearest that does."""

from typing import Any

from django.core.paginator import Page, Paginator
from django.http import HttpRequest

PER_PAGE = 25


def paged(request: HttpRequest, rows: Any, *, name: str = "page", size: int = PER_PAGE) -> Page[Any]:
    """The page of `rows` (a queryset or a list) that the parameter `name` asks for."""
    return Paginator(rows, size).get_page(request.GET.get(name))
