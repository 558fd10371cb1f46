"""`inventory`: what a file of nodes comes to, good or broken."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.portal.commands.running import run

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data"
LIST = DATA / "nodes" / "nodelist.json"


def nodes() -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(LIST.read_text(encoding="utf-8"))["items"]
    return items


def names(outcome: Any) -> list[str]:
    return [node["name"] for node in outcome.json["nodes"]]


def written(folder: Path, text: str) -> str:
    file = folder / "nodes.yaml"
    file.write_text(text, encoding="utf-8")
    return str(file)


# The promised keys


def test_one_node_in_full() -> None:
    outcome = run("inventory", str(DATA / "nodes" / "05-dgx-h100-mig-single-1g10gb.yaml"), "--json")

    assert outcome.code == 0
    assert outcome.sentences == []
    assert outcome.json == {
        "nodes": [
            {
                "name": "dgx-h100-07",
                "pool": "",
                "model": "h100-80gb",
                "title": "H100 80GB",
                "known": True,
                "memory_mib": 81920,
                "cards": 8,
                "sick_cards": 0,
                "sharing": "mig",
                "replicas": 1,
                "capacity": "on-demand",
                "zone": "dc1-row4",
                "cpu_milli": 223500,
                "host_memory_mib": 2061816,
                "flavors": [
                    {
                        "resource": "nvidia.com/gpu",
                        "profile": "1g.10gb",
                        "share": "1/8",
                        "isolation": "hardware",
                        "memory_mib": 9984,
                        "total": 56,
                        "free_hint": 56,
                    }
                ],
                "ready": True,
                "schedulable": True,
                "problems": [],
            }
        ],
        "totals": {"cards": 8, "by_model": {"h100-80gb": 8}},
        "problems": [],
    }


def test_a_fleet_is_summed_and_its_findings_make_the_exit_code_1() -> None:
    outcome = run("inventory", str(LIST), "--json")

    assert outcome.code == 1
    assert outcome.json["totals"] == {
        "cards": 47,
        "by_model": {
            "a100-40gb": 2,
            "a10g-24gb": 4,
            "b200-180gb": 8,
            "h100-80gb": 24,
            "h100-94gb": 1,
            "mi300x-192gb": 8,
        },
    }
    sick = outcome.json["nodes"][-1]
    assert (sick["schedulable"], sick["sick_cards"], sick["flavors"][0]["free_hint"]) == (False, 1, 0)
    assert {"where": "hgx-h100-19", "field": "spec.unschedulable"}.items() <= sick["problems"][4].items()
    assert all(line.startswith(f"{LIST}: hgx-h100-19: ") for line in outcome.sentences)
    assert len(outcome.sentences) == len(sick["problems"])


def test_s10_the_free_hint_of_seven_of_eight_is_seven() -> None:
    outcome = run("inventory", str(DATA / "traps" / "nodes_traps.json"), "--json")

    assert [node["flavors"][0]["free_hint"] for node in outcome.json["nodes"]] == [50, 8, 7]
    assert [node["flavors"][0]["share"] for node in outcome.json["nodes"]] == ["1/50", "1/8", "1"]


def test_an_unknown_model_is_listed_and_nothing_of_it_is_free() -> None:
    node = nodes()[5]
    node["metadata"]["labels"]["nvidia.com/gpu.product"] = "NVIDIA-Z900"

    outcome = run("inventory", "-", "--json", given=json.dumps(node).encode())

    assert outcome.code == 1
    assert outcome.json["totals"]["by_model"] == {"NVIDIA-Z900": 8}
    assert outcome.json["nodes"][0]["flavors"][0]["free_hint"] == 0


def test_people_get_a_table() -> None:
    outcome = run("inventory", str(DATA / "nodes" / "03-eks-g5-a10g-timesliced.yaml"))

    head, row, total = outcome.out.splitlines()
    assert head.split("  ")[0] == "NODE"
    assert "gpu-a10g-shared  A10G 24GB  4      time-slice x 4  16 x 1/4      usable" in row
    assert total == "1 node, 4 cards: 4 x A10G 24GB"


# The forms in which nodes come


def as_list(kind: str) -> str:
    return json.dumps({"apiVersion": "v1", "kind": kind, "items": nodes()[:2]})


FORMS = {
    "a List in JSON": as_list("List"),
    "a NodeList in JSON": as_list("NodeList"),
    "a list without a kind": json.dumps({"items": nodes()[:2]}),
    "a bare array": json.dumps(nodes()[:2]),
    "a List in YAML": yaml.safe_dump({"kind": "List", "items": nodes()[:2]}, sort_keys=False),
    "documents in YAML": yaml.safe_dump_all(nodes()[:2]),
    "documents that begin with a line": "---\n" + yaml.safe_dump_all(nodes()[:2]) + "---\n",
    "a byte-order mark before it": "\ufeff" + as_list("List"),
    "items that do not say their kind": json.dumps(
        {"items": [{key: value for key, value in node.items() if key != "kind"} for node in nodes()[:2]]}
    ),
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_any_usual_form_is_read_from_standard_input(text: str) -> None:
    outcome = run("inventory", "-", "--json", given=text.encode())

    assert outcome.code == 0
    assert names(outcome) == [node["metadata"]["name"] for node in nodes()[:2]]


def test_yaml_without_quotes_is_text_all_the_same(tmp_path: Path) -> None:
    text = """
