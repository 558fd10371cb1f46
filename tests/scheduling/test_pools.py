"""The operator's rules for a pool: what may be written, and what is refused with the field."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import Http404

from scheduling.pools import access_pool, change_pool
from tenants.access import standing
from tenants.errors import NotAllowed, Refused


def change(world: Any, pool: str = "h100-shared", **rules: Any) -> Any:
    return change_pool(world.pools[pool], rules, by=world.omar, now=world.now)


def test_what_is_given_is_written_and_the_rest_stays(world: Any) -> None:
    changed = change(world, max_nodes=9, idle_minutes=None)

    assert (changed.max_nodes, changed.idle_minutes, changed.min_nodes, changed.empty_minutes) == (9, None, 0, 15)


def test_columns_of_the_cycle_are_not_rules(world: Any) -> None:
    changed = change(world, wished_nodes=99, model="x", trouble="x", spread=True)

    assert (changed.wished_nodes, changed.model, changed.trouble, changed.spread) == (1, "h100-80gb", "", True)


def test_a_change_wakes_the_cycle_and_tells_the_pages(
    world: Any, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    heard: list[Any] = []
    monkeypatch.setattr("scheduling.wake.current_app.send_task", lambda name, **facts: heard.append(name))
    monkeypatch.setattr("scheduling.announce.announce", lambda topic, what, **facts: heard.append((topic, what)))

    with django_capture_on_commit_callbacks(execute=True):
        change(world, max_nodes=9)
    with django_capture_on_commit_callbacks(execute=True):
        change(world, max_nodes=9)

    assert sorted(map(str, heard)) == ["('fleet', 'fleet')", "scheduling.cycle"]


def test_it_is_written_down_who_changed_what(world: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        change(world, max_nodes=9)

    assert "pool h100-shared of harbour-1 changed by omar" in caplog.text
    assert "{'max_nodes': 9}, was {'max_nodes': 3}" in caplog.text


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "more nodes than anybody runs": ({"max_nodes": 1001}, "max_nodes", "Nodes: choose 0 to 1000; 1001 is outside."),
    "less than none": ({"min_nodes": -1}, "min_nodes", "Nodes: choose 0 to 1000; -1 is outside."),
    "the least above the most": ({"min_nodes": 5}, "min_nodes", "At least 5 and at most 3 nodes do not go together"),
    "the most below the least": ({"min_nodes": 2, "max_nodes": 1}, "min_nodes", "At least 2 and at most 1"),
    "asleep at once": ({"idle_minutes": 1}, "idle_minutes", "Minutes until an idle workspace sleeps: choose 5 to"),
    "never empty": ({"empty_minutes": 1441}, "empty_minutes", "Minutes until an empty node goes: choose 0 to 1440"),
    "seven": ({"layout": "7"}, "layout", "H100 80GB has no such MIG layout"),
    "four where seven fit": (
        {"layouts": ["all-1g.10gb", "all-4g.20gb"]},
        "layouts",
        "H100 80GB has no such MIG layout",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused(world: Any, name: str) -> None:
    rules, field, text = REFUSED[name]

    with pytest.raises(Refused) as refusal:
        change(world, **rules)

    assert (refusal.value.field, refusal.value.text[: len(text)]) == (field, text)
    pool = world.pools["h100-shared"]
    pool.refresh_from_db()
    assert (pool.min_nodes, pool.max_nodes, pool.layout) == (0, 3, "all-1g.10gb")


def test_layouts_are_for_pools_that_are_cut(world: Any) -> None:
    with pytest.raises(Refused, match="not cut"):
        change(world, "h100-train", layouts=["all-1g.10gb"])


def test_a_pool_without_a_layout_of_its_own_may_be_cut_to_some(world: Any) -> None:
    assert change(world, layout="", layouts=["all-balanced"]).layouts == ["all-balanced"]


def test_a_static_pool_has_no_bounds(world: Any) -> None:
    pool = world.pools["h100-train"]
    pool.provider = "static"
    pool.save()

    with pytest.raises(Refused, match="come and go by hand"):
        change(world, "h100-train", max_nodes=9)
    assert change(world, "h100-train", idle_minutes=30).idle_minutes == 30


def test_everybody_reads_and_the_operator_changes(world: Any) -> None:
    pk = world.pools["h100-train"].pk

    assert access_pool(standing(world.robin), pk).pk == pk
    assert access_pool(standing(world.omar), pk, to="change").pk == pk
    with pytest.raises(NotAllowed):
        access_pool(standing(world.dana), pk, to="change")
    with pytest.raises(Http404):
        access_pool(standing(world.omar), 10**30)
