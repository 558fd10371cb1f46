"""Watches: from a version, from the beginning, by selector, with bookmarks, and when they are too old."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection
from queue import Queue
from socket import SHUT_RDWR
from typing import Any
from urllib.parse import urlsplit

import pytest
from kubernetes.client.exceptions import ApiException

from tests.scheduling.cluster.simulated.stories import Story, config_map, pod

MAPS = "/api/v1/namespaces/lab/configmaps"


class Listener:
    """One open watch, read line by line by a thread."""

    def __init__(self, url: str, path: str) -> None:
        self.lines: Queue[dict[str, Any] | None] = Queue()
        self.connection = HTTPConnection(urlsplit(url).netloc, timeout=20)
        self.connection.request("GET", path)
        self.socket = self.connection.sock
        self.answer = self.connection.getresponse()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self) -> None:
        try:
            while line := self.answer.readline():
                self.lines.put(json.loads(line))
        except (OSError, ValueError, AttributeError):
            pass
        self.lines.put(None)

    def hang_up(self) -> None:
        with suppress(OSError):
            self.socket.shutdown(SHUT_RDWR)
        self.thread.join(timeout=5)
        self.connection.close()

    def next(self) -> tuple[str, str]:
        """Type and name of the next event."""
        event = self.lines.get(timeout=10)
        assert event is not None, "the watch has ended"
        return event["type"], event["object"].get("metadata", {}).get("name", "")

    def ended(self) -> bool:
        return self.lines.get(timeout=10) is None


@pytest.fixture
def listen(url: str) -> Iterator[Any]:
    opened: list[Listener] = []

    def start(path: str, **query: Any) -> Listener:
        text = "&".join(f"{name}={value}" for name, value in {"watch": "true", **query}.items())
        opened.append(Listener(url, f"{path}?{text}"))
        return opened[-1]

    yield start
    for one in opened:
        one.hang_up()


def version(story: Story) -> str:
    return str(story.world.store.version)


def test_it_hears_what_happens_after_a_version(story: Story, listen: Any) -> None:
    story.create(config_map("before"))
    watch = listen(MAPS, resourceVersion=version(story))

    story.create(config_map("a"))
    story.merge("configmaps", "a", {"data": {"x": "1"}})
    story.delete("configmaps", "a")

    assert [watch.next() for _ in range(3)] == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_nothing_is_lost_between_list_and_watch(story: Story, listen: Any) -> None:
    at = version(story)
    story.create(config_map("a"))
    story.create(config_map("b"))

    watch = listen(MAPS, resourceVersion=at)

    assert [watch.next(), watch.next()] == [("ADDED", "a"), ("ADDED", "b")]


def test_without_a_version_it_begins_with_what_is_there(story: Story, listen: Any) -> None:
    story.create(config_map("a"))
    watch = listen(MAPS)
    assert watch.next() == ("ADDED", "a")

    story.create(config_map("b"))

    assert watch.next() == ("ADDED", "b")


def test_other_namespaces_and_kinds_are_not_heard(story: Story, listen: Any) -> None:
    watch = listen(MAPS, resourceVersion=version(story))

    story.create(config_map("foreign", namespace="default"))
    story.create(pod())
    story.create(config_map("own"))

    assert watch.next() == ("ADDED", "own")


def test_what_leaves_the_selection_is_deleted_for_this_watch(story: Story, listen: Any) -> None:
    story.create(config_map("a", labels={"x": "1"}))
    watch = listen(MAPS, resourceVersion=version(story), labelSelector="x=1")

    story.merge("configmaps", "a", {"metadata": {"labels": {"x": "2"}}})
    story.merge("configmaps", "a", {"metadata": {"labels": {"x": "1"}}})
    story.merge("configmaps", "a", {"data": {"y": "1"}})

    assert [watch.next() for _ in range(3)] == [("DELETED", "a"), ("ADDED", "a"), ("MODIFIED", "a")]


def test_one_object_is_watched_by_its_name(story: Story, listen: Any) -> None:
    watch = listen(MAPS, resourceVersion=version(story), fieldSelector="metadata.name=b")

    story.create(config_map("a"))
    story.create(config_map("b"))

    assert watch.next() == ("ADDED", "b")


def test_it_ends_cleanly_at_its_time_with_a_bookmark(story: Story, listen: Any) -> None:
    watch = listen(MAPS, resourceVersion=version(story), timeoutSeconds=0.2, allowWatchBookmarks="true")
    event = watch.lines.get(timeout=10)

    assert (event["type"], event["object"]["kind"]) == ("BOOKMARK", "ConfigMap")
    assert event["object"]["metadata"]["resourceVersion"] == version(story)
    assert watch.ended()


def test_from_a_bookmark_it_goes_on(story: Story, listen: Any) -> None:
    first = listen(MAPS, resourceVersion=version(story), timeoutSeconds=0.1, allowWatchBookmarks="true")
    mark = first.lines.get(timeout=10)["object"]["metadata"]["resourceVersion"]
    story.create(config_map("a"))

    assert listen(MAPS, resourceVersion=mark).next() == ("ADDED", "a")


def test_a_version_that_is_too_old_answers_410(story: Story, listen: Any) -> None:
    at = version(story)
    story.create(config_map("a"))
    story.faults.expire_watches("configmaps")

    watch = listen(MAPS, resourceVersion=at)

    assert watch.answer.status == 410
    assert watch.lines.get(timeout=10)["reason"] == "Expired"


def test_an_open_watch_whose_history_is_forgotten_gets_an_error_event(story: Story, listen: Any) -> None:
    watch = listen(MAPS, resourceVersion=version(story))

    story.faults.expire_watches()
    event = watch.lines.get(timeout=10)

    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert watch.ended()


def test_a_new_list_and_watch_after_that_miss_nothing(story: Story, listen: Any) -> None:
    story.create(config_map("a"))
    story.faults.expire_watches()
    watch = listen(MAPS, resourceVersion=version(story))

    story.create(config_map("b"))

    assert watch.next() == ("ADDED", "b")


def test_a_watch_that_is_cut_ends_in_the_middle(story: Story, listen: Any) -> None:
    watch = listen(MAPS, resourceVersion=version(story))
    story.create(config_map("a"))
    assert watch.next() == ("ADDED", "a")

    assert story.faults.cut_watches("configmaps") == 1

    assert watch.ended()


def test_a_silent_watch_stays_open_and_says_nothing(story: Story, listen: Any) -> None:
    story.faults.silence_watches("configmaps")
    watch = listen(MAPS, resourceVersion=version(story), timeoutSeconds=0.3, allowWatchBookmarks="true")

    story.create(config_map("a"))

    assert watch.ended()


def test_a_version_that_is_no_number_is_a_bad_request(listen: Any) -> None:
    assert listen(MAPS, resourceVersion="abc").answer.status == 400


def test_lists_within_watches_are_refused(listen: Any) -> None:
    assert listen(MAPS, sendInitialEvents="true").answer.status == 422


def test_the_official_client_watches(client: Any, story: Story) -> None:
    maps = client.resources.get(api_version="v1", kind="ConfigMap")
    at = maps.get(namespace="lab").metadata.resourceVersion
    story.create(config_map("a"))
    story.merge("configmaps", "a", {"data": {"x": "1"}})

    events = maps.watch(namespace="lab", resource_version=at, timeout=1)

    assert [(event["type"], event["object"].metadata.name) for event in events] == [("ADDED", "a"), ("MODIFIED", "a")]


def test_the_official_client_raises_410(client: Any, story: Story) -> None:
    maps = client.resources.get(api_version="v1", kind="ConfigMap")
    at = maps.get(namespace="lab").metadata.resourceVersion
    story.faults.expire_watches()

    with pytest.raises(ApiException) as refused:
        list(maps.watch(namespace="lab", resource_version=at, timeout=1))

    assert refused.value.status == 410


def test_a_slow_reader_of_a_busy_kind_is_told_in_time(story: Story) -> None:
    """More changes than the history keeps: the watch learns that it missed some, and is not fed a gap."""
    from scheduling.cluster.simulated.kinds import BY_PLURAL
    from scheduling.cluster.simulated.listing import Query

    story.create(config_map("a"))
    watch = story.hub.open(Query(BY_PLURAL["configmaps"]), version(story))
    story.world.store._limit = 5
    for count in range(10):
        story.merge("configmaps", "a", {"data": {"n": str(count)}})

    lines = story.hub.lines(watch)

    assert [json.loads(line)["type"] for line in lines] == ["ERROR"]
