from typing import Any

import pytest

from portal.live.topics import allowed
from tests.world import World

WHO_HEARS_WHAT = {  # person: which of the topics below
    "robin": {"own workload", "vision", "fleet", "himself"},
    "dana": {"own workload", "vision", "fleet"},
    "lena": {"own workload", "foreign workload", "vision", "speech", "fleet"},
    "sasha": {"foreign workload", "speech", "fleet"},
    "omar": {"own workload", "foreign workload", "vision", "speech", "fleet"},
}


@pytest.mark.parametrize("name", WHO_HEARS_WHAT)
def test_a_person_hears_what_the_person_may_see(world: World, name: str) -> None:
    topics = {
        "own workload": f"workload:{world.workload('a').pk}",
        "foreign workload": f"workload:{world.workload('b', by=world.sasha, team=world.speech).pk}",
        "vision": f"team:{world.vision.pk}",
        "speech": f"team:{world.speech.pk}",
        "fleet": "fleet",
        "himself": f"person:{world.robin.pk}",
    }

    heard = allowed(getattr(world, name), topics.values())

    assert {word for word, topic in topics.items() if topic in heard} == WHO_HEARS_WHAT[name]


@pytest.mark.parametrize(
    "topic",
    ["", ":", "workload:", "workload:1", "team:00000000-0000-0000-0000-000000000000", "person:", "person:x",
     "fleet:1", "FLEET", "workload:' OR 1=1", "everything"],
)  # fmt: skip
def test_what_is_no_topic_is_not_heard(world: World, topic: str) -> None:
    assert allowed(world.omar, [topic]) == []


def test_a_key_in_another_spelling_is_not_a_topic(world: World) -> None:
    row = world.workload("a")

    assert allowed(world.robin, [f"workload:{str(row.pk).upper()}", f"workload:{row.pk.hex}"]) == []


def test_many_topics_need_few_queries(world: World, django_assert_num_queries: Any) -> None:
    topics = [f"workload:{world.workload(f'w{number}').pk}" for number in range(40)]

    with django_assert_num_queries(3):
        assert len(allowed(world.robin, topics)) == 40
