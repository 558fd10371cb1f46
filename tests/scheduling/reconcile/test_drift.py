"""What somebody changed by hand, told from what nobody changed. That it is put right, fault 38 of the faults shows."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.reconcile.drift import astray, changed
from tests.scheduling.planning.builders import job, pod, statefulset, workload

ONE = workload("a").running_on("n1").having(attempt=1)
CARD, SLICE, HALF, OTHER = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb", "amd.com/gpu"
ASKS: dict[str, tuple[str, dict[str, int] | None, str]] = {  # what it got, what its object asks for, what is said
    "as it was put": (CARD, {CARD: 1}, ""),
    "a slice": (SLICE, {SLICE: 1}, ""),
    "a card of another maker": (OTHER, {OTHER: 1}, ""),
    "a network device beside it": (CARD, {CARD: 1, "nvidia.com/hostdev": 2, "rdma/hca": 1}, ""),
    "nobody says": (CARD, None, ""),
    "more cards": (CARD, {CARD: 8}, "ask for 8 instead of 1"),
    "more cards of another maker": (OTHER, {OTHER: 8}, "ask for 8 instead of 1"),
    "a larger slice": (SLICE, {HALF: 1}, f"ask for 1 {HALF} instead of 1 {SLICE}"),
    "a card beside its slice": (SLICE, {SLICE: 1, CARD: 1}, f"ask for 1 {CARD} and 1 {SLICE} instead of 1 {SLICE}"),
    "none": (CARD, {}, "ask for 0 instead of 1"),
}


@pytest.mark.parametrize(("got", "asks", "words"), ASKS.values(), ids=ASKS)
def test_an_object_that_asks_for(got: str, asks: dict[str, int] | None, words: str) -> None:
    said = changed(ONE.fact(), statefulset("a").having(generation=1, requests=asks).fact(), {got: 1})

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

    said = changed(ONE.fact(), thing.fact(), {CARD: 1})

    assert words in said
    assert bool(said) is bool(words)


def test_pods_that_hold_something_else_are_astray_whoever_made_the_card() -> None:
    right, wrong = (pod("a", "n1").having(requests={OTHER: units}).fact() for units in (1, 2))

    assert astray([right, wrong], {OTHER: 1}) == [wrong]
