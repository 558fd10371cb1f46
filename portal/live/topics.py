"""What a person may listen to. Topics are named in scheduling/announce.py."""

from collections.abc import Iterable
from uuid import UUID

from scheduling.access import workloads_for
from tenants.access import Standing, standing
from tenants.models import User

MOST_TOPICS = 50
LONGEST_TOPIC = 60


def allowed(user: User, topics: Iterable[str]) -> list[str]:
    """Those of the topics that the person may know of, in the order given. Three queries."""
    wanted = list(dict.fromkeys(topics))
    stand = standing(user)
    visible = visible_workloads(stand, wanted)
    return [topic for topic in wanted if topic in visible or may_hear(stand, topic)]


def visible_workloads(stand: Standing, topics: Iterable[str]) -> set[str]:
    named = {pk: topic for topic in topics if (pk := as_key(topic, "workload"))}
    found = workloads_for(stand).filter(pk__in=named).values_list("pk", flat=True)
    return {named[pk] for pk in found}


def may_hear(stand: Standing, topic: str) -> bool:
    if topic == "fleet":
        return True
    if team := as_key(topic, "team"):
        return team in stand.teams and stand.may_read(team)
    return topic == f"person:{stand.user.pk}"


def as_key(topic: str, kind: str) -> UUID | None:
    """The key in a topic such as team:<uuid>; None where it is of another kind or no key at all."""
    prefix, _, name = topic.partition(":")
    if prefix != kind:
        return None
    try:
        key = UUID(name)
    except ValueError:
        return None
    return key if str(key) == name else None
