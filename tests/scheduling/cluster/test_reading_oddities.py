"""Node documents with something wrong in them, and things that are no node documents at all."""

import json
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.cluster.documents import Unreadable
from scheduling.cluster.reading import decode_nodes, read_node
from scheduling.planning.facts import NodeFact, Sharing
from tests.scheduling.cluster.builders import Document, file, h100, node

# What is odd is said, and the rest is read

ODD: dict[str, tuple[Document, str, str]] = {
    "a word for a number": (
        node(labels=h100(), gpu="abc"),
        "status.allocatable[nvidia.com/gpu]",
        "'abc' is not a quantity; the resource is not offered",
    ),
    "a negative number": (
        node(labels=h100(), gpu="-8"),
        "status.allocatable[nvidia.com/gpu]",
        "'-8' is negative; the resource is not offered",
    ),
    "an absurd number": (
        node(labels=h100(), gpu="1000000"),
        "status.allocatable[nvidia.com/gpu]",
        "'1000000' is more than any node can have; the resource is not offered",
    ),
    "half a card": (
        node(labels=h100(), gpu="500m"),
        "status.allocatable[nvidia.com/gpu]",
        "'500m' is not a whole number; the resource is not offered",
    ),
    "a number that is nothing": (
        node(labels=h100(), gpu=None),
        "status.allocatable[nvidia.com/gpu]",
        "'None' is not a quantity; the resource is not offered",
    ),
}


@pytest.mark.parametrize(("document", "field", "sentence"), ODD.values(), ids=ODD)
def test_an_unreadable_number_is_not_offered_and_the_node_is_still_read(
    document: Document, field: str, sentence: str
) -> None:
    fact = read_node(document)

    assert (fact.name, fact.model, fact.cards, fact.devices, fact.cpu_milli) == ("n1", "h100-80gb", 8, (), 32000)
    assert (field, sentence) in [(problem.field, problem.text) for problem in fact.problems]


def test_a_good_capacity_beside_an_unreadable_offer_still_counts_the_cards() -> None:
    fact = read_node(node(labels={"nvidia.com/gpu.product": "Tesla-T4"}, gpu="abc", capacity={"nvidia.com/gpu": "4"}))

    assert (fact.cards, fact.sick_cards, fact.devices) == (4, 0, ())
    assert [problem.field for problem in fact.problems] == ["status.allocatable[nvidia.com/gpu]"]


def test_more_offered_than_there_are_is_cut_to_what_there_are() -> None:
    fact = read_node(node(labels=h100(), gpu="9", capacity={"nvidia.com/gpu": "8"}))

    assert (fact.devices[0].capacity, fact.devices[0].allocatable) == (8, 8)
    assert [problem.text for problem in fact.problems] == ["9 units are offered of 8; 8 are counted"]


