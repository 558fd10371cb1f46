"""Every address of the pages, with arguments that lead somewhere in the small world."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, reverse

from portal.pages.urls import urlpatterns
from tests.world import World

PERIOD = "2026-12"


def furnished(world: World) -> dict[str, Any]:
    """A world in which each kind of page has something to show; answers the arguments of the addresses."""
    row = world.workload("notebook", phase="running")
    request = world.asks(world.robin)
    grant = world.grant(world.vision, "h100-80gb", 1, member=world.robin)
    return {
        "workload": row.pk,
        "request": request.pk,
        "grant": grant.pk,
        "pool": world.pools["h100-train"].pk,
        "cluster": world.cluster.pk,
    }


def path_of(pattern: URLPattern, keys: dict[str, Any]) -> str:
    """The address of one pattern; a `uuid` or `int` argument gets the key of what its name speaks of."""
    arguments: dict[str, Any] = {}
    if "period" in pattern.pattern.converters:
        arguments["period"] = PERIOD
    if "pk" in pattern.pattern.converters:
        arguments["pk"] = keys[kind_of(str(pattern.name))]
    return reverse(str(pattern.name), kwargs=arguments)


def kind_of(name: str) -> str:
    for word in ("request", "offer", "grant", "pool", "cluster"):
        if word in name:
            return {"offer": "request"}.get(word, word)
    return "workload"


def everything() -> list[URLPattern]:
    return list(urlpatterns)
