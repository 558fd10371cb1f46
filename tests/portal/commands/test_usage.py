"""`usage`: who uses which card how much, from a file."""

from pathlib import Path

import pytest

from tests.portal.commands.running import run

DATA = Path(__file__).parents[2] / "data"


def test_the_promised_keys() -> None:
    outcome = run("usage", str(DATA / "dcgm_samples" / "04-dra-mig-h100.prom"), "--json")

    assert (outcome.code, outcome.sentences) == (0, [])
    assert outcome.json == {
        "samples": [
            {
                "host": "dgx-h100-11",
                "card": "GPU-44aa90c1-2b3c-4d5e-8f60-718293a4b566",
                "gi": "2",
                "profile": "3g.40gb",
                "model": "NVIDIA H100 80GB HBM3",
                "namespace": "team-nlp",
                "pod": "infer-5d8c7",
                "pod_uid": "",
                "container": "server",
                "vgpu": "",
                "busy": 0.644201,
                "memory_used_mib": 21734,
                "memory_total_mib": 40320,
                "watts": 398.22,
                "temperature": None,
                "xid": None,
                "energy_mj": None,
                "shared_by": 1,
                "basis": "own",
            }
        ],
        "cards": 1,
        "boards": [
            {
                "host": "dgx-h100-11",
                "card": "GPU-44aa90c1-2b3c-4d5e-8f60-718293a4b566",
                "model": "NVIDIA H100 80GB HBM3",
                "watts": 398.22,
                "temperature": None,
                "xid": None,
                "energy_mj": None,
            }
        ],
        "dropped": [],
        "unattributed": 0,
    }


def test_m1_a_shared_card_is_said_to_be_one() -> None:
    outcome = run("usage", str(DATA / "traps" / "dcgm_timeslice_duplicate.prom"), "--json")

    assert {sample["basis"] for sample in outcome.json["samples"]} == {"card, shared by 3"}
    assert sum(sample["busy"] for sample in outcome.json["samples"]) <= 1
    assert sum(sample["watts"] or 0 for sample in outcome.json["samples"]) == 66.2


def test_m5_prometheus_answers_are_read_too() -> None:
    outcome = run("usage", str(DATA / "traps" / "prometheus_two_label_schemes.json"), "--json")

    assert (outcome.code, outcome.json["cards"], outcome.json["unattributed"]) == (0, 3, 1)
    assert [sample["namespace"] for sample in outcome.json["samples"]] == ["team-a", "team-b", ""]
    assert outcome.json["samples"][2]["basis"] == "nobody named"


def test_values_that_are_not_used_are_findings_and_missing_is_null() -> None:
    where = '{UUID="GPU-1",Hostname="h",pod="p"}'
    given = f"DCGM_FI_DEV_GPU_UTIL{where} NaN\nDCGM_FI_DEV_FB_USED{where} 5\nrubbish\n".encode()

    outcome = run("usage", "-", "--json", given=given)

    assert outcome.code == 1
    assert outcome.json["samples"][0]["busy"] is None
    assert outcome.json["dropped"] == [
        {"metric": "", "reason": "not a sample line", "count": 1},
        {"metric": "DCGM_FI_DEV_GPU_UTIL", "reason": "not a number", "count": 1},
    ]
    assert outcome.sentences == [
        "standard input: not a sample line (once).",
        "standard input: DCGM_FI_DEV_GPU_UTIL: not a number (once).",
    ]


def test_people_get_a_table() -> None:
    outcome = run("usage", str(DATA / "dcgm_samples" / "02-mig-mixed-h100.prom"))

    lines = outcome.out.splitlines()
    assert lines[0].split() == ["HOST", "CARD", "SLICE", "POD", "BUSY", "MEMORY,", "MiB", "WATTS", "BASIS"]
    assert "3g.40gb #2" in lines[1]
    assert "team-nlp/llama-8b-7c9f6d5b4d-2kz8t  87.5%" in lines[1]
    assert lines[-1] == "1 card, 421 W; 1 sample without a pod"


NOTHING = {
    "empty": (b"", ["standard input: it is empty;"]),
    "other metrics": (b"up 1\n", ["standard input: no metric of a card"]),
    "not metrics": (
        b"hello there\n",
        ["standard input: not a sample line (once).", "standard input: no metric of a card"],
    ),
    "not JSON": (b"{", ["standard input: not JSON (once).", "standard input: no metric of a card"]),
    "an error of Prometheus": (
        b'{"status":"error"}',
        ["standard input: not the answer of a Prometheus query (once).", "standard input: no metric of a card"],
    ),
    "bytes that are no text": (b"\xff", ["standard input: byte 0 is not UTF-8 text."]),
}


@pytest.mark.parametrize(("given", "sentences"), NOTHING.values(), ids=NOTHING)
def test_a_file_without_cards_is_said_to_be_one(given: bytes, sentences: list[str]) -> None:
    outcome = run("usage", "-", given=given)

    assert outcome.code == 2
    assert len(outcome.sentences) == len(sentences)
    assert all(said.startswith(start) for said, start in zip(outcome.sentences, sentences, strict=True))
    assert outcome.out == ""


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    outcome = run("usage", str(tmp_path / "x.prom"), "--json")

    assert (outcome.code, outcome.sentences) == (
        2,
        [f"{tmp_path / 'x.prom'}: it cannot be read: no such file or directory."],
    )