SET_ASIDE: dict[str, tuple[Document, str, str]] = {
    "an unknown model": (
        node(labels={"nvidia.com/gpu.product": "NVIDIA-H900-<b>", "nvidia.com/gpu.count": "8"}, gpu=8),
        "metadata.labels[nvidia.com/gpu.product]",
        "the catalog does not know the model NVIDIA-H900-<b>; its cards are set aside",
    ),
    "no model at all": (
        node(gpu=8),
        "metadata.labels[nvidia.com/gpu.product]",
        "no label tells the model of the cards; they are set aside",
    ),
    "a profile that the card has not": (
        node(labels=h100(), gpu=0, mig_9g_99gb=1),
        "status.allocatable[nvidia.com/mig-9g.99gb]",
        "9g.99gb is no profile that the catalog knows of H100 80GB; its slices are not offered",
    ),
    "a compute instance": (
        node(labels=h100(), gpu=0, also={"nvidia.com/mig-1c.3g.40gb": "1"}),
        "status.allocatable[nvidia.com/mig-1c.3g.40gb]",
        "1c.3g.40gb is no profile that the catalog knows of H100 80GB; its slices are not offered",
    ),
    "a layout that feature discovery calls invalid": (
        node(labels=h100(gpu__product="NVIDIA-H100-80GB-HBM3-MIG-INVALID", gpu__count="0"), gpu=0),
        "metadata.labels[nvidia.com/gpu.product]",
        "the node's cards are not all cut alike, as the strategy single needs; none are offered",
    ),
    "partitions of AMD cards": (
        node(labels={"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}, also={"amd.com/cpx_nps4": "64"}),
        "status.allocatable[amd.com/cpx_nps4]",
        "partitions of AMD cards are not handled; they are not offered",
    ),
    "another vendor": (
        node(also={"habana.ai/gaudi": "8"}),
        "status.allocatable[habana.ai/gaudi]",
        "Berth cannot place this kind of accelerator; it is not offered",
    ),
    "another device plugin": (
        node(labels=h100(), gpu=80, also={"nvidia.com/gpumem": "81559"}),
        "status.allocatable[nvidia.com/gpumem]",
        "Berth cannot place this kind of accelerator; it is not offered",
    ),
    "cards that only the labels tell of": (
        node(labels=h100()),
        "status.allocatable[nvidia.com/gpu]",
        "the labels tell of 8 cards, but none is advertised yet",
    ),
    "more cards than a machine holds": (
        node(labels=h100(gpu__count="9000"), gpu=9000),
        "status.capacity",
        "no machine has 9000 cards; none are offered",
    ),
}


@pytest.mark.parametrize(("document", "field", "sentence"), SET_ASIDE.values(), ids=SET_ASIDE)
def test_unknown_never_means_free(document: Document, field: str, sentence: str) -> None:
    fact = read_node(document)

    assert (field, sentence) in [(problem.field, problem.text) for problem in fact.problems]
    assert not fact.known or fact.devices == ()


def test_a_stale_success_is_said_and_the_nodes_own_word_counts() -> None:
    labels = h100(**{"mig.config": "all-1g.10gb", "mig.config.state": "success"})

    fact = read_node(node(labels=labels, gpu=8))

    assert fact.sharing is Sharing.WHOLE
    assert [problem.text for problem in fact.problems] == [
        "the label says all-1g.10gb and success, but the node offers whole cards; that counts"
    ]


def test_a_fresh_node_without_gpus_yet_is_read_and_odd_in_nothing() -> None:
    fact = read_node(node(labels={"node.cluster.x-k8s.io/pool": "a"}))

    assert (fact.pool, fact.cards, fact.devices, fact.ready, fact.problems) == ("a", 0, (), True, ())


def test_a_machine_without_cards_needs_no_explanation() -> None:
    control_plane = [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]

    fact = read_node(node(taints=control_plane))

    assert (fact.schedulable, fact.problems) == (False, ())


def test_labels_without_quotes_count_as_their_text() -> None:
    labels = {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.count": 2, "nvidia.com/mig.capable": True}

    fact = read_node(node(labels=labels, gpu=2))

    assert (fact.cards, fact.mig_capable, fact.problems) == (2, True, ())


HOSTILE = [
    "<script>alert(1)</script>",
    "'; DROP TABLE nodes; --",
    "../../etc",
    "a\nb",
    "{{ 7*7 }}",
    "x" * 100_000,
    "\u202e",
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_t5_a_hostile_name_is_only_text(name: str) -> None:
    fact = read_node(node(name, labels=h100() | {"agentpool": name}, gpu=8))

    assert (fact.name, fact.pool, fact.cards) == (name, name, 8)


WRONG_TYPES: dict[str, tuple[list[str], object, str]] = {
    "labels that are a list": (["metadata", "labels"], [], "metadata.labels"),
    "annotations that are a text": (["metadata", "annotations"], "x", "metadata.annotations"),
    "a uid that is a number": (["metadata", "uid"], 7, "metadata.uid"),
    "taints that are a text": (["spec", "taints"], "x", "spec.taints"),
    "a spec that is nothing": (["spec"], None, "spec"),
    "conditions that are an object": (["status", "conditions"], {}, "status.conditions"),
}


@pytest.mark.parametrize(("path", "value", "field"), WRONG_TYPES.values(), ids=WRONG_TYPES)
def test_a_field_of_the_wrong_type_is_left_out_and_said(path: list[str], value: object, field: str) -> None:
    document = node(labels=h100(), gpu=8)
    put(document, path, value)

    fact = read_node(document)

    assert fact.name == "n1"
    assert fact.problems[0].field == field
    assert fact.problems[0].text.endswith("; the field is left out")


def test_one_odd_taint_does_not_hide_the_next() -> None:
    taints = [7, {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}, {"key": 8, "effect": "NoSchedule"}]

    fact = read_node(node(labels=h100(), taints=taints, gpu=8))

    assert not fact.schedulable
    assert {"spec.taints[0]", "spec.taints[2].key", "spec.taints[karpenter.sh/disrupted]"} <= {
        p.field for p in fact.problems
    }


NAMELESS: dict[str, Any] = {
    "no metadata": {"kind": "Node"},
    "no name": {"metadata": {}},
    "a name that is nothing": {"metadata": {"name": None}},
    "a name that is a number": {"metadata": {"name": 7}},
    "an empty name": {"metadata": {"name": ""}},
    "metadata that is a list": {"metadata": []},
    "a text": "node",
    "nothing": None,
    "a list": [],
}


@pytest.mark.parametrize("document", NAMELESS.values(), ids=NAMELESS)
def test_what_cannot_be_named_is_refused(document: Any) -> None:
    with pytest.raises(Unreadable) as refusal:
        read_node(document)

    assert refusal.value.problem.text


@pytest.mark.parametrize("document", NAMELESS.values(), ids=NAMELESS)
def test_in_a_list_it_is_a_problem_and_its_neighbours_are_read(document: Any) -> None:
    raw = json.dumps(
        {"items": [node("a", gpu=1), document, node("b", gpu=1)], "metadata": {"continue": "more"}}
    ).encode()

    found = decode_nodes(raw)

    assert [fact.name for fact in found.facts] == ["a", "b"]
    assert [problem.field.startswith("items[1]") for problem in found.problems] == [True]
    assert found.next == "more"


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"null", b'{"items": {}}', b"\xff", b"[" * 100_000, b"<html>"])
def test_what_is_no_list_is_refused(raw: bytes) -> None:
    with pytest.raises(Unreadable, match="this is not a list of Kubernetes objects"):
        decode_nodes(raw)


# Anything at all

JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["abc", "-1", "8", "1e9", "True"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
PATHS = [
    ["metadata"],
    ["metadata", "labels"],
    ["metadata", "labels", "nvidia.com/gpu.count"],
    ["metadata", "labels", "nvidia.com/gpu.replicas"],
    ["metadata", "labels", "nvidia.com/gpu.product"],
    ["metadata", "labels", "nvidia.com/gpu.memory"],
    ["metadata", "annotations"],
    ["spec"],
    ["spec", "taints"],
    ["status"],
    ["status", "capacity"],
    ["status", "capacity", "nvidia.com/gpu"],
    ["status", "allocatable"],
    ["status", "allocatable", "nvidia.com/gpu"],
    ["status", "allocatable", "nvidia.com/mig-1g.10gb"],
    ["status", "allocatable", "cpu"],
    ["status", "conditions"],
]
NODES = ["01-gke-a100-40-full", "02-gke-h100x8-mig-mixed", "03-eks-g5-a10g-timesliced", "05-dgx-h100-mig-single-1g10gb"]
DOCUMENTS = [file(f"nodes/{name}.yaml") for name in NODES]


@given(st.sampled_from(DOCUMENTS), st.lists(st.tuples(st.sampled_from(PATHS), JUNK), max_size=3))
def test_whatever_a_node_says_the_fact_is_possible(document: Document, changes: list[tuple[list[str], Any]]) -> None:
    changed = deepcopy(document)
    for path, value in changes:
        put(changed, path, value)

    with suppress(Unreadable):
        check(read_node(changed))


@given(JUNK)
def test_anything_at_all_is_a_fact_or_a_refusal(value: Any) -> None:
    with suppress(Unreadable):
        check(read_node(value))


def check(fact: NodeFact) -> None:
    assert fact.name
    assert 0 <= fact.sick_cards <= fact.cards <= 64
    assert fact.replicas >= 1
    assert fact.cpu_milli >= 0
    assert fact.host_memory_mib >= 0
    assert fact.ready or not fact.schedulable
    for device in fact.devices:
        assert 0 <= device.allocatable <= device.capacity
        assert 0 < device.share <= 1
        assert device.memory_mib is None or device.memory_mib >= 0
    json.dumps([problem.text for problem in fact.problems])


def put(document: Any, path: list[str], value: object) -> None:
    """Set one place, as far as the way there is still one of objects."""
    for step in path[:-1]:
        document = document.get(step) if isinstance(document, dict) else None
    if isinstance(document, dict):
        document[path[-1]] = value
