"""The closed sets that columns choose from, as choices and as constraints."""

from enum import StrEnum

from django.db.models import Q


def choices(enum: type[StrEnum]) -> list[tuple[str, str]]:
    return [(str(item), str(item).replace("-", " ")) for item in enum]


def known(field: str, enum: type[StrEnum]) -> Q:
    return Q(**{f"{field}__in": [str(item) for item in enum]})


class Queueing(StrEnum):
    """Who decides what may start: our plan, or the Kueue that runs in the cluster."""

    DIRECT = "direct"
    KUEUE = "kueue"


class Route(StrEnum):
    """How a workspace is reached from outside its cluster."""

    INGRESS = "ingress"
    HTTP_ROUTE = "httproute"
