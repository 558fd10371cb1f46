"""What Kubernetes says about a workload: the Events of its objects and pods, newest last."""

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from scheduling.cluster.api import Api, list_path, pages
from scheduling.cluster.documents import Meta, Page, Part, Unreadable, decoded
from scheduling.cluster.port import ClusterError, EventFact
from scheduling.cluster.times import when

MOST_SHOWN = 100
LONGEST_TEXT = 1_000
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class About(Part, frozen=True, kw_only=True):
    kind: str = ""
    name: str = ""


class Series(Part, frozen=True, kw_only=True):
    count: int | None = None
    last_observed_time: str | None = None


class Source(Part, frozen=True, kw_only=True):
    component: str | None = None


class EventDocument(Part, frozen=True, kw_only=True):
    metadata: Meta = Meta()
    involved_object: About = About()
    type: str | None = None
    reason: str | None = None
    message: str | None = None
    count: int | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    series: Series | None = None
    source: Source | None = None
    reporting_component: str | None = None


def events_of(api: Api, namespace: str, name: str) -> list[EventFact]:
    """Events about the workload's object `name` and about what is called after it. Raises a ClusterError."""
    found = [fact for page in pages(api, list_path("Event", namespace)) for fact in decode_events(page, name)]
    return sorted(found, key=lambda fact: (fact.at or LONG_AGO, fact.about, fact.reason))[-MOST_SHOWN:]


def decode_events(page: bytes, name: str) -> Iterator[EventFact]:
    """The events of one page that are about `name`; an odd one is left out."""
    try:
        items = msgspec.json.decode(page, type=Page).items or ()
    except (msgspec.DecodeError, RecursionError) as error:
        raise ClusterError(f"The cluster answered with something that is not a list: {error}.") from None
    for item in items:
        try:
            event, _ = decoded(item, EventDocument)
        except Unreadable:
            continue
        if is_about(event.involved_object.name, name):
            yield event_fact(event)


def is_about(other: str, name: str) -> bool:
    """The object itself, its pods NAME-0 and NAME-x7k2p, and the claim of its home, home-NAME-0."""
    return other == name or other.startswith((f"{name}-", f"home-{name}-"))


def event_fact(event: EventDocument) -> EventFact:
    series = event.series or Series()
    last = series.last_observed_time or event.last_timestamp or event.event_time or event.first_timestamp
    source = event.source.component if event.source else ""
    return EventFact(
        at=when(last) or when(event.metadata.creation_timestamp),
        about=f"{event.involved_object.kind} {event.involved_object.name}".strip(),
        warning=event.type == "Warning",
        reason=event.reason or "",
        text=(event.message or "")[:LONGEST_TEXT],
        times=max(1, series.count or event.count or 1),
        source=event.reporting_component or source or "",
    )
