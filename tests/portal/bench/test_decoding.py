"""The bench of reading measures what it says, on as many different nodes as it says."""

import json

import pytest

from portal.bench import decoding
from portal.bench.bar import Bar, bar_of, share_of
from portal.management.console import CouldNot
from scheduling.cluster.sources import NODES, documents_in, read_page
from tests.portal.commands.running import run


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(decoding, "NODES_READ", 16)
    monkeypatch.setattr(decoding, "PAGE", 8)
    monkeypatch.setattr(decoding, "CHANGES", 8)
    monkeypatch.setattr(decoding, "theirs_of", json.loads)  # the client takes seconds to be imported


def test_each_node_is_another_and_all_of_them_are_read():
    samples = decoding.read_samples()
    page = decoding.page_of(samples, 0)

    items, problems, _ = read_page(page, NODES)

    assert (len(items), problems) == (decoding.PAGE, [])
    assert len({(item.uid, item.fact.name) for item in items}) == decoding.PAGE
    assert {item.fact.cards for item in items} != {0}
    assert 5_000 < len(page) / decoding.PAGE < 5_600  # 26 MB for 5,000


def test_the_documents_are_whole_and_typed():
    page = decoding.page_of(decoding.read_samples(), 0)

    documents, _ = documents_in(page, NODES.document)

    assert {type(document) for document in documents} == {NODES.document}
    assert all(document.status.conditions and document.metadata.labels for document in documents)


@pytest.mark.slow
def test_the_client_reads_the_same_out_of_them():
    page = decoding.page_of(decoding.read_samples(), 0)
    documents, _ = documents_in(page, NODES.document)

    theirs = decoding.theirs_of(page)
    assert [node.metadata.labels for node in theirs.items] == [node.metadata.labels for node in documents]


def test_each_line_changes_a_fact():
    kept, changes = decoding.empty_kept(), 0
    for line in decoding.changes_of(decoding.read_samples()):
        changes += len(kept.hear(line))

    assert changes == decoding.CHANGES == len(kept.shelf.facts)


def test_the_bench_prints_its_bars(small, monkeypatch):
    monkeypatch.setattr("portal.bench.cluster.MEASUREMENTS", {})  # what takes minutes and a control plane
    outcome = run("bench", "cluster", "--json")

    assert outcome.code in (0, 1)
    assert {tuple(bar) for bar in outcome.json["bars"]} == {("name", "value", "yardstick", "ratio", "bar", "holds")}
    assert all(bar["yardstick"] > 0 for bar in outcome.json["bars"])


def test_without_samples_there_is_no_measurement(monkeypatch, tmp_path):
    monkeypatch.setattr(decoding, "ROOT", tmp_path)
    monkeypatch.setattr(decoding, "SAMPLES", tmp_path / "nodelist.json")

    with pytest.raises(CouldNot, match=r"nodelist\.json are not there"):
        decoding.bars()


BARS = {
    "a value at its bar": (bar_of("x", 2.0, 2.0, 4.0), Bar("x", 2.0, 4.0, 0.5, 2.0, True), "2 s"),
    "a value above it": (bar_of("x", 2.1, 2.0, 4.0), Bar("x", 2.1, 4.0, 0.525, 2.0, False), "2 s"),
    "a part at its bar": (
        share_of("x", 1.0, 0.05, 20.0),
        Bar("x, as a part of the client's", 1.0, 20.0, 0.05, 0.05, True), "0.05 yardsticks",
    ),
    "a part above it": (
        share_of("x", 1.1, 0.05, 20.0),
        Bar("x, as a part of the client's", 1.1, 20.0, 0.055, 0.05, False), "0.05 yardsticks",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BARS)
def test_a_bar_holds_up_to_and_with_its_figure(case):
    bar, expected, words = BARS[case]

    assert (bar, bar.words) == (expected, words)
    assert json.dumps(bar.value)