metadata:
  name: n1
  creationTimestamp: 2026-11-02T09:31:07Z
  labels: {nvidia.com/gpu.count: 2, nvidia.com/gpu.product: Tesla-T4}
status:
  allocatable: {cpu: 1.5, memory: 1e9, nvidia.com/gpu: 2}
  conditions: [{type: Ready, status: "True"}]
"""
    outcome = run("inventory", written(tmp_path, text), "--json")

    node = outcome.json["nodes"][0]
    assert (outcome.code, node["cards"], node["cpu_milli"], node["host_memory_mib"]) == (0, 2, 1500, 953)


# Broken files: one sentence with file and field, and the good nodes still read


def test_a_word_for_a_number_names_file_node_and_field(tmp_path: Path) -> None:
    odd = nodes()[0]
    odd["status"]["allocatable"]["nvidia.com/gpu"] = "abc"
    file = written(tmp_path, json.dumps({"items": [odd, nodes()[5]]}))

    outcome = run("inventory", file, "--json")

    name = odd["metadata"]["name"]
    assert outcome.code == 1
    assert outcome.sentences == [
        f"{file}: {name}: status.allocatable[nvidia.com/gpu]: 'abc' is not a quantity; the resource is not offered."
    ]
    assert [(node["cards"], len(node["flavors"])) for node in outcome.json["nodes"]] == [(2, 0), (8, 1)]


def test_a_node_without_a_name_is_left_out(tmp_path: Path) -> None:
    odd = nodes()[0]
    del odd["metadata"]["name"]
    file = written(tmp_path, json.dumps({"items": [odd, nodes()[5]]}))

    outcome = run("inventory", file, "--json")

    assert outcome.code == 1
    assert names(outcome) == ["dgx-b200-02"]
    assert outcome.sentences == [f"{file}: document 1, items[0]: metadata.name: this node has no name; it is left out."]
    assert outcome.json["problems"][0]["field"] == "metadata.name"


def test_a_node_that_stands_twice_counts_once(tmp_path: Path) -> None:
    outcome = run("inventory", written(tmp_path, json.dumps([nodes()[5], nodes()[5]])), "--json")

    assert (outcome.code, outcome.json["totals"]["cards"]) == (1, 8)
    assert "stands here again" in outcome.sentences[0]


def test_things_that_are_no_nodes_are_named(tmp_path: Path) -> None:
    pod = {"kind": "Pod", "metadata": {"name": "x"}}
    file = written(tmp_path, yaml.safe_dump_all([pod, nodes()[5], {"a": 1}, ["x", 7], "text"]))

    outcome = run("inventory", file, "--json")

    assert names(outcome) == ["dgx-b200-02"]
    assert outcome.sentences == [
        f"{file}: document 1: kind: this is a Pod; a Node or a list of Nodes is wanted.",
        f"{file}: document 3: kind: this is not a Kubernetes object; a Node is wanted.",
        f"{file}: document 4[0]: this is not a Kubernetes object but a text.",
        f"{file}: document 4[1]: this is not a Kubernetes object but a text.",
        f"{file}: document 5: this is not a Kubernetes object but a text.",
    ]


def test_json_that_breaks_off_gives_the_nodes_before_the_break(tmp_path: Path) -> None:
    whole = json.dumps({"kind": "List", "items": nodes()}, indent=1)
    file = written(tmp_path, whole[: whole.index("dgx-b200-02")])

    outcome = run("inventory", file, "--json")

    assert outcome.code == 1
    assert names(outcome) == [node["metadata"]["name"] for node in nodes()[:5]]
    assert outcome.sentences == [f"{file}: items: this is not JSON: Input data was truncated."]


def test_yaml_that_breaks_off_gives_the_nodes_before_the_break(tmp_path: Path) -> None:
    whole = yaml.safe_dump({"kind": "List", "items": nodes()}, sort_keys=False)
    file = written(tmp_path, whole[: whole.index("dgx-b200-02") - 6])

    outcome = run("inventory", file, "--json")

    assert outcome.code == 1
    assert names(outcome)[:5] == [node["metadata"]["name"] for node in nodes()[:5]]


def test_one_broken_member_of_a_yaml_list_does_not_hide_its_neighbours(tmp_path: Path) -> None:
    members = [yaml.safe_dump([node]) for node in nodes()[4:7]]
    members[1] = members[1].replace("  spec:", "  spec: [}", 1)
    file = written(tmp_path, "kind: List\nitems:\n" + "".join(members))

    outcome = run("inventory", file, "--json")

    assert names(outcome) == ["dgx-h100-07", "mi300x-oam-03"]
    line = "".join(["kind: List\nitems:\n", *members]).split("spec: [}")[0].count("\n") + 1
    assert [sentence.split(",")[0] for sentence in outcome.sentences] == [f"{file}: line {line}"]


def test_one_broken_document_does_not_hide_its_neighbours(tmp_path: Path) -> None:
    parts = [yaml.safe_dump(nodes()[4]), "a: [}\n", yaml.safe_dump(nodes()[5])]
    file = written(tmp_path, "---\n".join(parts))

    outcome = run("inventory", file, "--json")

    line = parts[0].count("\n") + 2
    assert names(outcome) == ["dgx-h100-07", "dgx-b200-02"]
    assert [sentence.split(",")[0] for sentence in outcome.sentences] == [f"{file}: line {line}"]


def test_nodes_without_cards_are_a_finding(tmp_path: Path) -> None:
    bare = {"kind": "Node", "metadata": {"name": "n1"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    file = written(tmp_path, json.dumps([bare, bare | {"metadata": {"name": "n2"}}]))

    outcome = run("inventory", file, "--json")

    assert outcome.code == 1
    assert outcome.sentences == [f"{file}: status.allocatable: none of the 2 nodes has a card; nothing can be placed."]
    assert outcome.json["totals"] == {"cards": 0, "by_model": {}}


NOTHING = {
    "empty": (b"", "it is empty; give it what `kubectl get nodes -o json` prints."),
    "blank": (b" \n\n", "it is empty; give it what `kubectl get nodes -o json` prints."),
    "a word": (b"nodes", "document 1: this is not a Kubernetes object but a text."),
    "a brace": (b"{", "this is not JSON: Input data was truncated."),
    "a table for people": (
        b"NAME   STATUS   ROLES\nn1     Ready    <none>\n",
        "document 1: this is not a Kubernetes object but a text.",
    ),
    "not YAML": (b"a: [}", "line 1, column 5: this is not YAML: did not find expected node content."),
    "a tag that would make an object": (
        b"!!python/object/apply:os.system [ls]",
        "line 1, column 1: this is not YAML: could not determine a constructor for the tag 'tag:yaml.org,2002:python/",
    ),
    "nested beyond reason": (b"- " * 100_000, "exceeded maximum nesting depth."),
    "nested beyond reason in JSON": (b"[" * 100_000, "this is not JSON: maximum recursion depth exceeded"),
    "a list of nothing": (b'{"kind": "List", "items": []}', "items: there is no node in it."),
    "another kind": (b'{"kind": "Pod"}', "document 1: kind: this is a Pod; a Node or a list of Nodes is wanted."),
    "bytes that are no text": (b"\xff\xfe\x00", "byte 0 is not UTF-8 text."),
}


@pytest.mark.parametrize(("given", "sentence"), NOTHING.values(), ids=NOTHING)
def test_a_file_without_nodes_is_one_sentence_and_the_exit_code_2(given: bytes, sentence: str) -> None:
    outcome = run("inventory", "-", given=given)

    (said,) = outcome.sentences
    assert outcome.code == 2
    assert said.startswith("standard input: ")
    assert sentence in said
    assert outcome.out == ""


@pytest.mark.parametrize(("name", "reason"), [("no-such-file", "no such file or directory"), ("", "is a directory")])
def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path, name: str, reason: str) -> None:
    outcome = run("inventory", str(tmp_path / name), "--json")

    assert (outcome.code, outcome.sentences) == (2, [f"{tmp_path / name}: it cannot be read: {reason}."])


def test_aliases_that_unfold_to_billions_stay_folded() -> None:
    bomb = "metadata:\n  name: n1\n  labels:\n    a: &a [x,x,x,x,x,x,x,x,x,x]\n"
    letters = "abcdefghijklmnopq"
    for before, after in pairwise(letters):
        bomb += f"    {after}: &{after} [{','.join([f'*{before}'] * 10)}]\n"

    outcome = run("inventory", "-", "--json", given=bomb.encode())

    assert names(outcome) == ["n1"]


def test_t5_hostile_names_cannot_move_the_cursor() -> None:
    node = nodes()[5]
    node["metadata"]["name"] = "\x1b[2J<script>\nx"

    outcome = run("inventory", "-", given=json.dumps(node).encode())

    assert "\x1b" not in outcome.out
    assert "<script>" in outcome.out.splitlines()[1]


def test_the_process_itself_ends_with_the_code_and_needs_no_tables() -> None:
    ended = subprocess.run(
        [sys.executable, "manage.py", "inventory", "-", "--json"],
        cwd=ROOT,
        input=b'{"kind": "List", "items": []}',
        capture_output=True,
        timeout=50,
        check=False,
    )

    assert ended.returncode == 2
    assert json.loads(ended.stdout)["nodes"] == []
    assert ended.stderr.decode().splitlines() == ["standard input: items: there is no node in it."]
