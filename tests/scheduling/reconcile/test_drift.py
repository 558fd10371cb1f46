"""What somebody changed by hand, told from what nobody changed. That it is put right, fault 38 of the faults shows."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.reconcile.drift import astray, changed
from tests.scheduling.planning.builders import job, pod, statefulset, workload

ONE = workload("a").running_on("n1").having(attempt=1)
ASKS: dict[str, tuple[dict[str, int] | None, str]] = {  # what one pod of its object asks for, and what is said
    "as it was put": ({"nvidia.com/gpu": 1}, ""),
    "a slice": ({"nvidia.com/mig-1g.10gb": 1}, ""),
    "a card of another maker": ({"amd.com/gpu": 1}, ""),
    "a network device beside it": ({"nvidia.com/gpu": 1, "nvidia.com/hostdev": 2, "rdma/hca": 1}, ""),
    "nobody says": (None, ""),
    "more cards": ({"nvidia.com/gpu": 8}, "ask for 8 instead of 1"),
    "more cards of another maker": ({"amd.com/gpu": 8}, "ask for 8 instead of 1"),
    "a card beside its slice": ({"nvidia.com/mig-1g.10gb": 1, "nvidia.com/gpu": 1}, "ask for 2 instead of 1"),
    "none": ({}, "ask for 0 instead of 1"),
}


@pytest.mark.parametrize(("asks", "words"), ASKS.values(), ids=ASKS)
def test_an_object_that_asks_for(asks: dict[str, int] | None, words: str) -> None:
    said = changed(ONE.fact(), statefulset("a").having(generation=1, requests=asks).fact())

    assert words in said
    assert bool(said) is bool(words)


SHAPES: dict[str, tuple[Any, str]] = {
    "one pod": (statefulset("a"), ""),
    "three pods": (statefulset("a").having(replicas=3), "changed to 3 pods"),
    "no pod": (statefulset("a").having(replicas=0), "changed to 0 pods"),
    "a job that is over": (job("a").having(replicas=3, complete=True), ""),
    "one that goes": (statefulset("a").having(replicas=3).deleting(), ""),
    "one of another attempt": (statefulset("a").having(replicas=3, generation=2), ""),
}


@pytest.mark.parametrize(("thing", "words"), SHAPES.values(), ids=SHAPES)
def test_an_object_of(thing: Any, words: str) -> None:
    thing = thing if thing.facts["generation"] else thing.having(generation=1)

    said = changed(ONE.fact(), thing.fact())

    assert words in said
    assert bool(said) is bool(words)


def test_pods_that_hold_something_else_are_astray_whoever_made_the_card() -> None:
    right = pod("a", "n1").having(requests={"amd.com/gpu": 1}).fact()
    wrong = pod("a", "n1").having(requests={"amd.com/gpu": 2}).fact()

    assert astray(ONE.fact(), [right, wrong]) == [wrong]
